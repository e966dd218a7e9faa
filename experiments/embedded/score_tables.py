"""The tables of `score.py`: truths and readings in, Markdown and JSON out.

n clip   t latent frame
"""

import json
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial.transform import Rotation
from torch import Tensor
from truths import COLOURS, KINDS, THEMES, classes_of, radii_of

from curvedray.evaluate.estimators.clip_reader import GRID, Reading
from curvedray.evaluate.estimators.embedded import Embedded, poses
from curvedray.evaluate.metrics.pose import pose_errors
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.statistics import Interval, bootstrap, resamples
from curvedray.files import whole_file
from curvedray.tables import markdown_table
from curvedray.world.world import WorldClip

AXES = ("yaw", "pitch", "roll", "x", "y", "z")
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


@dataclass(frozen=True, eq=False)
class Truth:
    """What was asked for, clip by clip."""

    poses: Float[np.ndarray, "n t 4 4"]  # metres, the first camera is the world
    turn: Float[np.ndarray, "n t 3"]
    fov: Float[np.ndarray, " n"]  # radians
    xi: Float[np.ndarray, " n"]
    theme: np.ndarray
    colour: np.ndarray
    kind: np.ndarray
    log_radius: Float[np.ndarray, "n t y x"]  # metres
    known: np.ndarray  # which of those are
    family: np.ndarray

    @classmethod
    def of(cls, clips: list[WorldClip]) -> "Truth":
        paths = [clip.cameras.latent_frames(GRID).relative_to_first().world_from_camera for clip in clips]
        stack = torch.stack(paths).double().numpy()
        turns = Rotation.from_matrix(stack[..., :3, :3].reshape(-1, 3, 3)).as_rotvec().reshape(*stack.shape[:2], 3)
        themes, colours, kinds = zip(*(classes_of(clip.world) for clip in clips), strict=True)
        log_radii, known = zip(*(radii_of(clip) for clip in clips), strict=True)
        return cls(
            stack,
            turns,
            np.array([np.radians(float(clip.cameras.lens.hfov)) for clip in clips]),
            np.array([float(clip.cameras.lens.xi) for clip in clips]),
            np.array(themes),
            np.array(colours),
            np.array(kinds),
            torch.stack(log_radii).double().numpy(),
            torch.stack(known).numpy(),
            np.array([clip.family for clip in clips]),
        )

    def shuffled(self) -> "Truth":
        """Every clip is asked for the next one's camera."""
        moved = {name: np.roll(getattr(self, name), 1, 0) for name in ("poses", "turn", "fov", "xi")}
        return replace(self, **moved)

    def standing_still(self) -> Reading:
        """What one who never looks would say: no motion, the middle lens and distance, the commonest words."""
        count, frames = self.turn.shape[:2]
        zeros = torch.zeros(count, frames, 3)
        theme, colour, kind = (
            torch.nn.functional.one_hot(torch.from_numpy(np.broadcast_to(_mode(x), x.shape).copy()), classes).float()
            for x, classes in ((self.theme, len(THEMES)), (self.colour, len(COLOURS) + 1), (self.kind, len(KINDS) + 1))
        )
        fov, xi = (torch.full((count,), float(np.median(x)), dtype=torch.float32) for x in (self.fov, self.xi))
        distance = torch.full(self.known.shape, float(np.median(self.log_radius[self.known])), dtype=torch.float32)
        return Reading(zeros, zeros, fov, xi, distance, theme, colour, kind)


def _mode(classes: np.ndarray) -> np.ndarray:
    """The commonest class of every column."""
    columns = classes.reshape(len(classes), -1).T
    return np.array([np.bincount(column).argmax() for column in columns]).reshape(classes.shape[1:])


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen in a row's videos: what the estimator reads, and how near they are to the exact rendering."""

    reading: Reading
    decibels: Float[Tensor, " n"] | None = None  # none where nobody films


@dataclass(frozen=True, eq=False)
class Values:
    """One row of the table, clip by clip."""

    measures: dict[str, Float[np.ndarray, " n"]]
    asked: dict[str, Float[np.ndarray, " n"]]  # each axis at the last frame
    found: dict[str, Float[np.ndarray, " n"]]

    def correlation(self, axis: str) -> Interval:
        """Pearson's r between what was asked and found, with a bootstrap interval over clips."""
        asked, found = self.asked[axis], self.found[axis]
        if found.std() == 0:
            return Interval(float("nan"), float("nan"), float("nan"))
        drawn = resamples(len(asked))
        a, b = asked[drawn], found[drawn]
        a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
        size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
        many = (a * b).sum(1)[size > 0] / size[size > 0]  # a draw of one clip over and over has no correlation
        low, high = np.percentile(many, [2.5, 97.5])
        return Interval(float(np.corrcoef(asked, found)[0, 1]), float(low), float(high))

    def to_json(self) -> dict[str, Any]:
        means = {name: vars(bootstrap(value)) for name, value in self.measures.items()}
        return means | {f"r {axis}": vars(self.correlation(axis)) for axis in AXES}


