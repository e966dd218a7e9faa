"""The procedural world as panoramas: what a 360 degree camera would see, and the exact distance of every pixel."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from curvedray.cameras.sphere import equirectangular_rays
from curvedray.world.raycast import Rays, render_rays
from curvedray.world.scene import Scene


def panorama_frames(
    scene: Scene, world_from_panorama: Float[Tensor, "t 4 4"], height: int, samples: int = 2
) -> Iterator[tuple[ndarray, ndarray]]:
    """Equirectangular pictures (h w 3), twice as wide as high, and distances in metres (h w), frame by frame."""
    rays, size = _rays(height, samples), (2 * height, height)
    for index, pose in enumerate(world_from_panorama.double().numpy()):
        now = scene.at(index / max(1, len(world_from_panorama) - 1))
        picture, radius, _ = render_rays(now, pose, rays, size)
        yield picture, radius


def _rays(height: int, samples: int) -> Rays:
    """An even grid of rays inside every pixel: those of an image `samples` times as fine."""
    fine = equirectangular_rays(2 * height * samples, height * samples)
    fine = fine.reshape(height, samples, 2 * height, samples, 3).permute(4, 1, 3, 0, 2).reshape(3, samples**2, -1)
    centre = equirectangular_rays(2 * height, height).reshape(-1, 3).T
    exist = np.ones((samples**2, 2 * height * height), bool)
    return Rays(fine.float().numpy(), exist, np.ascontiguousarray(centre.numpy()), exist[0])
