"""Cameras between keys: positions along a cubic spline, rotations along a rotation spline, or straight from key to key.

t moment   k key
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.moves.actions import Array


def cameras_at(keys: Cameras, clock: Array, now: Array, smoothness: float = 1.0) -> Cameras:
    """The cameras at some moments between keys; at the time of a key, that key to the bit.

    `smoothness` 1 is the spline, 0 goes straight and at an even pace from each key to the next, and between them the
    two are blended.
    """
    poses = keys.world_from_camera.detach().cpu()
    key, is_key = _key_at(clock, now)
    result = poses[key].clone()
    between = ~is_key & bool((poses != poses[0]).any())  # a static camera stays static to the bit
    if between.any():
        position, rotation = _blended(poses.double().numpy(), clock, now[between], smoothness)
        result[between, :3, 3] = torch.from_numpy(position).to(poses.dtype)
        result[between, :3, :3] = torch.from_numpy(rotation).to(poses.dtype)
    lens = keys.lens if keys.lens.batch_shape in ((), (1,)) else _lens_at(keys.frame_lens, clock, now)
    return replace(keys, lens=lens, world_from_camera=result.to(keys.world_from_camera.device))


def _blended(poses: Array, clock: Array, now: Array, smoothness: float) -> tuple[Array, Array]:
    """Positions (t 3) and rotations (t 3 3) between poses (k 4 4)."""
    from scipy.interpolate import CubicSpline  # here: importing it takes longer than most paths
    from scipy.spatial.transform import Rotation, RotationSpline, Slerp

    places, turns = poses[:, :3, 3], Rotation.from_matrix(poses[:, :3, :3])
    smooth = CubicSpline(clock, places)(now), RotationSpline(clock, turns)(now)
    if smoothness == 1:
        return smooth[0], smooth[1].as_matrix()
    straight = np.stack([np.interp(now, clock, axis) for axis in places.T], -1), Slerp(clock, turns)(now)
    onwards = Rotation.from_rotvec(smoothness * (straight[1].inv() * smooth[1]).as_rotvec())
    return (1 - smoothness) * straight[0] + smoothness * smooth[0], (straight[1] * onwards).as_matrix()


def _lens_at(lens: Lens, clock: Array, now: Array) -> Lens:
    """Focal lengths evenly in their logarithm, centre and bend evenly."""
    key, is_key = _key_at(clock, now)

    def blend(
        values: Tensor, curve: Callable[[Array], Array] = np.array, back: Callable[[Array], Array] = np.array
    ) -> Tensor:
        columns = curve(values.detach().cpu().double().numpy()).reshape(len(clock), -1)
        rows = np.stack([back(np.interp(now, clock, i)) for i in columns.T], -1)
        blended = torch.from_numpy(rows).reshape(len(now), *values.shape[1:]).to(values)
        blended[is_key] = values[key[is_key]]
        return blended

    return replace(lens, focal=blend(lens.focal, np.log, np.exp), center=blend(lens.center), xi=blend(lens.xi))


def _key_at(clock: Array, now: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The key at or after each moment, and whether it is at that very moment."""
    key = np.clip(np.searchsorted(clock, now), 0, len(clock) - 1)
    return key, clock[key] == now
