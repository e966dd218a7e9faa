"""Exact distances at matched points: SIFT matches triangulated between cameras that are known.

Two rays that see one point, from known places, meet in it. A match is believed where the rays meet within a pixel and a
half in both frames and at an angle that says something; of several answers for one point the widest angle's is kept.

    t frame   n match   h, w pixels
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.colmap import Colmap
from curvedray.evaluate.estimators.protocol import Estimate, Frames
from curvedray.evaluate.scores import Failure
from curvedray.formats.colmap import pycolmap

SMALLEST_ANGLE = 1.5  # degrees between two rays; below it their meeting point is anybody's guess
MISSED_PIXELS = 1.5  # how far a point may fall from where it was seen


@dataclass(frozen=True)
class Triangulation:
    """A teacher of sparse maps: a distance per matched point, nothing elsewhere. It needs the cameras.

    Its distances are in the cameras' unit: metres, or one whose scale nobody knows.
    """

    features: int = 4000
    name: str = "colmap"
    licence: str = "BSD-3-Clause"
    every_frame: bool = True
    floor: str = "a median error of 0.9 % on a rendered clip whose cameras are exact"

    @property
    def version(self) -> str:
        return f"pycolmap {pycolmap().__version__}, {self.features} features, triangulated"

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        return Failure("distances are triangulated between known cameras: give them with --cameras", clip)

    def along(self, video: Frames, cameras: Cameras, clip: str = "") -> Estimate | Failure:
        """Distances of the points that were matched, NaN elsewhere."""
        if cameras.unit == "near":
            raise InputError("cameras", "poses in metres, or in a unit of their own", "poses in near distances")
        if len(cameras) != len(video):
            raise InputError("cameras", f"{len(video)} poses, one per frame", len(cameras))
        lenses = [cameras.frame_lens[frame] for frame in range(len(video))]
        same = not cameras.lens.batch_shape
        with tempfile.TemporaryDirectory() as folder:
            seen = [lenses[0]] * len(video) if same else lenses
            database = Colmap(self.features)._match(pycolmap(), video, seen, Path(folder))
            radius, points = _triangulated(pycolmap(), database, cameras.to(torch.float64), video.shape[:3])
        if not points:
            return Failure("no point was seen from two places", clip)
        return Estimate(radial=radius, note=f"sparse: {points / len(video):.0f} points per frame")


def _triangulated(
    colmap: Any, database: Path, cameras: Cameras, shape: tuple[int, int, int]
) -> tuple[Float[np.ndarray, "t h w"], int]:
    """Distances at the pixels of matched points, and how many there are."""
    radius, widest = np.full(shape, np.nan), np.zeros(shape)
    lenses = [cameras.frame_lens[frame] for frame in range(len(cameras))]
    with colmap.Database.open(database) as table:
        frames = {image.image_id: int(Path(image.name).stem) for image in table.read_all_images()}
        pixels = {image: torch.from_numpy(table.read_keypoints(image)[:, :2].astype(np.float64)) for image in frames}
        for a in sorted(frames):
            for b in sorted(frames):
                if a >= b or not table.exists_two_view_geometry(a, b):
                    continue
                matches = table.read_two_view_geometry(a, b).inlier_matches.astype(np.int64)
                if not len(matches):
                    continue
                one, other = frames[a], frames[b]
                both = pixels[a][matches[:, 0]], pixels[b][matches[:, 1]]
                poses = cameras.world_from_camera[one], cameras.world_from_camera[other]
                distances, angle, good = triangulate(both, (lenses[one], lenses[other]), poses)
                for frame, at, distance in ((one, both[0], distances[0]), (other, both[1], distances[1])):
                    _put(radius[frame], widest[frame], at[good].numpy(), distance[good].numpy(), angle[good].numpy())
    return radius, int(np.isfinite(radius).sum())


def triangulate(
    pixels: tuple[Float[torch.Tensor, "n 2"], Float[torch.Tensor, "n 2"]],
    lenses: tuple[Lens, Lens],
    poses: tuple[Float[torch.Tensor, "4 4"], Float[torch.Tensor, "4 4"]],
) -> tuple[tuple[torch.Tensor, torch.Tensor], Float[torch.Tensor, " n"], Bool[torch.Tensor, " n"]]:
    """Each match's distance from both cameras, the angle between its rays in degrees, and which are to be believed.

    The point nearest to both rays: with u, v their directions and w the way from the first camera to the second,
    a = (w.u - (u.v) w.v) / (1 - (u.v)^2) along the first, b = ((u.v) w.u - w.v) / (1 - (u.v)^2) along the second.
    """
    seen = [lens.unproject(at) for lens, at in zip(lenses, pixels, strict=True)]
    u, v = (rays @ pose[:3, :3].T for (rays, _), pose in zip(seen, poses, strict=True))
    w = poses[1][:3, 3] - poses[0][:3, 3]
    cosine, along, back = (u * v).sum(-1), u @ w, v @ w
    area = (1 - cosine**2).clamp_min(1e-12)
    a, b = (along - cosine * back) / area, (cosine * along - back) / area
    middle = (poses[0][:3, 3] + a[:, None] * u + poses[1][:3, 3] + b[:, None] * v) / 2
    angle = torch.rad2deg(torch.linalg.cross(u, v).norm(dim=-1).atan2(cosine))
    good = seen[0][1] & seen[1][1] & (a > 0) & (b > 0) & (angle >= SMALLEST_ANGLE)
    for lens, at, pose in zip(lenses, pixels, poses, strict=True):
        back_at, visible = lens.project((middle - pose[:3, 3]) @ pose[:3, :3])
        good &= visible & ((back_at - at).norm(dim=-1) <= MISSED_PIXELS)
    one, other = ((middle - pose[:3, 3]).norm(dim=-1) for pose in poses)
    return (one, other), angle, good


def _put(
    radius: Float[np.ndarray, "h w"],
    widest: Float[np.ndarray, "h w"],
    at: Float[np.ndarray, "n 2"],
    distance: Float[np.ndarray, " n"],
    angle: Float[np.ndarray, " n"],
) -> None:
    """Distances at the pixels they were seen in, where none of a wider angle is there yet; in place."""
    height, width = radius.shape
    cols, rows = at.astype(int).T
    for row, col, value, wide in zip(rows, cols, distance, angle, strict=True):
        if 0 <= row < height and 0 <= col < width and wide > widest[row, col]:
            radius[row, col], widest[row, col] = value, wide
