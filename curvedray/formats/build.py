"""What every reader and writer shares: poses checked line by line, lenses gathered frame by frame, and notes.

t frame
"""

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, Unit, check_poses
from curvedray.cameras.lens import SHAPE_TOLERANCE
from curvedray.cameras.lens_fits import fit_ucm
from curvedray.cameras.lens_models import LensModel
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.formats.source import Source

log = logging.getLogger("curvedray.formats")

DEFAULT_SIZE = (832, 480)
DEFAULT_LENS = "pinhole-90"
# Rotations written with six digits or more drift less than this and are taken as they stand; from here up to what
# check_poses allows, the nearest rotation is taken instead, and a note says so.
TEXT_DRIFT = 1e-5

# x right, y down, z forward <- x right, y up, z back: its own inverse, exact in any precision.
OPENCV_FROM_OPENGL = torch.diag(torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64))
# World with z up -> world with y down, by a quarter turn about x.
Y_DOWN_FROM_Z_UP = torch.tensor([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], dtype=torch.float64)


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
        mirrored = (
            "Every frame is: if the file's world is left-handed, say mirrored_world=True (an --option of the command)."
        )
        source.fail(place, error.expected, error.got, mirrored if alike else error.fix)


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
    for place, (fx, fy, *_, xi) in zip(where, numbers, strict=True):
        if not (fx > 0 and fy > 0):
            source.fail(place, "a focal length above zero", f"{fx:g}, {fy:g}")
        if xi < 0:
            source.fail(place, "xi of at least 0 (a pinhole)", xi)
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
    if abs(math.log(found[0] / found[1] * wanted[1] / wanted[0])) > SHAPE_TOLERANCE:
        fix = "Choose a size of that shape, or overrule the lens with lens=."
        expected = f"a lens for an image shaped like {wanted[0]} x {wanted[1]}"
        source.fail("", expected, f"one for {found[0]} x {found[1]}", fix)
    return wanted[0] / found[0], wanted[1] / found[1]


def lens_numbers(cameras: Cameras) -> Float[Tensor, "t 5"]:
    """(fx, fy, cx, cy, xi) of every frame."""
    lens = cameras.frame_lens
    return torch.cat([lens.focal, lens.center, lens.xi[..., None]], -1)


def fitted(source: Source, where: str, model: LensModel) -> list[float]:
    """(fx, fy, cx, cy, xi) of the UCM lens that is, or is nearest to, another model; a fit says its error in a note."""
    try:
        with np.errstate(all="ignore"):  # what overflows is caught by name below
            fit = fit_ucm(model)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        source.fail(where, "a lens that the Unified Camera Model can follow", error)
    if fit.max_pixels > 0:
        note(f"{source.name}, {where}: the lens was fitted. {fit}")
    return [*fit.lens.focal.tolist(), *fit.lens.center.tolist(), fit.lens.xi.item()]


def chosen_lens(source: Source) -> Lens:
    """The lens for a file that carries none: the one given, or pinhole-90 with a note where none is needed."""
    if (lens := given_lens(source, DEFAULT_SIZE)) is not None:
        return lens
    if source.given.lens_needed:
        fix = "Give one: lens= (--lens pinhole-90), or hfov and xi in a metadata table."
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


def checked_size(size: Any) -> tuple[int, int]:
    """A (width, height) in whole pixels, whatever was given."""
    pair = tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size,)
    if len(pair) != 2 or not all(isinstance(side, int) and 0 < side < 1_000_000 for side in pair):
        raise InputError("size", "(width, height) in whole pixels", size)
    return pair[0], pair[1]


def frame_rate(seconds: Sequence[float], tolerance: float) -> float | None:
    """Frames a second, where the times are even to within `tolerance` seconds; None where they are not.

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
