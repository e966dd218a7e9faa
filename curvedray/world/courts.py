"""Courts in which the caption says what there is, and not where.

Named things stand anywhere in view, 1.5 to 9 m away, in sizes over a factor of three, among unnamed grey blocks, steps
and free-standing walls, in rooms of different size. So distances carry what neither caption nor camera tells.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from curvedray.world.scene import Room, Scene, Thing
from curvedray.world.themes import COLOURS, THEMES, Description, paint

NEAREST, FARTHEST = 1.5, 9.0  # metres of a thing from where the camera starts
WIDEST_BEARING = math.radians(42)
LARGEST_SHARE = 0.34  # of its distance that a thing's radius may be, so that none hides all the others
SCALES = (0.55, 1.65)  # of a thing's size, drawn evenly in the logarithm
GREYS = tuple(paint(code) for code in ("9a9a98", "7c7e80", "b4b1ab"))
UNNAMED = ("block", "wall", "steps")
UNNAMED_COUNTS = (0.3, 0.4, 0.2, 0.1)  # of none, one, two, three of them
GAP = 0.15  # metres between things
TRIES = 60


def draw_scene(description: Description, random: Generator) -> Scene:
    """A room and a layout for what a caption names, drawn again until nothing touches anything."""
    while True:
        room = draw_room(description, random)
        things = _draw_things(description, room, random)
        if things is not None:
            return Scene(room, tuple(things))


def draw_room(description: Description, random: Generator) -> Room:
    """The camera starts at the origin, nearer to the wall behind it than to the one ahead."""
    deep = random.uniform(4.0, 7.5)
    return replace(
        THEMES[description.theme].room(),
        half=random.uniform(3.8, 8.0),
        deep=deep,
        ahead=random.uniform(0.35, 0.65) * deep,
        height=random.uniform(2.6, 5.5),
        softness=0.06,
        shadows=0.34,
    )


def _draw_things(description: Description, room: Room, random: Generator) -> list[Thing] | None:
    """Named things first, in the caption's order, then unnamed ones; None where they do not fit."""
    theme, things = THEMES[description.theme], list[Thing]()
    for noun in description.nouns:
        for _ in range(TRIES):
            scale = math.exp(random.uniform(*np.log(SCALES)))
            radius = scale * {"ball": 0.62, "box": 0.55, "pillar": 0.34}[noun.kind]
            height = {"ball": 2 * radius, "box": random.uniform(1.2, 3.0) * radius, "pillar": random.uniform(1.6, 3.4)}
            travel = random.uniform(1.0, 2.5) * {"left": -1.0, "right": 1.0, None: 0.0}[noun.moving]
            x, z = _draw_position(random, radius / LARGEST_SHARE)
            thing = Thing(noun.kind, x, z, radius, height[noun.kind], theme.lit(COLOURS[noun.colour]))
            thing = replace(thing, yaw=random.uniform(-0.7, 0.7), motion=(travel, 0.0))
            if fits([thing], things, room):
                things.append(thing)
                break
        else:
            return None
    for _ in range(random.choice(len(UNNAMED_COUNTS), p=UNNAMED_COUNTS)):
        for _ in range(TRIES // 4):
            pieces = _draw_unnamed(random)
            if fits(pieces, things, room):
                things += pieces
                break
    return things


def _draw_position(random: Generator, nearest: float) -> tuple[float, float]:
    """Where a thing stands, (x, z): its bearing drawn evenly, its distance evenly in the logarithm."""
    bearing = random.uniform(-WIDEST_BEARING, WIDEST_BEARING)
    distance = math.exp(random.uniform(math.log(max(NEAREST, nearest)), math.log(FARTHEST)))
    return distance * math.sin(bearing), distance * math.cos(bearing)


def _draw_unnamed(random: Generator) -> list[Thing]:
    """A grey block, a free-standing wall, or steps of two or three."""
    kind, grey = UNNAMED[random.integers(len(UNNAMED))], GREYS[random.integers(len(GREYS))]
    x, z = _draw_position(random, 2.0)
    yaw = random.uniform(-math.pi / 2, math.pi / 2)
    if kind == "wall":
        half = random.uniform(0.7, 1.6)
        return [Thing("box", x, z, half, random.uniform(0.9, 2.4), grey, yaw=yaw, depth=0.12)]
    if kind == "block":
        radius = random.uniform(0.3, 0.8)
        return [Thing("box", x, z, radius, random.uniform(0.4, 1.8), grey, yaw=yaw, depth=random.uniform(0.3, 0.8))]
    rise, run, half = random.uniform(0.2, 0.35), random.uniform(0.3, 0.45), random.uniform(0.5, 0.9)
    steps = []
    for step in range(int(random.integers(2, 4))):
        back = (step + 0.5) * run  # each stands behind the one before, and is higher
        ahead = (x - back * math.sin(yaw), z + back * math.cos(yaw))
        steps.append(Thing("box", *ahead, half, (step + 1) * rise, grey, yaw=yaw, depth=run / 2))
    return steps


def fits(pieces: list[Thing], others: list[Thing], room: Room) -> bool:
    """Whether new things touch neither walls nor other things, at any time of the clip."""
    for time in (0.0, 0.25, 0.5, 0.75, 1.0):
        standing = [circle for other in others for circle in footprint(other.at(time))]
        for piece in pieces:
            for x, z, radius in footprint(piece.at(time)):
                if abs(x) + radius > room.half or abs(z - room.ahead) + radius > room.half_depth:
                    return False
                if any(math.dist((x, z), (a, b)) < radius + r + GAP for a, b, r in standing):
                    return False
    return True


def footprint(thing: Thing) -> list[tuple[float, float, float]]:
    """Circles (x, z, radius) on the floor that together cover a thing: several along a box that is long."""
    if thing.kind != "box":
        return [(thing.x, thing.z, thing.radius)]
    wide, narrow = thing.radius, thing.half_depth
    cos, sin = math.cos(thing.yaw), math.sin(thing.yaw)
    along = (cos, sin) if wide >= narrow else (-sin, cos)
    wide, narrow = max(wide, narrow), min(wide, narrow)
    count = max(1, math.ceil(wide / (2 * narrow)))
    spaced = wide / count
    radius = math.hypot(spaced, narrow)
    offsets = [(2 * i + 1 - count) * spaced for i in range(count)]
    return [(thing.x + along[0] * offset, thing.z + along[1] * offset, radius) for offset in offsets]
