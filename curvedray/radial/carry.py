"""A map carried to another camera: points are moved and the nearest is seen; what nobody saw is left to the model.

t frame   h w pixels
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.radial.map import RadialMap

SAME_SURFACE = 1.05  # times the nearest distance: farther points of a pixel are behind it


def carried(map: RadialMap, source: Cameras, target: Cameras) -> tuple[RadialMap, float]:
    """The map as `target` sees it, and the share of the frame that it covers there.

    Both paths are in metres in one world, one pose per frame of the map, lenses on its pixels or of their shape. Each
    frame's points are carried within that frame, so that what moves stays where it is at that time. A point fills the
    pixels around it; behind a nearer one it is hidden.
    """
    count, height, width = map.radius.shape
    for name, cameras in (("source cameras", source), ("target cameras", target)):
        if cameras.frames != count or cameras.unit != "metric":
            got = f"{cameras.frames} in unit {cameras.unit}"
            raise InputError(name, f"{count} poses in metres, one per frame of the map", got)
    seen = replace(source, lens=source.lens.sized(width, height))
    aimed = replace(target, lens=target.lens.sized(width, height))
    rays, exist = seen.frame_lens.rays()
    radius, valid = torch.full_like(map.radius, torch.inf), map.valid & exist
    relative = torch.linalg.inv(aimed.world_from_camera.double()) @ seen.world_from_camera.double()
    for frame in range(count):
        points = (rays[frame].double() * map.radius[frame, ..., None].double())[valid[frame]]
        moved = (points @ relative[frame, :3, :3].T + relative[frame, :3, 3]).float()
        pixels, visible = aimed.frame_lens[frame].project(moved)
        _splat(pixels[visible], moved.norm(dim=-1)[visible], radius[frame])
    known = torch.isfinite(radius)
    share = known.float().mean().item()
    return RadialMap.from_metric(torch.where(known, radius, torch.nan), near=map.near, unit=map.unit), share


def _splat(pixels: Float[Tensor, "n 2"], distance: Float[Tensor, " n"], into: Float[Tensor, "h w"]) -> None:
    """Each point into the four pixels around it, in place: of all that meet in a pixel, those of the nearest surface
    are averaged, by how near they fall to its centre.
    """
    height, width = into.shape
    corner = (pixels - 0.5).floor()
    parts = []
    for dx in (0, 1):
        for dy in (0, 1):
            at = corner + pixels.new_tensor([dx, dy])
            weight = (1 - (pixels - 0.5 - at).abs()).prod(-1).clamp_min(1e-6)
            x, y = at.long().unbind(-1)
            inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
            parts.append(((y * width + x)[inside], weight[inside], distance[inside]))
    index, weights, distances = (torch.cat(part) for part in zip(*parts, strict=True))
    nearest = into.clone().view(-1).scatter_reduce_(0, index, distances, "amin")
    same = distances <= nearest[index] * SAME_SURFACE
    index, weights, distances = index[same], weights[same], distances[same]
    total = torch.zeros_like(nearest).index_add_(0, index, weights)
    mean = torch.zeros_like(nearest).index_add_(0, index, weights * distances) / total.clamp_min(1e-12)
    into.view(-1).copy_(torch.where(total > 0, mean, torch.inf))
