"""The five-minute path: swap F.scaled_dot_product_attention for curved_ray_attention in a small transformer.

    python examples/01_drop_in.py [--steps 200]

The toy task: a room with a smooth random texture, seen by three fisheye cameras. Two views show their tokens' texture
and a rough distance; the third shows nothing, and the transformer must say what it would see. That takes
correspondence: which token of another view looks at the same place? The table says what share of the third view's
variance each encoding leaves unexplained (1 is a guess of nothing, 0 is perfect).
"""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvedray import Cameras, Lens, TokenGrid
from curvedray.encoding.attention import curved_ray_attention
from curvedray.encoding.relative import relative_ray

GRID = TokenGrid(frames=3, rows=6, cols=8)
LENS = Lens.from_fov(160.0, xi=0.9, width=128, height=96)
CHANNELS, WIDTH, HEADS, DEPTH = 6, 96, 1, 2
SIGMA = 0.6  # the distance a view shows is true to within a factor of e^0.6


def random_scene(batch: int, seed: int) -> tuple[Tensor, Cameras, Tensor, Tensor]:
    """Texture (b n channels), cameras (b t), and mu, sigma (b n) of a batch of rooms."""
    g = torch.Generator().manual_seed(seed)
    poses = torch.eye(4).repeat(batch, GRID.frames, 1, 1)
    skew = 0.35 * torch.randn(batch, GRID.frames, 3, 3, generator=g)
    poses[..., :3, :3] = torch.linalg.matrix_exp(skew - skew.mT)
    poses[..., :3, 3] = 0.5 * torch.randn(batch, GRID.frames, 3, generator=g).clamp(-1.5, 1.5)
    cameras = Cameras(LENS, poses)
    rays = cameras.rays(GRID, torch.full((1, 2), 0.5))[0][..., 0, :]  # of every patch's centre
    directions = torch.einsum("btij,btpj->btpi", poses[..., :3, :3], rays)
    centers = poses[..., None, :3, 3]
    walls = 1.2 + 2.0 * torch.rand(batch, 1, 1, 3, generator=g)  # half the room's size, along each axis
    radius = ((walls * directions.sign() - centers) / directions).amin(-1)
    hit = centers + radius[..., None] * directions
    waves = 0.9 * torch.randn(batch, 3, CHANNELS, generator=g)
    texture = torch.sin(
        torch.einsum("btpi,bic->btpc", hit, waves) + 6.3 * torch.rand(batch, 1, 1, CHANNELS, generator=g)
    )
    rough = radius.log() + SIGMA * (2 * torch.rand(radius.shape, generator=g) - 1)
    rough[:, -1] = 0.5  # the third view knows no distance
    return texture.flatten(1, 2), cameras, rough.flatten(1), torch.full_like(rough, SIGMA).flatten(1)


class Attention(nn.Module):
    def __init__(self, method: str):
        super().__init__()
        self.method, self.qkv, self.out = method, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, cameras: Cameras, mu: Tensor, sigma: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if self.method == "none":
            y = F.scaled_dot_product_attention(q, k, v)
        elif self.method == "relative-ray":
            y = relative_ray(cameras, GRID, WIDTH // HEADS).attention(q, k, v)
        else:
            num = {"endpoint": 2, "curved": 5}[self.method]
            y = curved_ray_attention(q, k, v, cameras, GRID, mu, sigma, breakpoints=num, query_rotation=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, method: str):
        super().__init__()
        self.embed, self.head = nn.Linear(CHANNELS + 1, WIDTH), nn.Linear(WIDTH, CHANNELS)
        self.place = nn.Parameter(0.02 * torch.randn(GRID.patches, WIDTH))  # every method knows the pixel
        self.attention = nn.ModuleList(Attention(method) for _ in range(DEPTH))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
            for _ in range(DEPTH)
        )
        self.norm = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(DEPTH))

    def forward(self, texture: Tensor, cameras: Cameras, mu: Tensor, sigma: Tensor) -> Tensor:
        """What the last view would see (b p channels); its own texture is hidden first."""
        shown = torch.ones_like(texture[..., :1])
        shown[:, -GRID.patches :] = 0
        x = self.embed(torch.cat([texture * shown, shown], -1)) + self.place.repeat(GRID.frames, 1)
        for norm, attention, mlp in zip(self.norm, self.attention, self.mlp, strict=True):
            x = x + attention(norm(x), cameras, mu, sigma)
            x = x + mlp(x)
        return self.head(x[:, -GRID.patches :])


def unexplained(model: Transformer, scene: tuple[Tensor, Cameras, Tensor, Tensor]) -> Tensor:
    truth = scene[0][:, -GRID.patches :]
    return F.mse_loss(model(*scene), truth) / truth.var()


def train(method: str, steps: int, batch: int = 16) -> float:
    torch.manual_seed(0)
    model = Transformer(method)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, step / 20, 0.02 + math.cos(math.pi / 2 * step / steps))
        loss = unexplained(model, random_scene(batch, seed=step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return unexplained(model, random_scene(128, seed=10**6)).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="training steps for each encoding")
    steps = parser.parse_args().steps
    print(f"{'encoding':<14}{'unexplained':>12}{'seconds':>10}")
    for method in ("none", "relative-ray", "endpoint", "curved"):
        start = time.perf_counter()
        left = train(method, steps)
        print(f"{method:<14}{left:>12.3f}{time.perf_counter() - start:>10.1f}")


if __name__ == "__main__":
    main()
