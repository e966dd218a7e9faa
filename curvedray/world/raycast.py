"""An exact ray-caster: a court with balls, boxes and pillars, seen through any lens along any path.

Every surface is a formula, so a pixel's distance is exact to rounding: it is found in double precision along the ray
of the pixel's centre. Colours are averaged over `samples` x `samples` rays per pixel, in single precision, in chunks
that stay in the cache. The arithmetic is numpy's, whose comparisons and masks are several times quicker than torch's.

    n ray   k surface, numbered as in scene.py
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int8, UInt8
from numpy import ndarray
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.lens import pixel_centers
from curvedray.errors import InputError
from curvedray.world.scene import FIRST_THING, FLOOR, SKY, Scene, Thing
from curvedray.world.shading import shade

CHUNK = 1 << 15  # rays at once: a chunk's arrays fit the second-level cache
LENS_CHUNK = 1 << 20  # pixels a lens makes rays for at once, in half a gigabyte


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
        """Where some of the scene's things, given by their numbers, are seen."""
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
        raise InputError("samples", "at least one ray per pixel and axis", samples)
    poses = cameras.world_from_camera.detach().cpu().double().numpy()
    lenses, changing = cameras.frame_lens.to("cpu"), cameras.lens.batch_shape not in ((), (1,))
    shared = None if changing else _rays(lenses[0], samples)
    for index, pose in enumerate(poses):
        now = scene.at(index / max(1, cameras.frames - 1))
        yield render_rays(now, pose, shared or _rays(lenses[index], samples), cameras.lens.size)


@dataclass(frozen=True, eq=False)
class Rays:
    """A lens's unit rays in the camera's frame: s = samples^2 per pixel for colour, one in double for distance."""

    fine: Float[ndarray, "3 s n"]
    fine_exist: Bool[ndarray, "s n"]
    centre: Float[ndarray, "3 n"]
    centre_exists: Bool[ndarray, " n"]


@torch.no_grad()
def _rays(lens: Lens, samples: int) -> Rays:
    """Rays through an even grid of points inside every pixel, and through every pixel's centre."""
    lens = lens.to(torch.float64)
    centers = pixel_centers(lens.size, lens.focal).reshape(-1, 2)
    steps = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples - 0.5
    offsets = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1).reshape(-1, 1, 2)
    pixels, rays = len(centers), samples * samples
    fine, fine_exist = np.empty((3, rays, pixels), np.float32), np.empty((rays, pixels), bool)
    centre, centre_exists = np.empty((3, pixels)), np.empty(pixels, bool)
    for start in range(0, pixels, LENS_CHUNK):
        part = slice(start, start + LENS_CHUNK)
        found, exist = lens.unproject(centers[part] + offsets)
        fine[:, :, part], fine_exist[:, part] = np.moveaxis(found.numpy(), -1, 0), exist.numpy()
        found, exist = lens.unproject(centers[part])
        centre[:, part], centre_exists[part] = found.numpy().T, exist.numpy()
    return Rays(fine, fine_exist, centre, centre_exists)


def render_rays(scene: Scene, pose: ndarray, rays: Rays, size: tuple[int, int]) -> tuple[ndarray, ndarray, ndarray]:
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
    distance = (np.copysign(room.half_depth, dz, dtype=dz.dtype) + (room.ahead - oz)) / dz
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
        for candidate in meet(thing, room.floor - thing.base, (ox, oy, oz), towards):
            _take_nearer(candidate, FIRST_THING + index, reached, named)
        distance[near], surface[near] = reached, named
    return distance, surface


def _rays_towards(thing: Thing, floor: float, origin: ndarray, rays: ndarray) -> ndarray:
    """Which rays may meet a thing: those in the cone of the ball around it, or all from inside that ball."""
    half = thing.radius if thing.kind == "ball" else thing.height / 2
    across = {"ball": (), "pillar": (thing.radius,), "box": (thing.radius, thing.half_depth)}[thing.kind]
    centre = np.array([thing.x, floor - thing.base - half, thing.z]) - origin
    tangent = float(centre @ centre) - sum(i * i for i in (half, *across))
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
    """The side is a circle in (x, z), cut at the top and, of a raised one, at its base; lid and base are discs that are
    seen from outside only."""
    (dx, dy, dz), top = rays, floor - thing.height
    x, z = thing.x - origin[0], thing.z - origin[2]
    flat, along = dx * dx + dz * dz, dx * x + dz * z
    under_root = along * along - flat * (x * x + z * z - thing.radius**2)
    side = (along - np.sqrt(np.maximum(under_root, 0))) / flat
    np.copyto(side, np.inf, where=(under_root < 0) | (side * dy < top - origin[1]))
    if thing.base:
        np.copyto(side, np.inf, where=side * dy > floor - origin[1])
    hits = [side]
    for level, is_seen in ((top, origin[1] < top), (floor, thing.base > 0 and origin[1] > floor)):
        if is_seen:
            disc = (level - origin[1]) / dy
            np.copyto(disc, np.inf, where=np.square(disc * dx - x) + np.square(disc * dz - z) > thing.radius**2)
            hits.append(disc)
    return hits


def _to_box(thing: Thing, floor: float, origin: tuple[float, float, float], rays: ndarray) -> list[ndarray]:
    """Inside three slabs at once: from the last one entered to the first one left."""
    (dx, dy, dz), cos, sin = rays, math.cos(thing.yaw), math.sin(thing.yaw)
    x, y, z = thing.x - origin[0], floor - thing.height / 2 - origin[1], thing.z - origin[2]
    slabs = (
        (cos * dx + sin * dz, cos * x + sin * z, thing.radius),
        (dy, y, thing.height / 2),
        (cos * dz - sin * dx, cos * z - sin * x, thing.half_depth),
    )
    enter, leave = np.full_like(dx, -np.inf), np.full_like(dx, np.inf)
    for direction, centre, half in slabs:
        inverse = 1 / direction
        one, other = inverse * (centre - half), inverse * (centre + half)
        np.maximum(enter, np.minimum(one, other), out=enter)
        np.minimum(leave, np.maximum(one, other), out=leave)
    np.copyto(enter, np.inf, where=enter > leave)
    return [enter]
