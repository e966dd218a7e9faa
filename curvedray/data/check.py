"""What is wrong with a data set, clip by clip, and how its cameras move: read this before training on it."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_angle
from curvedray.data.clips import Footage, FootageSource, VideoShape, in_near_distances
from curvedray.errors import InputError

LONGEST_STEP = 30.0  # degrees per frame: a cut, or poses that are not this video's
LONGEST_JUMP = 20.0  # times the usual step
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


def motion(cameras: Cameras) -> tuple[Float[Tensor, " steps"], Float[Tensor, " steps"]]:
    """How far the camera turns, in degrees, and moves, in its unit, from each frame to the next."""
    poses = cameras.world_from_camera.double()
    turn = rotation_angle(poses[:-1, :3, :3], poses[1:, :3, :3])
    return torch.rad2deg(turn), poses[:, :3, 3].diff(dim=0).norm(dim=-1)


def _problems(
    footage: Footage, shape: VideoShape | None, rotation: Tensor, travel: Tensor, known: float | None
) -> Iterator[str]:
    frames, height, width = footage.video.shape[:3]
    if not footage.caption.strip():
        yield "no caption"
    if footage.cameras.frames != frames:
        yield f"{footage.cameras.frames} poses for {frames} frames"
    if shape is not None and frames < shape.frames:
        yield f"{frames} frames, fewer than the {shape.frames} to train on"
    if shape is not None and (height < shape.height or width < shape.width):
        yield f"{width} x {height} pixels, fewer than the {shape.width} x {shape.height} to train on"
    if len(rotation) and rotation.max() > LONGEST_STEP:
        frame = int(rotation.argmax()) + 1
        yield f"turns {rotation.max():.0f} degrees at frame {frame}: a cut, or another video's poses"
    yield from jump_problems(travel)
    yield from _scale_problems(footage)
    if known is not None and known < 0.05:
        yield f"radii known on {100 * known:.1f} % of pixels: are they metres?"
    still = (footage.video[1:].float() - footage.video[:-1].float()).abs().mean((1, 2, 3)) / 255 < SMALLEST_CHANGE
    if frames > 1 and still.all():
        yield "a still picture: no frame differs from the one before"


def jump_problems(travel: Float[Tensor, " steps"]) -> Iterator[str]:
    """A step far beyond the usual ones, and no small part of the way: a track that was lost, or a cut."""
    usual = float(travel.median()) if len(travel) > 2 else 0.0
    if usual > 0 and float(travel.max()) > max(LONGEST_JUMP * usual, 0.05 * float(travel.sum())):
        frame = int(travel.argmax()) + 1
        yield f"jumps at frame {frame}, {float(travel.max()) / usual:.0f} times as far as usual: a cut, or a lost track"


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
