"""Other people's lens models, each by its own textbook formula, and the UCM lens it equals where there is one.

Pixel centres lie at +0.5, as everywhere here (and in COLMAP). OpenCV puts them at whole numbers: add 0.5 to its cx, cy.

    x, y, z a point   s a squared radius   alpha, beta, xi, k, p as in each model's own paper
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras.lens import Lens
from curvedray.errors import InputError

FOCAL_LENGTHS = ("fx", "fy", "gamma1", "gamma2")
Points = Float[Tensor, "*points 3"]
Pixels = Float[Tensor, "*points 2"]


class LensModel(ABC):
    """A lens described by another model's numbers. `start` are the first guesses of those that follow fx fy cx cy."""

    size: tuple[int, int]
    start: ClassVar[tuple[float, ...]] = ()
    reach: ClassVar[float] = 180.0  # degrees from the axis over which the model is worth fitting

    def __post_init__(self) -> None:
        if min(self.size) < 1:
            raise InputError(type(self).__name__, "a size of at least one pixel", self.size)
        for field, value in zip(fields(self), self.numbers, strict=False):  # type: ignore[arg-type]
            if not math.isfinite(value):
                raise InputError(f"{type(self).__name__}.{field.name}", "a finite number", value)
            if field.name in FOCAL_LENGTHS and value <= 0:
                raise InputError(f"{type(self).__name__}.{field.name}", "a focal length above 0", value)

    @abstractmethod
    def formula(self, points: Points) -> Pixels:
        """The model's own formula, unguarded."""

    @abstractmethod
    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        """Which points the formula holds for."""

    def as_ucm(self) -> Lens | None:
        """The UCM lens that is this model to the last digit, where there is one."""
        return None

    @classmethod
    def of(cls, numbers: Sequence[float], size: tuple[int, int]) -> "LensModel":
        """The model from its numbers in the order of its fields."""
        return cls(*numbers, size=size)  # type: ignore[call-arg]

    @property
    def numbers(self) -> list[float]:
        """The model's numbers in the order of its fields, as `of` takes them."""
        return [getattr(self, field.name) for field in fields(self) if field.name != "size"]  # type: ignore[arg-type]

    def project(self, points: Points) -> tuple[Pixels, Bool[Tensor, "*points"]]:
        """Points in the camera's frame -> pixels, and which of them the model can see."""
        points = points.double()
        pixels = self.formula(points)
        valid = self.sees(points) & torch.isfinite(pixels).all(-1)
        return torch.where(valid[..., None], pixels, torch.zeros_like(pixels)), valid


@dataclass(frozen=True)
class FocalModel(LensModel):
    """A model that ends with focal lengths and a centre: pixels = f (x, y) + c on a plane that its formula bends."""

    fx: float
    fy: float
    cx: float
    cy: float

    @abstractmethod
    def plane(self, points: Points) -> Pixels:
        """Where points land on the plane, before the focal lengths and the centre."""

    def formula(self, points: Points) -> Pixels:
        plane = self.plane(points)
        return plane * plane.new_tensor([self.fx, self.fy]) + plane.new_tensor([self.cx, self.cy])

    def ucm(self, alpha: float) -> Lens:
        """(x, y) / (alpha |X| + (1 - alpha) z) as UCM: xi = alpha / (1 - alpha), focal lengths f (1 + xi)."""
        grow = 1 / (1 - alpha)  # = 1 + xi
        return ucm_lens(self.fx * grow, self.fy * grow, self.cx, self.cy, grow - 1, self.size)


@dataclass(frozen=True)
class Pinhole(FocalModel):
    """x/z, y/z: straight lines stay straight."""

    size: tuple[int, int]
    reach: ClassVar[float] = 80.0

    def plane(self, points: Points) -> Pixels:
        return points[..., :2] / points[..., 2:]

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        return points[..., 2] > 0

    def as_ucm(self) -> Lens:
        return self.ucm(alpha=0.0)


