"""A folder with poses.npy (T, 3, 4) or (T, 4, 4) and intrinsics.npy, as many research tools leave them.

The intrinsics are (3, 3), (T, 3, 3), (4,) or (T, 4): matrices, or fx fy cx cy, in pixels. Nothing in the files says
which way the poses go, so world_from_camera is assumed, said in a note, and can be told otherwise.
"""

from pathlib import Path

import numpy as np
import torch

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.errors import InputError
from curvedray.formats.build import gather, note, npy
from curvedray.formats.lenses import centred_size, gather_lens, given_lens, lens_numbers, matrix_of
from curvedray.formats.lenses import intrinsics as lens_of_matrix
from curvedray.formats.source import Source

POSES, LENS = "poses.npy", "intrinsics.npy"
DIRECTIONS = ("world_from_camera", "camera_from_world")


def detect(source: Source) -> str | None:
    folder = source.path if source.is_folder else source.path.parent
    if not source.is_folder and source.name != POSES:
        return None
    return f"{POSES} with {LENS} beside it" if (folder / POSES).is_file() and (folder / LENS).is_file() else None


def read(source: Source, *, pose: str | None = None, intrinsics: str | Path | None = None) -> Cameras:
    """`pose` is world_from_camera or camera_from_world; `intrinsics` the lens's file, if it has another name."""
    if pose is None:
        note(f"{source.name}: poses are taken as world_from_camera. If not, say pose='camera_from_world'.")
    elif pose not in DIRECTIONS:
        raise InputError("option pose", " or ".join(DIRECTIONS), pose)
    file = Source.open(source.path / POSES, source.given) if source.is_folder else source
    beside = file.path.parent / LENS if intrinsics is None else Path(intrinsics)
    poses = file.pose_array(file.array())
    if not torch.isfinite(poses).all():
        file.fail("", "finite numbers", "NaN or infinity")
    lens = _lens(Source.open(beside, source.given), len(poses))
    poses = inverse_pose(poses) if pose == "camera_from_world" else poses
    return gather(file, [f"frame {i}" for i in range(len(poses))], poses, lens, "arbitrary", exact=True)


def _lens(source: Source, frames: int) -> Lens:
    array = source.array().astype(np.float64)
    if array.shape[-1:] == (4,) and array.ndim in (1, 2):
        rows = [[*row, 0.0] for row in array.reshape(-1, 4).tolist()]
    elif array.shape[-2:] == (3, 3) and array.ndim in (2, 3):
        rows = [lens_of_matrix(source, f"matrix {i}", m) for i, m in enumerate(array.reshape(-1, 3, 3).tolist())]
    else:
        source.fail("", "intrinsics of shape (3, 3), (T, 3, 3), (4,) or (T, 4)", f"shape {array.shape}")
    rows = rows * frames if len(rows) == 1 else rows
    if len(rows) != frames or not np.isfinite(array).all():
        source.fail("", f"{frames} finite lenses, one per pose, or one", len(rows))
    size = centred_size(source, rows[0][2:4])
    return given_lens(source, size) or gather_lens(source, [f"frame {i}" for i in range(frames)], rows, size)


def write(cameras: Cameras) -> dict[str, bytes]:
    matrices = [matrix_of(row) for row in lens_numbers(cameras).tolist()]
    return {POSES: npy(cameras.world_from_camera.numpy()), LENS: npy(np.array(matrices))}
