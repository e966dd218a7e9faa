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


def rotation_of(yaw_pitch_roll: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ry(yaw) Rx(pitch) Rz(roll), (... 3) -> (... 3 3): what `yaw_pitch_roll` reads."""
    (cy, cp, cr), (sy, sp, sr) = (np.moveaxis(wave(yaw_pitch_roll), -1, 0) for wave in (np.cos, np.sin))
    rows = (
        (cy * cr + sy * sp * sr, sy * sp * cr - cy * sr, sy * cp),
        (cp * sr, cp * cr, -sp),
        (cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, cy * cp),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def rotation_vector(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """The axis times the angle, (... 3 3) -> (... 3). At half a turn, one of its two axes.

    By way of the unit quaternion q: the rows of 4 q q^T are sums of the rotation's entries; the longest is the most
    exact multiple of q.
    """
    r, trace = rotation, np.trace(rotation, axis1=-2, axis2=-1)[..., None, None]
    products = np.empty((*r.shape[:-2], 4, 4))
    products[..., :3, :3] = r + np.swapaxes(r, -1, -2) + (1 - trace) * np.eye(3)
    products[..., 3, 3] = 1 + trace[..., 0, 0]
    for i, (j, k) in enumerate(((2, 1), (0, 2), (1, 0))):
        products[..., i, 3] = products[..., 3, i] = r[..., j, k] - r[..., k, j]
    longest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), -1)[..., None, None]
    q = np.take_along_axis(products, longest, -2)[..., 0, :]
    axis, w = q[..., :3] * np.where(q[..., 3:] < 0, -1, 1), np.abs(q[..., 3])
    sine = np.linalg.norm(axis, axis=-1)
    angle = 2 * np.arctan2(sine, w)
    return axis * np.divide(angle, sine, out=np.zeros_like(angle), where=sine > 0)[..., None]


def fibonacci_lattice(count: int, angle: float = math.pi) -> Float[Tensor, "count 3"]:
    """Unit directions within `angle` of the z axis, spread evenly over that cap of the sphere, or over all of it."""
    index = torch.arange(count, dtype=torch.float64)
    z = 1 - (1 - math.cos(angle)) * (index + 0.5) / count
    across, turn = (1 - z * z).clamp_min(0).sqrt(), index * math.pi * (3 - math.sqrt(5))
    return torch.stack([across * turn.cos(), across * turn.sin(), z], -1)
