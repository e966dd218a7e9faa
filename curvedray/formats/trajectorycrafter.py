"""TrajectoryCrafter's angles: three lines of numbers, degrees up and down, degrees left and right, and radius shares.

Each line is a curve over the whole video, however many numbers it has. The camera circles a point in front of it, and
one unit is the distance to that point. The renderer's lens is fixed: a focal length of 500 on 1024 x 576.
"""

import numpy as np
import torch

from curvedray.cameras import Cameras, inverse_pose
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.formats import kitti
from curvedray.formats.build import gather
from curvedray.formats.lenses import gather_lens, given_lens
from curvedray.formats.source import Source, is_number

FRAMES = 49
SIZE, FOCAL = (1024, 576), 500.0
LINES = ("degrees up and down", "degrees left and right", "shares of the radius")
# The point's own axes as the first camera sees it: x left, y down, z towards the camera.
FACING = torch.diag(torch.tensor([-1.0, 1.0, -1.0], dtype=torch.float64))


def detect(source: Source) -> str | None:
    if not source.is_text or source.is_json or kitti.detect(source):
        return None
    rows = [words for _, words in source.rows()]
    good = len(rows) == 3 and all(len(row) > 1 and all(map(is_number, row)) for row in rows)
    return "three lines of numbers that start at 0" if good and all(float(row[0]) == 0 for row in rows) else None


def read(source: Source, *, frames: int = FRAMES) -> Cameras:
    """`frames` is the video's length, over which the curves are spread."""
    if not 2 <= frames <= 100_000:
        raise InputError("option frames", "2 to 100000", frames)
    lines = [(line, source.numbers(line, words)) for line, words in source.rows()]
    if len(lines) != 3 or any(not 2 <= len(numbers) <= 10_000 for _, numbers in lines):
        source.fail("", f"three lines of at least two numbers: {', '.join(LINES)}", f"{len(lines)} lines")
    theta, phi, radius = (torch.from_numpy(curve(numbers, frames)) for _, numbers in lines)
    # camera_from_point: the point's axes, moved by the radius, turned up and then left, set one unit ahead.
    rotation = _about_y(torch.deg2rad(phi)) @ _about_x(torch.deg2rad(theta))
    camera_from_point = torch.eye(4, dtype=torch.float64).repeat(frames, 1, 1)
    camera_from_point[:, :3, :3] = rotation @ FACING
    camera_from_point[:, :3, 3] = -rotation[:, :, 2] * radius[:, None] + torch.tensor([0.0, 0.0, 1.0]).double()
    where = [f"frame {i}" for i in range(frames)]
    row = [FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2, 0.0]
    lens = given_lens(source, SIZE) or gather_lens(source, where, [row] * frames, SIZE)
    return gather(source, where, inverse_pose(camera_from_point), lens, "arbitrary")


def curve(numbers: list[float], frames: int) -> np.ndarray:
    """Evenly spaced numbers as one value per frame: straight between three at most, else a smoothing cubic spline.

    The spline's default smoothing and its pinned ends are TrajectoryCrafter's, so that the cameras are too.
    """
    at, now = np.linspace(0, 1, len(numbers)), np.linspace(0, 1, frames)
    if len(numbers) <= 3:
        return np.interp(now, at, numbers)
    needed("scipy")
    from scipy.interpolate import UnivariateSpline

    values = UnivariateSpline(at, numbers, k=3)(now)
    values[0], values[-1] = numbers[0], numbers[-1]
    return values


def _about_x(angle: torch.Tensor) -> torch.Tensor:
    cos, sin, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], -1).reshape(-1, 3, 3)


def _about_y(angle: torch.Tensor) -> torch.Tensor:
    cos, sin, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([cos, zero, sin, zero, one, zero, -sin, zero, cos], -1).reshape(-1, 3, 3)
