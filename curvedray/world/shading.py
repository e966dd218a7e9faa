"""The colour of what a ray meets: paints, patterns, light, shadows, haze.

n ray   k surface, numbered as in scene.py
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

from curvedray.world.scene import FIRST_THING, FLOOR, SKY, Scene, Thing

SUN = (-0.45, -0.75, -0.4848)  # unit, towards the light: high, from behind the left shoulder


def shade(
    scene: Scene,
    origin: Float[ndarray, "3"],
    rays: Float[ndarray, "3 n"],
    distance: Float[ndarray, " n"],
    surface: Int8[ndarray, " n"],
) -> Float[ndarray, "3 n"]:
    """The colour each ray sees: two paints per surface, mixed by its pattern, times light, fading into the haze."""
    room, things, is_sky = scene.room, scene.things, surface == SKY
    point = rays * np.minimum(distance, 1e3)
    point += origin.astype(rays.dtype)[:, None]
    mix, light = _walls_and_floor(scene, point, surface)
    np.copyto(mix, np.clip(-1.6 * rays[1], 0, 1), where=is_sky)
    np.copyto(light, 1, where=is_sky)
    for index, thing in enumerate(things):
        seen = np.flatnonzero(surface == FIRST_THING + index)
        if len(seen):
            mix[seen], light[seen] = _thing_light(thing, room.floor - thing.base, point[:, seen], rays[:, seen])
    if room.shadows:
        light *= 1 - room.shadows * _sunless(scene, point, surface)
    haze = np.clip(distance * 0.016, 0, 0.35)
    np.copyto(haze, 0, where=is_sky)
    light *= 1 - haze
    first = [*room.walls, room.tiles[0], room.sky[0], *(thing.colour for thing in things)]
    second = [*room.stripes, room.tiles[1], room.sky[1], *(thing.accent or thing.colour for thing in things)]
    paints, others = (np.array(i, rays.dtype).T for i in (first, second))
    where, colours = surface.astype(np.intp), np.empty_like(rays)
    for channel, colour in enumerate(colours):
        np.multiply((others - paints)[channel].take(where), mix, out=colour)
        colour += paints[channel].take(where)
        colour *= light
        colour += haze * room.sky[0][channel]
    return np.clip(colours, 0, 1, out=colours)


def _walls_and_floor(scene: Scene, point: ndarray, surface: ndarray) -> tuple[ndarray, ndarray]:
    """How much of the second paint, and how much light, if the point lies on a wall or the floor."""
    room, (x, y, z), on_floor = scene.room, point, surface == FLOOR
    wave = 2 * math.pi / room.spacing
    sharp = 2 / (wave * room.softness)
    across, along = x.copy(), y.copy()
    np.copyto(across, z, where=(surface & 5) == 1)  # the walls +x and -x
    np.copyto(along, z, where=on_floor)
    across, along = np.cos(across * wave), np.cos(along * wave)
    mix = np.clip((across - math.cos(wave * room.stripe / 2)) * sharp + 0.5, 0, 1)
    tiles = np.clip(across * sharp, -1, 1) * np.clip(along * sharp, -1, 1) * 0.5 + 0.5
    np.copyto(mix, tiles, where=on_floor)
    # Corners are a little darker: walls near the floor, the floor near walls.
    edge = room.floor - y
    to_walls = np.minimum(room.half - np.abs(x), room.half_depth - np.abs(z - room.ahead))
    np.copyto(edge, to_walls, where=on_floor)
    light = 1 - 0.22 * np.square(np.maximum(1 - edge * (1 / 1.2), 0))
    below = np.flatnonzero(on_floor)
    light[below] -= _shadows(scene.things, x.take(below), z.take(below))
    if room.ink:
        lines = np.minimum(np.abs(across), np.abs(along)) * (room.spacing / 0.16)
        light -= room.ink * np.maximum(1 - lines, 0)
    return mix, light


def _shadows(things: Sequence[Thing], x: ndarray, z: ndarray) -> ndarray:
    """The sky that balls, one in place of each thing, hide from the floor: r^2 h / (h^2 + d^2)^(3/2) of it each."""
    total = np.zeros_like(x)
    for thing in things:
        square = np.square(x - thing.x) + np.square(z - thing.z) + thing.radius**2
        total += (0.62 * thing.radius**3) / (square * np.sqrt(square))
    return total


def _sunless(scene: Scene, point: ndarray, surface: ndarray) -> ndarray:
    """1 where the sun does not reach a point: behind a wall or a thing, or on a side turned away from it; else 0."""
    room, sun, (x, y, z) = scene.room, np.array(SUN, point.dtype), point
    top = room.floor - room.height
    # The sun stands behind the walls -x and -z: they are dark, and what lies in their shadow is.
    dark = (surface == 2) | (surface == 3)
    for wall, at, towards in ((room.half, x, sun[0]), (room.half_depth, z - room.ahead, sun[2])):
        dark |= y + (-wall - at) / towards * sun[1] > top
    for index, thing in enumerate(scene.things):
        own = surface == FIRST_THING + index
        lit = np.flatnonzero(~dark)
        dark[lit[_between(thing, room.floor - thing.base, point[:, lit], sun) & ~own[lit]]] = True
        seen = np.flatnonzero(own)
        if len(seen):
            normal = _normal(thing, room.floor - thing.base, point[:, seen])
            dark[seen] |= sun @ normal <= 0
    return dark & (surface != SKY)


def _between(thing: Thing, floor: float, point: ndarray, sun: ndarray) -> ndarray:
    """Whether a thing stands between points and the sun."""
    half = thing.radius if thing.kind == "ball" else thing.height / 2
    x, y, z = thing.x - point[0], floor - half - point[1], thing.z - point[2]
    along = x * sun[0] + y * sun[1] + z * sun[2]
    if thing.kind == "ball":
        return (along > 0) & (x * x + y * y + z * z - along * along < thing.radius**2)
    if thing.kind == "pillar":
        flat = float(sun[0] ** 2 + sun[2] ** 2)
        across = x * sun[0] + z * sun[2]
        under_root = across * across - flat * (x * x + z * z - thing.radius**2)
        root = np.sqrt(np.maximum(under_root, 0))
        enter, leave = (across - root) / flat, (across + root) / flat
        meets = under_root > 0
    else:
        cos, sin = math.cos(thing.yaw), math.sin(thing.yaw)
        enter, leave, meets = np.full_like(x, -np.inf), np.full_like(x, np.inf), np.ones_like(x, bool)
        for direction, centre, extent in (
            (cos * sun[0] + sin * sun[2], cos * x + sin * z, thing.radius),
            (cos * sun[2] - sin * sun[0], cos * z - sin * x, thing.half_depth),
        ):
            one, other = (centre - extent) / direction, (centre + extent) / direction
            enter, leave = np.maximum(enter, np.minimum(one, other)), np.minimum(leave, np.maximum(one, other))
    enter, leave = np.maximum(enter, (y + half) / sun[1]), np.minimum(leave, (y - half) / sun[1])
    return meets & (leave > np.maximum(enter, 1e-3))


def _thing_light(thing: Thing, floor: float, point: ndarray, rays: ndarray) -> tuple[ndarray, ndarray]:
    """Pattern and light of points on a thing: sky from above, sun from one side, a glint on balls."""
    sun = np.array(SUN, point.dtype)
    normal = _normal(thing, floor, point)
    facing = sun @ normal
    above = (floor - point[1]) * (1 / thing.radius)
    light = 0.68 - 0.14 * normal[1] + 0.3 * np.clip(facing, -0.4, 1)
    light *= 1 - 0.3 * np.square(np.clip(1 - above, 0, 1))
    if thing.kind == "ball":
        mirrored = np.clip(sun @ rays - 2 * facing * (normal * rays).sum(0), 0, 1)
        light += 0.5 * np.square(np.square(np.square(mirrored))) ** 3
    return _pattern(thing, floor, point, normal), light


def _normal(thing: Thing, floor: float, point: ndarray) -> ndarray:
    """The outward unit normal at points on a thing."""
    x, y, z = point[0] - thing.x, point[1] - floor, point[2] - thing.z
    if thing.kind == "ball":
        return np.stack([x, y + thing.radius, z]) * (1 / thing.radius)
    if thing.kind == "pillar":
        side = np.stack([x, np.zeros_like(x), z]) * (1 / thing.radius)
    else:
        cos, sin = math.cos(thing.yaw), math.sin(thing.yaw)
        a, b = cos * x + sin * z, cos * z - sin * x
        by_a = np.abs(a) * (thing.half_depth / thing.radius) > np.abs(b)
        a, b = np.sign(a) * by_a, np.sign(b) * ~by_a
        side = np.stack([cos * a - sin * b, np.zeros_like(x), sin * a + cos * b])
    return np.where(y < -thing.height * (1 - 1e-4), np.array([[0], [-1], [0]], side.dtype), side)


def _pattern(thing: Thing, floor: float, point: ndarray, normal: ndarray) -> ndarray:
    """How much of a thing's accent: gores on a ball, a framed edge on a box, rings on a pillar."""
    if thing.accent is None:
        return np.zeros_like(point[0])
    if thing.kind == "ball":
        return np.clip(4 * np.cos(4 * np.arctan2(normal[2], normal[0])) + 0.5, 0, 1)
    height = floor - point[1]
    if thing.kind == "pillar":
        return np.clip(8 * np.cos(height * (2 * math.pi / 0.8)) - 4, 0, 1)
    cos, sin = math.cos(thing.yaw), math.sin(thing.yaw)
    x, z = point[0] - thing.x, point[2] - thing.z
    sides = [
        cos * x + sin * z,
        (cos * z - sin * x) * (thing.radius / thing.half_depth),
        (height - thing.height / 2) * (2 * thing.radius / thing.height),
    ]
    second_largest = np.sort(np.abs(sides), axis=0)[1]
    return np.clip((second_largest * (1 / thing.radius) - 0.82) * 30, 0, 1)
