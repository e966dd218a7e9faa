"""Lenses of camera files: the one given, the one in the file, or a usual one; fits, sizes, matrices.

t frame
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.lens import SHAPE_TOLERANCE
from curvedray.cameras.lens_fits import fit_ucm
from curvedray.cameras.named_lenses import named_lens
from curvedray.cameras.other_lens_models import LensModel
from curvedray.errors import InputError
from curvedray.formats.build import note
from curvedray.formats.source import Source

DEFAULT_SIZE = (832, 480)
DEFAULT_LENS = "pinhole-90"
OFF_MIDDLE = 0.05  # of the log of twice a lens's centre over its image's side: what calibrated lenses are off by
PINHOLE_XI = 1e-6  # what a fit may leave of a pinhole: a millionth of the focal length, in pixels


def chosen_lens(source: Source) -> Lens:
    """The lens for a file that carries none: the one given, or pinhole-90 with a note where none is needed."""
    if (lens := given_lens(source, DEFAULT_SIZE)) is not None:
        return lens
    if source.given.lens_needed:
        fix = "Say lens=pinhole-90, or another; in a metadata table, hfov and xi."
        source.fail("", "a lens", "a file that carries none", fix)
    width, height = source.given.size or DEFAULT_SIZE
    what = f"taken as {DEFAULT_LENS} at {width} x {height}"
    note(f"{source.name} carries no lens: {what}. Say otherwise with lens= (and size=).")
    return named_lens(DEFAULT_LENS, width, height)


def given_lens(source: Source, usual: tuple[int, int]) -> Lens | None:
    """The lens that the caller gave, if any; on an image of the size given, else a named one on the `usual` size."""
    lens, size = source.given.lens, source.given.size
    if isinstance(lens, str):
        return named_lens(lens, *(size or usual))
    return lens if lens is None or size is None else lens.sized(*size)


def image_size(source: Source, found: tuple[int, int] | None = None) -> tuple[int, int]:
    """The size that the file states, else the one given, else the usual one with a note."""
    if found is not None:
        return checked_size(found)
    if source.given.size is not None:
        return source.given.size
    note(f"{source.name} does not say its image size: taken as {DEFAULT_SIZE}. Say otherwise with size=.")
    return DEFAULT_SIZE


def centred_size(source: Source, center: Sequence[float]) -> tuple[int, int]:
    """The size of the image that a lens is for, where nothing but its centre tells: twice that, with a note.

    A size that is given is the image's own, unless it has the shape of twice the centre: then the lens is for another
    size of the same picture. One almost as large is the same size, and the centre a little off its middle.
    """
    found, wanted = (max(1, round(2 * center[0])), max(1, round(2 * center[1]))), source.given.size
    if wanted is None:
        note(f"{source.name} does not say its image size: {found}, twice its centre. Say otherwise with size=.")
        return found
    alike = all(abs(math.log(old / new)) <= OFF_MIDDLE for old, new in zip(found, wanted, strict=True))
    return found if same_shape(found, wanted) and not alike else wanted


def gather_lens(
    source: Source,
    where: Sequence[str],
    numbers: Sequence[Sequence[float]],
    sizes: tuple[int, int] | list[tuple[int, int]],
    max_angle: float = math.pi,
) -> Lens:
    """One (fx, fy, cx, cy, xi) in pixels per frame -> one lens, with an axis for the frames only if they differ.

    `sizes` is the image's size, or one per frame. A size that was given rescales the lens to it, and must be of the
    image's shape; frames whose sizes differ by a few pixels, as COLMAP's undistorter leaves them, need one.
    """
    for line, (fx, fy, *_, xi) in zip(where, numbers, strict=True):
        if not (fx > 0 and fy > 0):
            source.fail(line, "a focal length above zero", f"{fx:g}, {fy:g}")
        if xi < 0:
            source.fail(line, "xi of at least 0 (a pinhole)", xi)
    every = sizes if isinstance(sizes, list) else [sizes] * len(numbers)
    wanted = source.given.size
    if wanted is None:
        if len(set(every)) > 1:
            fix = f"Rescale them all to one size: size={max(every)}."
            source.fail("", "images of one size", ", ".join(f"{w} x {h}" for w, h in sorted(set(every))[:4]), fix)
        wanted = every[0]
    values = torch.tensor([list(row) for row in numbers], dtype=torch.float64)
    for size in set(every):
        if size != wanted:
            grow = _growth(source, size, wanted)
            rows = torch.tensor([i for i, found in enumerate(every) if found == size])
            values[rows, :4] *= torch.tensor([*grow, *grow], dtype=torch.float64)
    if (values == values[0]).all():
        values = values[0]
    return Lens(values[..., :2].clone(), values[..., 2:4].clone(), values[..., 4].clone(), wanted, max_angle)


def _growth(source: Source, found: tuple[int, int], wanted: tuple[int, int]) -> tuple[float, float]:
    """By how much width and height grow; an image of another shape would be stretched, and is refused."""
    if not same_shape(found, wanted):
        fix = "Choose a size of that shape, or overrule the lens with lens=."
        expected = f"a lens for an image shaped like {wanted[0]} x {wanted[1]}"
        source.fail("", expected, f"one for {found[0]} x {found[1]}", fix)
    return wanted[0] / found[0], wanted[1] / found[1]


def same_shape(found: tuple[int, int], wanted: tuple[int, int]) -> bool:
    """Whether one is the other enlarged, but for rounding."""
    return abs(math.log(found[0] / found[1] * wanted[1] / wanted[0])) <= SHAPE_TOLERANCE


def fitted(source: Source, where: str, model: LensModel) -> list[float]:
    """(fx, fy, cx, cy, xi) of the UCM lens that is, or is nearest to, another model; a fit says its error in a note."""
    try:
        with np.errstate(all="ignore"):  # what overflows is caught by name below
            fit = fit_ucm(model)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        # How to fit less of it is advice that the reader of a file cannot take.
        wide = isinstance(error, InputError) and error.name == "max_angle"
        got = "one that sees too far behind itself" if wide else error
        source.fail(where, "a lens that the Unified Camera Model can follow", got, "Overrule it with lens=.")
    if fit.max_pixels > 0:
        note(f"{source.name}, {where}: the lens was fitted. {fit}")
    if fit.at_bound:
        note(f"{source.name}, {where}: the fit stopped at its bound; if you know the lens better, say lens=.")
    return [*fit.lens.focal.tolist(), *fit.lens.center.tolist(), fit.lens.xi.item()]


def intrinsics(source: Source, where: str, matrix: Sequence[Sequence[float]]) -> list[float]:
    """(fx, fy, cx, cy, 0) of a 3x3 matrix in pixels."""
    (fx, skew, cx), (zero, fy, cy), last = matrix
    if abs(skew) > 1e-6 * abs(fx) or zero != 0 or list(last) != [0, 0, 1]:
        expected = "a matrix fx 0 cx, 0 fy cy, 0 0 1"
        source.fail(where, expected, "; ".join(" ".join(f"{number:g}" for number in row) for row in matrix))
    return [fx, fy, cx, cy, 0.0]


def matrix_of(row: Sequence[float]) -> list[list[float]]:
    """The 3x3 matrix of (fx, fy, cx, cy, ...)."""
    fx, fy, cx, cy, *_ = row
    return [[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]


def lens_numbers(cameras: Cameras) -> Float[Tensor, "t 5"]:
    """(fx, fy, cx, cy, xi) of every frame."""
    lens = cameras.frame_lens
    return torch.cat([lens.focal, lens.center, lens.xi[..., None]], -1)


def checked_size(size: Any) -> tuple[int, int]:
    """A (width, height) in whole pixels, whatever was given."""
    pair = tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size,)
    if len(pair) != 2 or not all(isinstance(side, int) and 0 < side < 1_000_000 for side in pair):
        raise InputError("size", "(width, height) in whole pixels", size)
    return pair[0], pair[1]
