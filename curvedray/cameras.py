"""Lenses, cameras and the token grid: where a pixel looks, and where a point lands.

One lens model serves all: the Unified Camera Model (UCM), pinhole at xi = 0, fisheye from about 0.8 on.

    Axes are OpenCV's: x right, y down, z forward. Poses are camera-to-world, `world_from_camera`; a transform is
    always `a_from_b`. Pixel centres lie at +0.5, so an image of width W spans [0, W]. Angles are degrees in
    constructors people type into, radians in fields.

    t frame   p patch (row-major)   a ray inside the patch   tokens are ordered (t y x)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.errors import InputError

Unit = Literal["metric", "near", "arbitrary"]
STEEPEST_SLOPE = 1e3  # of sqrt at the image circle, where the true derivative is infinite
NEAREST_BETA = 1e-6  # of |X|; below it a pixel is over a million focal lengths away


@dataclass(frozen=True, eq=False)
class Lens:
    """A central camera's lens: u = fx X / (Z + xi |X|) + cx. Leading axes, if any, are frames or batches.

    Where a lens has leading axes they meet the leading axes of the points or pixels it is given.
    """

    focal: Float[Tensor, "*batch 2"]  # pixels
    center: Float[Tensor, "*batch 2"]  # pixels
    xi: Float[Tensor, "*batch"]
    size: tuple[int, int]  # width, height
    max_angle: float = math.pi  # radians from the axis that the glass lets through; pi: all that the model projects

    def __post_init__(self) -> None:
        batch = self.xi.shape
        if self.focal.shape != (*batch, 2) or self.center.shape != (*batch, 2):
            expected = f"focal and center of shape {(*batch, 2)}, as xi has {tuple(batch)}"
            raise InputError("Lens", expected, f"{tuple(self.focal.shape)} and {tuple(self.center.shape)}")
        if not (torch.isfinite(self.focal).all() and (self.focal > 0).all()):
            raise InputError("Lens.focal", "positive numbers of pixels", self.focal.tolist())
        if not torch.isfinite(self.center).all():
            raise InputError("Lens.center", "finite numbers of pixels", self.center.tolist())
        if not (torch.isfinite(self.xi).all() and (self.xi >= 0).all()):
            raise InputError("Lens.xi", "a finite number >= 0 (0 is a pinhole)", self.xi.tolist())
        if min(self.size) < 1:
            raise InputError("Lens.size", "a width and height of at least one pixel", self.size)
        if not 0 < self.max_angle <= math.pi:
            raise InputError("Lens.max_angle", "radians in (0, pi]", self.max_angle)

    # -- making one

    @classmethod
    def from_fov(
        cls,
        hfov: float | Tensor,
        xi: float | Tensor = 0.0,
        width: int = 832,
        height: int = 480,
        *,
        axis: Literal["horizontal", "vertical", "diagonal"] = "horizontal",
        max_angle: float = 180.0,
    ) -> "Lens":
        """Square pixels, centre W/2, H/2, and a field of view in degrees across the width (or height, or diagonal).

        fx = (W/2)(cos(fov/2) + xi) / sin(fov/2): the ray fov/2 off the axis lands on the image's edge.
        """
        fov, bend = torch.broadcast_tensors(_tensor(hfov), _tensor(xi))
        half = torch.deg2rad(fov.double()) / 2
        widest = widest_angle(bend.double())
        if not ((fov > 0).all() and (half < widest - 1e-9).all()):
            limit = 2 * torch.rad2deg(widest.min()).item()
            raise InputError(
                f"{axis} field of view",
                f"degrees above 0 and below {limit:.1f}, all that xi = {_numbers(bend)} can see",
                _numbers(fov),
                "Raise xi (1.0 sees almost 360 degrees) or ask for less.",
            )
        span = {"horizontal": width, "vertical": height, "diagonal": math.hypot(width, height)}[axis]
        focal = (span / 2 * (half.cos() + bend.double()) / half.sin()).to(fov.dtype)
        center = torch.tensor([width / 2, height / 2], dtype=fov.dtype, device=fov.device)
        pair = torch.stack([focal, focal], -1)
        return cls(pair, center.expand_as(pair).clone(), bend.clone(), (width, height), math.radians(max_angle))

    @classmethod
    def from_millimetres(
        cls, focal: float, sensor: tuple[float, float] = (36.0, 24.0), width: int = 832, height: int = 480
    ) -> "Lens":
        """A pinhole from a focal length and a sensor (width, height), all in millimetres; full frame by default."""
        if not (focal > 0 and min(sensor) > 0):
            raise InputError("focal length and sensor", "positive millimetres", f"{focal} on {sensor}")
        pixels = torch.tensor([focal / sensor[0] * width, focal / sensor[1] * height])
        return cls(pixels, torch.tensor([width / 2, height / 2]), torch.tensor(0.0), (width, height))

    # -- what it does

    def project(self, points: Float[Tensor, "*points 3"]) -> tuple[Float[Tensor, "*points 2"], Bool[Tensor, "*points"]]:
        """Points in the camera's frame -> pixels, and which of them the lens can see.

        Valid where Z > -min(xi, 1/xi)|X| and within max_angle. For xi > 1 the denominator is positive everywhere,
        so its sign is not the test. An invalid point gets the image centre and no gradient.
        """
        focal, center, xi = self._meeting(points)
        finite = torch.isfinite(points).all(-1) & (points != 0).any(-1)
        points = torch.where(finite[..., None], points, points.new_tensor([0.0, 0.0, 1.0]))
        # Pixels do not change when a point is scaled, so the scale is taken out, undifferentiated, before squaring.
        x, y, z = (points / points.detach().abs().amax(-1, keepdim=True)).unbind(-1)
        distance = (x * x + y * y + z * z).sqrt()
        valid = finite & (z > -torch.minimum(xi, 1 / xi.clamp_min(1e-12)) * distance)
        if self.max_angle < math.pi:
            valid = valid & (z >= (math.cos(self.max_angle) - 1e-6) * distance)
        beta = depth_of(x * x + y * y, z, distance, xi).clamp_min(NEAREST_BETA)
        pixels = focal * torch.stack([x, y], -1) / beta[..., None] + center
        return torch.where(valid[..., None], pixels, center.expand_as(pixels)), valid

    def unproject(
        self, pixels: Float[Tensor, "*points 2"]
    ) -> tuple[Float[Tensor, "*points 3"], Bool[Tensor, "*points"]]:
        """Pixels -> unit rays in the camera's frame, and which pixels have one.

        Valid where r^2 <= 1/(xi^2 - 1), the image circle of a lens with xi > 1, and within max_angle. A pixel
        without a ray gets the optical axis and no gradient. On the circle the true derivative is infinite; ours
        stops at STEEPEST_SLOPE.
        """
        focal, center, xi = self._meeting(pixels)
        x, y = ((pixels - center) / focal).unbind(-1)
        square = x * x + y * y
        inside = 1 + (1 - xi * xi) * square
        valid = (inside >= 0) & torch.isfinite(square)
        x, y, square = (torch.where(valid, i, torch.zeros_like(i)) for i in (x, y, square))
        root = bounded_sqrt(torch.where(valid, inside, torch.ones_like(inside)))
        gamma = (xi + root) / (1 + square)
        rays = torch.stack([gamma * x, gamma * y, (root - xi * square) / (1 + square)], -1)  # gamma - xi, no cancelling
        if self.max_angle < math.pi:
            valid = valid & (rays[..., 2].detach() >= math.cos(self.max_angle) - 1e-6)
        return torch.where(valid[..., None], rays, rays.new_tensor([0.0, 0.0, 1.0])), valid

    def mask(self) -> Bool[Tensor, "*batch h w"]:
        """Which pixels have a ray: the image circle."""
        grid = pixel_centers(self.size, self.focal)
        return self.unproject(grid.expand(*self.batch_shape, *grid.shape))[1]

    def rays(self) -> tuple[Float[Tensor, "*batch h w 3"], Bool[Tensor, "*batch h w"]]:
        """The unit ray of every pixel's centre, and which pixels have one."""
        grid = pixel_centers(self.size, self.focal)
        return self.unproject(grid.expand(*self.batch_shape, *grid.shape))

    # -- changing it

    def resized(self, width: int, height: int) -> "Lens":
        """The same lens on an image scaled to another size."""
        ratio = self.focal.new_tensor([width / self.size[0], height / self.size[1]])
        return replace(self, focal=self.focal * ratio, center=self.center * ratio, size=(width, height))

    def cropped(self, left: int, top: int, width: int, height: int) -> "Lens":
        """The same lens on a window of the image; the window may reach beyond it."""
        return replace(self, center=self.center - self.center.new_tensor([left, top]), size=(width, height))

    def zoomed(self, factor: float | Float[Tensor, "*batch"]) -> "Lens":
        """Focal length times `factor`, one number or one a frame: a zoom, at the same xi."""
        factor = torch.as_tensor(factor, dtype=self.focal.dtype, device=self.focal.device)
        batch = torch.broadcast_shapes(self.batch_shape, factor.shape)
        lens = self.expand(*batch)
        return replace(lens, focal=lens.focal * factor.expand(batch)[..., None])

    def to(self, *args: Any, **kwargs: Any) -> "Lens":
        return replace(
            self,
            focal=self.focal.to(*args, **kwargs),
            center=self.center.to(*args, **kwargs),
            xi=self.xi.to(*args, **kwargs),
        )

    def expand(self, *batch: int) -> "Lens":
        return replace(
            self,
            focal=self.focal.expand(*batch, 2),
            center=self.center.expand(*batch, 2),
            xi=self.xi.expand(*batch),
        )

    def __getitem__(self, index: Any) -> "Lens":
        """Index the leading axes: `lens[3]` is the lens of frame 3."""
        if not self.batch_shape:
            raise InputError("Lens", "leading axes to index", "one lens with none")
        pairs = index if isinstance(index, tuple) else (index,)
        if Ellipsis in [i for i in pairs if not isinstance(i, Tensor)]:
            pairs = (*pairs, slice(None))
        return replace(self, focal=self.focal[pairs], center=self.center[pairs], xi=self.xi[index])

    # -- saying what it is

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self.xi.shape)

    @property
    def hfov(self) -> Float[Tensor, "*batch"]:
        """Horizontal field of view in degrees, from the left edge to the right one through the centre's row.

        Where the image circle ends inside the frame, the field ends with it.
        """
        return self._fov(0)

    @property
    def vfov(self) -> Float[Tensor, "*batch"]:
        """Vertical field of view in degrees."""
        return self._fov(1)

    def _fov(self, axis: int) -> Tensor:
        total = torch.zeros_like(self.xi)
        for end in (0.0, float(self.size[axis])):
            reach = ((end - self.center[..., axis]) / self.focal[..., axis]).abs().double()
            xi = self.xi.double()
            inside = 1 + (1 - xi * xi) * reach * reach
            gamma = (xi + inside.clamp_min(0).sqrt()) / (1 + reach * reach)
            angle = torch.where(inside >= 0, torch.atan2(gamma * reach, gamma - xi), widest_angle(xi))
            side = torch.sign((end - self.center[..., axis]) * (1 if end else -1)).double()
            total = total + (side * angle.clamp_max(self.max_angle)).to(total.dtype)
        return torch.rad2deg(total)

    def _meeting(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """focal, center and xi in x's dtype, with axes added so that their batch meets x's leading axes."""
        batch = self.batch_shape
        ones = (1,) * (x.ndim - 1 - len(batch))
        try:
            torch.broadcast_shapes(batch + ones, x.shape[:-1])
        except RuntimeError as error:
            raise InputError("Lens", f"points with leading axes {batch}", f"shape {tuple(x.shape)}") from error
        focal, center, xi = (i.to(x.dtype) for i in (self.focal, self.center, self.xi))
        return focal.reshape(*batch, *ones, 2), center.reshape(*batch, *ones, 2), xi.reshape(*batch, *ones)


def depth_of(across: Tensor, z: Tensor, distance: Tensor, xi: Tensor) -> Tensor:
    """beta = Z + xi |X|, the depth that UCM divides by, with no cancelling behind the camera.

    Behind (Z < 0) it is multiplied out by xi|X| - Z: (xi^2 (X^2 + Y^2) - (1 - xi^2) Z^2) / (xi|X| - Z).
    """
    behind = z < 0
    below = torch.where(behind, xi * distance - z, torch.ones_like(z))
    return torch.where(behind, (xi * xi * across - (1 - xi * xi) * z * z) / below, z + xi * distance)


def widest_angle(xi: Tensor) -> Tensor:
    """The angle from the axis, in radians, beyond which UCM projects nothing: arccos(-min(xi, 1/xi))."""
    return torch.arccos(-torch.minimum(xi, 1 / xi.clamp_min(1e-12)))


def bounded_sqrt(x: Tensor) -> Tensor:
    """sqrt(x), exact, whose slope stops at STEEPEST_SLOPE instead of growing to infinity at zero."""
    root = x.detach().clamp_min(0).sqrt()
    return root + (x - x.detach()) * (0.5 / root.clamp_min(0.5 / STEEPEST_SLOPE))


def pixel_centers(size: tuple[int, int], like: Tensor) -> Float[Tensor, "h w 2"]:
    """The centre of every pixel of an image (width, height), as (x, y)."""
    x = torch.arange(size[0], dtype=like.dtype, device=like.device) + 0.5
    y = torch.arange(size[1], dtype=like.dtype, device=like.device) + 0.5
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)


