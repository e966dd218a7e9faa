"""An exact ray-caster: a court with balls, boxes and pillars, seen through any lens along any path.

Every surface is a formula, so a pixel's distance is exact to rounding: it is found in double precision along the ray
of the pixel's centre. Colours are averaged over `samples` x `samples` rays per pixel, in single precision, in chunks
that stay in the cache. The arithmetic is numpy's, whose comparisons and masks are several times quicker than torch's.

    The world's axes are the cameras': x right, y down, z forward, so the floor lies at y = +eye height.
    n ray   k surface: walls +z, +x, -z, -x, then floor, sky, and the things in their order
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int8, UInt8
from numpy import ndarray
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.lens import pixel_centers
from curvedray.errors import InputError

Colour = tuple[float, float, float]  # red, green, blue in 0..1
Kind = Literal["ball", "box", "pillar"]
FLOOR, SKY, FIRST_THING = 4, 5, 6
CHUNK = 1 << 15  # rays at once: a chunk's arrays fit the second-level cache
SUN = (-0.45, -0.75, -0.4848)  # unit, towards the light: high, from behind the left shoulder


@dataclass(frozen=True)
class Thing:
    """A ball, box or pillar that stands on the floor at (x, z). `radius` is a box's half width."""

    kind: Kind
    x: float
    z: float
    radius: float
    height: float  # of boxes and pillars; a ball is as high as it is wide
    colour: Colour
    accent: Colour | None = None  # of its stripes, if it has any
    yaw: float = 0.0  # of a box, radians
    motion: tuple[float, float] = (0.0, 0.0)  # how far it goes along x and z from the first frame to the last

    @property
    def moves(self) -> bool:
        return self.motion != (0.0, 0.0)

    def at(self, time: float) -> "Thing":
        """Where it stands at a time in 0..1 of the clip."""
        return replace(self, x=self.x + time * self.motion[0], z=self.z + time * self.motion[1], motion=(0.0, 0.0))


@dataclass(frozen=True)
class Room:
    """A square court under the sky, centred on (x, z) = (0, 0), with wide pillars painted on four coloured walls."""

    walls: tuple[Colour, Colour, Colour, Colour]  # +z, +x, -z, -x
    stripes: tuple[Colour, Colour, Colour, Colour]  # the pillars on each wall
    tiles: tuple[Colour, Colour]
    sky: tuple[Colour, Colour]  # at the horizon and overhead
    half: float = 7.0  # metres from the centre to a wall
    floor: float = 1.5  # metres below the origin
    height: float = 4.0  # of the walls
    spacing: float = 3.5  # of the pillars; a floor tile is half as wide
    stripe: float = 1.1  # width of a pillar
    softness: float = 0.12  # metres over which one colour becomes the other
    ink: float = 0.0  # darkness of fine lines along tiles and courses, 0 for none


@dataclass(frozen=True)
class Scene:
    """What there is to see."""

    room: Room
    things: tuple[Thing, ...] = ()

    def at(self, time: float) -> "Scene":
        return replace(self, things=tuple(thing.at(time) for thing in self.things))


@dataclass(frozen=True, eq=False)
class Rendered:
    """Frames and the truth about them. `radius` is inf in the sky and 0 where the lens has no ray: neither is valid."""

    frames: UInt8[Tensor, "t h w 3"]
    radius: Float32[Tensor, "t h w"]  # metres along the ray of the pixel's centre
    surface: Int8[Tensor, "t h w"]  # which surface is seen there; -1 where the lens has no ray

    @property
    def valid(self) -> Bool[Tensor, "t h w"]:
        return torch.isfinite(self.radius) & (self.radius > 0)

    def shows(self, things: Sequence[int]) -> Bool[Tensor, "t h w"]:
        """Where some of the scene's things, given by their places in it, are seen."""
        return torch.isin(self.surface, torch.tensor([FIRST_THING + i for i in things], dtype=self.surface.dtype))


def render(scene: Scene, cameras: Cameras, samples: int = 2) -> Rendered:
    """Every frame of the scene, its exact radial distances and what each pixel shows; black where there is no ray."""
    parts = zip(*render_frames(scene, cameras, samples), strict=True)
    return Rendered(*(torch.from_numpy(np.stack(part)) for part in parts))


def render_frames(scene: Scene, cameras: Cameras, samples: int = 2) -> Iterator[tuple[ndarray, ndarray, ndarray]]:
    """Frame by frame, for a progress bar: picture (h w 3), radius (h w), surface (h w)."""
    if cameras.batch_shape:
        raise InputError("Cameras", "one path to render", f"leading axes {cameras.batch_shape}")
    if samples < 1:
        raise InputError("samples", "at least one ray a pixel and axis", samples)
    poses = cameras.world_from_camera.detach().cpu().double().numpy()
    lenses, changing = cameras.frame_lens.to("cpu"), cameras.lens.batch_shape not in ((), (1,))
    shared = None if changing else _rays(lenses[0], samples)
    for index, pose in enumerate(poses):
        now = scene.at(index / max(1, cameras.frames - 1))
        yield _frame(now, pose, shared or _rays(lenses[index], samples), cameras.lens.size)


