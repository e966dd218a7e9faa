"""The Unified Camera Model as one type, Lens: pinhole at xi = 0, fisheye from about 0.8 on, past 2.5.

Axes are OpenCV's: x right, y down, z forward. Pixel centres lie at +0.5, so an image of width W spans [0, W].
Angles are degrees in constructors people type into, radians in fields.
"""

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras.arrays import as_size, as_tensor
from curvedray.errors import InputError

Array = Tensor | np.ndarray

STEEPEST_SLOPE = 1e3  # of sqrt at the image circle, where the true derivative is infinite
LARGEST_FOCAL = 1e9  # pixels; also of the centre's distance. What rounds, is resized or squared stays a float32
LARGEST_XI = 1e6  # its square must stay a float32; from 10 on a lens hardly differs from a sphere seen from afar
SHAPE_TOLERANCE = 0.02  # of the log of width over height: what rounding to whole patches changes
NEAREST_BETA = 1e-6  # of |X|; below it a pixel is over a million focal lengths away


@dataclass(frozen=True, eq=False)
class Lens:
    """A central camera's lens: u = fx X / (Z + xi |X|) + cx. Leading axes, if any, are frames or batches.

    Arrays and lists are taken as tensors. Where a lens has leading axes they meet the leading axes of the points or
    pixels it is given.
    """

    focal: Float[Tensor, "*batch 2"]  # pixels
    center: Float[Tensor, "*batch 2"]  # pixels
    xi: Float[Tensor, "*batch"]
    size: tuple[int, int]  # width, height
    max_angle: float = math.pi  # radians from the axis that the lens lets through; pi: all that UCM projects

    def __post_init__(self) -> None:
        if not all(isinstance(i, Tensor) for i in (self.focal, self.center, self.xi)):
            self._from_arrays()
        object.__setattr__(self, "size", as_size("Lens.size", self.size))
        batch = self.xi.shape
        if not all(i.is_floating_point() for i in (self.focal, self.center, self.xi)):
            raise InputError("Lens", "floating-point numbers", "whole ones", "Call .float() on them.")
        if self.focal.shape != (*batch, 2) or self.center.shape != (*batch, 2):
            expected = f"focal and center of shape {(*batch, 2)}, as xi has {tuple(batch)}"
            raise InputError("Lens", expected, f"{tuple(self.focal.shape)} and {tuple(self.center.shape)}")
        if torch.compiler.is_compiling():  # a graph cannot look at values; they were looked at outside it
            return
        if not ((self.focal > 0).all() and (self.focal <= LARGEST_FOCAL).all()):
            raise InputError("Lens.focal", f"pixels, above 0 and at most {LARGEST_FOCAL:g}", _numbers(self.focal))
        if not (self.center.abs() <= LARGEST_FOCAL).all():
            raise InputError("Lens.center", f"pixels, at most {LARGEST_FOCAL:g} away", _numbers(self.center))
        _check_xi(self.xi)
        if not 0 < self.max_angle <= math.pi:  # nor NaN
            raise InputError("Lens.max_angle", "radians in (0, pi]", self.max_angle)

    def _from_arrays(self) -> None:
        """Arrays and lists as tensors, all of the widest dtype among them."""
        names = ("focal", "center", "xi")
        for name, value in zip(names, _alike(*(getattr(self, i) for i in names)), strict=True):
            object.__setattr__(self, name, value)

    # -- making one

    @classmethod
    def from_fov(
        cls,
        hfov: float | Array,
        xi: float | Array = 0.0,
        width: int = 832,
        height: int = 480,
        *,
        axis: Literal["horizontal", "vertical", "diagonal"] = "horizontal",
        max_angle: float = 180.0,
    ) -> "Lens":
        """Square pixels, centre W/2, H/2, and a field of view in degrees across the width (or height, or diagonal).

        fx = (W/2)(cos(fov/2) + xi) / sin(fov/2): the ray fov/2 off the axis lands on the image's edge.
        """
        width, height = as_size("Lens.size", (width, height))
        spans = {"horizontal": float(width), "vertical": float(height), "diagonal": math.hypot(width, height)}
        if axis not in spans:
            raise InputError("field of view's axis", " or ".join(spans), axis)
        fov, bend = torch.broadcast_tensors(*_alike(hfov, xi))
        _check_xi(bend)
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
        focal = (spans[axis] / 2 * (half.cos() + bend.double()) / half.sin()).to(fov.dtype)
        center = torch.tensor([width / 2, height / 2], dtype=fov.dtype, device=fov.device)
        pair = torch.stack([focal, focal], -1)
        return cls(pair, center.expand_as(pair).clone(), bend.clone(), (width, height), math.radians(max_angle))

    @classmethod
    def from_millimetres(
        cls,
        focal: float,
        sensor: tuple[float, float] = (36.0, 24.0),
        width: int = 832,
        height: int = 480,
        *,
        xi: float = 0.0,
    ) -> "Lens":
        """From a focal length and a sensor (width, height) in millimetres; full frame by default.

        Pixels are square: an image of another shape than the sensor is the largest window in the middle of it. With
        xi > 0 the focal length is the one near the axis, the number printed on the lens.
        """
        width, height = as_size("Lens.size", (width, height))
        if not (0 < focal < math.inf and 0 < min(sensor) <= max(sensor) < math.inf):
            raise InputError("focal length and sensor", "positive millimetres", f"{focal} on {sensor}")
        pixels = focal * max(width / sensor[0], height / sensor[1]) * (1 + xi)
        center = torch.tensor([width / 2, height / 2])
        return cls(torch.tensor([pixels, pixels]), center, torch.tensor(float(xi)), (width, height))

    # -- what it does

    def project(self, points: Float[Array, "*points 3"]) -> tuple[Float[Tensor, "*met 2"], Bool[Tensor, "*met"]]:
        """Points in the camera's frame -> pixels, and which of them the lens can see.

        Valid where Z > -min(xi, 1/xi)|X| and within max_angle. For xi > 1 the denominator is positive everywhere,
        so its sign is not the test. An invalid point gets the image centre and no gradient.
        """
        points, focal, center, xi = self._meeting(points)
        scale = points.detach().abs().amax(-1)
        # A point at the lens itself has no pixel; nearer than the root of the smallest float its gradient overflows.
        exists = torch.isfinite(scale) & (scale > torch.finfo(scale.dtype).tiny ** 0.5)
        points = torch.where(exists[..., None], points, points.new_tensor([0.0, 0.0, 1.0]))
        # Pixels do not change when a point is scaled, so the scale is taken out, undifferentiated, before squaring.
        x, y, z = (points / torch.where(exists, scale, torch.ones_like(scale))[..., None]).unbind(-1)
        across = x * x + y * y
        valid = exists & sees(across.detach(), z.detach(), xi.detach()) & self._within(across, z)
        beta = depth_of(across, z, (across + z * z).sqrt(), xi).clamp_min(NEAREST_BETA)
        pixels = focal * torch.stack([x, y], -1) / beta[..., None] + center
        return torch.where(valid[..., None], pixels, center.detach().expand_as(pixels)), valid

    def unproject(self, pixels: Float[Array, "*points 2"]) -> tuple[Float[Tensor, "*met 3"], Bool[Tensor, "*met"]]:
        """Pixels -> unit rays in the camera's frame, and which pixels have one.

        Valid where r^2 <= 1/(xi^2 - 1), the image circle of a lens with xi > 1, and within max_angle. A pixel
        without a ray gets the optical axis and no gradient. On the circle the true derivative is infinite; ours
        stops at STEEPEST_SLOPE.
        """
        pixels, focal, center, xi = self._meeting(pixels)
        with torch.no_grad():  # first which exist, so that nothing infinite enters what is differentiated
            x, y = ((pixels - center) / focal).unbind(-1)
            inside = 1 + (1 - xi * xi) * (x * x + y * y)
            exists = (inside >= 0) & (inside < math.inf)
        pixels = torch.where(exists[..., None], pixels, center.detach())
        x, y = ((pixels - center) / focal).unbind(-1)
        square = x * x + y * y
        root = bounded_sqrt(1 + (1 - xi * xi) * square)
        gamma = (xi + root) / (1 + square)
        z = (root - xi * square) / (1 + square)  # gamma - xi, without cancelling
        rays = torch.stack([gamma * x, gamma * y, z], -1)
        valid = exists & self._within(gamma * gamma * square, z)
        return torch.where(valid[..., None], rays, rays.new_tensor([0.0, 0.0, 1.0])), valid

    def rays(self) -> tuple[Float[Tensor, "*batch h w 3"], Bool[Tensor, "*batch h w"]]:
        """The unit ray of every pixel's centre, and which pixels have one."""
        grid = pixel_centers(self.size, self.focal)
        return self.unproject(grid.expand(*self.batch_shape, *grid.shape))

    def mask(self) -> Bool[Tensor, "*batch h w"]:
        """Which pixels have a ray: the image circle."""
        return self.rays()[1]

    # -- changing it

    def resized(self, width: int, height: int) -> "Lens":
        """The same lens on an image scaled to another size."""
        width, height = as_size("Lens.size", (width, height))
        ratio = self.focal.new_tensor([width / self.size[0], height / self.size[1]])
        return replace(self, focal=self.focal * ratio, center=self.center * ratio, size=(width, height))

    def fitted(self, width: int, height: int) -> "Lens":
        """The same view across the width of an image of any shape; rows are added or cut evenly above and below."""
        width, height = as_size("Lens.size", (width, height))
        if self.same_shape(width, height):
            return self.sized(width, height)
        ratio = width / self.size[0]
        below = self.center.new_tensor([0.0, (height - self.size[1] * ratio) / 2])
        return replace(self, focal=self.focal * ratio, center=self.center * ratio + below, size=(width, height))

    def same_shape(self, width: int, height: int) -> bool:
        """Whether an image has this lens's ratio of width to height, but for rounding to whole patches."""
        return min(width, height) > 0 and abs(math.log(self.size[0] / self.size[1] * height / width)) <= SHAPE_TOLERANCE

    def sized(self, width: int, height: int) -> "Lens":
        """The lens on an image's pixels. One for an image of another shape would be stretched, so it is refused."""
        if self.size == (width, height):
            return self
        if not self.same_shape(width, height):
            fix = "Choose a size of the lens's shape, or crop the lens (Lens.cropped)."
            raise InputError(
                "lens", f"an image shaped like {width} x {height}", f"{self.size[0]} x {self.size[1]}", fix
            )
        return self.resized(width, height)

    def cropped(self, left: int, top: int, width: int, height: int) -> "Lens":
        """The same lens on a window of the image; the window may reach beyond it."""
        return replace(self, center=self.center - self.center.new_tensor([left, top]), size=(width, height))

    def zoomed(self, factor: float | Float[Tensor, "*batch"]) -> "Lens":
        """Focal length times `factor`, one number or one per frame: a zoom, at the same xi."""
        factor = torch.as_tensor(factor, dtype=self.focal.dtype, device=self.focal.device)
        batch = torch.broadcast_shapes(self.batch_shape, factor.shape)
        lens = self.expand(*batch)
        return replace(lens, focal=lens.focal * factor.expand(batch)[..., None])

    def to(self, *args: Any, **kwargs: Any) -> "Lens":
        focal, center, xi = (i.to(*args, **kwargs) for i in (self.focal, self.center, self.xi))
        # A narrower range can turn a number into infinity; widening or moving it cannot.
        wide = torch.finfo(focal.dtype).max >= torch.finfo(self.focal.dtype).max
        copied = unchecked if wide else replace
        return copied(self, focal=focal, center=center, xi=xi)

    def expand(self, *batch: int) -> "Lens":
        return unchecked(
            self,
            focal=self.focal.expand((*batch, 2)),
            center=self.center.expand((*batch, 2)),
            xi=self.xi.expand(batch),
        )

    def __getitem__(self, index: Any) -> "Lens":
        """Index the leading axes: `lens[3]` is the lens of frame 3."""
        if not self.batch_shape:
            raise InputError("Lens", "leading axes to index", "one lens with none")
        pairs = index if isinstance(index, tuple) else (index,)
        if any(i is Ellipsis for i in pairs):
            pairs = (*pairs, slice(None))
        return unchecked(self, focal=self.focal[pairs], center=self.center[pairs], xi=self.xi[index])

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
        center, focal, xi = self.center[..., axis].double(), self.focal[..., axis].double(), self.xi.double()
        total = torch.zeros_like(xi)
        for outward, end in ((-1, 0), (1, self.size[axis])):
            reach = outward * (end - center) / focal  # negative where the axis lies beyond this edge
            square = reach * reach
            inside = 1 + (1 - xi * xi) * square
            root = bounded_sqrt(torch.where(inside >= 0, inside, torch.ones_like(inside)))
            angle = torch.atan2((xi + root) * reach.abs(), root - xi * square)
            angle = torch.where(inside >= 0, angle, widest_angle(torch.where(inside >= 0, 2.0, xi)))
            total = total + torch.sign(reach) * angle.clamp_max(self.max_angle)
        return torch.rad2deg(total).to(self.xi.dtype)

    def _within(self, across: Tensor, z: Tensor) -> Tensor:
        """Whether rays with this squared distance from the axis, and this depth, pass max_angle."""
        if self.max_angle >= math.pi:
            return torch.ones_like(z, dtype=torch.bool)
        angle = torch.atan2(across.detach().sqrt(), z.detach())
        return angle <= self.max_angle + 8 * torch.finfo(z.dtype).eps

    def _meeting(self, x: Array) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x, focal, center and xi in x's dtype (float32 at least), with axes added so that the lens's meet x's."""
        batch, x = self.batch_shape, as_tensor("points", x)
        ones = (1,) * (x.ndim - 1 - len(batch))
        meets = all(i == j or 1 in (i, j) for i, j in zip(batch, x.shape, strict=False))
        if len(batch) >= x.ndim or not meets:
            raise InputError("Lens", f"points whose first axes are the lens's, {batch}", f"shape {tuple(x.shape)}")
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        focal, center, xi = (i.to(x.dtype) for i in (self.focal, self.center, self.xi))
        return x, focal.reshape(*batch, *ones, 2), center.reshape(*batch, *ones, 2), xi.reshape(batch + ones)