@dataclass(frozen=True)
class Radial(FocalModel):
    """A pinhole whose radius is stretched by 1 + k1 r^2 + k2 r^4 (COLMAP's RADIAL, OpenCV's first two terms)."""

    k1: float
    k2: float
    size: tuple[int, int]
    start: ClassVar[tuple[float, ...]] = (0.0, 0.0)
    reach: ClassVar[float] = 80.0

    def plane(self, points: Points) -> Pixels:
        plane = points[..., :2] / points[..., 2:]
        s = plane.square().sum(-1, keepdim=True)
        return plane * (1 + self.k1 * s + self.k2 * s * s)

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        radius = points[..., :2].norm(dim=-1)
        return (points[..., 2] > 0) & (radius < first_fold([self.k1, self.k2]) * points[..., 2])

    def unproject(self, pixels: Pixels) -> tuple[Points, Bool[Tensor, "*points"]]:
        """Pixels -> unit rays, by Newton's method on the radius; valid where it converges before the image folds."""
        bent = (pixels - pixels.new_tensor([self.cx, self.cy])) / pixels.new_tensor([self.fx, self.fy])
        goal = bent.norm(dim=-1)
        radius = goal.clone()
        for _ in range(20):
            missed, slope = self._stretched(radius) - goal, self._slope(radius)
            radius = (radius - missed / slope.clamp_min(0.05)).clamp(0, 1e3)
        valid = ((self._stretched(radius) - goal).abs() < 1e-6 * (1 + goal)) & (self._slope(radius) > 0)
        ratio = torch.where(goal > 0, radius / goal.clamp_min(1e-12), torch.ones_like(goal))
        rays = torch.cat([bent * ratio[..., None], torch.ones_like(goal)[..., None]], -1)
        rays = rays / rays.norm(dim=-1, keepdim=True)
        return torch.where(valid[..., None], rays, rays.new_tensor([0.0, 0.0, 1.0])), valid

    def _stretched(self, radius: Tensor) -> Tensor:
        return radius * (1 + self.k1 * radius**2 + self.k2 * radius**4)

    def _slope(self, radius: Tensor) -> Tensor:
        return 1 + 3 * self.k1 * radius**2 + 5 * self.k2 * radius**4

    def as_ucm(self) -> Lens | None:
        return None if self.k1 or self.k2 else self.ucm(alpha=0.0)


@dataclass(frozen=True)
class Equidistant(FocalModel):
    """The radius is f theta: the ideal fisheye."""

    size: tuple[int, int]

    def plane(self, points: Points) -> Pixels:
        return OpenCVFisheye(self.fx, self.fy, self.cx, self.cy, 0, 0, 0, 0, self.size).plane(points)

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        return points.norm(dim=-1) > 0


@dataclass(frozen=True)
class OpenCVFisheye(FocalModel):
    """Kannala-Brandt: the radius is f theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)."""

    k1: float
    k2: float
    k3: float
    k4: float
    size: tuple[int, int]
    start: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0, 0.0)

    def plane(self, points: Points) -> Pixels:
        across = points[..., :2].norm(dim=-1, keepdim=True)
        theta = torch.atan2(across, points[..., 2:])
        s = theta * theta
        bent = theta * (1 + s * (self.k1 + s * (self.k2 + s * (self.k3 + s * self.k4))))
        direction = points[..., :2] / torch.where(across > 0, across, torch.ones_like(across))
        return bent * direction

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        theta = torch.atan2(points[..., :2].norm(dim=-1), points[..., 2])
        return (theta < first_fold([self.k1, self.k2, self.k3, self.k4])) & (points.norm(dim=-1) > 0)


@dataclass(frozen=True)
class EUCM(FocalModel):
    """Enhanced Unified Camera Model; at beta = 1 it is UCM with xi = alpha / (1 - alpha) and focal f (1 + xi)."""

    alpha: float
    beta: float
    size: tuple[int, int]
    start: ClassVar[tuple[float, ...]] = (0.5, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.alpha < 1 and self.beta > 0):
            raise InputError("EUCM", "alpha in [0, 1) and beta > 0", f"alpha {self.alpha}, beta {self.beta}")

    def _depth(self, points: Points) -> Tensor:
        return (self.beta * points[..., :2].square().sum(-1) + points[..., 2].square()).sqrt()

    def plane(self, points: Points) -> Pixels:
        below = self.alpha * self._depth(points) + (1 - self.alpha) * points[..., 2]
        return points[..., :2] / below[..., None]

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        return points[..., 2] > -_smaller_ratio(self.alpha) * self._depth(points)

    @classmethod
    def of_ucm(cls, lens: Lens) -> "EUCM":
        """A UCM lens as EUCM, exactly: alpha = xi / (1 + xi), beta 1, focal lengths f / (1 + xi)."""
        (fx, fy), (cx, cy), xi = lens.focal.tolist(), lens.center.tolist(), lens.xi.item()
        return cls(fx / (1 + xi), fy / (1 + xi), cx, cy, xi / (1 + xi), 1.0, lens.size)

    def as_ucm(self) -> Lens | None:
        return self.ucm(self.alpha) if self.beta == 1 else None