def values_of(truth: Truth, seen: Seen) -> Values:
    """Errors of every clip."""
    said = seen.reading
    found = poses(said)
    errors = [pose_errors(a, b) for a, b in zip(truth.poses, found, strict=True)]
    right = {name: (getattr(said, name).argmax(-1).numpy() == getattr(truth, name)).astype(float) for name in OBEYED}
    away = np.abs(said.log_radius.double().numpy() - truth.log_radius) * truth.known
    measures = {
        "rotation": np.array([e.degrees_a_frame for e in errors]),
        "rot_err": np.array([e.rot_err for e in errors]),
        "trans_err": np.array([e.trans_err for e in errors]),
        "cam_mc": np.array([e.cam_mc for e in errors]),
        "metres": np.linalg.norm(truth.poses[:, 1:, :3, 3] - found[:, 1:, :3, 3], axis=-1).mean(1),
        "fov": np.degrees(np.abs(said.fov.double().numpy() - truth.fov)),
        "xi": np.abs(said.xi.double().numpy() - truth.xi),
        "distance": away.sum((1, 2, 3)) / truth.known.sum((1, 2, 3)),
        **{name: value if value.ndim == 1 else value.mean(1) for name, value in right.items()},
    }
    if seen.decibels is not None:
        measures["decibels"] = seen.decibels.double().numpy()
    # Cameras look along z with y down: a turn about y is yaw, about x pitch, about z roll.
    order = {"yaw": 1, "pitch": 0, "roll": 2}
    last = said.turn[:, -1].double().numpy()
    asked = {name: truth.turn[:, -1, i] for name, i in order.items()}
    got = {name: last[:, i] for name, i in order.items()}
    for index, axis in enumerate("xyz"):
        asked[axis], got[axis] = truth.poses[:, -1, index, 3], found[:, -1, index, 3]
    return Values(measures, asked, got)


def write_tables(
    out: Path,
    truth: Truth,
    values: dict[str, Values],
    losses: dict[str, dict[str, Tensor]],
    estimator: Embedded,
    clips: int,
    split: str,
) -> None:
    """All tables as one page of Markdown."""
    page = [
        "# The embedded model, measured",
        "",
        f"{clips} clips of the {split} split, five poses each (every fourth frame), read by the embedded estimator "
        f"(version {estimator.version}). Means over clips with 95 % bootstrap intervals. {date.today().isoformat()}, "
        "two CPU cores. TransErr and CamMC divide each path by its own largest translation, so clips that hardly "
        "translate are noise in them: they are taken over clips that move more than 0.3 m. Distances are those seen in "
        "the video, against the exact scene's, in log metres.",
        "",
        "## In short",
        "",
        *_summary(values),
        "",
        "## Does it obey the camera?",
        "",
        *_table(["row", *MEASURES.values()], _measure_rows(truth, values)),
        "",
        "Correlation over clips between what was asked and what was found, at the last frame:",
        "",
        *_table(["row", *AXES], [[n, *(interval_text(v.correlation(a)) for a in AXES)] for n, v in values.items()]),
        "",
        "## By lens family",
        "",
        *_table(
            ["row", *(f"{family}, {name}" for family in FAMILIES for name in ("rotation", "FoV"))],
            [
                [name, *(_mean(v.measures[m][truth.family == f]) for f in FAMILIES for m in ("rotation", "fov"))]
                for name, v in values.items()
            ],
        ),
        "",
        "## Does it obey the prompt?",
        "",
        "Share of themes, and of the three places' colours and kinds (or their being empty), that the estimator reads "
        "as the caption says.",
        "",
        *_table(["row", *OBEYED.values()], [[n, *(_mean(v.measures[m]) for m in OBEYED)] for n, v in values.items()]),
        "",
        "## Does it obey a map of distances?",
        "",
        "What an adapter trained with maps gains from each clip's exact one, clip by clip.",
        "",
        *_table(["row", *MAPPED.values()], _map_rows(values)),
        "",
        "## Held-out denoising loss and radial head",
        "",
        "The flow-matching error at three noise levels, with the same noise for every row, and the radial head's mean "
        "absolute error in log radius, against the exact radii; `constant` is one number for all.",
        "",
        *_losses(losses),
    ]
    with whole_file(out / "table.md") as temporary:
        temporary.write_text("\n".join(page) + "\n")
    record = {name: {key: x.double().mean().item() for key, x in found.items()} for name, found in losses.items()}
    with whole_file(out / "losses.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1))


def _summary(values: dict[str, Values]) -> list[str]:
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
    return _table(head, rows)


def _measure_rows(truth: Truth, values: dict[str, Values]) -> list[list[str]]:
    moves = np.linalg.norm(truth.poses[:, :, :3, 3], axis=-1).max(1) > 0.3
    rows = []
    for name, value in values.items():
        cells = [value.measures[m][moves] if m in ("trans_err", "cam_mc") else value.measures[m] for m in MEASURES]
        rows.append([name, *(_mean(cell) for cell in cells)])
    return rows


def _map_rows(values: dict[str, Values]) -> list[list[str]]:
    rows = []
    for name, value in values.items():
        if name.endswith(WITH_MAP):
            without = values[name.removesuffix(WITH_MAP)].measures
            rows.append([name, *(_mean(value.measures[key] - without[key], 2) for key in MAPPED)])
    return rows


def _losses(losses: dict[str, dict[str, Tensor]]) -> list[str]:
    names = sorted({key for found in losses.values() for key in found})
    rows = [
        [run, *(_mean(found[key].double().numpy(), 4) if key in found else "-" for key in names)]
        for run, found in losses.items()
    ]
    lines = _table(["row", *names], rows)
    ours = [key for key in names if key.startswith("loss")]
    if "ucpe" in losses:
        lines += ["", "Differences from ucpe, clip by clip:", ""]
        lines += _table(
            ["row", *ours],
            [
                [run, *(_mean((found[key] - losses["ucpe"][key]).double().numpy(), 4) for key in ours)]
                for run, found in losses.items()
                if run != "ucpe"
            ],
        )
    return lines


def _mean(values: np.ndarray, digits: int = 3) -> str:
    interval = bootstrap(values)
    return f"{interval.mean:.{digits}g} [{interval.low:.{digits}g}, {interval.high:.{digits}g}]"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [markdown_table(head, rows)]
