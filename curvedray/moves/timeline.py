"""Keyframes as one edits them: how long each way takes, how smooth it is, round in a loop, at a constant speed.

t frame   k key
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_angle
from curvedray.errors import InputError
from curvedray.moves.actions import Array
from curvedray.moves.between import cameras_at
from curvedray.moves.trajectory import checked_frames

AROUND = 12  # keys of a loop that are repeated before and after it: a spline forgets what is farther
MOMENTS = 64  # per key at which the way's length is measured
LONGEST_RATIO = 1e6  # of the longest way to the shortest


@dataclass(frozen=True, eq=False)
class Timeline:
    """Cameras to pass through, one after another, and how.

    `seconds` is how long the way from each key to the next takes, relative to the others; the last one's counts in a
    loop alone, where it leads back to the first. A loop's frames stop one step short of its first, so that it can be
    played round and round. At a constant speed all steps from frame to frame are equally long, whatever `seconds` say;
    turning by a radian is as long as `reach`, in the unit of the cameras.
    """

    keys: Cameras
    seconds: tuple[float, ...]
    smoothness: float = 1.0
    loop: bool = False
    constant_speed: bool = False
    reach: float = 1.0

    def __post_init__(self) -> None:
        if self.keys.batch_shape:
            raise InputError("keyframes", "poses of shape (K, 4, 4)", f"a batch of shape {self.keys.batch_shape}")
        if len(self.seconds) != len(self.keys):
            raise InputError("seconds", f"{len(self.keys)}, one per keyframe", len(self.seconds))
        if not all(math.isfinite(i) and i > 0 for i in self.seconds) or not self._is_even:
            raise InputError("seconds", f"positive numbers, none {LONGEST_RATIO:g} times another", self.seconds)
        if not 0 <= self.smoothness <= 1:
            raise InputError("smoothness", "0 (straight) to 1 (smooth)", self.smoothness)
        if not (math.isfinite(self.reach) and self.reach > 0):
            raise InputError("reach", "a positive length", self.reach)

    @property
    def _is_even(self) -> bool:
        return max(self.seconds) <= LONGEST_RATIO * min(self.seconds)

    @property
    def _times(self) -> Array:
        """When each key is passed; in a loop the last entry is the first key again."""
        ways = self.seconds if self.loop else self.seconds[:-1]
        return np.concatenate([[0.0], np.cumsum(ways)])

    def cameras(self, frames: int) -> Cameras:
        """The path in so many frames."""
        return self._at(self._moments(checked_frames(frames)))

    def key_frames(self, frames: int) -> list[float]:
        """The frame at which each key is passed; seldom a whole one."""
        moments, times = self._moments(checked_frames(frames)), self._times[: len(self.keys)]
        if self.loop:  # the frame after the last is the first again
            moments = np.append(moments, self._times[-1])
        return np.interp(times, moments, np.arange(len(moments))).tolist()

    def _moments(self, frames: int) -> Array:
        """The time of every frame."""
        end = self._times[-1]
        if not self.constant_speed or len(self.keys) < 2:
            return np.linspace(0.0, end, frames, endpoint=not self.loop)
        fine = np.unique(np.concatenate([np.linspace(0.0, end, MOMENTS * len(self.keys) + 1), self._times]))
        poses = self._at(fine).world_from_camera.double().numpy()
        moved = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=-1)
        turned = rotation_angle(poses[:-1, :3, :3], poses[1:, :3, :3]) * self.reach
        way = np.concatenate([[0.0], np.cumsum(np.hypot(moved, turned))])
        if way[-1] == 0:
            return np.linspace(0.0, end, frames, endpoint=not self.loop)
        return np.interp(np.linspace(0.0, way[-1], frames, endpoint=not self.loop), way, fine)

    def _at(self, now: Array) -> Cameras:
        if not self.loop or len(self.keys) < 2:
            return cameras_at(self.keys, self._times[: len(self.keys)], now.clip(max=self._last), self.smoothness)
        count, period = len(self.keys), float(self._times[-1])
        numbers = np.arange(-AROUND, count + AROUND + 1)
        clock = self._times[numbers % count] + period * (numbers // count)
        keys = replace(self.keys, lens=self.keys.frame_lens)[(numbers % count).tolist()]
        return cameras_at(keys, clock, now, self.smoothness)

    @property
    def _last(self) -> float:
        return float(self._times[len(self.keys) - 1])
