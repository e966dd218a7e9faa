"""A panorama seen through a lens: antialiased, with no seam behind and clean poles.

A panorama is averaged into ever coarser copies of itself. Rows towards the poles, whose pixels crowd together, are also
averaged along the row, so that a pixel of every copy stands for an equally wide patch of the sphere. How wide a patch
an output pixel needs depends on the lens alone, not on where it looks: each pixel is blended from the two copies whose
patches are next to its own. The work is done by sphere.cpp where there is a compiler, else here; a test compares them.

    h w rows and columns of the panorama   y x of the output   l copy, from fine to coarse   4 colours, the last unused
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.cameras.lens import pixel_centers
from curvedray.cameras.sphere import angles_of, equirectangular_pixels
from curvedray.data import sphere_kernel
from curvedray.media.planes import planes_from_rgb

STEEPEST = 1.3  # rows whose pixels crowd more than so many times are averaged along the row
COARSE = 8  # pixels of an image per pixel at which its lens's footprint is worked out
PARTED = 0.1  # share by which the distances around a ray may differ and still be one surface


@dataclass(frozen=True, eq=False)
class Pyramid:
    """A panorama's copies, one below the other, each with a border of one pixel that continues it round the sphere.

    Colours come last: those of a pixel are fetched together.
    """

    atlas: UInt8[Tensor, "rows cols 4"]
    copies: Int64[Tensor, "l 3"]  # width, height, and the row of the atlas where the border begins


@dataclass(frozen=True, eq=False)
class View:
    """What a lens needs of a panorama, worked out once for all frames that look through it."""

    rays: Float[Tensor, "3 pixels"]
    exists: Bool[Tensor, "y x"]
    fineness: Float[Tensor, "y x"]  # log2 of the turn, in whole ones, across the patch of the sphere that a pixel shows

    @classmethod
    def of(cls, lens: Lens) -> "View":
        rays, exists = lens.rays()
        width, height = lens.size
        # It changes slowly over the image, so a few pixels tell: each as wide as several of the image's own.
        few = lens.to(torch.float64).resized(-(-width // COARSE), -(-height // COARSE))
        footprint = footprints(few) * math.sqrt(math.prod(few.size) / (width * height))
        fineness = (footprint / (2 * math.pi)).log2().float()
        fineness = F.interpolate(fineness[None, None], (height, width), mode="bilinear")[0, 0]
        return cls(rays.reshape(-1, 3).T.float().contiguous(), exists, fineness)

    def levels(self, width: int) -> Float[Tensor, "y x"]:
        """Which copy of a panorama of this width fits each pixel: 0 the panorama itself, 1 half as fine, and so on."""
        return (self.fineness + math.log2(width)).clamp_min(0)

    def used(self, width: int) -> tuple[int, int]:
        """The finest copy of a panorama of this width that any pixel makes use of, and how many from there on."""
        low, high = (max(0.0, bound + math.log2(width)) for bound in self._bounds)
        return math.floor(low), math.floor(high) + 2 - math.floor(low)

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        """The finest and the coarsest fineness that a pixel has."""
        chosen = self.fineness[self.exists] if self.exists.any() else torch.zeros(1)
        return float(chosen.min()), float(chosen.max())


def footprints(lens: Lens) -> Float[Tensor, "y x"]:
    """The side of a square as large as the patch of the sphere that a pixel shows, in radians."""
    centers = pixel_centers(lens.size, lens.focal)
    steps = lens.focal.new_tensor([[0.5, 0.0], [0.0, 0.5]])
    ahead, behind = (lens.unproject(centers[..., None, :] + sign * steps) for sign in (1, -1))
    edges = ahead[0] - behind[0]
    area = torch.linalg.cross(edges[..., 0, :], edges[..., 1, :]).norm(dim=-1)
    known = (ahead[1] & behind[1]).all(-1)
    usual = area[known].max() if known.any() else area.max()  # at the image circle a step may leave the lens
    return torch.where(known, area, usual).clamp_min(1e-12).sqrt()


def pyramid_of(
    image: UInt8[Tensor, "h w 3"],
    finest: int = 0,
    copies: int = 6,
    *,
    into: Pyramid | None = None,
    compiled: bool = True,
) -> Pyramid:
    """An equirectangular image halved `finest` times, and coarser copies of that, each half as wide as the one before.

    Halving stops where pixels do not come in pairs: half of an odd number of them would shift the picture. The memory
    of a pyramid of the same shape that is no longer needed may be used again.
    """
    height, width = image.shape[:2]
    finest = min(finest, _halvings(width, height))
    width, height = width >> finest, height >> finest
    count = min(max(1, copies), 1 + _halvings(width, height))
    tops = [sum((height >> i) + 2 for i in range(k)) for k in range(count + 1)]
    table = torch.tensor([(width >> k, height >> k, tops[k]) for k in range(count)])
    fits = into is not None and into.atlas.shape[:2] == (tops[-1], width + 2)
    atlas = into.atlas if into is not None and fits else torch.zeros(tops[-1], width + 2, 4, dtype=torch.uint8)
    kernel = sphere_kernel.library() if compiled else None
    if kernel is not None:
        sphere_kernel.fill_atlas(kernel, image, finest, STEEPEST, atlas, table)
        return Pyramid(atlas, table)
    level = F.avg_pool2d(image.movedim(-1, 0).float(), 1 << finest)
    for k, top in enumerate(tops[:-1]):
        level = F.avg_pool2d(level, 2) if k else level
        bordered = _bordered(_evened(level))
        atlas[top : tops[k + 1], : bordered.shape[2], :3] = (bordered + 0.5).to(torch.uint8).movedim(0, -1)
    return Pyramid(atlas, table)


def _halvings(width: int, height: int) -> int:
    """How often an image can be halved in both directions and stay at least four pixels high."""
    count = 0
    while width % 2 == height % 2 == 0 and height >= 8:
        width, height, count = width // 2, height // 2, count + 1
    return count


def _evened(level: Float[Tensor, "3 h w"]) -> Float[Tensor, "3 h w"]:
    """Rows averaged over 1 / cos(latitude) pixels, as wide on the sphere as a pixel is high.

    Of the span s, 2 m + 1 pixels are whole and the next on either side have a share: rows of one m go together.
    """
    height, width = level.shape[1:]
    latitude = ((torch.arange(height, dtype=torch.float64) + 0.5) / height - 0.5) * math.pi
    spans = (1 / latitude.cos()).clamp_max(width / 2)
    reach = torch.where(spans > STEEPEST, ((spans - 1) / 2).floor(), -1).long()
    evened = level.clone()
    for m in reach.unique().tolist():
        if m < 0:
            continue
        chosen = reach == m
        rows, span = level[:, chosen], spans[chosen, None].to(level.dtype)
        round_the_sphere = F.pad(rows, (m + 1, m + 1), mode="circular")
        whole = F.avg_pool1d(round_the_sphere[..., 1:-1], 2 * m + 1, 1) * (2 * m + 1)
        ends = round_the_sphere[..., :width] + round_the_sphere[..., -width:]
        evened[:, chosen] = (whole + (span - (2 * m + 1)) / 2 * ends) / span
    return evened


def _bordered(level: Float[Tensor, "c h w"]) -> Float[Tensor, "c h2 w2"]:
    """A pixel more on each side: the sphere goes on behind, and beyond a pole lies the other half of its row."""
    over = level.roll(level.shape[2] // 2, -1)
    rows = torch.cat([over[:, :1], level, over[:, -1:]], 1)
    return torch.cat([rows[..., -1:], rows, rows[..., :1]], -1)


def look(
    pyramid: Pyramid, view: View, panorama_from_camera: Float[Tensor, "3 3"], compiled: bool = True
) -> UInt8[Tensor, "y x 3"]:
    """What the lens shows, turned so in the panorama; black where it has no ray."""
    kernel = sphere_kernel.library() if compiled else None
    if kernel is not None:
        out = torch.empty(*view.exists.shape, 3, dtype=torch.uint8)
        seen = (view.rays, view.fineness, view.exists, panorama_from_camera, pyramid.atlas, pyramid.copies)
        sphere_kernel.look(kernel, *seen, out, planar=False)
        return out
    yaw, down = angles_of((panorama_from_camera.float() @ view.rays).T)
    places = (yaw.view(view.exists.shape), down.view(view.exists.shape))
    coarsest = len(pyramid.copies) - 1
    level = view.levels(int(pyramid.copies[0, 0])).clamp_max(coarsest)
    fine = level.long()
    colours = _fetched(pyramid, fine, *places)
    coarser = _fetched(pyramid, (fine + 1).clamp_max(coarsest), *places)
    colours = torch.lerp(colours, coarser, (level - fine)[..., None])
    return (colours * view.exists[..., None] + 0.5).clamp_(0, 255).to(torch.uint8)


def look_planes(
    pyramid: Pyramid, view: View, panorama_from_camera: Float[Tensor, "3 3"], out: UInt8[Tensor, "p x"]
) -> None:
    """What `look` shows, as the encoder takes it (media/planes.py): colours are converted while they are at hand."""
    kernel = sphere_kernel.library()
    if kernel is None:
        out.copy_(planes_from_rgb(look(pyramid, view, panorama_from_camera)))
        return
    seen = (view.rays, view.fineness, view.exists, panorama_from_camera, pyramid.atlas, pyramid.copies)
    sphere_kernel.look(kernel, *seen, out, planar=True)


def _fetched(pyramid: Pyramid, level: Tensor, yaw: Tensor, down: Tensor) -> Float[Tensor, "y x 3"]:
    """Bilinear in the copy of each pixel's level."""
    rows, cols, _ = pyramid.atlas.shape
    width, height, top = pyramid.copies.float()[level].unbind(-1)
    x = (yaw / (2 * math.pi) + 0.5) * width + 1
    y = (down / math.pi + 0.5) * height + top + 1
    place = torch.stack([x * (2 / cols) - 1, y * (2 / rows) - 1], -1)
    found = F.grid_sample(pyramid.atlas.movedim(-1, 0)[None].float(), place[None], align_corners=False)
    return found[0, :3].movedim(0, -1)


