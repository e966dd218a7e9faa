"""A room with noise on its walls, ray-cast through any lens: clips with exact poses that SIFT can match.

t frame   h, w pixels
"""

import numpy as np
import torch
import torch.nn.functional as F

from curvedray import Lens

HALF = (3.0, 2.0, 3.0)  # half extents of the box that the cameras stand in


def render(lens: Lens, world_from_camera: torch.Tensor, seed: int = 0) -> np.ndarray:
    """uint8 frames (T, H, W, 3) of the inside of a textured box; black where the lens has no ray."""
    generator = torch.Generator().manual_seed(seed)
    walls = [texture(generator) for _ in range(6)]
    rays, valid = lens.rays()
    frames = []
    for pose in world_from_camera.double():
        directions = rays.double() @ pose[:3, :3].T
        frames.append(torch.where(valid[..., None], cast(pose[:3, 3], directions, walls), torch.zeros(())))
    return (torch.stack(frames) * 255).round().clamp(0, 255).to(torch.uint8).numpy()


def texture(generator: torch.Generator, size: int = 512) -> torch.Tensor:
    """Noise at several scales, (1, 3, size, size) in [0, 1]."""
    total = torch.zeros(1, 3, size, size)
    for cells, weight in ((8, 0.3), (32, 0.4), (96, 0.5), (200, 0.3)):
        noise = torch.rand(1, 3, cells, cells, generator=generator)
        total += weight * F.interpolate(noise, size=(size, size), mode="bilinear", align_corners=True)
    return (total - total.amin()) / (total.amax() - total.amin())


def cast(origin: torch.Tensor, directions: torch.Tensor, walls: list[torch.Tensor]) -> torch.Tensor:
    """Colours of the wall that each ray meets first."""
    half = torch.tensor(HALF, dtype=torch.float64)
    away = torch.where(directions > 0, half, -half) - origin
    distance = away / torch.where(directions.abs() < 1e-9, torch.full_like(directions, 1e-9), directions)
    nearest, axis = distance.min(-1)
    points = (origin + nearest[..., None] * directions) / half
    colours = torch.zeros_like(directions, dtype=torch.float32)
    for wall in range(6):
        hit = (axis == wall // 2) & ((directions.gather(-1, axis[..., None])[..., 0] > 0) == bool(wall % 2))
        across = points[..., [i for i in range(3) if i != wall // 2]].float()
        seen = F.grid_sample(walls[wall], across[None], mode="bilinear", align_corners=True)[0].permute(1, 2, 0)
        colours = torch.where(hit[..., None], seen, colours)
    return colours
