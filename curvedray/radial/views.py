"""A wide lens cut into pinhole views, and the views' depths merged back: a perspective teacher serves fisheyes too.

t frame   h w pixels of the clip   v view   y x pixels of a view
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.cameras.angles import fibonacci_lattice
from curvedray.errors import InputError

VIEW_FOV = 90.0  # degrees across a view
TRUSTED = 43.0  # degrees off a view's axis that count: the corners of a wide pinhole are stretched
NARROW = 100.0  # degrees across; a lens without bend up to here is one view by itself
COLUMNS = 240  # of the lens's rays that are looked at: with a coarser grid corners of a fisheye were in no view
CANDIDATES = 400  # directions among which views are chosen
MOST_VIEWS = 16


@dataclass(frozen=True, eq=False)
class PinholeView:
    """A pinhole camera at the clip's position, turned away from its axis."""

    camera_from_view: Float[Tensor, "3 3"]
    lens: Lens


def covering_views(lens: Lens, side: int = 256) -> list[PinholeView]:
    """As few square views as a greedy choice finds, such that every ray of the lens is trusted in one of them."""
    if lens.batch_shape:
        raise InputError("lens", "one lens for the clip", f"leading axes {lens.batch_shape}")
    small = lens.resized(COLUMNS, max(1, round(COLUMNS * lens.size[1] / lens.size[0])))
    rays, exists = small.to(torch.float64).rays()
    left = rays[exists]
    pinhole = Lens.from_fov(VIEW_FOV, 0.0, side, side)
    limit = math.cos(math.radians(TRUSTED))
    candidates = torch.cat([torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64), fibonacci_lattice(CANDIDATES)])
    views: list[PinholeView] = []
    axis = candidates[0]  # the first view looks where the lens does
    while len(left):
        if len(views) == MOST_VIEWS:
            raise InputError(
                "lens", f"one that {MOST_VIEWS} views of {VIEW_FOV:g} degrees cover", f"{lens.hfov:.0f} degrees"
            )
        views.append(PinholeView(_turned_towards(axis), pinhole))
        left = left[left @ axis < limit]
        if len(left):
            axis = candidates[(candidates @ left.T >= limit).sum(1).argmax()]
    return views


def is_one_view(lens: Lens) -> bool:
    """Whether a perspective teacher may look at the clip as it is."""
    return not lens.xi.any() and lens.hfov.max().item() <= NARROW


def cut(frames: UInt8[Tensor, "t h w 3"], lens: Lens, view: PinholeView) -> UInt8[Tensor, "t y x 3"]:
    """What a view sees of the clip; black where the clip's lens does not look."""
    rays, _ = view.lens.rays()
    pixels, seen = lens.sized(frames.shape[2], frames.shape[1]).project(rays @ view.camera_from_view.T.to(rays))
    sampled = _sampled(frames.movedim(-1, 1).float(), pixels)
    return torch.where(seen, sampled, 0.0).round().to(torch.uint8).movedim(1, -1)


def merge(
    depths: Sequence[Float[Tensor, "t y x"]], views: Sequence[PinholeView], lens: Lens, *, align: bool = True
) -> tuple[Float[Tensor, "t h w"], Bool[Tensor, "t h w"]]:
    """The views' distances along their axes as radii on the clip's lens, and where any view knows one.

    Where views overlap, the log radii are averaged with weights that fall to zero at a view's trusted edge. A teacher
    judges each view's scale on its own: with `align`, each view is brought to those before it by the median log ratio
    over their overlap, frame by frame.
    """
    rays, exists = lens.rays()
    frames = len(depths[0])
    total = torch.zeros(frames, *rays.shape[:-1])
    weights = torch.zeros_like(total)
    for depth, view in zip(depths, views, strict=True):
        seen = rays @ view.camera_from_view.to(rays)  # the transpose of view_from_camera, from the right
        pixels, valid = view.lens.resized(depth.shape[2], depth.shape[1]).project(seen)
        cosine = seen[..., 2]
        weight = ((cosine - math.cos(math.radians(TRUSTED))) / (1 - math.cos(math.radians(TRUSTED)))).clamp(0, 1)
        known = torch.isfinite(depth) & (depth > 0)
        logs = _sampled(torch.where(known, depth, 1.0).log()[:, None], pixels)[:, 0]
        whole = _sampled(known[:, None].float(), pixels)[:, 0] > 0.99  # an unknown neighbour spoils the average
        weight = torch.where(whole & valid & exists, weight, 0.0)
        radius = logs - cosine.clamp_min(1e-3).log()
        if align and weights.any():
            radius = radius + _shift(total, weights, radius, weight)[:, None, None]
        total, weights = total + weight * radius, weights + weight
    valid = weights > 0
    return torch.where(valid, (total / weights.clamp_min(1e-12)).exp(), torch.nan), valid


def _shift(total: Tensor, weights: Tensor, radius: Tensor, weight: Tensor) -> Float[Tensor, " t"]:
    """Per frame, the median log ratio of what was merged before to a new view, over their overlap; zero without one."""
    shifts = []
    for before, had, new, has in zip(total, weights, radius, weight, strict=True):
        both = (had > 0) & (has > 0)
        shifts.append((before[both] / had[both] - new[both]).median() if both.any() else radius.new_zeros(()))
    return torch.stack(shifts)


def _sampled(pictures: Float[Tensor, "t c h w"], pixels: Float[Tensor, "y x 2"]) -> Float[Tensor, "t c y x"]:
    """Bilinear, at pixel coordinates whose centres lie at +0.5; the border is repeated."""
    size = pixels.new_tensor([pictures.shape[3], pictures.shape[2]])
    grid = (2 * pixels / size - 1).to(pictures).expand(len(pictures), *pixels.shape)
    return F.grid_sample(pictures, grid, mode="bilinear", padding_mode="border", align_corners=False)


def _turned_towards(axis: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """camera_from_view: z along the axis, y as far down as it can be."""
    z = axis / axis.norm()
    down = torch.tensor([0.0, 1.0, 0.0] if abs(float(z[1])) < 0.99 else [0.0, 0.0, 1.0], dtype=z.dtype)
    x = torch.linalg.cross(down, z)
    x = x / x.norm()
    return torch.stack([x, torch.linalg.cross(z, x), z], -1).float()
