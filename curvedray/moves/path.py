"""A path as arrays, ready to be read: steps from frame to frame, holds, and whether it moves, turns or zooms.

t frame   step vectors are rotations from a frame to the next, as axis times angle
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_angle, rotation_of, rotation_vector, yaw_pitch_roll
from curvedray.moves.actions import Array

STILL_LENGTH = 1e-3  # of the unit: a camera that moves less stands still
STILL_ANGLE = np.deg2rad(0.1)
STILL_ZOOM = 1e-3  # of the focal length's logarithm
HOLD = 1e-6  # a camera that changes less from a frame to the next is held
SHORTEST = 4  # frames that one of several moves must last


@dataclass(frozen=True, eq=False)
class Path:
    """Where cameras stand, how they are turned and how far they are zoomed in, frame by frame."""

    rotation: Array  # t 3 3
    position: Array  # t 3
    zoom: Array  # t, the focal length's logarithm
    body_turn: Array  # t-1 3, step vectors about the camera's own axes

    @classmethod
    def of(cls, cameras: Cameras, most: int) -> "Path":
        """The path of some cameras, at most so many frames of it, evenly chosen."""
        chosen = np.unique(np.linspace(0, len(cameras) - 1, min(most, len(cameras))).round().astype(int))
        poses = cameras.world_from_camera.detach().cpu().double().numpy()[chosen]
        focal = cameras.frame_lens.focal.detach().cpu().double().log().mean(-1).numpy()[chosen]
        rotation = poses[:, :3, :3]
        return cls(rotation, poses[:, :3, 3], focal, _turns(rotation))

    def __len__(self) -> int:
        return len(self.zoom)

    def part(self, begin: int, end: int) -> "Path":
        """From one frame to another, both included."""
        frames = slice(begin, end + 1)
        return Path(self.rotation[frames], self.position[frames], self.zoom[frames], self.body_turn[begin:end])

    def seen_from(self, axes: Array) -> "Path":
        """In a world with these axes whose origin is the first camera; its zoom from the first frame's."""
        position, zoom = (self.position - self.position[0]) @ axes, self.zoom - self.zoom[0]
        return replace(self, rotation=axes.T @ self.rotation, position=position, zoom=zoom)

    def views(self) -> "list[Path]":
        """In the first camera's own axes, and in level ones, where a tilted camera's pan is still a pan."""
        level = rotation_of(yaw_pitch_roll(self.rotation[0]) * [1, 0, 0])
        own = self.seen_from(self.rotation[0])
        return [own] if np.allclose(level, self.rotation[0], atol=1e-4) else [own, self.seen_from(level)]

    @cached_property
    def world_turn(self) -> Array:
        """Step vectors about the world's axes."""
        return np.einsum("tij,tj->ti", self.rotation[:-1], self.body_turn)

    @cached_property
    def jerk(self) -> Array:
        """How much the step after each inner frame differs from the step before it, as the camera feels them."""
        own = np.einsum("tji,tj->ti", self.rotation[:-1], np.diff(self.position, axis=0))
        steps = np.concatenate([own, self.body_turn, np.diff(self.zoom)[:, None]], -1)
        return np.linalg.norm(np.diff(steps, axis=0), axis=-1)

    @property
    def turned(self) -> float:
        return float(np.linalg.norm(self.body_turn, axis=-1).sum())

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Which steps from a frame to the next are part of a hold: SHORTEST frames or more without any change."""
        change = np.abs(np.diff(self.position, axis=0)).max(-1) + np.abs(np.diff(self.rotation, axis=0)).max((-1, -2))
        still = change + np.abs(np.diff(self.zoom)) < HOLD
        edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]]))).reshape(-1, 2)
        for begin, end in edges:
            still[begin:end] = end - begin >= SHORTEST - 1
        return still

    @property
    def moves(self) -> bool:
        return bool(np.linalg.norm(self.position - self.position[0], axis=-1).max() > STILL_LENGTH)

    @property
    def turns(self) -> bool:
        return bool(rotation_angle(self.rotation, self.rotation[:1]).max() > STILL_ANGLE)

    @property
    def zooms(self) -> bool:
        return bool(np.abs(self.zoom - self.zoom[0]).max() > STILL_ZOOM)


def _turns(rotation: Array) -> Array:
    steps = np.swapaxes(rotation[:-1], -1, -2) @ rotation[1:]
    return rotation_vector(steps)
