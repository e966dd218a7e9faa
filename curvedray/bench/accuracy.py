"""How many digits the compiled path keeps, against the twin in float64."""

import math
from functools import partial

import torch
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.encoding.attention import Backend, curved_ray_attention
from curvedray.encoding.curved import OFFSETS, breakpoints, curved_path, default_frequencies, expected_phasor
from curvedray.encoding.geometry import Geometry
from curvedray.encoding.kernels import compiled

DIM, BREAKPOINTS = 192, 5
NEAREST, FARTHEST = -3.0, 3.0  # log-radius: 0.05 to 20


def moving_cameras(frames: int, lens: Lens, seed: int = 0) -> Cameras:
    """Cameras that drift and turn a little from frame to frame."""
    generator = torch.Generator().manual_seed(seed)
    pose = torch.eye(4, dtype=torch.float64).repeat(frames, 1, 1)
    skew = 0.3 * torch.randn(frames, 3, 3, generator=generator, dtype=torch.float64)
    pose[:, :3, :3] = torch.linalg.matrix_exp(skew - skew.mT)
    pose[:, :3, 3] = torch.randn(frames, 3, generator=generator, dtype=torch.float64)
    return Cameras(lens, pose.float())


def intervals(tokens: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """mu and sigma whose intervals fill the range of radii."""
    generator = torch.Generator().manual_seed(seed)
    mu = NEAREST + (FARTHEST - NEAREST) * torch.rand(1, tokens, generator=generator)
    room = torch.minimum(FARTHEST - mu, mu - NEAREST)
    return mu, room * torch.rand(1, tokens, generator=generator)


def coefficient_error(lens: Lens, grid: TokenGrid) -> tuple[float, float]:
    """The kernel's largest coefficient error, and the largest that rounding exact coordinates to float32 would cost."""
    cameras, (mu, sigma) = moving_cameras(grid.frames, lens), intervals(grid.tokens)
    geometry = Geometry.between(cameras, grid, cameras, default_frequencies(grid, DIM), torch.tensor(OFFSETS))
    n = geometry.phasors
    ones = torch.zeros(1, 1, grid.tokens, DIM)
    ones[..., :n] = 1  # turned by a phasor, (1, 0) becomes (cos, sin)
    radii = breakpoints(mu.double(), sigma.double(), BREAKPOINTS).unflatten(1, (grid.frames, -1))
    errors, roundings = [], []
    keys = compiled.Keys(ones, compiled.Radii.of(mu, sigma, BREAKPOINTS).values, compiled.Layout.of(geometry))
    for query, (turned, _) in enumerate(keys.modulated(torch.float32)):
        exact = torch.cat(geometry.coefficients(radii, query), -1)[0]
        path = curved_path(radii, geometry.rays, geometry.query_from_source[query], geometry.lens[query])[0, ..., :3]
        theta = torch.einsum("spakc,cf->spacfk", path.float().double(), geometry.frequencies)
        rounded = torch.cat([i.flatten(2).flatten(0, 1) for i in expected_phasor(theta)], -1)
        errors.append((turned[0, 0, :, : 2 * n] - exact).abs().max().item())
        roundings.append((rounded - exact).abs().max().item())
    return max(errors), max(roundings)


def gradient_error(grid: TokenGrid, *, value_rotation: bool = False) -> float:
    """The largest error of any gradient (q, k, v, mu, sigma), relative to that gradient's largest entry."""
    cameras, (mu, sigma) = moving_cameras(grid.frames, Lens.from_fov(150.0, 0.8)), intervals(grid.tokens)
    generator = torch.Generator().manual_seed(2)
    q, k, v, weight = torch.randn(4, 1, 1, grid.tokens, DIM, generator=generator) / math.sqrt(2)

    def gradients(backend: Backend, dtype: torch.dtype) -> tuple[Tensor, ...]:
        inputs = [i.to(dtype).requires_grad_() for i in (q, k, v, mu, sigma)]
        a, b, c, d, e = inputs
        attend = partial(curved_ray_attention, query_rotation=value_rotation, value_rotation=value_rotation)
        out = attend(a, b, c, cameras, grid, d, e, backend=backend)
        return torch.autograd.grad((out * weight.to(dtype)).sum(), inputs)

    pairs = zip(gradients("fast", torch.float32), gradients("reference", torch.float64), strict=True)
    return max(((ours.double() - exact).abs().max() / exact.abs().max()).item() for ours, exact in pairs)