@dataclass(frozen=True, eq=False)
class _Rays:
    """A lens's unit rays in the camera's frame: s = samples^2 a pixel for colour, one in double for distance."""

    fine: Float[ndarray, "3 s n"]
    fine_exist: Bool[ndarray, "s n"]
    centre: Float[ndarray, "3 n"]
    centre_exists: Bool[ndarray, " n"]


@torch.no_grad()
def _rays(lens: Lens, samples: int) -> _Rays:
    """Rays through an even grid of points inside every pixel, and through every pixel's centre."""
    lens = lens.to(torch.float64)
    centers = pixel_centers(lens.size, lens.focal).reshape(-1, 2)
    steps = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples - 0.5
    offsets = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1).reshape(-1, 1, 2)
    fine, fine_exist = lens.unproject(centers + offsets)
    centre, centre_exists = lens.unproject(centers)
    first = np.ascontiguousarray(np.moveaxis(fine.float().numpy(), -1, 0))
    return _Rays(first, fine_exist.numpy(), np.ascontiguousarray(centre.numpy().T), centre_exists.numpy())


def _frame(scene: Scene, pose: ndarray, rays: _Rays, size: tuple[int, int]) -> tuple[ndarray, ndarray, ndarray]:
    """One frame, chunk by chunk: colours along the fine rays, distances along the pixels' centres."""
    rotation, origin = pose[:3, :3], pose[:3, 3]
    samples, pixels = rays.fine.shape[1:]
    picture = np.empty((pixels, 3), np.uint8)
    radius, surface = np.empty(pixels, np.float32), np.empty(pixels, np.int8)
    step = max(1, CHUNK // samples)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a ray along a wall meets it at infinity
        for start in range(0, pixels, step):
            part = slice(start, start + step)
            exact, seen = nearest_hit(scene, origin, rotation @ rays.centre[:, part])
            radius[part] = np.where(rays.centre_exists[part], exact, 0)
            surface[part] = np.where(rays.centre_exists[part], seen, -1)
            directions = rotation.astype(np.float32) @ rays.fine[:, :, part].reshape(3, -1)
            colours = shade(scene, origin, directions, *nearest_hit(scene, origin, directions))
            colours = colours.reshape(3, samples, -1)
            if not rays.fine_exist[:, part].all():
                colours *= rays.fine_exist[:, part]
            picture[part] = (colours.sum(1) * (255 / samples) + 0.5).T
    return picture.reshape(size[1], size[0], 3), radius.reshape(size[::-1]), surface.reshape(size[::-1])


def nearest_hit(
    scene: Scene, origin: Float[ndarray, "3"], rays: Float[ndarray, "3 n"]
) -> tuple[Float[ndarray, " n"], Int8[ndarray, " n"]]:
    """How far along each unit ray the first surface lies (inf: the sky), and which surface it is."""
    room, (dx, dy, dz), (ox, oy, oz) = scene.room, rays, origin.tolist()
    distance = (np.copysign(room.half, dz, dtype=dz.dtype) - oz) / dz
    surface = np.int8(2) * (dz < 0)
    to_x = (np.copysign(room.half, dx, dtype=dx.dtype) - ox) / dx
    np.copyto(surface, np.int8(2) * (dx < 0) + np.int8(1), where=to_x < distance)
    np.minimum(distance, to_x, out=distance)
    over = distance * dy < room.floor - room.height - oy
    np.copyto(distance, np.inf, where=over)
    np.copyto(surface, SKY, where=over)
    _take_nearer((room.floor - oy) / dy, FLOOR, distance, surface)
    for index, thing in enumerate(scene.things):
        near = _rays_towards(thing, room.floor, origin, rays)
        if not len(near):
            continue
        meet = {"ball": _to_ball, "box": _to_box, "pillar": _to_pillar}[thing.kind]
        towards, reached, named = rays.take(near, 1), distance.take(near), surface.take(near)
        for candidate in meet(thing, room.floor, (ox, oy, oz), towards):
            _take_nearer(candidate, FIRST_THING + index, reached, named)
        distance[near], surface[near] = reached, named
    return distance, surface


def _rays_towards(thing: Thing, floor: float, origin: ndarray, rays: ndarray) -> ndarray:
    """Which rays may meet a thing: those in the cone of the ball around it, or all from inside that ball."""
    half = thing.radius if thing.kind == "ball" else thing.height / 2
    corner = {"ball": (half,), "pillar": (half, thing.radius), "box": (half, thing.radius, thing.radius)}[thing.kind]
    centre = np.array([thing.x, floor - half, thing.z]) - origin
    tangent = float(centre @ centre) - sum(i * i for i in corner)
    if tangent <= 0:
        return np.arange(rays.shape[1])
    return np.flatnonzero(centre.astype(rays.dtype) @ rays > math.sqrt(tangent) * (1 - 1e-4) - 1e-4)


def _take_nearer(candidate: ndarray, name: int, distance: ndarray, surface: ndarray) -> None:
    """Keep, in place, the nearer of two hits. One behind the camera, or infinitely far, is a miss."""
    nearer = (candidate > 0) & (candidate < distance)
    np.copyto(distance, candidate, where=nearer)
    np.copyto(surface, name, where=nearer)


def _to_ball(thing: Thing, floor: float, origin: tuple[float, float, float], rays: ndarray) -> list[ndarray]:
    """|o + t d - c| = r: t = b - sqrt(b^2 - |c - o|^2 + r^2) with b = d . (c - o)."""
    x, y, z = thing.x - origin[0], floor - thing.radius - origin[1], thing.z - origin[2]
    along = np.array([x, y, z], rays.dtype) @ rays
    under_root = along * along - (x * x + y * y + z * z - thing.radius**2)
    hit = along - np.sqrt(np.maximum(under_root, 0))
    np.copyto(hit, np.inf, where=under_root < 0)
    return [hit]


def _to_pillar(thing: Thing, floor: float, origin: tuple[float, float, float], rays: ndarray) -> list[ndarray]:
    """The side is a circle in (x, z), cut at the top; the lid is seen from above only."""
    (dx, dy, dz), top = rays, floor - thing.height
    x, z = thing.x - origin[0], thing.z - origin[2]
    flat, along = dx * dx + dz * dz, dx * x + dz * z
    under_root = along * along - flat * (x * x + z * z - thing.radius**2)
    side = (along - np.sqrt(np.maximum(under_root, 0))) / flat
    np.copyto(side, np.inf, where=(under_root < 0) | (side * dy < top - origin[1]))
    if origin[1] >= top:
        return [side]
    lid = (top - origin[1]) / dy
    np.copyto(lid, np.inf, where=np.square(lid * dx - x) + np.square(lid * dz - z) > thing.radius**2)
    return [side, lid]


def _to_box(thing: Thing, floor: float, origin: tuple[float, float, float], rays: ndarray) -> list[ndarray]:
    """Inside three slabs at once: from the last one entered to the first one left."""
    (dx, dy, dz), cos, sin = rays, math.cos(thing.yaw), math.sin(thing.yaw)
    x, y, z = thing.x - origin[0], floor - thing.height / 2 - origin[1], thing.z - origin[2]
    slabs = (
        (cos * dx + sin * dz, cos * x + sin * z, thing.radius),
        (dy, y, thing.height / 2),
        (cos * dz - sin * dx, cos * z - sin * x, thing.radius),
    )
    enter, leave = np.full_like(dx, -np.inf), np.full_like(dx, np.inf)
    for direction, centre, half in slabs:
        inverse = 1 / direction
        one, other = inverse * (centre - half), inverse * (centre + half)
        np.maximum(enter, np.minimum(one, other), out=enter)
        np.minimum(leave, np.maximum(one, other), out=leave)
    np.copyto(enter, np.inf, where=enter > leave)
    return [enter]


def shade(
    scene: Scene,
    origin: Float[ndarray, "3"],
    rays: Float[ndarray, "3 n"],
    distance: Float[ndarray, " n"],
    surface: Int8[ndarray, " n"],
) -> Float[ndarray, "3 n"]:
    """The colour each ray sees: two paints a surface, mixed by its pattern, times light, fading into the haze."""
    room, things, is_sky = scene.room, scene.things, surface == SKY
    point = rays * np.minimum(distance, 1e3)
    point += origin.astype(rays.dtype)[:, None]
    mix, light = _walls_and_floor(scene, point, surface)
    np.copyto(mix, np.clip(-1.6 * rays[1], 0, 1), where=is_sky)
    np.copyto(light, 1, where=is_sky)
    for index, thing in enumerate(things):
        seen = np.flatnonzero(surface == FIRST_THING + index)
        if len(seen):
            mix[seen], light[seen] = _thing_light(thing, room.floor, point[:, seen], rays[:, seen])
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
    np.copyto(edge, room.half - np.maximum(np.abs(x), np.abs(z)), where=on_floor)
    light = 1 - 0.22 * np.square(np.maximum(1 - edge * (1 / 1.2), 0))
    below = np.flatnonzero(on_floor)
    light[below] -= _shadows(scene.things, x.take(below), z.take(below))
    if room.ink:
        lines = np.minimum(np.abs(across), np.abs(along)) * (room.spacing / 0.16)
        light -= room.ink * np.maximum(1 - lines, 0)
    return mix, light


def _shadows(things: Sequence[Thing], x: ndarray, z: ndarray) -> ndarray:
    """The sky that balls in the things' places hide from the floor: r^2 h / (h^2 + d^2)^(3/2) of it each."""
    total = np.zeros_like(x)
    for thing in things:
        square = np.square(x - thing.x) + np.square(z - thing.z) + thing.radius**2
        total += (0.62 * thing.radius**3) / (square * np.sqrt(square))
    return total


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
        by_a = np.abs(a) > np.abs(b)
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
    sides = [cos * x + sin * z, cos * z - sin * x, (height - thing.height / 2) * (2 * thing.radius / thing.height)]
    second_largest = np.sort(np.abs(sides), axis=0)[1]
    return np.clip((second_largest * (1 / thing.radius) - 0.82) * 30, 0, 1)
