"""Cameras: one pose and one lens per frame.

Axes are OpenCV's: x right, y down, z forward. Poses are camera-to-world, `world_from_camera`; a transform is
always `a_from_b`.

t frame   p patch (row-major)   a ray inside the patch   tokens are ordered (t y x)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras.arrays import as_tensor, kind_of
from curvedray.cameras.grid import TokenGrid
from curvedray.cameras.lens import Lens, unchecked
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError

Unit = Literal["metric", "near", "arbitrary"]
SMALLEST_NEAR = 1e-9  # of the unit; its inverse is the largest


@dataclass(frozen=True, eq=False)
class Cameras:
    """One camera per frame: where each stands, and through which lens it looks.

    The lens is one for all, or one per frame (leading axes T or B T); a name, such as pinhole-90, is that lens at 832 x
    480 pixels. Poses may be a tensor, an array or lists. `unit` says what a translation of 1 means:
    a metre, the clip's near distance (what the model is trained in), or nothing known.
    """

    lens: Lens
    world_from_camera: Float[Tensor, "*batch t 4 4"]
    unit: Unit = "arbitrary"
    fps: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.lens, Lens):
            object.__setattr__(self, "lens", as_lens(self.lens))
        if not isinstance(self.world_from_camera, Tensor):
            poses = as_tensor("Cameras.world_from_camera", self.world_from_camera)
            object.__setattr__(self, "world_from_camera", poses)
        poses = self.world_from_camera
        if poses.ndim < 3 or poses.shape[-2:] != (4, 4) or poses.shape[-3] < 1:
            raise InputError(
                "Cameras.world_from_camera", "poses of shape (T, 4, 4) or (B, T, 4, 4)", tuple(poses.shape)
            )
        if self.unit not in get_args(Unit):
            raise InputError("Cameras.unit", " or ".join(get_args(Unit)), self.unit)
        if self.fps is not None and not (math.isfinite(self.fps) and self.fps > 0):
            raise InputError("Cameras.fps", "a positive number of frames per second", self.fps)
        if not poses.is_floating_point():
            raise InputError(
                "Cameras.world_from_camera", "floating-point numbers", "whole ones", "Call .float() on it."
            )
        try:
            self.lens.expand(*poses.shape[:-2])
        except RuntimeError as error:
            expected = f"one lens, or one per frame with leading axes {tuple(poses.shape[:-2])}"
            raise InputError("Cameras.lens", expected, f"leading axes {self.lens.batch_shape}") from error
        check_poses(poses)

    @property
    def frames(self) -> int:
        return self.world_from_camera.shape[-3]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self.world_from_camera.shape[:-3])

    @property
    def frame_lens(self) -> Lens:
        """The lens with an axis for every frame, whether or not it changes."""
        return self.lens.expand(*self.world_from_camera.shape[:-2])

    def query_from_source(self, query: "Cameras | None" = None) -> Float[Tensor, "*batch q s 4 4"]:
        """Every source camera's frame carried into every query camera's (this one's own by default).

        In double precision until the end, so that a world origin far away costs no digits.
        """
        source = _wide(self.world_from_camera)[..., None, :, :, :]
        queries = source.transpose(-4, -3) if query is None else _wide(query.world_from_camera)[..., :, None, :, :]
        # Columns of [R | t] relative to where the query stands: one that has not moved is exactly where it was.
        columns = source[..., :3, :] - queries[..., :3, :] * source.new_tensor([0.0, 0.0, 0.0, 1.0])
        relative = queries[..., :3, :3].mT @ columns
        last_row = source[..., 3:, :].expand(*relative.shape[:-2], 1, 4)
        return torch.cat([relative, last_row], -2).to(self.world_from_camera.dtype)

    def rays(
        self, grid: TokenGrid, offsets: Float[Tensor, "a 2"]
    ) -> tuple[Float[Tensor, "*batch t p a 3"], Bool[Tensor, "*batch t p a"]]:
        """Unit rays of every patch at fractional offsets of it, in each camera's own frame, and which exist."""
        lens = self.frame_lens
        points = grid.patch_points(lens.size, offsets.to(lens.focal))
        return lens.unproject(points.expand(*lens.batch_shape, *points.shape))

    def latent_frames(self, grid: TokenGrid) -> "Cameras":
        """One camera per latent frame: as they are if there are that many, else the first and every stride-th."""
        if self.frames == grid.frames:
            return self
        if self.frames == grid.video_frames:
            return self[:: grid.stride[0]]
        expected = f"{grid.video_frames} poses (one per frame) or {grid.frames} (one per latent frame)"
        raise InputError("Cameras", expected, self.frames, "Resample the trajectory or change the number of frames.")

    def relative_to_first(self) -> "Cameras":
        """The same path in a world whose origin is the first camera, exactly the identity there."""
        world_from_camera = _wide(self.world_from_camera)
        first_from_world = inverse_pose(world_from_camera[..., :1, :, :])
        poses = (first_from_world @ world_from_camera).to(self.world_from_camera.dtype)
        poses[..., 0, :, :] = torch.eye(4, dtype=poses.dtype, device=poses.device)
        return replace(self, world_from_camera=poses)

    def scaled(self, near: float) -> "Cameras":
        """Translations divided by the clip's near distance: unit `near`, in which the model is trained."""
        check_near(near)
        poses = self.world_from_camera.clone()
        poses[..., :3, 3] /= near
        return replace(self, world_from_camera=poses, unit="near")

    def to(self, *args: Any, **kwargs: Any) -> "Cameras":
        poses = self.world_from_camera.to(*args, **kwargs)
        # Rounding can break a rotation; widening or moving it cannot.
        copied = unchecked if poses.dtype.itemsize >= self.world_from_camera.dtype.itemsize else replace
        return copied(self, lens=self.lens.to(*args, **kwargs), world_from_camera=poses)

    def __len__(self) -> int:
        return self.frames

    def __getitem__(self, frames: int | slice | Sequence[int]) -> "Cameras":
        """Some of the frames; one frame stays a sequence of one."""
        chosen = [frames] if isinstance(frames, int) else frames
        lens = self.lens if self.lens.batch_shape in ((), (1,)) else self.frame_lens[..., chosen]
        poses = self.world_from_camera[..., chosen, :, :]
        copied = unchecked if poses.shape[-3] else replace  # some of good poses are good, but none is refused
        return copied(self, lens=lens, world_from_camera=poses)


def as_lens(lens: Any) -> Lens:
    """A lens as it is, or the one of that name at 832 x 480 pixels."""
    if isinstance(lens, Lens):
        return lens
    if not isinstance(lens, str):
        raise InputError("lens", "a Lens, or a name such as pinhole-90", kind_of(lens))
    return named_lens(lens)


def stacked(paths: Sequence[Cameras]) -> Cameras:
    """Paths of equally many frames and pixels as one batch."""
    lenses = [path.frame_lens for path in paths]
    lens = Lens(
        torch.stack([i.focal for i in lenses]),
        torch.stack([i.center for i in lenses]),
        torch.stack([i.xi for i in lenses]),
        lenses[0].size,
        min(i.max_angle for i in lenses),  # one number for all: the narrowest lens's, so that no ray is invented
    )
    return Cameras(lens, torch.stack([path.world_from_camera for path in paths]), paths[0].unit)


def check_near(near: float) -> None:
    """The near distance: a positive length that turns no translation into nothing or infinity."""
    if not SMALLEST_NEAR <= near <= 1 / SMALLEST_NEAR:  # nor NaN
        raise InputError("near", f"a near distance from {SMALLEST_NEAR:g} to {1 / SMALLEST_NEAR:g}", near)


def inverse_pose(pose: Float[Tensor, "*batch 4 4"]) -> Float[Tensor, "*batch 4 4"]:
    """The inverse of a rigid transform, by transposing its rotation."""
    rotation = pose[..., :3, :3].mT
    inverse = pose.clone()
    inverse[..., :3, :3] = rotation
    inverse[..., :3, 3:] = -rotation @ pose[..., :3, 3:]
    return inverse


def check_poses(poses: Float[Tensor, "*batch 4 4"], tolerance: float = 2e-3) -> None:
    """Refuse anything that is not a rigid, right-handed transform, naming the first frame that is not."""
    flat = _wide(poses.detach().reshape(-1, 4, 4))
    rotation = flat[:, :3, :3]
    drift = (rotation @ rotation.mT - torch.eye(3, dtype=flat.dtype, device=flat.device)).abs().amax((-1, -2))
    last_row = (flat[:, 3] - flat.new_tensor([0.0, 0, 0, 1])).abs().amax(-1)
    laws = [
        (~torch.isfinite(flat).all(-1).all(-1), "finite numbers", "NaN or infinity"),
        (last_row > 1e-6, "a last row of 0 0 0 1", "another last row"),
        (~(drift <= tolerance), "a rotation (orthonormal rows of unit length)", "a matrix that scales or shears"),
        (torch.linalg.det(rotation) < 0, "a right-handed frame (determinant +1)", "a mirrored, left-handed frame"),
    ]
    for broken, expected, got in laws:
        if broken.any():
            frame = int(broken.nonzero()[0, 0]) % poses.shape[-3] if poses.ndim > 2 else 0
            raise InputError(f"pose of frame {frame}", expected, got, "Is the file's convention the one you named?")


def _wide(poses: Tensor) -> Tensor:
    """Double precision, where the device has it."""
    return poses.to(torch.float32 if poses.device.type == "mps" else torch.float64)
