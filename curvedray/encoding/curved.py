"""Curved-ray expected RoPE: where could a token be, as seen from each query frame?

A token is not at a pixel but somewhere along a ray. We keep an interval of log-radius per token, carry it into the
query camera, whose lens bends it into a curve, and average the rotary phasor along that curve. Pure functions of
tensors; geometry in float32 or better, keys back in their own dtype. This file is the twin every faster path is
tested against.

    b batch   h head   q query frame   s source frame   p patch   a ray inside the patch   k breakpoint
    c coordinate (u, v, range, and optionally depth)    f frequency    d channel    tokens are ordered (s p)
"""

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Lens, TokenGrid
from curvedray.cameras.lens import depth_of
from curvedray.errors import InputError

OFFSETS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))  # of a patch's rays, (x, y) in patches: three of its corners

Periods = tuple[tuple[float, float], ...]  # longest and shortest of u, v, range and depth
# A frame is about one unit wide. The shortest of u, v and depth are two patches of Wan's 30 x 52; finer periods of
# range only add float32 noise.
DEFAULT_PERIODS: Periods = ((8.0, 2 / 52), (8.0, 2 / 30), (80.0, 2.0), (8.0, 2 / 52))


def default_frequencies(
    grid: TokenGrid, dim: int, rays: int = len(OFFSETS), coordinates: int = 3
) -> Float[Tensor, "c f"]:
    """Radians per unit of (u, v, range[, depth]) for heads of `dim` channels, with log-spaced periods.

    u and v from 8 down to two patches; range from 80 down to 2.
    """
    return _default_frequencies(grid, dim, rays, coordinates).clone()


@functools.lru_cache(maxsize=16)
def _default_frequencies(grid: TokenGrid, dim: int, rays: int, coordinates: int) -> Float[Tensor, "c f"]:
    count = dim // (2 * rays * coordinates)
    if count < 1:
        raise InputError("head width", f"at least {2 * rays * coordinates} channels for one frequency", dim)
    return log_spaced_frequencies(fitted_periods(DEFAULT_PERIODS, grid)[:coordinates], count)


def fitted_periods(periods: Periods, grid: TokenGrid) -> Periods:
    """The same longest periods; those of u, v and depth end at two patches of this grid, that of range stays."""
    (u, _), (v, _), span, (depth, _) = periods
    return (u, 2 / grid.cols), (v, 2 / grid.rows), span, (depth, 2 / max(grid.cols, grid.rows))


def log_spaced_frequencies(periods: Periods, count: int) -> Float[Tensor, "c f"]:
    """Radians per unit, `count` for each coordinate: omega = 2 pi / period, periods even in their logarithm."""
    longest, shortest = torch.tensor(periods, dtype=torch.float64).unbind(-1)
    step = torch.linspace(0, 1, count, dtype=torch.float64)
    return (2 * math.pi / (longest[:, None] * (shortest / longest)[:, None] ** step)).float()


def breakpoints(mu: Float[Tensor, "*batch"], sigma: Float[Tensor, "*batch"], num: int) -> Float[Tensor, "*batch k"]:
    """Radii at even steps of log-radius across [mu - |sigma|, mu + |sigma|]."""
    return torch.exp(mu[..., None] + sigma.abs()[..., None] * log_steps(num, mu))


def log_steps(num: int, like: Tensor) -> Float[Tensor, " k"]:
    """Even steps from -1 to 1. One breakpoint is two that coincide, as if sigma were 0."""
    return torch.linspace(-1, 1, num, dtype=like.dtype, device=like.device) if num > 1 else like.new_zeros(2)


def curved_path(
    radii: Float[Tensor, "*#b s p k"],
    rays: Float[Tensor, "*#b s p a 3"],
    query_from_source: Float[Tensor, "*#b s 4 4"],
    lens: Lens,
) -> Float[Tensor, "*_ s p a k 4"]:
    """Carry radii along unit rays into the query camera -> (u, v, range, depth) at every breakpoint.

    In space a ray is a line, origin + r * direction. Only the lens makes it a curve.
    """
    rotation, origin = query_from_source[..., :3, :3], query_from_source[..., :3, 3]
    direction = torch.einsum("...sij,...spaj->...spai", rotation, rays)
    points = origin[..., None, None, None, :] + radii[..., None, :, None] * direction[..., None, :]
    return lens_coordinates(points, lens)


def lens_coordinates(points: Float[Tensor, "*points 3"], lens: Lens) -> Float[Tensor, "*points 4"]:
    """Points in a camera's frame -> (u, v, range, depth): a bounded direction through the lens, and a distance.

    The direction is (fx/W X, fy/H Y, beta) at unit length, beta = Z + xi |X|. It is smooth where beta changes sign,
    so a path behind the camera has no jump. A point at the camera's centre, or one straight behind it that the lens
    sends to a zero vector (xi = 1), gets zeros.
    """
    ones = (1,) * (points.ndim - 1 - len(lens.batch_shape))
    focal, xi = lens.focal.reshape(*lens.batch_shape, *ones, 2), lens.xi.reshape(*lens.batch_shape, *ones)
    # Directions do not change when a point is scaled, so the scale is taken out, undifferentiated, before squaring.
    scale = points.detach().abs().amax(-1)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    x, y, z = (points / scale[..., None]).unbind(-1)
    distance = norm(torch.stack([x, y, z], -1))
    across = focal / focal.new_tensor(lens.size) * torch.stack([x, y], -1)
    ray = torch.cat([across, depth_of(x * x + y * y, z, distance, xi)[..., None]], -1)
    length = norm(ray)
    ray = torch.where((length > 0)[..., None], ray / torch.where(length > 0, length, 1.0)[..., None], 0.0)
    return torch.stack([ray[..., 0], ray[..., 1], scale * distance, ray[..., 2]], -1)


def norm(x: Float[Tensor, "*batch c"]) -> Float[Tensor, "*batch"]:
    """Euclidean length, whose gradient at the zero vector is zero."""
    square = x.square().sum(-1)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, torch.ones_like(square), square).sqrt())


def expected_phasor(theta: Float[Tensor, "*batch k"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Mean of exp(i theta) along a path of K phases joined by straight segments, as (cos, sin).

    A segment from a to b integrates to sinc((b - a)/2) exp(i (a + b)/2): exact, and smooth as b -> a.
    """
    if theta.shape[-1] < 2:
        return theta[..., 0].cos(), theta[..., 0].sin()
    a, b = theta[..., :-1], theta[..., 1:]
    middle, shrink = (a + b) / 2, sinc((b - a) / 2)
    return (shrink * middle.cos()).mean(-1), (shrink * middle.sin()).mean(-1)


def sinc(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """sin(x)/x. A series near zero keeps the digits of its gradient, which sin(x)/x loses there in float32."""
    small = x.abs() < 0.1
    large, square = torch.where(small, torch.ones_like(x), x), torch.where(small, x, torch.zeros_like(x)).square()
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
    return torch.where(small, series, large.sin() / large)


def modulate(
    x: Float[Tensor, "*batch d"], cos: Float[Tensor, "*#batch n"], sin: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """Turn the channel pairs (i, n + i) by their phasors; channels from 2n on pass through."""
    n = cos.shape[-1]
    first, second = x[..., :n].to(cos.dtype), x[..., n : 2 * n].to(cos.dtype)
    turned = (first * cos - second * sin, first * sin + second * cos)
    return torch.cat([*(i.to(x.dtype) for i in turned), x[..., 2 * n :]], -1)
