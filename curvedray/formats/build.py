"""What every reader and writer shares: poses checked line by line, axes, frame rates, and notes.

t frame
"""

import io
import logging
import zipfile
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, Unit, check_poses
from curvedray.errors import InputError
from curvedray.formats.source import Source

log = logging.getLogger("curvedray.formats")

# Rotations written with six digits or more drift less than this and are taken as they stand; from here up to what
# check_poses allows, the nearest rotation is taken instead, and a note says so.
TEXT_DRIFT = 1e-5
EVIDENT_DRIFT = 2e-2  # nothing but a rotation, perhaps a rough one, comes so close to one

# x right, y down, z forward <- x right, y up, z back: its own inverse, exact in any precision.
OPENCV_FROM_OPENGL = torch.diag(torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64))
# World with z up -> world with y down, by a quarter turn about x.
Y_DOWN_FROM_Z_UP = torch.tensor([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], dtype=torch.float64)


def from_opengl(poses: Float[Tensor, "t 4 4"]) -> Float[Tensor, "t 4 4"]:
    """Poses with OpenGL's axes in a world with z up -> OpenCV's axes in a world with y down."""
    return Y_DOWN_FROM_Z_UP @ poses @ OPENCV_FROM_OPENGL


def to_opengl(poses: Float[Tensor, "t 4 4"]) -> Float[Tensor, "t 4 4"]:
    return Y_DOWN_FROM_Z_UP.mT @ poses @ OPENCV_FROM_OPENGL


def any_rotation(matrices: Sequence[Sequence[Sequence[float]]]) -> bool:
    """Whether one of some 3x3 matrices is a rotation, mirrored or not: evidence that numbers are poses."""
    if not matrices:
        return False
    found = torch.tensor(matrices, dtype=torch.float64)
    drift = (found @ found.mT - torch.eye(3, dtype=torch.float64)).abs().amax((-1, -2))
    return bool((drift < EVIDENT_DRIFT).any())


def gather(
    source: Source,
    where: Sequence[str],
    poses: Float[Tensor, "t 4 4"],
    lens: Lens,
    unit: Unit,
    fps: float | None = None,
    *,
    exact: bool = False,
) -> Cameras:
    """Poses (float64) and a lens -> Cameras; a pose that is none is named by the place it was read from.

    `exact` poses keep every bit; others, from rounded text, are made rotations again where rounding shows.
    """
    poses = _right_handed(source, poses)
    try:
        check_poses(poses)
    except InputError:
        for place, pose in zip(where, poses, strict=True):
            _check_pose(source, place, pose, alike=bool((torch.linalg.det(poses[:, :3, :3]) < 0).all()))
    if exact:
        return Cameras(lens, poses, unit, fps)
    rotation = poses[:, :3, :3]
    drift = (rotation @ rotation.mT - torch.eye(3, dtype=poses.dtype)).abs().amax((-1, -2))
    rough = drift > TEXT_DRIFT
    if rough.any():
        u, _, vh = torch.linalg.svd(rotation[rough])
        poses = poses.clone()
        poses[rough, :3, :3] = u @ vh
        note(f"{source.name}: {int(rough.sum())} rotations were off by up to {drift.max():.1e}; made exact.")
    return Cameras(lens, poses, unit, fps)


def _right_handed(source: Source, poses: Tensor) -> Tensor:
    """A world said to be left-handed, mirrored along z; the path seen from the first camera stays as it was."""
    if not source.given.mirrored_world:
        return poses
    if not (torch.linalg.det(poses[:, :3, :3]) < 0).all():
        source.fail(
            "", "a left-handed world, as mirrored_world says", "right-handed poses", "Leave mirrored_world out."
        )
    return poses.new_tensor([1.0, 1, -1, 1]).diag() @ poses


def _check_pose(source: Source, place: str, pose: Tensor, alike: bool) -> None:
    try:
        check_poses(pose[None])
    except InputError as error:
        # A mirrored world leaves the path relative to the first camera sound; one mirrored frame among others does not.
        mirrored = "Every frame is: if the file's world is left-handed, say mirrored_world=True."
        source.fail(place, error.expected, error.got, mirrored if alike else error.fix)


def frame_rate(seconds: Sequence[float], tolerance: float) -> float | None:
    """Frames per second, where the times are even to within `tolerance` seconds; None where they are not.

    Times are rounded, so the rate is the first that fits of a whole number, one slowed by 1000/1001 as television is,
    and one of three decimals.
    """
    count = len(seconds) - 1
    step = (seconds[-1] - seconds[0]) / count if count > 0 else 0.0
    even = all(abs(time - seconds[0] - i * step) <= tolerance for i, time in enumerate(seconds))
    if not (even and step > 2 * tolerance and 1e-6 < step < 1e6):
        return None
    usual = (round(1 / step), round(1.001 / step) * 1000 / 1001, round(1000 / step) / 1000)
    return next((float(r) for r in usual if r > 0 and abs(1 / r - step) * count <= 2 * tolerance), 1 / step)


def numbered(template: str, frame: int) -> str:
    """A file's name from a template such as frame_{:05d}.png."""
    try:
        return template.format(frame)
    except (ValueError, LookupError, AttributeError) as error:
        raise InputError("file names", "a template such as frame_{:05d}.png", template) from error


def note(message: str) -> None:
    """Say what a user should know and need not stop for."""
    log.warning(message)


def npy(array: np.ndarray) -> bytes:
    """The bytes of an .npy file."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    """The bytes of an .npz file, with a fixed date: the same arrays give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), npy(array))
    return out.getvalue()
