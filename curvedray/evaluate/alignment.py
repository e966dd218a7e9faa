"""A camera's path by aligning pixels, where the lens and the distances are known: a judge that learned nothing.

Each frame's pixels, at their known distances, are carried into the next frame by the motion under which they look the
same: Gauss-Newton on the difference of colours, from blurred frames to sharp ones, starting from no motion at all.

    t frame   h w pixel   n pixel whose distance is known   c colour
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from scipy.ndimage import binary_erosion, gaussian_filter, map_coordinates
from scipy.spatial.transform import Rotation
from torch import Tensor

from curvedray.cameras import Lens

BLURS = (3.0, 1.5, 0.7)  # pixels
STEPS = 12  # at each of them
SMALL = 1e-5  # a motion (radians, metres) that ends the steps
TWITCH = 1e-4  # the motion by which a pixel's way is differentiated
ODD = 0.06  # a difference of colour, of 1 from black to white, beyond which a pixel counts less and less
FEWEST = 200  # pixels that must stay in view
Motion = Float[np.ndarray, "4 4"]  # next camera from this one


@dataclass(frozen=True, eq=False)
class Aligned:
    """A path, and how well the frames fit it."""

    poses: Float[np.ndarray, "t 4 4"]  # camera to world; the first camera is the world
    left: Float[np.ndarray, " t-1"]  # of the difference between neighbours without motion, the share that is left
    found: bool  # whether enough stayed in view, and no pair of frames looks less alike for its motion


def aligned_path(
    video: UInt8[Tensor, "t h w 3"], lens: Lens, radius: Float[Tensor, "t h w"], valid: Bool[Tensor, "t h w"]
) -> Aligned:
    """The path along which a video's frames look alike, in the unit of `radius`."""
    frames = video.double().numpy() / 255
    rays, has_ray = lens.rays()
    circle = has_ray.numpy()
    poses, left = [np.eye(4)], []
    for number in range(len(frames) - 1):
        known = valid[number].numpy() & circle
        points = rays.double().numpy() * radius[number, ..., None].double().numpy()
        motion, share = aligned_pair(frames[number], frames[number + 1], known, circle, points, lens)
        poses.append(poses[-1] @ np.linalg.inv(motion))
        left.append(share)
    return Aligned(np.stack(poses), np.array(left), bool(np.all(np.array(left) <= 1)))


def aligned_pair(
    frame: Float[np.ndarray, "h w c"],
    after: Float[np.ndarray, "h w c"],
    known: Bool[np.ndarray, "h w"],
    circle: Bool[np.ndarray, "h w"],
    points: Float[np.ndarray, "h w 3"],
    lens: Lens,
) -> tuple[Motion, float]:
    """The motion from one frame to the next, and the share of their difference that it leaves; no motion, and an
    infinite share, where too little stays in view."""
    motion = np.eye(4)
    for blur in BLURS:
        here, there = (_blurred(image, circle, blur) for image in (frame, after))
        slopes = [np.gradient(there, axis=axis) for axis in (1, 0)]  # along x, along y
        used = known & _inner(circle, blur)
        for _ in range(STEPS):
            step = _step(here[used], there, slopes, points[used], motion, lens)
            if step is None:
                return np.eye(4), np.inf
            motion = _moved(step) @ motion
            if np.abs(step).max() < SMALL:
                break
    both = [_seen(points[used], one, lens) for one in (np.eye(4), motion)]
    inside = both[0][1] & both[1][1]
    if inside.sum() < FEWEST:
        return np.eye(4), np.inf
    first, last = (np.abs(_sampled(there, pixels[inside]) - here[used][inside]).mean() for pixels, _ in both)
    return motion, float(last / first) if first > 0 else 1.0


def _blurred(image: Float[np.ndarray, "h w c"], circle: Bool[np.ndarray, "h w"], blur: float) -> np.ndarray:
    """Without the black outside of a lens's circle, which never moves."""
    weight = gaussian_filter(circle.astype(float), blur)
    return gaussian_filter(image * circle[..., None], (blur, blur, 0)) / np.maximum(weight, 1e-6)[..., None]


def _inner(circle: Bool[np.ndarray, "h w"], blur: float) -> Bool[np.ndarray, "h w"]:
    """The circle without its rim; a lens that fills the image has none."""
    return circle if circle.all() else binary_erosion(circle, iterations=math.ceil(2 * blur), border_value=1)


def _step(
    wanted: Float[np.ndarray, "n c"],
    image: Float[np.ndarray, "h w c"],
    slopes: list[np.ndarray],
    points: Float[np.ndarray, "n 3"],
    motion: Motion,
    lens: Lens,
) -> Float[np.ndarray, " 6"] | None:
    """One step of Gauss-Newton: a turn and a shift of the next camera; None where too little is in view."""
    pixels, inside = _seen(points, motion, lens)
    if inside.sum() < FEWEST:
        return None
    twitched = [_seen(points, _moved(TWITCH * unit) @ motion, lens) for unit in np.eye(6)]
    inside &= np.logical_and.reduce([still for _, still in twitched])  # what leaves the lens has no way
    ways = [(after - pixels) / TWITCH for after, _ in twitched]
    ahead, pixels = np.stack(ways, -1)[inside], pixels[inside]  # n, x and y, the six
    apart = _sampled(image, pixels) - wanted[inside]
    along = [_sampled(slope, pixels) for slope in slopes]
    change = sum(slope[..., None] * ahead[:, None, axis] for axis, slope in enumerate(along))  # n, c, the six
    assert isinstance(change, np.ndarray)
    weight = 1 / np.maximum(1, np.abs(apart) / ODD)
    normal = np.einsum("nci,nc,ncj->ij", change, weight, change)
    normal += 1e-6 * np.diag(np.diag(normal)) + 1e-9 * np.eye(6)
    return -np.linalg.solve(normal, np.einsum("nci,nc,nc->i", change, weight, apart))


def _seen(
    points: Float[np.ndarray, "n 3"], motion: Motion, lens: Lens
) -> tuple[Float[np.ndarray, "n 2"], Bool[np.ndarray, " n"]]:
    """Where points are after a motion, and which are in the image."""
    pixels, valid = lens.project(torch.from_numpy(points @ motion[:3, :3].T + motion[:3, 3]))
    x, y = pixels.numpy().T
    inside = valid.numpy() & (x > 0.5) & (y > 0.5) & (x < lens.size[0] - 0.5) & (y < lens.size[1] - 0.5)
    return pixels.numpy(), inside


def _sampled(image: Float[np.ndarray, "h w c"], pixels: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n c"]:
    """Colours between pixel centres, which are at halves."""
    at = pixels.T[::-1] - 0.5
    return np.stack([map_coordinates(image[..., c], at, order=1, mode="nearest") for c in range(image.shape[-1])], -1)


def _moved(step: Float[np.ndarray, " 6"]) -> Motion:
    """A small turn (a rotation vector) and shift as a motion."""
    motion = np.eye(4)
    motion[:3, :3] = Rotation.from_rotvec(step[:3]).as_matrix()
    motion[:3, 3] = step[3:]
    return motion
