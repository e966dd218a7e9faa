"""Change a map of distances: push, scale, cut out, paste, in a box or a mask, over some frames."""

import re
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool
from torch import Tensor

from curvedray.errors import InputError
from curvedray.radial.map import RadialMap


@dataclass(frozen=True, eq=False)
class Region:
    """Which distances are meant: a box in shares of the frame, a range of frames, a mask of any size."""

    box: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)  # left, top, right, bottom
    frames: tuple[int, int] | None = None  # first and last, from 0
    mask: Bool[Tensor, "h w"] | None = None

    @classmethod
    def of(cls, box: str | None, frames: str | None, mask: Bool[Tensor, "h w"] | None = None) -> "Region":
        """From what a user types: `0.2,0.3,0.6,0.9` and `0-8`."""
        region = cls(mask=mask)
        if box is not None:
            numbers = re.fullmatch(r"\s*,\s*".join([r"([0-9]{1,3}(?:\.[0-9]{1,9})?)"] * 4), box.strip())
            if numbers is None:
                raise InputError("box", "LEFT,TOP,RIGHT,BOTTOM in shares, such as 0.2,0.3,0.6,0.9", box)
            left, top, right, bottom = (float(i) for i in numbers.groups())
            region = replace(region, box=(left, top, right, bottom))
        if frames is not None:
            numbers = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", frames.strip())
            if numbers is None:
                raise InputError("frames", "FIRST-LAST, such as 0-8", frames)
            region = replace(region, frames=(int(numbers[1]), int(numbers[2] or numbers[1])))
        return region

    def on(self, shape: tuple[int, int, int]) -> Bool[Tensor, "t h w"]:
        """The region on a map of this shape; one that is empty is refused."""
        count, height, width = shape
        left, top, right, bottom = self.box
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise InputError("box", "shares from 0 to 1, left before right and top before bottom", self.box)
        first, last = self.frames or (0, count - 1)
        if not 0 <= first <= last < count:
            raise InputError("frames", f"a range within 0-{count - 1}", f"{first}-{last}")
        inside = torch.zeros(shape, dtype=torch.bool)
        inside[
            first : last + 1, round(top * height) : round(bottom * height), round(left * width) : round(right * width)
        ] = True
        if self.mask is not None:
            sized = F.interpolate(self.mask[None, None].float(), (height, width), mode="area")[0, 0]
            inside &= sized > 0.5
        if not inside.any():
            raise InputError("region", "at least one pixel of the map", "none")
        return inside


def edited(
    map: RadialMap,
    region: Region,
    *,
    push: float | None = None,
    scale: float | None = None,
    cut: bool = False,
    paste: RadialMap | None = None,
) -> tuple[RadialMap, int]:
    """The changed map, and how many distances are not what they were. The near distance, the scene's unit, stays."""
    chosen = [name for name, given in (("push", push), ("scale", scale), ("cut", cut), ("paste", paste)) if given]
    if len(chosen) != 1:
        raise InputError("edit", "one of push, scale, cut or paste", " and ".join(chosen) or "none of them")
    count, height, width = map.radius.shape
    inside = region.on((count, height, width))
    radius, valid = map.radius.clone(), map.valid.clone()
    if cut:
        valid[inside] = False
    elif paste is not None:
        if paste.radius.shape != map.radius.shape:
            raise InputError("map to paste", f"shape {tuple(map.radius.shape)}", tuple(paste.radius.shape))
        radius[inside], valid[inside] = paste.radius[inside], paste.valid[inside]
    else:
        radius[inside] = radius[inside] * scale if scale is not None else radius[inside] + float(push or 0)
        if not (radius[inside & valid] > 0).all():
            raise InputError("edit", "distances that stay positive", "some that do not", "Push or scale by less.")
    changed = RadialMap.from_metric(radius, valid, map.near, unit=map.unit)
    differs = (changed.valid != map.valid) | (changed.valid & (changed.radius != map.radius))
    return changed, int(differs.sum())
