"""A histogram on the dark page: how many of what."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from curvedray.media.canvas import FAINT, FINE, GRID, INK, Ink, new_page, shrunk, write

BAR: Ink = (64, 196, 190)
MARGIN = (44, 34, 14, 30)  # left, top, right, bottom


def histogram(
    values: Sequence[float], title: str, unit: str = "", size: tuple[int, int] = (420, 240), bars: int = 20
) -> UInt8[Tensor, "h w 3"]:
    """Bars over the range of the values; below them the least, the middle and the greatest."""
    page, draw = new_page(size)
    left, top, right, bottom = MARGIN
    width, height = size[0] - left - right, size[1] - top - bottom
    write(draw, (10, 8), title, INK)
    known = np.asarray([value for value in values if np.isfinite(value)], dtype=np.float64)
    if not len(known):
        write(draw, (left, top + height / 2), "nothing known", FAINT, 13)
        return shrunk(page, size)
    low, high = float(known.min()), float(known.max())
    if high - low <= 1e-9 * max(1.0, abs(high)):  # all alike: one bar in the middle of a range around them
        low, high = low - max(0.5, 0.05 * abs(low)), high + max(0.5, 0.05 * abs(high))
    counts, _ = np.histogram(known, bars, (low, high))
    draw.line([left * FINE, (top + height) * FINE, (left + width) * FINE, (top + height) * FINE], fill=GRID, width=FINE)
    for index, count in enumerate(counts):
        x0, x1 = (left + width * (index + i) / bars for i in (0.08, 0.92))
        y = top + height * (1 - count / counts.max())
        if count:
            draw.rectangle([x0 * FINE, y * FINE, x1 * FINE, (top + height) * FINE], fill=BAR)
    write(draw, (6, top - 6), str(counts.max()), FAINT, 11)
    for share in (0.0, 0.5, 1.0):
        text = f"{low + share * (high - low):.3g}{unit}"
        write(draw, (left + share * (width - 34), top + height + 6), text, FAINT, 11)
    return shrunk(page, size)
