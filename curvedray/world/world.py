"""The procedural world: courts whose layout neither caption nor camera tells, filmed by exact cameras, from a seed.

A clip follows from its split, its number and its layout, to the byte. Number and split give caption, lens and path; the
layout gives where things stand, so that one caption and one path can be filmed in many layouts. A split is by caption:
what a test clip asks for is never asked for in training.

t frame   h row   w column
"""

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
from curvedray.world.courts import draw_scene
from curvedray.world.paths import CLEAR, clearance, draw_path
from curvedray.world.raycast import render
from curvedray.world.scene import FIRST_THING, Kind, Scene
from curvedray.world.themes import COLOURS, THEMES, WORDS, Description, Noun, Side, describe_caption

__all__ = ["WORDS", "WorldClip", "WorldScene", "describe_caption", "scene", "scene_from_caption", "world_clip"]

Split = Literal["train", "val", "test"]
Family = Literal["pinhole", "wide", "fisheye"]
# Degrees across and xi, each drawn evenly.
LENS_FAMILIES: dict[Family, tuple[tuple[float, float], tuple[float, float]]] = {
    "pinhole": ((60, 90), (0, 0)),
    "wide": ((90, 125), (0.3, 0.8)),
    "fisheye": ((130, 180), (0.8, 1.3)),
}
COUNTS = {1: 0.15, 2: 0.35, 3: 0.35, 4: 0.15}
MOVING_SHARE = 0.12
LEAST_SEEN = 0.008  # share of a frame that each named thing fills in at least one of the frames looked at
LOOKED_AT = (3, 16, 24)  # frames, rows and columns of the small rendering that tells
USUAL_LENS = (90.0, 0.0)  # degrees across and xi of the standing camera that sees what a caption asks for


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


@dataclass(frozen=True)
class Plan:
    """What a clip's number decides before anything is drawn."""

    court: WorldScene
    family: Family
    move: str
    cameras: Cameras


def world_clip(
    index: int, split: Split = "train", frames: int = 17, height: int = 64, width: int = 96, layout: int = 0
) -> WorldClip:
    """Clip number `index` of a split; another `layout` has the same caption and cameras, with things elsewhere.

    Lens, path and scene are the same at every size and number of frames.
    """
    plan = _plan(index, split, frames, height, width)
    court, cameras = plan.court, plan.cameras
    if layout:
        court = replace(court, scene=_other_layout(court.description, cameras, _random(index, split, 1 + layout)))
    seen = render(court.scene, cameras)
    movers = [i for i, thing in enumerate(court.scene.things) if thing.moves]
    name = f"{split}-{index:06d}" + (f"-{layout}" if layout else "")
    return WorldClip(
        name, seen.frames, cameras, seen.radius, seen.valid, seen.shows(movers), court, plan.move, plan.family
    )


def scene(index: int, split: Split = "train") -> WorldScene:
    """The court of clip number `index` of a split."""
    return _plan(index, split, 17, 64, 96).court


def scene_from_caption(text: str, seed: int = 0) -> WorldScene:
    """A court that a caption asks for: a standing camera sees everything that the caption names."""
    description = describe_caption(text)
    if seed < 0:
        raise InputError("seed", "0 or more", seed)
    random = np.random.default_rng([seed, zlib.crc32(description.caption.encode())])
    standing = Cameras(Lens.from_fov(*USUAL_LENS, 96, 64), torch.eye(4)[None], "metric")
    while True:
        drawn = draw_scene(description, random)
        if shows_all(drawn, standing, len(description.nouns)):
            return WorldScene(drawn, description)


def split_of(caption: str) -> Split:
    """The one split whose scenes may have this caption: of twenty, one is for test and one for validation."""
    number = zlib.crc32(caption.encode()) % 20
    return {0: "test", 1: "val"}.get(number, "train")  # type: ignore[return-value]


def _plan(index: int, split: Split, frames: int, height: int, width: int) -> Plan:
    random = _random(index, split, 0)
    description = draw_description(random, split)
    family: Family = get_args(Family)[random.integers(3)]
    (low, high), bend = LENS_FAMILIES[family]
    lens = Lens.from_fov(random.uniform(low, high), random.uniform(*bend), width, height)
    random = _random(index, split, 1)
    while True:  # until a layout has a path that shows every named thing
        drawn = draw_scene(description, random)
        path = draw_path(random, drawn, lens, frames)
        if path is not None and shows_all(drawn, path[1], len(description.nouns)):
            return Plan(WorldScene(drawn, description), family, *path)


def _other_layout(description: Description, cameras: Cameras, random: Generator) -> Scene:
    """Another layout that the same path keeps clear of, and in which it shows every named thing."""
    while True:
        drawn = draw_scene(description, random)
        if clearance(cameras, drawn) >= CLEAR and shows_all(drawn, cameras, len(description.nouns)):
            return drawn


def shows_all(scene: Scene, cameras: Cameras, named: int) -> bool:
    """Whether each of the first `named` things fills enough of some frame to be seen."""
    frames, rows, cols = LOOKED_AT
    chosen = np.linspace(0, cameras.frames - 1, frames).round().astype(int).tolist()
    few = cameras[chosen]
    # The scene's things move with time, of which the chosen frames are the beginning, the middle and the end.
    small = render(scene, replace(few, lens=few.lens.resized(cols, rows)), samples=1)
    shares = [(small.surface == FIRST_THING + i).float().mean((1, 2)).max() for i in range(named)]
    return bool(torch.stack(shares).min() >= LEAST_SEEN)


def draw_description(random: Generator, split: Split) -> Description:
    """One to four things in different colours and a theme; one of the things may move."""
    while True:
        count = int(random.choice(list(COUNTS), p=list(COUNTS.values())))
        colours = random.choice(list(COLOURS), count, replace=False).tolist()
        nouns = [Noun(colour, get_args(Kind)[random.integers(3)]) for colour in colours]
        if random.random() < MOVING_SHARE:
            mover = random.integers(count)
            nouns[mover] = replace(nouns[mover], moving=get_args(Side)[random.integers(2)])
        description = Description(tuple(nouns), list(THEMES)[random.integers(len(THEMES))])
        if split_of(description.caption) == split:
            return description


def _random(index: int, split: Split, stream: int) -> Generator:
    if index < 0:
        raise InputError("number of a scene", "0 or more", index)
    return np.random.default_rng([index, get_args(Split).index(split), stream, 2])
