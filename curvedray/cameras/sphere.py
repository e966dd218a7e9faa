"""A whole sphere on one image: equirectangular, or the six faces of a cube.

The panorama's own axes are a level camera's: x right, y down, z forward. The middle of an equirectangular image looks
along z, and its left and right edges meet behind. Pixel centres lie at +0.5.

    h w rows and columns of the panorama   n side of a cube's face   f face
"""

import math
from functools import lru_cache
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from curvedray.errors import InputError

Projection = Literal["equirectangular", "cube-3x2", "cube-6x1", "cube-cross"]
# The faces of a cube map, row by row; a dot is empty. FFmpeg's v360 has the same order (c3x2, c6x1). In a cross, up and
# down stand above and below the front.
CUBES: dict[str, tuple[str, ...]] = {
    "cube-3x2": ("right left up", "down front back"),
    "cube-6x1": ("right left up down front back",),
    "cube-cross": (". up . .", "left front right back", ". down . ."),
}
# Each face's own axes in the panorama's: where its columns grow, where its rows grow, and where it looks.
FACES: dict[str, tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]] = {
    "front": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "right": ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
    "back": ((-1, 0, 0), (0, 1, 0), (0, 0, -1)),
    "left": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
    "up": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    "down": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
}
NAMES = tuple(FACES)
TOLD_BY_SHAPE = ("equirectangular", "cube-6x1")  # the others have the shapes of ordinary photographs


def projection_of(name: str, width: int, height: int, said: str | None = None) -> Projection:
    """The projection that was said, if the image has its shape; else what a shape that no photograph has tells."""
    shapes = {"equirectangular": (2, 1), **{key: (len(rows[0].split()), len(rows)) for key, rows in CUBES.items()}}
    if said is not None and said not in shapes:
        raise InputError("projection", " or ".join(shapes), said)
    alike = [key for key, (cols, rows) in shapes.items() if width * rows == height * cols]
    for key in alike:
        if said == key or (said is None and key in TOLD_BY_SHAPE):
            return key  # type: ignore[return-value]
    fix = f"If it is one, say so: --projection {alike[0]}." if alike and said is None else ""
    if width == height:
        fix = "Two eyes in one picture are cut first, for example: ffmpeg -i two.mp4 -vf crop=iw:ih/2:0:0 one.mp4"
    expected = " or ".join(f"{key} ({cols}:{rows})" for key, (cols, rows) in shapes.items() if said in (None, key))
    raise InputError(name, f"a panorama, {expected}", f"{width} x {height} pixels", fix)


def equirectangular_rays(width: int, height: int, dtype: torch.dtype = torch.float64) -> Float[Tensor, "h w 3"]:
    """The unit ray of every pixel's centre."""
    yaw = ((torch.arange(width, dtype=dtype) + 0.5) / width - 0.5) * (2 * math.pi)
    pitch = (0.5 - (torch.arange(height, dtype=dtype) + 0.5) / height) * math.pi
    yaw, pitch = torch.meshgrid(yaw, pitch, indexing="xy")
    return torch.stack([yaw.sin() * pitch.cos(), -pitch.sin(), yaw.cos() * pitch.cos()], -1)


def equirectangular_pixels(rays: Float[Tensor, "*rays 3"], width: int, height: int) -> Float[Tensor, "*rays 2"]:
    """Where rays of any length land, in pixels; exact at the poles, where an arcsine would lose half its digits."""
    yaw, down = angles_of(rays)
    return torch.stack([(yaw / (2 * math.pi) + 0.5) * width, (down / math.pi + 0.5) * height], -1)


def angles_of(rays: Float[Tensor, "*rays 3"]) -> tuple[Float[Tensor, "*rays"], Float[Tensor, "*rays"]]:
    """Yaw to the right of z, and how far below the horizon, in radians."""
    x, y, z = rays.unbind(-1)
    return torch.atan2(x, z), torch.atan2(y, (x * x + z * z).sqrt())


def equirectangular_from_cube(
    image: Float[Tensor, "c hc wc"], projection: Projection, side: int | None = None
) -> Float[Tensor, "c h w"]:
    """A cube map as an equirectangular image, four faces wide: a face in the middle keeps its resolution.

    Every face is first given a border taken from its neighbours, so that no seam is left between them.
    """
    n = image.shape[1] // len(CUBES[projection])
    places = [places_of(projection)[name] for name in NAMES]
    faces = torch.stack([image[:, row * n : (row + 1) * n, col * n : (col + 1) * n] for row, col in places])
    height = 2 * (side or n)
    face, pixels = _cube_pixels(2 * height, height, n)
    return _sampled(_bordered(faces), face, pixels + 1)


def places_of(projection: str) -> dict[str, tuple[int, int]]:
    """The row and column where each face lies."""
    table = [row.split() for row in CUBES[projection]]
    return {name: (r, c) for r, row in enumerate(table) for c, name in enumerate(row) if name != "."}


def _bordered(faces: Float[Tensor, "f c n n"]) -> Float[Tensor, "f c m m"]:
    """Faces with one more pixel on every side: what the neighbour shows there."""
    n = faces.shape[-1]
    at, pixels = _border_pixels(n)
    return _sampled(faces, at, pixels).unflatten(1, (6, n + 2)).movedim(1, 0)


def _sampled(
    faces: Float[Tensor, "f c n n"], face: Int[Tensor, "h w"], pixels: Float[Tensor, "h w 2"]
) -> Float[Tensor, "c h w"]:
    """Bilinear in x and y, and exactly one face in the third coordinate."""
    n = faces.shape[-1]
    place = torch.cat([pixels * (2 / n) - 1, (face[..., None] * 2 + 1) / len(NAMES) - 1], -1).to(faces.dtype)
    volume = faces.transpose(0, 1)[None]
    return F.grid_sample(volume, place[None, None], padding_mode="border", align_corners=False)[0, :, 0]


@lru_cache(maxsize=2)
def _cube_pixels(width: int, height: int, n: int) -> tuple[Int[Tensor, "h w"], Float[Tensor, "h w 2"]]:
    return cube_pixels(equirectangular_rays(width, height), n)


@lru_cache(maxsize=2)
def _border_pixels(n: int) -> tuple[Int[Tensor, "fm m"], Float[Tensor, "fm m 2"]]:
    """For every pixel of a face with a border: which face shows it, and where."""
    rays = torch.stack([face_rays(name, n, border=1) for name in NAMES])
    return cube_pixels(rays.flatten(0, 1), n)


def face_rays(name: str, n: int, border: int = 0) -> Float[Tensor, "m m 3"]:
    """A ray, not of unit length, through the centre of every pixel of a face."""
    across, down, ahead = torch.tensor(FACES[name], dtype=torch.float64)
    step = (torch.arange(-border, n + border, dtype=torch.float64) + 0.5) * (2 / n) - 1
    x, y = torch.meshgrid(step, step, indexing="xy")
    return x[..., None] * across + y[..., None] * down + ahead


def cube_pixels(rays: Float[Tensor, "*rays 3"], n: int) -> tuple[Int[Tensor, "*rays"], Float[Tensor, "*rays 2"]]:
    """The face that each ray meets, as a number in FACES, and where on it, in pixels."""
    axes = torch.tensor([FACES[name] for name in NAMES], dtype=rays.dtype)
    face = (rays @ axes[:, 2].T).argmax(-1)
    across, down, ahead = (torch.linalg.vecdot(rays, axes[face, i]) for i in range(3))
    return face, (torch.stack([across, down], -1) / ahead[..., None] + 1) * (n / 2)
