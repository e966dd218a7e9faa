"""The interval of distances at which a token may lie: log radius, uniform on [mu - |sigma|, mu + |sigma|]."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.encoding.curved import breakpoints

TEACHER_SIGMA = 0.1
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-3, 10.0


def straight_through_clamp(x: Float[Tensor, "*shape"], low: float, high: float) -> Float[Tensor, "*shape"]:
    """x within bounds, with the gradient of x itself: a plain clamp gives what is outside no gradient to return by."""
    return x + (x.clamp(low, high) - x).detach()


class _InwardClamp(torch.autograd.Function):
    """`inward_clamp`, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.bounds = (low, high)
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (x,), (low, high), (gradient,) = ctx.saved_tensors, ctx.bounds, gradients
        away = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))  # a step goes against its gradient
        return gradient.masked_fill(away, 0.0), None, None


def inward_clamp(x: Float[Tensor, "*shape"], low: float, high: float) -> Float[Tensor, "*shape"]:
    """x within bounds; what is on a bound or outside keeps the gradient that leads back, and that alone.

    A plain clamp gives it none to return by. With the gradient of x itself it wanders off, both ends of an interval at
    once, while what is used of them stays the same.
    """
    return _InwardClamp.apply(x, low, high)


@dataclass(frozen=True, eq=False)
class RadialInterval:
    """Log radius per token, uniform on [mu - |sigma|, mu + |sigma|], in near distances."""

    mu: Float[Tensor, "*batch n"]
    sigma: Float[Tensor, "*batch n"]

    @property
    def radius(self) -> Float[Tensor, "*batch n"]:
        return self.mu.exp()

    @property
    def spread(self) -> Float[Tensor, "*batch n"]:
        """s: the standard deviation of a uniform radius on [e^(mu-|sigma|), e^(mu+|sigma|)], in [1e-3, 10]."""
        width = (self.mu + self.sigma.abs()).exp() - (self.mu - self.sigma.abs()).exp()
        return straight_through_clamp(width / math.sqrt(12), SMALLEST_SPREAD, LARGEST_SPREAD)

    def breakpoints(self, num: int) -> Float[Tensor, "*batch n k"]:
        """Radii at `num` even steps of log radius across the interval."""
        return breakpoints(self.mu, self.sigma, num)

    def where(self, mask: Bool[Tensor, "*batch n"], other: "RadialInterval") -> "RadialInterval":
        """`other` where the mask is set, this one elsewhere: the substitution of MixForcing."""
        return RadialInterval(
            torch.where(mask, other.mu.to(self.mu), self.mu), torch.where(mask, other.sigma.to(self.sigma), self.sigma)
        )

    def pictures(self, grid: TokenGrid) -> tuple[Float[Tensor, "*batch t y x"], Float[Tensor, "*batch t y x"]]:
        """Radius and spread as one small image per latent frame."""
        shape = (*self.mu.shape[:-1], grid.frames, grid.rows, grid.cols)
        return self.radius.reshape(shape), self.spread.reshape(shape)

    def to(self, *args: Any, **kwargs: Any) -> "RadialInterval":
        return RadialInterval(self.mu.to(*args, **kwargs), self.sigma.to(*args, **kwargs))
