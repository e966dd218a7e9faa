"""Every table, figure and in-text result of the paper, and what we add to it; each has a runner in `experiments/`."""

from dataclasses import dataclass
from typing import Literal

from curvedray.errors import InputError
from curvedray.evaluate.report import definition_of
from curvedray.evaluate.scores import Better
from curvedray.paper import values as printed
from curvedray.paper.values import Values

Kind = Literal["table", "figure", "text", "ours"]  # `text`: a result in the paper's text; `ours`: not in the paper
# Directions of columns that `evaluate` does not itself compute.
OTHER_DIRECTIONS: dict[str, Better] = {
    "Avg. Rank": "lower", "LPIPS": "lower", "IS Std.": "neither", "Aesthetic": "higher", "BG Cons.": "higher",
    "Img. Qual.": "higher", "Overall Cons.": "higher", "Subject Cons.": "higher", "Temporal Style": "higher",
    "median": "lower", "q1": "lower", "q3": "lower", "iqr": "lower", "log-MAE": "lower", "width": "neither",
    "Words": "higher", "FVD (estimator)": "lower", "FID (estimator)": "lower", "CS-I (estimator)": "higher",
    "drift": "lower", "largest gradient": "lower", "radial error": "lower", "Flow loss": "lower",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One table, figure or result."""

    name: str
    kind: Kind
    title: str
    values: Values | None = None
    notes: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return f"curvedray.paper.experiments.{self.name.replace('-', '_')}"

    def direction(self, metric: str) -> Better:
        known = definition_of(metric)
        return known.better if known else OTHER_DIRECTIONS.get(metric, "neither")


MERGED = "The merged UCPE CamMC of 21.87 cannot be a mean of its subsets, 20.60 and 18.50; about 20.05 would fit."
RANKS = "The average ranks fit 17 metrics in two tables and 20 in a third, not the 19 stated. The order is unchanged."
K3 = "K=3 has the best pose in the breakpoint table; the appendix table that calls K=5 strongest leaves K=3 out."
SSI = (
    "The text says that supervision improves SSI-L1 by 0.047; the table has 0.030 (1K to 10K) and 0.046 (beside none)."
)
STRIDE = "Stride 4: not comparable with stride 1 tables."
K_NOTES = (RANKS, K3, STRIDE)

ITEMS = (
    Item("teaser", "figure", "Camera-controlled films through bent lenses"),
    Item("properties", "table", "Geometry-aware encodings: which can do what"),
    Item("method", "figure", "CRePE"),
    Item("qualitative", "figure", "Matched prompts and paths, three methods"),
    Item("lenses", "table", "Pinhole and non-pinhole comparison", printed.LENSES, (MERGED,)),
    Item("placement", "table", "Which blocks are curved", printed.PLACEMENT, (RANKS,)),
    Item("breakpoints", "table", "Breakpoints without supervision, K = 1 to 7", printed.BREAKPOINTS, K_NOTES),
    Item("injection", "table", "Depth as features against depth as phase", printed.INJECTION, (MERGED,)),
    Item("supervision", "table", "With and without supervision, short and long", printed.SUPERVISION, (SSI,)),
    Item("alternate-teacher", "text", "Supervised by another teacher", printed.ALTERNATE_TEACHER, (STRIDE,)),
    Item("dynamic-regions", "text", "Radii of what moves", printed.DYNAMIC_REGIONS),
    Item("zero-shot", "table", "Cameras never trained on", printed.ZERO_SHOT, (STRIDE,)),
    Item("kitti-orientation", "text", "Orientation on KITTI-360, untuned", printed.KITTI_ORIENTATION, (STRIDE,)),
    Item("davis", "figure", "External radial maps on DAVIS, qualitatively"),
    Item("adherence", "table", "Adherence to an external radial map", printed.ADHERENCE),
    Item("non-pinhole-control", "text", "Adherence on 48 non-pinhole scenes", printed.NON_PINHOLE_CONTROL),
    Item("external", "figure", "External radial-map control"),
    Item("architecture", "figure", "The Geometric Attention Adapter"),
    Item("probing", "figure", "Radial distance in each block of the backbone"),
    Item("layer-maps", "figure", "Predicted radial maps by block"),
    Item("denoising", "figure", "Predicted radial maps during denoising"),
    Item("overall", "table", "Overall comparison, both subsets merged", printed.OVERALL, (MERGED,)),
    Item("breakpoints-full", "table", "Breakpoints, every metric", printed.BREAKPOINTS_FULL, (RANKS, K3)),
    Item(
        "stratified",
        "table",
        "Breakpoints by lens",
        printed.STRATIFIED,
        ("13 pinhole and 37 non-pinhole clips, stride 4.",),
    ),
    Item("stability", "table", "Temporal stability of log-radial statistics", printed.STABILITY),
    Item("teacher-width", "table", "Width of the injected map at inference", printed.TEACHER_WIDTH),
    Item("query-rotation", "ours", "Queries and values turned too"),
    Item("camera-guidance", "ours", "Guidance towards the camera"),
    Item("loss-spikes", "ours", "The radial loss and its floor"),
    Item("behind-camera", "ours", "The coordinate behind the camera"),
    Item("clamp-gradient", "ours", "The gradient of a bounded interval"),
)  # fmt: skip


def item(name: str) -> Item:
    """An item by its short name."""
    found = next((entry for entry in ITEMS if entry.name == name), None)
    if found is None:
        raise InputError("table or figure", ", ".join(entry.name for entry in ITEMS), name)
    return found
