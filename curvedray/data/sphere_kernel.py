"""The door to sphere.cpp, which does the work of sphere_pyramid.py many times faster; None where it cannot be built."""

import ctypes
import functools
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from curvedray.encoding.kernels.build import compiled

SOURCE = Path(__file__).with_name("sphere.cpp")
Pointer, Count, Real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled functions, built on the first call."""
    kernel = compiled(SOURCE, "sphere")
    if kernel is not None:
        kernel.sphere_copies.argtypes = [Pointer, Count, Count, Real, Pointer, Count, Pointer, Count]
        kernel.sphere_look.argtypes = [*3 * [Pointer], Count, *2 * [Pointer], Count, Pointer, Count, Pointer]
    return kernel


def fill_atlas(
    kernel: ctypes.CDLL,
    image: UInt8[Tensor, "h w 3"],
    block: int,
    steepest: float,
    atlas: Float[Tensor, "rows cols 4"],
    copies: Int64[Tensor, "l 3"],
) -> None:
    """Every copy of an image, averaged, evened and bordered, into an atlas; the first from blocks of pixels."""
    image = image.contiguous()
    place = (atlas.data_ptr(), atlas.shape[1], copies.data_ptr(), len(copies))
    kernel.sphere_copies(image.data_ptr(), image.shape[1], block, steepest, *place)


def look(
    kernel: ctypes.CDLL,
    rays: Float[Tensor, "3 pixels"],
    fineness: Float[Tensor, "y x"],
    exists: Bool[Tensor, "y x"],
    rotation: Float[Tensor, "3 3"],
    atlas: Float[Tensor, "rows cols 4"],
    copies: Int64[Tensor, "l 3"],
) -> UInt8[Tensor, "y x 3"]:
    out = torch.empty(*exists.shape, 3, dtype=torch.uint8)
    given = [i.contiguous() for i in (rays, fineness, exists.to(torch.uint8), rotation.float())]
    rays_at, fineness_at, exists_at, rotation_at = (i.data_ptr() for i in given)
    place = (atlas.data_ptr(), atlas.shape[1], copies.data_ptr(), len(copies))
    kernel.sphere_look(rays_at, fineness_at, exists_at, exists.numel(), rotation_at, *place, out.data_ptr())
    return out
