"""Clips of the procedural world, whose truth is known exactly, and what a reading of many of them gets right.

The one evaluator behind the embedded model's table and behind the floor of the estimator that reads it. Poses are
relative to the first frame, in metres. A caption says what there is and not where, so every colour has a slot.

    n clip   t latent frame   y x radius   s slot
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from scipy.spatial.transform import Rotation
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.evaluate.estimators.clip_reader import GRID, ReaderShape, Reading
from curvedray.evaluate.estimators.embedded import poses
from curvedray.evaluate.metrics.pose import pose_errors
from curvedray.evaluate.statistics import Interval, bootstrap, correlation
from curvedray.radial.map import RadialMap
from curvedray.world.scene import Kind
from curvedray.world.themes import COLOURS, THEMES
from curvedray.world.world import WorldClip, WorldScene

KINDS = get_args(Kind)
NAMED = ("theme", "colour", "kind")  # what a caption asks for
SHAPE = ReaderShape(tuple(THEMES), tuple(COLOURS), KINDS, slot_layers=2)  # of a reader of this world
# Cameras look along z with y down: a turn about y is yaw, about x pitch, about z roll.
TURN_AXES = {"yaw": 1, "pitch": 0, "roll": 2}
AXES = (*TURN_AXES, "x", "y", "z")


@dataclass(frozen=True, eq=False)
class KnownClips:
    """What is true of clips, row by row."""

    turn: Float[Tensor, "n t 3"]  # rotation vector of each latent frame's camera from the first
    shift: Float[Tensor, "n t 3"]  # metres
    fov: Float[Tensor, " n"]  # radians across the image
    xi: Float[Tensor, " n"]
    log_radius: Float[Tensor, "n t y x"]  # metres
    known: Bool[Tensor, "n t y x"]  # which of those are
    theme: Int[Tensor, " n"]
    colour: Int[Tensor, "n s"]  # 0: a thing of this colour is there; 1: none is
    kind: Int[Tensor, "n s"]  # the class after the last is "nothing there"
    position: Float[Tensor, "n s bearing_and_distance"]  # of each thing from the first camera: radians, log metres

    @classmethod
    def of(cls, clips: Sequence[WorldClip], shape: ReaderShape = SHAPE) -> "KnownClips":
        """The truth in the form that a reader of this shape answers in."""
        return cls(*(torch.stack(column) for column in zip(*(_truth_of(clip, shape) for clip in clips), strict=True)))

    def __len__(self) -> int:
        return len(self.fov)

    def __getitem__(self, rows: Tensor | slice) -> "KnownClips":
        return KnownClips(*(getattr(self, field.name)[rows] for field in fields(self)))

    def with_next_cameras(self) -> "KnownClips":
        """Every clip is asked for the camera of the one before it: what an estimator scores by chance."""
        return replace(self, **{name: getattr(self, name).roll(1, 0) for name in ("turn", "shift", "fov", "xi")})

    def without_looking(self) -> Reading:
        """What one who never looks would answer: no motion, the middle lens and distance, the commonest words."""
        still = torch.zeros_like(self.turn)
        fov, xi = (torch.full_like(x, float(np.median(x.numpy()))) for x in (self.fov, self.xi))
        middle = torch.full_like(self.log_radius, float(np.median(self.log_radius[self.known].numpy())))
        theme, colour, kind = (_certain(_commonest(getattr(self, i)), count) for i, count in self._classes.items())
        return Reading(still, still, fov, xi, middle, theme, colour, kind, torch.zeros_like(self.position))

    def exact(self) -> Reading:
        """What an estimator without error would answer."""
        theme, colour, kind = (_certain(getattr(self, i), count) for i, count in self._classes.items())
        return Reading(self.turn, self.shift, self.fov, self.xi, self.log_radius, theme, colour, kind, self.position)

    @property
    def _classes(self) -> dict[str, int]:
        return {"theme": len(SHAPE.themes), "colour": SHAPE.classes["colour"], "kind": SHAPE.classes["kind"]}


def _truth_of(clip: WorldClip, shape: ReaderShape) -> tuple[Tensor, ...]:
    path = clip.cameras.latent_frames(GRID).relative_to_first().world_from_camera
    turn = torch.from_numpy(Rotation.from_matrix(path[:, :3, :3].double().numpy()).as_rotvec()).float()
    lens = clip.cameras.lens
    named = (torch.tensor(classes) for classes in classes_of(clip.world))
    radii = radii_of(clip, shape.radii)
    return (turn, path[:, :3, 3].float(), torch.deg2rad(lens.hfov), lens.xi, *radii, *named, positions_of(clip))


def radii_of(clip: WorldClip, grid: TokenGrid) -> tuple[Tensor, Tensor]:
    """Log metres on a grid, and which of them are known."""
    interval, known = RadialMap.from_metric(clip.radius, clip.valid, near=1.0).on(grid)
    shape = (grid.frames, grid.rows, grid.cols)
    return interval.mu.reshape(shape), known.reshape(shape)


def classes_of(world: WorldScene) -> tuple[int, list[int], list[int]]:
    """The number of the theme; for each colour whether it is missing, and its kind, after the last of them none."""
    there = {noun.colour: KINDS.index(noun.kind) for noun in world.description.nouns}
    missing, kinds = [int(i not in there) for i in COLOURS], [there.get(i, len(KINDS)) for i in COLOURS]
    return list(THEMES).index(world.theme), missing, kinds


def positions_of(clip: WorldClip) -> Float[Tensor, "s bearing_and_distance"]:
    """Where each colour's thing stands when the clip begins; zeros for those that are not there."""
    found = torch.zeros(len(COLOURS), 2)
    first_from_world = clip.cameras.world_from_camera[0].double().inverse()
    for noun, thing in zip(clip.world.description.nouns, clip.world.scene.things, strict=False):
        position = first_from_world @ torch.tensor([thing.x, 0.0, thing.z, 1.0], dtype=torch.float64)
        bearing, distance = torch.atan2(position[0], position[2]), torch.hypot(position[0], position[2])
        found[list(COLOURS).index(noun.colour)] = torch.stack([bearing, distance.log()]).float()
    return found


