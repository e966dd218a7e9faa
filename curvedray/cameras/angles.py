"""Angles in radians: between rotations, between directions, of a camera that pans, tilts and rolls; even directions.

Formulas that stay exact for small angles, where an arccos of a product loses half its digits.
"""

import math
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

Numbers = TypeVar("Numbers", Tensor, NDArray[np.float64])


def rotation_angle(a: Numbers, b: Numbers) -> Numbers:
    """The angle of a^T b, for rotations (... 3 3) of torch or NumPy: |a - b| = 2 sqrt(2) sin(angle / 2)."""
    sine: Any = (((a - b) ** 2).sum((-1, -2)) / 8) ** 0.5
    arcsin: Any = torch.arcsin if isinstance(sine, Tensor) else np.arcsin
    return 2 * arcsin(sine.clip(max=1))


def direction_angle(a: Tensor, b: Tensor) -> Tensor:
    """The angle between unit vectors (... n): 2 arctan(|a - b| / |a + b|)."""
    return 2 * torch.atan2((a - b).norm(dim=-1), (a + b).norm(dim=-1))


def yaw_pitch_roll(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Yaw right, pitch up and roll clockwise of rotations (... 3 3) = Ry(yaw) Rx(pitch) Rz(roll) -> (... 3).

    A camera that looks straight up or down has no yaw of its own; the angles then say one of many.
    """
    r = rotation
    return np.stack(
        [
            np.arctan2(r[..., 0, 2], r[..., 2, 2]),
            -np.arcsin(np.clip(r[..., 1, 2], -1, 1)),
            np.arctan2(r[..., 1, 0], r[..., 1, 1]),
        ],
        -1,
    )


def fibonacci_lattice(count: int, angle: float = math.pi) -> Float[Tensor, "count 3"]:
    """Unit directions within `angle` of the z axis, spread evenly over that cap of the sphere, or over all of it."""
    index = torch.arange(count, dtype=torch.float64)
    z = 1 - (1 - math.cos(angle)) * (index + 0.5) / count
    across, turn = (1 - z * z).clamp_min(0).sqrt(), index * math.pi * (3 - math.sqrt(5))
    return torch.stack([across * turn.cos(), across * turn.sin(), z], -1)
