"""LLFF's poses_bounds.npy: 17 numbers per image, a 3x5 world_from_camera [R | t | height width focal], near and far.

The columns of R are down, right, back: neither OpenCV's axes nor OpenGL's.
"""

import numpy as np
import torch

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.formats.build import any_rotation, gather, npy
from curvedray.formats.lenses import checked_size, gather_lens, given_lens, lens_numbers
from curvedray.formats.source import Source, complete

COLUMNS = 17
BOUNDS = (0.1, 100.0)


def detect(source: Source) -> str | None:
    shape = source.array_shape()
    if shape is None or len(shape) != 2 or shape[1] != COLUMNS or not shape[0]:
        return None
    matrices = source.array()[:20, :15].reshape(-1, 3, 5)[:, :, :3]
    return f"an array of {COLUMNS} numbers per image" if any_rotation(matrices.tolist()) else None


def read(source: Source) -> Cameras:
    array = source.array().astype(np.float64)
    if array.ndim != 2 or array.shape[1] != COLUMNS or not len(array):
        source.fail("", f"an array of shape (N, {COLUMNS})", f"shape {array.shape}")
    where = [f"row {i}" for i in range(len(array))]
    matrices = torch.from_numpy(array[:, :15].reshape(-1, 3, 5).copy())
    down, right, back, place = matrices[..., :4].unbind(-1)
    poses = complete(torch.stack([right, down, -back, place], -1))
    sizes = []
    for row, (height, width, focal) in zip(where, matrices[..., 4].tolist(), strict=True):
        if not (0 < focal < 1e9 and 1 <= width < 1e6 and 1 <= height < 1e6):
            source.fail(row, "a height, width and focal length above zero", f"{height:g}, {width:g}, {focal:g}")
        sizes.append(checked_size((round(width), round(height))))
    numbers = [[f, f, w / 2, h / 2, 0.0] for (w, h), f in zip(sizes, matrices[:, 2, 4].tolist(), strict=True)]
    lens = given_lens(source, sizes[0]) or gather_lens(source, where, numbers, sizes)
    return gather(source, where, poses, lens, "arbitrary")


def write(cameras: Cameras, *, bounds: tuple[float, ...] = BOUNDS) -> bytes:
    """`bounds` are the nearest and farthest distance of the scene, which cameras do not know."""
    if len(bounds) != 2 or not 0 < bounds[0] < bounds[1] < 1e12:
        raise InputError("option bounds", "(near, far), 0 < near < far", bounds)
    width, height = cameras.lens.size
    right, down, ahead, place = cameras.world_from_camera.double()[:, :3].unbind(-1)
    focal = lens_numbers(cameras).double()[:, 0]
    last = torch.stack([torch.full_like(focal, height), torch.full_like(focal, width), focal], -1)
    matrices = torch.stack([down, right, -ahead, place, last], -1).reshape(-1, 15)
    array = torch.cat([matrices, torch.tensor(bounds, dtype=torch.float64).expand(len(matrices), 2)], -1)
    return npy(array.numpy())
