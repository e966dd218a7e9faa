"""Every table and figure of the paper: what it needs, what it costs, and what runs here.

An experiment is a file in `experiments/`, one per table. A table that cannot be run says why.
"""

from dataclasses import dataclass
from importlib.util import find_spec

from curvedray.errors import InputError
from curvedray.evaluate.report import definition_of
from curvedray.evaluate.scores import Better
from curvedray.paper import values as printed
from curvedray.paper.values import Values

SCALES = ("embedded", "wan")
WAN, PANSHOT = "Wan2.1-T2V-1.3B", "PanShot (340 test clips)"
ESTIMATORS, QUALITY = "ViPE and GeoCalib", "I3D, Inception, CLIP and VBench weights"
FULL_RUN = "10K steps of batch 8 per row on Wan-1.3B; GPU days"
SHORT_RUN = "1K steps of batch 8 per row on Wan-1.3B; GPU hours"
# Directions of columns that the package does not itself compute.
OTHER_DIRECTIONS: dict[str, Better] = {
    "Avg. Rank": "lower", "LPIPS": "lower", "IS Std.": "neither", "Aesthetic": "higher", "BG Cons.": "higher",
    "Img. Qual.": "higher", "Overall Cons.": "higher", "Subject Cons.": "higher", "Temporal Style": "higher",
    "median": "lower", "q1": "lower", "q3": "lower", "iqr": "lower",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One table or figure of the paper."""

    name: str
    kind: str  # table or figure
    title: str
    needs: tuple[str, ...]
    cost: str
    scales: tuple[str, ...] = ()  # at which its experiment is designed to run
    values: Values | None = None
    notes: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return f"curvedray.paper.experiments.{self.name.replace('-', '_')}"

    @property
    def missing(self) -> str:
        """What its experiment lacks at a desk; nothing: it runs."""
        from curvedray.evaluate.estimators.embedded import WEIGHTS as READER
        from curvedray.models.embedded.model import WEIGHTS

        if not self.scales:
            return f"it needs {', '.join(self.needs)}" if self.needs else "there is nothing to run"
        assert find_spec(self.module), f"a table with scales has {self.module}"
        if not WEIGHTS.is_file():
            return "the embedded model's weights are not in this package"
        return "" if READER.is_file() else "the embedded estimator's weights are not in this package"

    @property
    def status(self) -> str:
        """What runs here, now, in a few words."""
        return f"no: {self.missing}" if self.missing else f"yes: --scale {' or '.join(self.scales)}"

    def direction(self, metric: str) -> Better:
        known = definition_of(metric)
        return known.better if known else OTHER_DIRECTIONS.get(metric, "neither")


MERGED = "The merged UCPE CamMC of 21.87 cannot be a mean of its subsets, 20.60 and 18.50; about 20.05 would fit."
RANKS = "The average ranks fit 17 metrics in two tables and 20 in a third, not the 19 stated. The order is unchanged."
K3 = "K=3 has the best pose in the breakpoint table; the appendix table that calls K=5 strongest leaves K=3 out."

ITEMS = (
    Item("teaser", "figure", "Camera-controlled generation under non-pinhole lenses", (WAN,), "minutes per clip"),
    Item("properties", "table", "Geometry-aware positional encodings: which can do what", (), "nothing"),
    Item("method", "figure", "CRePE", (), "nothing"),
    Item("qualitative", "figure", "Matched prompts and paths, three methods", (WAN, PANSHOT), FULL_RUN),
    Item(
        "lenses",
        "table",
        "Pinhole and non-pinhole comparison",
        (WAN, PANSHOT, ESTIMATORS, QUALITY),
        FULL_RUN,
        ("embedded",),
        printed.LENSES,
        (MERGED,),
    ),
    Item(
        "placement",
        "table",
        "Which blocks are curved",
        (WAN, PANSHOT, ESTIMATORS, QUALITY),
        SHORT_RUN,
        (),
        printed.PLACEMENT,
        (RANKS,),
    ),
    Item(
        "breakpoints",
        "table",
        "Breakpoints without supervision, K = 1 to 7",
        (WAN, PANSHOT, ESTIMATORS, QUALITY),
        SHORT_RUN,
        ("embedded",),
        printed.BREAKPOINTS,
        (RANKS, K3, "Stride 4: not comparable with stride 1 tables."),
    ),
    Item(
        "injection",
        "table",
        "Depth as features against depth as phase",
        (WAN, PANSHOT, ESTIMATORS),
        FULL_RUN,
        (),
        printed.INJECTION,
        (MERGED,),
    ),
    Item(
        "supervision",
        "table",
        "With and without radial supervision, 1K and 10K steps",
        (WAN, PANSHOT, ESTIMATORS, "UniK3D"),
        FULL_RUN,
        (),
        printed.SUPERVISION,
    ),
    Item(
        "zero-shot",
        "table",
        "KITTI-360 and RealCam-Vid, untuned",
        (WAN, "KITTI-360 and RealCam-Vid", "ViPE"),
        "a trained model; minutes per clip",
        (),
        printed.ZERO_SHOT,
        ("Stride 4.",),
    ),
    Item(
        "davis",
        "figure",
        "External radial maps on DAVIS, qualitatively",
        (WAN, "DAVIS-2016", "UniK3D"),
        "a MixForcing model; minutes per clip",
    ),
    Item(
        "adherence",
        "table",
        "External radial-map adherence on DAVIS-2016",
        (WAN, "DAVIS-2016", "UniK3D"),
        "a MixForcing model; minutes per clip",
        (),
        printed.ADHERENCE,
    ),
    Item("external", "figure", "External radial-map control", (WAN, "UniK3D"), "a MixForcing model; minutes per clip"),
    Item("architecture", "figure", "The Geometric Attention Adapter", (), "nothing"),
    Item(
        "probing",
        "figure",
        "Radial distance in each layer of Wan",
        (WAN, PANSHOT, "UniK3D"),
        "a probe per block; GPU hours",
    ),
    Item("layer-maps", "figure", "Predicted radial maps by layer", (WAN,), "a trained model; minutes"),
    Item("denoising", "figure", "Predicted radial maps during denoising", (WAN,), "a trained model; minutes"),
    Item(
        "overall",
        "table",
        "Overall comparison, both subsets merged",
        (WAN, PANSHOT, ESTIMATORS, QUALITY),
        FULL_RUN,
        (),
        printed.OVERALL,
        (MERGED,),
    ),
    Item(
        "breakpoints-full",
        "table",
        "Breakpoints, every metric",
        (WAN, PANSHOT, ESTIMATORS, QUALITY),
        SHORT_RUN,
        (),
        printed.BREAKPOINTS_FULL,
        (RANKS, K3),
    ),
    Item(
        "stratified",
        "table",
        "Breakpoints by lens",
        (WAN, PANSHOT, "ViPE"),
        SHORT_RUN,
        (),
        printed.STRATIFIED,
        ("13 pinhole and 37 non-pinhole clips, stride 4.",),
    ),
    Item(
        "stability",
        "table",
        "Temporal stability of log-radial statistics",
        (WAN, PANSHOT, "UniK3D and ViPE"),
        "a trained model; minutes per clip",
        (),
        printed.STABILITY,
    ),
    Item(
        "teacher-width",
        "table",
        "Width of the injected map at inference",
        (WAN, PANSHOT, ESTIMATORS),
        "a MixForcing model; minutes per clip",
        (),
        printed.TEACHER_WIDTH,
    ),
)


def item(name: str) -> Item:
    """A table or figure by its short name."""
    found = next((entry for entry in ITEMS if entry.name == name), None)
    if found is None:
        raise InputError("table or figure", ", ".join(entry.name for entry in ITEMS), name)
    return found
