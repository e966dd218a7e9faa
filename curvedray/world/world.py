"""The procedural world: courts with a few large things, filmed by exact cameras, from a seed.

It is of low entropy on purpose, so that two CPU cores can learn it: broad soft tiles, wide pillars on four
differently coloured walls, two or three large near things, moves as long as the scene is deep. Everything about a clip
follows from its split and number, to the byte. A split is by scene: what a test clip's caption asks for is never asked
for in training.

t frame   h row   w column
"""

import math
import zlib
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float32, UInt8
from numpy.random import Generator
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.moves.trajectory import trajectory
from curvedray.world.paths import FPS, Amounts, draw_move
from curvedray.world.raycast import render
from curvedray.world.scene import Kind, Room, Scene, Thing
from curvedray.world.themes import COLOURS, THEMES, WORDS, Description, Noun, Side, describe_caption

__all__ = ["WORDS", "WorldClip", "WorldScene", "describe_caption", "scene", "scene_from_caption", "world_clip"]

Split = Literal["train", "val", "test"]
Family = Literal["pinhole", "wide", "fisheye"]
CLEARANCE = 0.45  # metres a camera keeps from things, walls and the floor
# Degrees across and xi, each drawn evenly.
LENS_FAMILIES: dict[Family, tuple[tuple[float, float], tuple[float, float]]] = {
    "pinhole": ((60, 90), (0, 0)),
    "wide": ((90, 125), (0.3, 0.8)),
    "fisheye": ((130, 180), (0.8, 1.3)),
}
AMOUNTS = Amounts(
    {
        "dolly in": (0.8, 2.5, "m"),
        "dolly out": (0.7, 2.0, "m"),
        "truck left": (0.9, 2.8, "m"),
        "truck right": (0.9, 2.8, "m"),
        "pedestal up": (0.5, 1.6, "m"),
        "pedestal down": (0.3, 0.9, "m"),
        "pan left": (25, 60, "deg"),
        "pan right": (25, 60, "deg"),
        "tilt up": (12, 32, "deg"),
        "tilt down": (12, 32, "deg"),
        "roll cw": (20, 50, "deg"),
        "roll ccw": (20, 50, "deg"),
        "orbit left": (20, 60, "deg"),
        "orbit right": (20, 60, "deg"),
    },
    orbit_radius=(1.8, 4.5),
    pairs=0.4,
)
MOVING_SHARE = 0.1


@dataclass(frozen=True)
class WorldScene:
    """A court with its things, and the words that ask for it."""

    scene: Scene
    description: Description

    @property
    def caption(self) -> str:
        return self.description.caption

    @property
    def theme(self) -> str:
        return self.description.theme


@dataclass(frozen=True, eq=False)
class WorldClip:
    """A clip and the whole truth about it. Cameras and radii are in metres, in the court's own frame."""

    id: str
    video: UInt8[Tensor, "t h w 3"]
    cameras: Cameras
    radius: Float32[Tensor, "t h w"]
    valid: Bool[Tensor, "t h w"]
    moving: Bool[Tensor, "t h w"]  # where a thing that moves is seen
    world: WorldScene
    move: str
    family: Family

    @property
    def caption(self) -> str:
        return self.world.caption


def world_clip(index: int, split: Split = "train", frames: int = 17, height: int = 64, width: int = 96) -> WorldClip:
    """Clip number `index` of a split. Its lens, path and scene are the same at every size and number of frames."""
    chosen = scene(index, split)
    random = _random(index, split, 1)
    family = get_args(Family)[random.integers(3)]
    (low, high), bend = LENS_FAMILIES[family]
    lens = Lens.from_fov(random.uniform(low, high), random.uniform(*bend), width, height)
    move, cameras = _path(random, chosen.scene, lens, frames)
    seen = render(chosen.scene, cameras)
    movers = [i for i, thing in enumerate(chosen.scene.things) if thing.moves]
    name = f"{split}-{index:06d}"
    return WorldClip(name, seen.frames, cameras, seen.radius, seen.valid, seen.shows(movers), chosen, move, family)


def scene(index: int, split: Split = "train") -> WorldScene:
    """Scene number `index` of a split."""
    random = _random(index, split, 0)
    while True:
        description = _describe(random)
        if split_of(description.caption) == split:
            return _build(description, random)


def scene_from_caption(text: str, seed: int = 0) -> WorldScene:
    """A scene that a caption asks for, to compare with what a model makes of the same words."""
    description = describe_caption(text)
    if seed < 0:
        raise InputError("seed", "0 or more", seed)
    return _build(description, np.random.default_rng([seed, zlib.crc32(text.encode())]))