@dataclass(frozen=True)
class DoubleSphere(FocalModel):
    """Two spheres, xi apart, then a plane that alpha shifts; at alpha = 0 it is UCM."""

    xi: float
    alpha: float
    size: tuple[int, int]
    start: ClassVar[tuple[float, ...]] = (0.0, 0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.alpha < 1 and self.xi > -1):
            raise InputError("DoubleSphere", "alpha in [0, 1) and xi > -1", f"alpha {self.alpha}, xi {self.xi}")

    def _second(self, points: Points) -> tuple[Tensor, Tensor]:
        """Depth and distance as seen from the second sphere's centre."""
        depth = points[..., 2] + self.xi * points.norm(dim=-1)
        return depth, (points[..., :2].square().sum(-1) + depth.square()).sqrt()

    def plane(self, points: Points) -> Pixels:
        depth, distance = self._second(points)
        below = self.alpha * distance + (1 - self.alpha) * depth
        return points[..., :2] / below[..., None]

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        """Where neither sphere folds; the bound usually quoted stops short of it."""
        depth, distance = self._second(points)
        first = self.xi * points[..., 2] > -points.norm(dim=-1) if self.xi > 1 else points.norm(dim=-1) > 0
        return first & (depth > -_smaller_ratio(self.alpha) * distance)

    def as_ucm(self) -> Lens | None:
        if self.alpha == 0 and self.xi >= 0:
            return ucm_lens(self.fx, self.fy, self.cx, self.cy, self.xi, self.size)
        return None if self.xi else self.ucm(self.alpha)


@dataclass(frozen=True)
class Mei(LensModel):
    """UCM followed by radial (k1, k2) and tangential (p1, p2) distortion: KITTI-360's fisheyes."""

    xi: float
    k1: float
    k2: float
    p1: float
    p2: float
    gamma1: float
    gamma2: float
    u0: float
    v0: float
    size: tuple[int, int]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.xi < 0:
            raise InputError("Mei.xi", "a number >= 0", self.xi)

    def _plane(self, points: Points) -> Tensor:
        return points[..., :2] / (points[..., 2:] + self.xi * points.norm(dim=-1, keepdim=True))

    def formula(self, points: Points) -> Pixels:
        plane = self._plane(points)
        x, y = plane.unbind(-1)
        s = x * x + y * y
        stretch = 1 + self.k1 * s + self.k2 * s * s
        bent_x = x * stretch + 2 * self.p1 * x * y + self.p2 * (s + 2 * x * x)
        bent_y = y * stretch + self.p1 * (s + 2 * y * y) + 2 * self.p2 * x * y
        focal, center = points.new_tensor([self.gamma1, self.gamma2]), points.new_tensor([self.u0, self.v0])
        return torch.stack([bent_x, bent_y], -1) * focal + center

    def sees(self, points: Points) -> Bool[Tensor, "*points"]:
        nearest = -min(self.xi, 1 / self.xi) if self.xi else 0.0
        inside = self._plane(points).norm(dim=-1) < first_fold([self.k1, self.k2])
        return inside & (points[..., 2] > nearest * points.norm(dim=-1))

    def as_ucm(self) -> Lens | None:
        if self.k1 or self.k2 or self.p1 or self.p2:
            return None
        return ucm_lens(self.gamma1, self.gamma2, self.u0, self.v0, self.xi, self.size)


def first_fold(k: Sequence[float]) -> float:
    """The radius where r (1 + k1 r^2 + k2 r^4 + ...) stops growing and the image folds back; infinity if it never does.

    That is the first root of the derivative, 1 + 3 k1 s + 5 k2 s^2 + ..., in s = r^2.
    """
    slopes = [1.0, *((2 * i + 3) * value for i, value in enumerate(k))]
    roots = np.roots(np.trim_zeros(slopes[::-1], "f"))
    real = roots[(np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))) & (roots.real > 0)].real
    return math.sqrt(real.min()) if real.size else math.inf


def _smaller_ratio(alpha: float) -> float:
    return alpha / (1 - alpha) if alpha <= 0.5 else (1 - alpha) / alpha


def ucm_lens(fx: float, fy: float, cx: float, cy: float, xi: float, size: tuple[int, int]) -> Lens:
    """A UCM lens in double precision from its five numbers."""
    focal, center = torch.tensor([[fx, fy], [cx, cy]], dtype=torch.float64)
    return Lens(focal, center, torch.tensor(xi, dtype=torch.float64), size)
