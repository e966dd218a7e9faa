"""Moves -> cameras, keyframes joined by splines, and paths fitted to another number of frames or another image.

t frame   k keyframe
"""

import math
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.cameras.arrays import as_tensor, as_whole, kind_of
from curvedray.cameras.cameras import as_lens, check_near
from curvedray.cameras.lens import Array as AnyArray
from curvedray.errors import InputError
from curvedray.moves.actions import Rig, Stage, changes
from curvedray.moves.between import cameras_at
from curvedray.moves.move import Step
from curvedray.moves.phrases import read_moves

SLOWEST_FPS = 1e-3  # frames per second; its inverse is the fastest
MOST_FRAMES = 30_000  # half an hour of film, and seconds to write it; more is a typo


def trajectory(
    moves: str | Step,
    lens: Lens | str,
    frames: int = 81,
    *,
    unit: Unit = "near",
    near: float | None = None,
    fps: float = 16.0,
    yaw: float = 0.0,
    pitch: float = 0.0,
) -> Cameras:
    """Cameras that make these moves, the first at the origin, looking along z (or `yaw` right and `pitch` up of it).

    A plain length is in near distances, one with `m` in metres; `near`, the near distance in metres, converts. In
    unit `arbitrary` plain lengths are that unit. A zoom gives a lens per frame. A lens may be a name: `fisheye-150`,
    at 832 x 480 pixels.
    """
    lens, frames = as_lens(lens), checked_frames(frames)
    if not SLOWEST_FPS <= fps <= 1 / SLOWEST_FPS:
        raise InputError("fps", f"from {SLOWEST_FPS:g} to {1 / SLOWEST_FPS:g} frames per second", fps)
    if near is not None:
        check_near(near)
    if not all(math.isfinite(angle) for angle in (yaw, pitch)):
        raise InputError("first camera", "finite angles in degrees", f"yaw {yaw}, pitch {pitch}")
    step = read_moves(moves) if isinstance(moves, str) else moves
    if not isinstance(step, Step):
        raise InputError("moves", "text such as `orbit left 40deg`, or moves as values", kind_of(moves))
    seconds = (frames - 1) / fps
    start = Rig.change(np.zeros(1), yaw=np.deg2rad([yaw]), pitch=np.deg2rad([pitch]))
    stage = Stage(lens, unit, near, seconds)
    rig = start + changes(step, np.linspace(0.0, 1.0, frames), start, stage)
    dtype = lens.focal.dtype
    seen = lens.zoomed(torch.from_numpy(np.exp(rig.zoom)).to(dtype)) if rig.zoom.any() else lens
    return Cameras(seen, torch.from_numpy(rig.poses()).to(dtype), unit, fps)


def checked_frames(frames: int) -> int:
    frames = as_whole("frames", frames)
    if frames > MOST_FRAMES:
        raise InputError("frames", f"at most {MOST_FRAMES}", frames)
    return frames


# -- keyframes


def keyframes(
    world_from_camera: Float[AnyArray, "k 4 4"],
    lens: Lens | str,
    frames: int = 81,
    *,
    times: Float[AnyArray, " k"] | None = None,
    unit: Unit = "near",
    fps: float | None = None,
) -> Cameras:
    """A smooth path exactly through some poses, evenly in time or at `times` (any clock, always later).

    Positions follow a cubic spline, rotations a rotation spline; a lens per keyframe is blended too (focal lengths
    evenly in their logarithm).
    """
    frames = checked_frames(frames)
    keys = Cameras(as_lens(lens), as_tensor("keyframes", world_from_camera), unit, fps)
    clock = np.arange(float(len(keys))) if times is None else as_tensor("times", times).double().numpy()
    if keys.batch_shape:
        raise InputError("keyframes", "poses of shape (K, 4, 4)", f"a batch of shape {keys.batch_shape}")
    if len(clock) != len(keys) or not np.isfinite(clock).all() or not (np.diff(clock) > 0).all():
        raise InputError("times", f"{len(keys)} numbers, each later than the one before", clock.tolist())
    return cameras_at(keys, clock, np.linspace(clock[0], clock[-1], frames))


def resample(cameras: Cameras, frames: int) -> Cameras:
    """The same path over the same time in another number of frames; lens and frame rate go along."""
    if cameras.batch_shape:
        raise InputError("resample", "one trajectory", f"a batch of shape {cameras.batch_shape}")
    frames = checked_frames(frames)
    if frames == len(cameras):
        return cameras
    last = len(cameras) - 1.0
    fps = cameras.fps * (frames - 1) / last if cameras.fps and last and frames > 1 else cameras.fps
    return replace(cameras_at(cameras, np.arange(last + 1), np.linspace(0.0, last, frames)), fps=fps)


def fitted_to(cameras: Cameras, frames: int, width: int, height: int) -> tuple[Cameras, list[str]]:
    """The same path in another number of frames and on another image, and what that changed, in words (or nothing).

    A trajectory is a curve, so it can be sampled anew. An image of another shape keeps the field of view across its
    width, as named lenses do, and shows more or less of it above and below.
    """
    changed = []
    if frames != len(cameras):
        changed.append(f"the path of {len(cameras)} frames was resampled to {frames}, over the same time")
        cameras = resample(cameras, frames)
    before, after = cameras.lens, cameras.lens.fitted(width, height)
    if after is not before:
        (old_width, old_height), hfov = before.size, float(before.hfov.reshape(-1)[0])
        said = f"the image of {old_width} x {old_height} became {width} x {height} pixels"
        tall, taller = (float(i.vfov.reshape(-1)[0]) for i in (before, after))
        if before.same_shape(width, height):
            said += ", with the same view"
        else:
            verb = "grew" if taller > tall else "shrank"
            said += f": {hfov:.0f} degrees across stay, {tall:.0f} degrees from top to bottom {verb} to {taller:.0f}"
        changed.append(said)
        cameras = replace(cameras, lens=after)
    return cameras, changed


def look_at(positions: Float[AnyArray, "k 3"], target: Float[AnyArray, "*k 3"]) -> Float[Tensor, "k 4 4"]:
    """Level cameras at these positions, each facing the target: keyframes made by hand."""
    positions, target = as_tensor("positions", positions), as_tensor("target", target)
    ahead = (target - positions).double()
    down = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64, device=ahead.device)
    right = torch.linalg.cross(down.expand_as(ahead), ahead)
    if not (right.norm(dim=-1) > 1e-9 * ahead.norm(dim=-1)).all():
        raise InputError("look_at", "a target that is not at the camera, nor straight above or below it", "one that is")
    z = torch.nn.functional.normalize(ahead, dim=-1)
    x = torch.nn.functional.normalize(right, dim=-1)
    poses = torch.eye(4, dtype=torch.float64, device=ahead.device).repeat(len(positions), 1, 1)
    poses[:, :3] = torch.stack([x, torch.linalg.cross(z, x), z, positions.double()], -1)
    return poses.to(positions.dtype)