def split_of(caption: str) -> Split:
    """The one split whose scenes may have this caption: of twenty, one is for test and one for validation."""
    number = zlib.crc32(caption.encode()) % 20
    return {0: "test", 1: "val"}.get(number, "train")  # type: ignore[return-value]


def _random(index: int, split: Split, stream: int) -> Generator:
    if index < 0:
        raise InputError("number of a scene", "0 or more", index)
    return np.random.default_rng([index, get_args(Split).index(split), stream])


def _describe(random: Generator) -> Description:
    """Two things mostly, in different colours, sometimes one or three; the first two may move."""
    count = random.choice([1, 2, 3], p=[0.1, 0.6, 0.3])
    colours = random.choice(list(COLOURS), count, replace=False).tolist()
    kinds = random.choice(get_args(Kind), count).tolist()
    nouns = [Noun(colour, kind) for colour, kind in zip(colours, kinds, strict=True)]
    mover, side = random.integers(min(count, 2)), get_args(Side)[random.integers(2)]
    if random.random() < MOVING_SHARE:
        nouns[mover] = replace(nouns[mover], moving=side)
    return Description(tuple(nouns), list(THEMES)[random.integers(len(THEMES))])


def _build(description: Description, random: Generator) -> WorldScene:
    """Stand the things where the caption says, drawn again until none touches another or a wall, however they move."""
    theme = THEMES[description.theme]
    room = theme.room()
    while True:
        things: list[Thing] = []
        for index, noun in enumerate(description.nouns):
            x, z = _position(index, len(description.nouns), random)
            radius = random.uniform(0.8, 1.05) * {"ball": 1.0, "box": 0.85, "pillar": 0.6}[noun.kind]
            height = {"ball": 2 * radius, "box": random.uniform(1.5, 2.1), "pillar": random.uniform(2.4, 3.4)}[
                noun.kind
            ]
            travel = random.uniform(1.0, 2.0) * {"left": -1.0, "right": 1.0, None: 0.0}[noun.moving]
            yaw = random.uniform(-0.6, 0.6)
            colour = theme.lit(COLOURS[noun.colour])
            things.append(Thing(noun.kind, x, z, radius, height, colour, yaw=yaw, motion=(travel, 0.0)))
        if _apart(things, room):
            return WorldScene(Scene(room, tuple(things)), description)


def _position(index: int, count: int, random: Generator) -> tuple[float, float]:
    """Where the caption's order puts a thing: alone ahead, else left, right, behind."""
    if count == 1:
        return random.uniform(-0.5, 0.5), random.uniform(3.5, 5.0)
    side = (-1.0, 1.0, 0.0)[index]
    return side * random.uniform(1.25, 2.1) + random.uniform(-0.2, 0.2), random.uniform(3.5, 5.0) + 1.2 * (index == 2)


def _apart(things: list[Thing], room: Room) -> bool:
    """Whether nothing ever touches anything, at any time of the clip."""
    for time in np.linspace(0, 1, 9):
        now = [thing.at(float(time)) for thing in things]
        for index, one in enumerate(now):
            if max(abs(one.x), abs(one.z)) + reach(one) > room.half:
                return False
            for other in now[:index]:
                if math.dist((one.x, one.z), (other.x, other.z)) < reach(one) + reach(other) + 0.1:
                    return False
    return True


def reach(thing: Thing) -> float:
    """How far from its axis a thing extends."""
    return thing.radius * (math.sqrt(2) if thing.kind == "box" else 1.0)


def _path(random: Generator, scene: Scene, lens: Lens, frames: int) -> tuple[str, Cameras]:
    """A move of one or two parts that keeps clear of everything, drawn again until it does."""
    yaw = random.uniform(-4, 4)
    while True:
        move = draw_move(random, AMOUNTS)
        # Judged on a path of its own, so that the number of frames does not change what is drawn.
        if keeps_clear(trajectory(move, lens, 33, unit="metric", yaw=yaw), scene):
            return move, trajectory(move, lens, frames, unit="metric", fps=FPS, yaw=yaw)


def keeps_clear(cameras: Cameras, scene: Scene) -> bool:
    """Whether a path stays inside the court, above its floor and outside every thing, at every time."""
    positions, room = cameras.world_from_camera[:, :3, 3].double(), scene.room
    if positions[:, ::2].abs().max() > room.half - CLEARANCE or positions[:, 1].max() > room.floor - CLEARANCE:
        return False
    for thing in scene.things:
        time = torch.linspace(0, 1, len(positions), dtype=positions.dtype)[:, None]
        standing = torch.tensor([thing.x, thing.z]) + time * torch.tensor(thing.motion)
        if (positions[:, ::2] - standing).norm(dim=-1).min() < reach(thing) + CLEARANCE:
            return False
    return True
