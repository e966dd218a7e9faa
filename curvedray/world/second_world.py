"""The second world: clips of courts whose layout neither caption nor camera tells, from a seed.

A clip follows from its split, its number and its layout, to the byte. Number and split give caption, lens and path; the
layout gives where things stand, so that one caption and one path can be filmed in many layouts. What a test clip's
caption asks for is never asked for in training.
"""

import zlib
from dataclasses import replace
from typing import get_args

import numpy as np
import torch
from numpy.random import Generator

from curvedray.cameras import Cameras, Lens
from curvedray.world.paths import CLEAR, clearance, draw_path
from curvedray.world.raycast import render
from curvedray.world.scene import FIRST_THING, Kind, Scene
from curvedray.world.second_world_scenes import draw_scene
from curvedray.world.themes import COLOURS, THEMES, Description, Noun, Side
from curvedray.world.world import LENS_FAMILIES, Family, Split, WorldClip, WorldScene, split_of

COUNTS = {1: 0.15, 2: 0.35, 3: 0.35, 4: 0.15}
MOVING_SHARE = 0.12
LEAST_SEEN = 0.008  # share of a frame that each named thing fills in at least one of the frames looked at
LOOKED_AT = (3, 16, 24)  # frames, rows and columns of the small rendering that tells


def world_clip(
    index: int, split: Split = "train", frames: int = 17, height: int = 64, width: int = 96, layout: int = 0
) -> WorldClip:
    """Clip number `index` of a split; another `layout` has the same caption and cameras, with things elsewhere."""
    random = _random(index, split, 0)
    description = draw_description(random, split)
    family: Family = get_args(Family)[random.integers(3)]
    (low, high), bend = LENS_FAMILIES[family]
    lens = Lens.from_fov(random.uniform(low, high), random.uniform(*bend), width, height)
    move, cameras, scene = _first_layout(description, lens, frames, index, split)
    if layout:
        scene = _other_layout(description, cameras, _random(index, split, 1 + layout))
    seen = render(scene, cameras)
    movers = [i for i, thing in enumerate(scene.things) if thing.moves]
    name = f"{split}-{index:06d}" + (f"-{layout}" if layout else "")
    court = WorldScene(scene, description)
    return WorldClip(name, seen.frames, cameras, seen.radius, seen.valid, seen.shows(movers), court, move, family)


def _first_layout(
    description: Description, lens: Lens, frames: int, index: int, split: Split
) -> tuple[str, Cameras, Scene]:
    """A layout, and a path through it that shows every named thing."""
    random = _random(index, split, 1)
    while True:
        scene = draw_scene(description, random)
        drawn = draw_path(random, scene, lens, frames)
        if drawn is not None and shows_all(scene, drawn[1], len(description.nouns)):
            return *drawn, scene


def _other_layout(description: Description, cameras: Cameras, random: Generator) -> Scene:
    """Another layout that the same path keeps clear of, and in which it shows every named thing."""
    while True:
        scene = draw_scene(description, random)
        if clearance(cameras, scene) >= CLEAR and shows_all(scene, cameras, len(description.nouns)):
            return scene


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
        description = Description(tuple(nouns), list(THEMES)[random.integers(len(THEMES))], placed=False)
        if split_of(description.caption) == split:
            return description


def scene_from_caption(description: Description, seed: int = 0) -> Scene:
    """A scene that a caption asks for, to compare with what a model makes of the same words."""
    return draw_scene(description, np.random.default_rng([seed, zlib.crc32(description.caption.encode())]))


def _random(index: int, split: Split, stream: int) -> Generator:
    return np.random.default_rng([index, get_args(Split).index(split), stream, 2])
