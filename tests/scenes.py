"""Small random scenes for the tests of the encoding: cameras that turn and move, and tokens along their rays."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid

DOUBLE = torch.float64


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def poses(*shape: int, seed: int = 0, turn: float = 0.4, move: float = 0.5) -> Tensor:
    out = torch.eye(4, dtype=DOUBLE).repeat(*shape, 1, 1)
    skew = noise(*shape, 3, 3, seed=seed) * turn
    out[..., :3, :3] = torch.linalg.matrix_exp(skew - skew.mT)
    out[..., :3, 3] = noise(*shape, 3, seed=seed + 1) * move
    return out


def lens(fov: float = 150.0, xi: float = 0.8) -> Lens:
    return Lens.from_fov(torch.tensor(fov, dtype=DOUBLE), xi, 80, 64)


def tokens(grid: TokenGrid, dim: int = 40, batch: int = 1, heads: int = 1, seed: int = 5) -> tuple[Tensor, ...]:
    """q, k, v, mu, sigma."""
    features = (noise(batch, heads, grid.tokens, dim, seed=seed + i) for i in range(3))
    return *features, noise(batch, grid.tokens, seed=seed + 3), noise(batch, grid.tokens, seed=seed + 4).abs()


def orbit(grid: TokenGrid, seed: int = 0, **options: float) -> Cameras:
    return Cameras(lens(), poses(grid.frames, seed=seed, **options))


def kinds_of_mask(queries: int, keys: int) -> Iterator[dict[str, Any]]:
    """Options of scaled_dot_product_attention for two clips of two heads."""
    generator = torch.Generator().manual_seed(3)
    kept = torch.rand(2, 1, queries, keys, generator=generator) > 0.4
    kept[..., 0] = True  # no query is left without keys
    yield {"is_causal": True}
    yield {"attn_mask": kept}
    yield {"attn_mask": torch.randn(2, 2, queries, keys, generator=generator, dtype=DOUBLE)}
    yield {"attn_mask": kept[0, 0]}
    yield {"attn_mask": kept[:, :, :1]}  # keys that are padding, for every query