def sees(across: Tensor, z: Tensor, xi: Tensor) -> Tensor:
    """Z > -m|X|, m = min(xi, 1/xi), without cancelling: in front, or m^2 (X^2 + Y^2) > (1 - m^2) Z^2."""
    m = torch.where(xi > 1, 1 / xi.clamp_min(1), xi)
    return torch.where(z > 0, True, (m * m * across > (1 - m) * (1 + m) * z * z))


def unchecked(value: Any, **changes: Any) -> Any:
    """`replace` for changes that cannot break a type's laws, without checking them again: this is on the hot path."""
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__, **changes)
    return copy


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
    """sqrt(x) of x >= 0, exact, whose slope stops at STEEPEST_SLOPE instead of growing to infinity at zero."""
    if not x.requires_grad:
        return x.sqrt()
    steep = x.detach() < (0.5 / STEEPEST_SLOPE) ** 2
    line = x.detach().sqrt() + (x - x.detach()) * STEEPEST_SLOPE
    return torch.where(steep, line, torch.where(steep, torch.ones_like(x), x).sqrt())


def pixel_centers(size: tuple[int, int], like: Tensor) -> Float[Tensor, "h w 2"]:
    """The centre of every pixel of an image (width, height), as (x, y)."""
    x = torch.arange(size[0], dtype=like.dtype, device=like.device) + 0.5
    y = torch.arange(size[1], dtype=like.dtype, device=like.device) + 0.5
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)


def _check_xi(xi: Tensor) -> None:
    if not ((xi >= 0).all() and (xi <= LARGEST_XI).all()):
        expected = f"a number from 0 (a pinhole) to {LARGEST_XI:g}; real lenses stay below 3"
        raise InputError("Lens.xi", expected, _numbers(xi))


def _alike(*numbers: Any) -> list[Tensor]:
    """Numbers, lists, arrays and tensors as tensors of one floating dtype, the widest of the arrays', on one device."""
    arrays = [torch.as_tensor(i) for i in numbers if isinstance(i, Array) and i.dtype != object]
    floating = [i.dtype for i in arrays if i.is_floating_point()]
    dtype = reduce(torch.promote_types, floating, torch.get_default_dtype())
    device = next((i.device for i in numbers if isinstance(i, Tensor)), None)
    return [as_tensor("numbers of a lens", i, dtype, device) for i in numbers]


def _numbers(x: Tensor) -> str:
    return ", ".join(f"{i:g}" for i in x.reshape(-1)[:4].tolist()) + (" ..." if x.numel() > 4 else "")