@dataclass(frozen=True)
class TokenGrid:
    """The transformer's tokens: latent frames of rows x cols patches. The one place that knows their order, (t y x)."""

    frames: int
    rows: int
    cols: int
    stride: tuple[int, int, int] = (4, 16, 16)  # video frames, pixel rows and columns a token stands for

    def __post_init__(self) -> None:
        if min(self.frames, self.rows, self.cols, *self.stride) < 1:
            raise InputError("TokenGrid", "at least one frame, row, column and stride", self)

    @classmethod
    def from_video(
        cls, frames: int, height: int, width: int, stride: tuple[int, int, int] = (4, 16, 16)
    ) -> "TokenGrid":
        """81 x 480 x 832 -> 21 x 30 x 52: the first frame has a latent frame to itself, then one every four."""
        dt, dy, dx = stride
        if (frames - 1) % dt or height % dy or width % dx or min(frames, height, width) < 1:
            nearest = [max(1, round((frames - 1) / dt) * dt + 1)]
            nearest += [max(1, round(size / step)) * step for size, step in ((height, dy), (width, dx))]
            expected = f"frames = {dt} n + 1, a height that divides by {dy} and a width that divides by {dx}"
            raise InputError(
                "video", expected, f"{frames} x {height} x {width}", "The nearest is {} x {} x {}.".format(*nearest)
            )
        return cls((frames - 1) // dt + 1, height // dy, width // dx, stride)

    @property
    def patches(self) -> int:
        return self.rows * self.cols

    @property
    def tokens(self) -> int:
        return self.frames * self.patches

    @property
    def video_frames(self) -> int:
        return (self.frames - 1) * self.stride[0] + 1

    def patch_points(self, size: tuple[int, int], offsets: Float[Tensor, "a 2"]) -> Float[Tensor, "p a 2"]:
        """Pixels of an image (width, height) at fractional offsets (x, y) of each patch; (0, 0) is its top-left."""
        patch = offsets.new_tensor([size[0] / self.cols, size[1] / self.rows])
        corners = pixel_centers((self.cols, self.rows), offsets).reshape(-1, 1, 2) - 0.5
        return (corners + offsets) * patch


@dataclass(frozen=True, eq=False)
class Cameras:
    """One camera a frame: where each stands, and through which lens it looks.

    The lens is one for all, or one a frame (leading axes T or B T). `unit` says what a translation of 1 means:
    a metre, the clip's near distance (what the model is trained in), or nothing known.
    """

    lens: Lens
    world_from_camera: Float[Tensor, "*batch t 4 4"]
    unit: Unit = "arbitrary"
    fps: float | None = None

    def __post_init__(self) -> None:
        poses = self.world_from_camera
        if poses.ndim < 3 or poses.shape[-2:] != (4, 4) or poses.shape[-3] < 1:
            raise InputError(
                "Cameras.world_from_camera", "poses of shape (T, 4, 4) or (B, T, 4, 4)", tuple(poses.shape)
            )
        if self.unit not in get_args(Unit):
            raise InputError("Cameras.unit", " or ".join(get_args(Unit)), self.unit)
        if self.fps is not None and not (math.isfinite(self.fps) and self.fps > 0):
            raise InputError("Cameras.fps", "a positive number of frames a second", self.fps)
        try:
            self.lens.expand(*poses.shape[:-2])
        except RuntimeError as error:
            expected = f"one lens, or one a frame with leading axes {tuple(poses.shape[:-2])}"
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
        source = self.world_from_camera
        query_poses = source if query is None else query.world_from_camera
        wide = torch.float32 if source.device.type == "mps" else torch.float64
        query_from_world = inverse_pose(query_poses.to(wide))
        return (query_from_world[..., :, None, :, :] @ source.to(wide)[..., None, :, :, :]).to(source.dtype)

    def rays(
        self, grid: TokenGrid, offsets: Float[Tensor, "a 2"]
    ) -> tuple[Float[Tensor, "*batch t p a 3"], Bool[Tensor, "*batch t p a"]]:
        """Unit rays of every patch at fractional offsets of it, in each camera's own frame, and which exist."""
        lens = self.frame_lens
        points = grid.patch_points(lens.size, offsets.to(lens.focal))
        return lens.unproject(points.expand(*lens.batch_shape, *points.shape))

    def latent_frames(self, grid: TokenGrid) -> "Cameras":
        """One camera a latent frame: as they are if there are that many, else the first and every stride-th."""
        if self.frames == grid.frames:
            return self
        if self.frames == grid.video_frames:
            return self[:: grid.stride[0]]
        expected = f"{grid.video_frames} poses (one a frame) or {grid.frames} (one a latent frame)"
        raise InputError("Cameras", expected, self.frames, "Resample the trajectory or change the number of frames.")

    def relative_to_first(self) -> "Cameras":
        """The same path in a world whose origin is the first camera, exactly the identity there."""
        first_from_world = inverse_pose(self.world_from_camera[..., :1, :, :].double())
        poses = (first_from_world @ self.world_from_camera.double()).to(self.world_from_camera.dtype)
        poses[..., 0, :, :] = torch.eye(4, dtype=poses.dtype, device=poses.device)
        return replace(self, world_from_camera=poses)

    def scaled(self, near: float) -> "Cameras":
        """Translations divided by the clip's near distance: unit `near`, in which the model is trained."""
        if not (math.isfinite(near) and near > 0):
            raise InputError("near distance", "a positive number", near)
        poses = self.world_from_camera.clone()
        poses[..., :3, 3] /= near
        return replace(self, world_from_camera=poses, unit="near")

    def to(self, *args: Any, **kwargs: Any) -> "Cameras":
        return replace(
            self, lens=self.lens.to(*args, **kwargs), world_from_camera=self.world_from_camera.to(*args, **kwargs)
        )

    def __len__(self) -> int:
        return self.frames

    def __getitem__(self, frames: int | slice | Sequence[int]) -> "Cameras":
        """Some of the frames; one frame stays a sequence of one."""
        chosen = [frames] if isinstance(frames, int) else frames
        lens = self.lens if self.lens.batch_shape in ((), (1,)) else self.frame_lens[..., chosen]
        return replace(self, lens=lens, world_from_camera=self.world_from_camera[..., chosen, :, :])


def inverse_pose(pose: Float[Tensor, "*batch 4 4"]) -> Float[Tensor, "*batch 4 4"]:
    """The inverse of a rigid transform, by transposing its rotation."""
    rotation = pose[..., :3, :3].mT
    inverse = pose.clone()
    inverse[..., :3, :3] = rotation
    inverse[..., :3, 3:] = -rotation @ pose[..., :3, 3:]
    return inverse


def check_poses(poses: Float[Tensor, "*batch 4 4"], tolerance: float = 2e-3) -> None:
    """Refuse anything that is not a rigid, right-handed transform, naming the first frame that is not."""
    flat = poses.detach().reshape(-1, 4, 4).double()
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


def _tensor(x: float | Tensor) -> Tensor:
    return x if isinstance(x, Tensor) else torch.tensor(float(x))


def _numbers(x: Tensor) -> str:
    return ", ".join(f"{i:g}" for i in x.reshape(-1)[:4].tolist()) + (" ..." if x.numel() > 4 else "")
