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
        place = (Pointer, Count, Pointer, Count)
        kernel.sphere_look.argtypes = [Pointer, Pointer, Pointer, Count, Count, Pointer, *place, Count, Pointer]
    return kernel


def fill_atlas(
    kernel: ctypes.CDLL,
    image: UInt8[Tensor, "h w 3"],
    halvings: int,
    steepest: float,
    atlas: UInt8[Tensor, "rows cols 4"],
    copies: Int64[Tensor, "l 3"],
) -> None:
    """Every copy of an image, averaged, evened and bordered, into an atlas; the first is the image halved so often."""
    image = image.contiguous()
    place = (atlas.data_ptr(), atlas.shape[1], copies.data_ptr(), len(copies))
    kernel.sphere_copies(image.data_ptr(), image.shape[1], halvings, steepest, *place)


def look(
    kernel: ctypes.CDLL,
    rays: Float[Tensor, "3 pixels"],
    fineness: Float[Tensor, "y x"],
    exists: Bool[Tensor, "y x"],
    rotation: Float[Tensor, "3 3"],
    atlas: UInt8[Tensor, "rows cols 4"],
    copies: Int64[Tensor, "l 3"],
    out: UInt8[Tensor, "..."],
    planar: bool,
) -> None:
    """Fill `out` with colours (y x 3), or with planes as media/planes.py has them."""
    height, width = exists.shape
    assert out.is_contiguous()
    assert out.numel() == (width * height * 3 // 2 if planar else width * height * 3)
    given = [i.contiguous() for i in (rays, fineness, exists.view(torch.uint8), rotation.float())]
    rays_at, fineness_at, exists_at, rotation_at = (i.data_ptr() for i in given)
    place = (atlas.data_ptr(), atlas.shape[1], copies.data_ptr(), len(copies))
    kernel.sphere_look(rays_at, fineness_at, exists_at, width, height, rotation_at, *place, planar, out.data_ptr())
