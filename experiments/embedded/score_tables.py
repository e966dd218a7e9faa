"""The tables of `score.py` as a page of Markdown: errors and losses in, text out.

n clip
"""

import json
from datetime import date
from pathlib import Path

import numpy as np
from torch import Tensor

from curvedray.evaluate.report import interval_text, mean_text
from curvedray.evaluate.statistics import bootstrap
from curvedray.evaluate.world_truth import AXES, ClipErrors, KnownClips
from curvedray.files import whole_file
from curvedray.tables import markdown_table

FAMILIES = ("pinhole", "wide", "fisheye")
MEASURES = {
    "rotation": "Rotation, degrees per frame",
    "rot_err": "RotErr, rad",
    "trans_err": "TransErr",
    "cam_mc": "CamMC",
    "metres": "Translation, m",
    "fov": "FoV, degrees",
    "xi": "xi",
    "distance": "Distances, log",
}
MAPPED = {"distance": "Distances, log", "decibels": "PSNR with the exact rendering, dB", "metres": "Translation, m"}
WITH_MAP = ", exact map"  # ends the name of a row that is given each clip's radial map
OBEYED = {"theme": "theme", "colour": "colours", "kind": "kinds"}


def write_tables(
    out: Path,
    truth: KnownClips,
    families: np.ndarray,
    values: dict[str, ClipErrors],
    losses: dict[str, dict[str, Tensor]],
    estimator: str,
    split: str,
) -> None:
    """All tables as one page of Markdown."""
    page = [
        "# The embedded model, measured",
        "",
        f"{len(truth)} clips of the {split} split, five poses each (every fourth frame), read by the embedded "
        f"estimator (version {estimator}). Means over clips with 95 % bootstrap intervals. {date.today().isoformat()}, "
        "two CPU cores. TransErr and CamMC divide each path by its own largest translation, so clips that hardly "
        "translate are noise in them: they are taken over clips that move more than 0.3 m. Distances are those seen in "
        "the video, against the exact scene's, in log metres.",
        "",
        "## In short",
        "",
        _summary(values),
        "",
        "## Does it obey the camera?",
        "",
        markdown_table(["row", *MEASURES.values()], _measure_rows(truth, values)),
        "",
        "Correlation over clips between what was asked and what was found, at the last frame:",
        "",
        markdown_table(
            ["row", *AXES],
            [[name, *(interval_text(v.correlation(axis)) for axis in AXES)] for name, v in values.items()],
        ),
        "",
        "## By lens family",
        "",
        markdown_table(
            ["row", *(f"{family}, {name}" for family in FAMILIES for name in ("rotation", "FoV"))],
            [
                [name, *(mean_text(v.measures[m][families == f]) for f in FAMILIES for m in ("rotation", "fov"))]
                for name, v in values.items()
            ],
        ),
        "",
        "## Does it obey the prompt?",
        "",
        "Share of themes, and of the three places' colours and kinds (or their being empty), that the estimator reads "
        "as the caption says.",
        "",
        markdown_table(
            ["row", *OBEYED.values()],
            [[name, *(mean_text(v.measures[m]) for m in OBEYED)] for name, v in values.items()],
        ),
        "",
        "## Does it obey a map of distances?",
        "",
        "What an adapter trained with maps gains from each clip's exact one, clip by clip.",
        "",
        markdown_table(["row", *MAPPED.values()], _map_rows(values)),
        "",
        "## Held-out denoising loss and radial head",
        "",
        "The flow-matching error at three noise levels, with the same noise for every row, and the radial head's mean "
        "absolute error in log radius, against the exact radii; `constant` is one number for all.",
        "",
        _losses(losses),
    ]
    with whole_file(out / "table.md") as temporary:
        temporary.write_text("\n".join(page) + "\n")
    record = {name: {key: x.double().mean().item() for key, x in found.items()} for name, found in losses.items()}
    with whole_file(out / "losses.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1))


def _summary(values: dict[str, ClipErrors]) -> str:
    """What the model's page shows: the rows to compare with, and every adapter as it is best used."""
    # Of a run's rows the last counts, which has the most guidance.
    best = {name.split(",")[0]: name for name in values if not name.endswith(WITH_MAP)}
    axes = (("yaw", "pitch", "roll"), ("x", "y", "z"))
    rows = []
    for row in best.values():
        means = [bootstrap(values[row].measures[name]) for name in ("rotation", "metres", "fov")]
        cells = [f"{i.mean:.{d}f} [{i.low:.{d}f}, {i.high:.{d}f}]" for i, d in zip(means, (1, 2, 1), strict=True)]
        found = [[values[row].correlation(axis).mean for axis in group] for group in axes]
        rows.append([row, *cells, *("/".join("-" if np.isnan(r) else f"{r:.2f}" for r in group) for group in found)])
    head = ["row", "rotation, degrees per frame", "translation, m", "FoV, degrees", "r of yaw/pitch/roll", "r of x/y/z"]
    return markdown_table(head, rows)


def _measure_rows(truth: KnownClips, values: dict[str, ClipErrors]) -> list[list[str]]:
    moves = (truth.shift.norm(dim=-1).amax(1) > 0.3).numpy()
    rows = []
    for name, value in values.items():
        cells = [value.measures[m][moves] if m in ("trans_err", "cam_mc") else value.measures[m] for m in MEASURES]
        rows.append([name, *(mean_text(cell) for cell in cells)])
    return rows


def _map_rows(values: dict[str, ClipErrors]) -> list[list[str]]:
    rows = []
    for name, value in values.items():
        if name.endswith(WITH_MAP):
            without = values[name.removesuffix(WITH_MAP)].measures
            rows.append([name, *(mean_text(value.measures[key] - without[key], 2) for key in MAPPED)])
    return rows


def _losses(losses: dict[str, dict[str, Tensor]]) -> str:
    names = sorted({key for found in losses.values() for key in found})
    rows = [
        [run, *(mean_text(found[key].double().numpy(), 4) if key in found else "-" for key in names)]
        for run, found in losses.items()
    ]
    text = markdown_table(["row", *names], rows)
    ours = [key for key in names if key.startswith("loss")]
    if "ucpe" in losses:
        rows = [
            [run, *(mean_text((found[key] - losses["ucpe"][key]).double().numpy(), 4) for key in ours)]
            for run, found in losses.items()
            if run != "ucpe"
        ]
        text += f"\n\nDifferences from ucpe, clip by clip:\n\n{markdown_table(['row', *ours], rows)}"
    return text
