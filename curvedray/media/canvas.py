"""A dark page to draw on. Drawn with Pillow at twice the size and shrunk, which is smooth and takes milliseconds."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

Ink = tuple[int, int, int]
PAPER, INK, FAINT, GRID = (18, 20, 26), (228, 230, 235), (122, 128, 140), (44, 48, 58)
FINE = 2  # drawn this many times larger, then shrunk


def new_page(size: tuple[int, int]) -> tuple["Image", Any]:
    """An empty page of this width and height, and what draws on it in fine pixels."""
    from PIL import Image, ImageDraw

    page = Image.new("RGB", (size[0] * FINE, size[1] * FINE), PAPER)
    return page, ImageDraw.Draw(page)


def shrunk(page: "Image", size: tuple[int, int]) -> Tensor:
    """The page at its own size, as pixels (h w 3)."""
    return torch.from_numpy(np.array(page.reduce(FINE) if FINE > 1 else page)).reshape(size[1], size[0], 3)


def as_image(pixels: Tensor) -> "Image":
    from PIL import Image

    return Image.fromarray(pixels.cpu().contiguous().numpy())


def write(draw: Any, position: tuple[float, ...], text: str, colour: Ink, points: int = 15) -> None:
    draw.text(tuple(i * FINE for i in position), text, fill=colour, font=font(points * FINE))


@lru_cache
def font(points: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(points)


def round_step(least: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is at least so much."""
    power = 10 ** math.floor(math.log10(least))
    return next(power * i for i in (1, 2, 5, 10) if power * i >= least * (1 - 1e-9))