def distances_seen(
    radius: Float[Tensor, "h w"], lens: Lens, panorama_from_camera: Float[Tensor, "3 3"]
) -> Float[Tensor, "y x"]:
    """The distance along every pixel's ray; NaN where the panorama has none (not finite, or not positive).

    A plane is nearly straight in 1 / radius, so that is what is blended; where the neighbours belong to different
    surfaces, the nearest one is taken, and none is invented between them.
    """
    rays, exists = lens.rays()
    height, width = radius.shape
    turned = rays.float() @ panorama_from_camera.float().T
    known = torch.isfinite(radius) & (radius > 0)
    inverse = torch.where(known, 1 / radius.clamp_min(1e-9), 0.0)
    stored = _bordered(torch.stack([inverse, known.float()]))[None]
    pixels = equirectangular_pixels(turned, width, height) + 1
    place = (pixels * (2 / pixels.new_tensor([width + 2, height + 2])) - 1)[None]
    smooth, share = F.grid_sample(stored, place, align_corners=False)[0]
    nearest, here = F.grid_sample(stored, place, mode="nearest", align_corners=False)[0]
    whole = (share > 0.999) & ((smooth - nearest).abs() <= PARTED * nearest)
    chosen = torch.where(whole, smooth, nearest)
    return torch.where(exists & (here > 0.5), 1 / chosen.clamp_min(1e-12), torch.nan)
