"""Distances in colour, and the scale that says which colour is how many metres.

t frame   h row   w column
"""

import base64
import math
import zlib
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.media.canvas import FAINT, FINE, INK, PAPER, new_page, shrunk, write

UNKNOWN = 90  # the grey of what is not known
SCALE_HEIGHT = 34  # pixels of the strip below a picture: the colours, the numbers below them
# The 256 colours from near to far: matplotlib's "turbo" read backwards from 0.96 to 0.04 (by Anton Mikhailov,
# Apache-2.0), stored as the differences between neighbours, which are small. The tests compare it with matplotlib's.
TURBO = (
    "c-mEx+Y-Yd2t*gnd;fp>r%lwtE@;aw$+RKMk$3MMy?JeNcy5EWW^yw`Ndr9P+g3Sk(lNJ<3D52D%oxwWGoA<<9^H>{jG;H8ANz;t>n^BKp_Fc|"
    "phQZu(w4<@Nu-p%_;)p8Gh{=}UpFMv$w`KOtnnfF#XE;!Hc(Fpq%gt`LBmnGN@9XU(p;K<O}|VQCn&DO$!oFw13gFnP}C~}?a%pbUY4Pfk%j7;"
    "6*CR9H-kf+d42{e`1L7nP*T^{CEP36UU5<2O2|Ffb{>TS8#$@xmg?MvjeImew@j;b-yZkp{=oAKcysmZ"
)


@lru_cache
def near_to_far() -> UInt8[Tensor, "256 3"]:
    """The colours of distances: warm is near, cool is far."""
    steps = np.frombuffer(zlib.decompress(base64.b85decode(TURBO)), np.uint8).reshape(3, 256)
    return torch.from_numpy(np.cumsum(steps, 1, dtype=np.uint8).T.copy())


def distance_limits(
    radius: Float[Tensor, "*shape"], valid: Bool[Tensor, "*shape"] | None = None
) -> tuple[float, float] | None:
    """The distances of the first and last colour, the 2nd and 98th percentile; None where nothing is known."""
    known = _known(radius, valid)
    if not known.any():
        return None
    low, high = np.quantile(radius[known].double().log().cpu().numpy(), [0.02, 0.98])
    return math.exp(low), math.exp(high)


def radial_picture(
    radius: Float[Tensor, "*t h w"],
    valid: Bool[Tensor, "*t h w"] | None = None,
    limits: tuple[float, float] | None = None,
) -> UInt8[Tensor, "*t h w 3"]:
    """Distances in colour, evenly in their logarithm: near is warm, far is cool, what is not known is grey.

    `limits` are the distances of the first and last colour; without them, `distance_limits` of the map.
    """
    low, high = (math.log(i) for i in _checked(limits or distance_limits(radius, valid) or (1.0, 2.0)))
    known = _known(radius, valid)
    logs = torch.where(known, radius, 1.0).double().log()
    share = ((logs - low) / max(high - low, 1e-6)).clamp(0, 1)
    coloured = near_to_far().to(radius.device)[(share * 255).round().long()]
    return torch.where(known[..., None], coloured, torch.tensor(UNKNOWN, dtype=torch.uint8, device=radius.device))


def distance_scale(width: int, limits: tuple[float, float], unit: str = "m") -> UInt8[Tensor, "h w 3"]:
    """A strip of `radial_picture`'s colours with the distances they stand for, to go below a picture of this width."""
    low, high = _checked(limits)
    page, draw = new_page((width, SCALE_HEIGHT))
    left, right = 8, max(9, width - 9)
    for column in range(left * FINE, right * FINE):
        colour = near_to_far()[round(255 * (column - left * FINE) / max(1, (right - left) * FINE - 1))]
        draw.line([(column, 4 * FINE), (column, 14 * FINE)], fill=tuple(colour.tolist()))
    free = 0.0  # where the next number may begin
    for number in _ticks(low, high):
        share = math.log(number / low) / math.log(high / low) if high > low else 0.5
        x, words = left + share * (right - left), f"{number:.3g} {unit}"
        wide = draw.textlength(words, font_size=11 * FINE) / FINE
        start = min(max(2.0, x - wide / 2), width - wide - 2)
        if start >= free:
            draw.line([(x * FINE, 14 * FINE), (x * FINE, 17 * FINE)], fill=FAINT, width=FINE)
            write(draw, (start, 18), words, INK, 11)
            free = start + wide + 6
    return shrunk(page, (width, SCALE_HEIGHT))


def with_scale(
    picture: UInt8[Tensor, "h w 3"], limits: tuple[float, float] | None, unit: str = "m"
) -> UInt8[Tensor, "height w 3"]:
    """A picture of distances with its scale below it; with nothing known, an empty strip."""
    width = picture.shape[1]
    empty = torch.tensor(PAPER, dtype=torch.uint8).repeat(SCALE_HEIGHT, width, 1)
    return torch.cat([picture.cpu(), empty if limits is None else distance_scale(width, limits, unit)])


def _known(radius: Tensor, valid: Tensor | None) -> Tensor:
    known = torch.isfinite(radius) & (radius > 0)
    return known if valid is None else known & valid


def _checked(limits: tuple[float, float]) -> tuple[float, float]:
    low, high = limits
    if not 0 < low <= high < math.inf:
        raise InputError("limits", "two distances, the nearer first, both positive", f"{low} and {high}")
    return low, high


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between the limits; the limits themselves where there are fewer than two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [i * 10.0**power for power in powers for i in (1, 2, 5) if low <= i * 10.0**power <= high]
    return inside if len(inside) > 1 else sorted({low, high})
