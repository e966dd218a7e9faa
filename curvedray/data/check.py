"""What is wrong with a data set, clip by clip, and how its cameras move: read this before training on it."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from torch import Tensor

from curvedray.data.clips import Footage, FootageSource, VideoShape, in_near_distances
from curvedray.data.tracks import count_problems, jump_problems, motion, turn_problems
from curvedray.errors import InputError

FARTHEST_PATH = 200.0  # near distances over a clip
SMALLEST_CHANGE = 1e-4  # of full scale: two frames that differ by less are the same frame


@dataclass(frozen=True)
class ClipReport:
    """One row of the table."""

    id: str
    frames: int
    width: int
    height: int
    poses: int
    rotation: float  # degrees, summed over the clip
    travel: float  # in the unit below, summed over the clip
    unit: str
    hfov: float
    xi: float
    radius_known: float | None  # share of pixels with a valid radius; None: no map
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_clips(source: FootageSource, shape: VideoShape | None = None) -> Iterator[ClipReport]:
    """A report per clip, in order; one that cannot be read is a row that says why."""
    seen: set[str] = set()
    for index in range(len(source)):
        name = source.name_of(index)
        try:
            report = report_on(source[index], shape)
        except InputError as error:
            report = ClipReport(name, 0, 0, 0, 0, 0.0, 0.0, "", 0.0, 0.0, None, (str(error),))
        if name in seen:
            report = replace(report, problems=(*report.problems, "a clip of this name came before"))
        seen.add(name)
        yield report


def report_on(footage: Footage, shape: VideoShape | None = None) -> ClipReport:
    frames, height, width = footage.video.shape[:3]
    rotation, travel = motion(footage.cameras)
    known = None if footage.radial is None else float(footage.radial.valid.float().mean())
    lens = footage.cameras.lens
    return ClipReport(
        footage.id,
        frames,
        width,
        height,
        footage.cameras.frames,
        float(rotation.sum()),
        float(travel.sum()),
        footage.cameras.unit,
        float(lens.hfov.mean()),
        float(lens.xi.mean()),
        known,
        tuple(_problems(footage, shape, rotation, travel, known)),
    )


def _problems(
    footage: Footage, shape: VideoShape | None, rotation: Tensor, travel: Tensor, known: float | None
) -> Iterator[str]:
    frames, height, width = footage.video.shape[:3]
    if not footage.caption.strip():
        yield "no caption"
    yield from count_problems(footage.cameras.frames, frames)
    if shape is not None and frames < shape.frames:
        yield f"{frames} frames, fewer than the {shape.frames} to train on"
    if shape is not None and (height < shape.height or width < shape.width):
        yield f"{width} x {height} pixels, fewer than the {shape.width} x {shape.height} to train on"
    yield from turn_problems(rotation)
    yield from jump_problems(travel)
    yield from _scale_problems(footage)
    if known is not None and known < 0.05:
        yield f"radii known on {100 * known:.1f} % of pixels: are they metres?"
    if frames > 1 and all(_alike(*pair) for pair in pairwise(footage.video)):
        yield "a still picture: no frame differs from the one before"


def _alike(frame: Tensor, after: Tensor) -> bool:
    """A pair at a time: the whole video as floats would take ten times its memory."""
    return bool((after.float() - frame.float()).abs().mean() / 255 < SMALLEST_CHANGE)


def _scale_problems(footage: Footage) -> Iterator[str]:
    try:
        cameras, _ = in_near_distances(footage)
    except InputError as error:
        yield str(error)
        return
    _, travel = motion(cameras)
    total = float(travel.sum())
    if cameras.unit != "near":
        yield "no near distance (give `near`, or a radial map): poses are taken at the scale they have"
    if not math.isfinite(total) or total > FARTHEST_PATH:
        unit = "near distances" if cameras.unit == "near" else "units"
        yield f"travels {total:.4g} {unit}: an absurd scale (centimetres taken for metres?)"