def _commonest(classes: Int[Tensor, " n"] | Int[Tensor, "n s"]) -> Tensor:
    """The commonest class of every column, in every row."""
    return classes.mode(0).values.expand_as(classes)


def _certain(classes: Tensor, count: int) -> Tensor:
    return F.one_hot(classes, count).float()


@dataclass(frozen=True, eq=False)
class ClipErrors:
    """How a reading of many clips differs from their truth, clip by clip."""

    measures: dict[str, Float[np.ndarray, " n"]]
    asked: dict[str, Float[np.ndarray, " n"]]  # each axis at the last frame: radians, metres
    found: dict[str, Float[np.ndarray, " n"]]

    def correlation(self, axis: str) -> Interval:
        """Pearson's r between what was asked and found at the last frame, with a bootstrap interval over clips."""
        return correlation(self.asked[axis], self.found[axis])

    def to_json(self) -> dict[str, Any]:
        means = {name: vars(bootstrap(value)) for name, value in self.measures.items()}
        return means | {f"r {axis}": vars(self.correlation(axis)) for axis in AXES}


def errors_of(truth: KnownClips, said: Reading) -> ClipErrors:
    """Errors of every clip: the path as `metrics.pose` has it, metres, lens, distances, and shares of words right."""
    true_path, path = poses(truth.exact()), poses(said)
    errors = [pose_errors(a, b) for a, b in zip(true_path, path, strict=True)]
    known = truth.known.double()
    missed = (said.log_radius.double() - truth.log_radius.double()).abs() * known
    right = {name: (getattr(said, name).argmax(-1) == getattr(truth, name)).double() for name in NAMED}
    there = (truth.colour == 0).double()  # most colours are not there: kinds are counted of things that are
    right["kind"] = (right["kind"] * there).sum(1) / there.sum(1)
    measures = {
        "rotation": np.array([error.degrees_per_frame for error in errors]),
        "rot_err": np.array([error.rot_err for error in errors]),
        "trans_err": np.array([error.trans_err for error in errors]),
        "cam_mc": np.array([error.cam_mc for error in errors]),
        "metres": np.linalg.norm(true_path[:, 1:, :3, 3] - path[:, 1:, :3, 3], axis=-1).mean(1),
        "fov": torch.rad2deg((said.fov.double() - truth.fov.double()).abs()).numpy(),
        "xi": (said.xi.double() - truth.xi.double()).abs().numpy(),
        "distance": (missed.sum((1, 2, 3)) / known.sum((1, 2, 3))).numpy(),
        **{name: share.reshape(len(truth), -1).mean(1).numpy() for name, share in right.items()},
    }
    return ClipErrors(measures, _at_the_end(truth.turn, true_path), _at_the_end(said.turn, path))


def _at_the_end(turn: Float[Tensor, "n t 3"], path: Float[np.ndarray, "n t 4 4"]) -> dict[str, np.ndarray]:
    last = turn[:, -1].double().numpy()
    turns = {name: last[:, axis] for name, axis in TURN_AXES.items()}
    return turns | {name: path[:, -1, axis, 3] for axis, name in enumerate("xyz")}
