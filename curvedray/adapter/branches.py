"""The adapter's branches: attention beside a block's self-attention, in every way the paper compares.

b clip   n token, in the grid's order (t y x)   h head   d channel of a head   c channel of a camera map
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from curvedray.adapter.config import AdapterConfig, CameraMap, Kind
from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding.attention import curved_ray_attention
from curvedray.encoding.relative import (
    RelativeEncoding,
    absolute_maps,
    gta,
    per_token,
    pluecker_map,
    prope,
    relative_ray,
)
from curvedray.radial.interval import RadialInterval, straight_through_clamp

MAP_CHANNELS: dict[CameraMap, int] = {"orientation": 3, "plucker": 6, "pose": 17}
WIDEST_INTERVAL = 3.0


@dataclass(frozen=True, eq=False)
class CameraView:
    """What a pass sees, computed once and shared by every block."""

    cameras: Cameras  # one per latent frame, in the world of the first
    grid: TokenGrid
    camera_map: Float[Tensor, "*b n c"] | None
    relative: dict[Kind, RelativeEncoding]
    frequencies: Float[Tensor, "coordinate f"]
    given: tuple[RadialInterval, Bool[Tensor, "*g n"]] | None  # a teacher's or a user's radii, and where they hold


def look(
    config: AdapterConfig,
    head_width: int,
    cameras: Cameras,
    grid: TokenGrid,
    given: tuple[RadialInterval, Bool[Tensor, "*g n"]] | None,
    device: torch.device,
) -> CameraView:
    """Everything the blocks of this adapter need to know of the cameras, in float32.

    Only orientation needs the world's own axes. All else is relative, so it is taken in the first camera's world,
    where a far origin costs no digits; UCPE's identity frame for tokens without a ray is the one that cannot be.
    """
    cameras = cameras.latent_frames(grid)
    nearby = cameras.relative_to_first().to(device, torch.float32)
    cameras = cameras.to(device, torch.float32)
    rule = config.rule
    relative: dict[Kind, RelativeEncoding] = {}
    for kind in {rule.curved, rule.outside}:
        if kind in ("ray", "concat"):
            if config.ucpe_conventions:
                relative[kind] = relative_ray(cameras, grid, head_width, missing="identity")
            else:
                relative[kind] = relative_ray(nearby, grid, head_width)
        elif kind in ("prope", "gta"):
            relative[kind] = {"prope": prope, "gta": gta}[kind](nearby, grid, head_width)
    frequencies = config.frequencies(head_width).to(device)
    return CameraView(nearby, grid, camera_map(config, cameras, grid), relative, frequencies, given)


def map_channels(config: AdapterConfig) -> int:
    """Channels of the camera map this adapter adds to its input; 0 for none."""
    kind = config.rule.camera_map
    if kind is None or (kind == "orientation" and not config.orientation):
        return 0
    return MAP_CHANNELS[kind]


def camera_map(config: AdapterConfig, cameras: Cameras, grid: TokenGrid) -> Float[Tensor, "*b n c"] | None:
    """Up and latitude, Plücker lines, or pose and lens: what goes through a Linear onto the adapter's input."""
    kind = config.rule.camera_map if map_channels(config) else None
    if kind == "orientation":
        return absolute_maps(cameras, grid, form="ucpe" if config.ucpe_conventions else "exact")
    if kind == "plucker":
        return pluecker_map(cameras.relative_to_first(), grid)
    if kind == "pose":
        return per_token(pose_and_lens(cameras), grid, -2)
    return None


def pose_and_lens(cameras: Cameras) -> Float[Tensor, "*b t 17"]:
    """Each frame's 3x4 pose in the first camera's world, then fx/W, fy/H, cx/W, cy/H and xi."""
    pose = cameras.relative_to_first().world_from_camera[..., :3, :].flatten(-2)
    lens = cameras.frame_lens
    size = lens.focal.new_tensor(lens.size)
    return torch.cat([pose, lens.focal / size, lens.center / size, lens.xi[..., None]], -1)


class RadialHead(nn.Module):
    """(mu, sigma) of a token's log radius from its features. At first every token believes in the whole range."""

    def __init__(self, dim: int, log_radius: tuple[float, float]):
        super().__init__()
        hidden = max(16, dim // 4)
        self.log_radius = log_radius
        self.norm, self.hidden, self.interval = nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.Linear(hidden, 2)
        nn.init.zeros_(self.interval.weight)
        with torch.no_grad():
            self.interval.bias.copy_(torch.tensor([0.0, WIDEST_INTERVAL]))

    def forward(self, h: Float[Tensor, "b n dim"]) -> RadialInterval:
        with torch.autocast(h.device.type, enabled=False):  # a radius is geometry
            mu, sigma = self.interval(F.silu(self.hidden(self.norm(h)))).float().unbind(-1)
            return bounded_interval(mu, sigma, self.log_radius)


def bounded_interval(
    mu: Float[Tensor, "b n"], sigma: Float[Tensor, "b n"], bounds: tuple[float, float]
) -> RadialInterval:
    """Both ends held within bounds, on which the first interval lies."""
    low, high = (straight_through_clamp(end, *bounds) for end in (mu - sigma.abs(), mu + sigma.abs()))
    return RadialInterval((low + high) / 2, (high - low) / 2)


class RadialFeature(nn.Module):
    """Depth-Concat's projection of (mu, sigma) to a feature; its width is chosen to cost 6 M at Wan-1.3B, as theirs."""

    def __init__(self, dim: int):
        super().__init__()
        hidden = max(16, dim // 4)
        self.hidden, self.feature = nn.Linear(2, hidden), nn.Linear(hidden, self.width(dim))

    @staticmethod
    def width(dim: int) -> int:
        return 5 * dim // 8

    def forward(self, interval: RadialInterval) -> Float[Tensor, "b n feature"]:
        believed = torch.stack([interval.mu, interval.sigma], -1)
        return self.feature(F.silu(self.hidden(believed.to(self.hidden.weight.dtype))))


class GeometricAttention(nn.Module):
    """One block's branch: narrow attention between tokens that know their cameras. Its output starts at zero."""

    def __init__(self, config: AdapterConfig, kind: Kind, dim: int):
        super().__init__()
        width, channels = config.branch_width(dim), map_channels(config)
        features = dim + (RadialFeature.width(dim) if kind == "concat" else 0)
        self.config, self.kind = config, kind
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(features, width) for _ in range(3))
        self.out_proj = nn.Linear(width, dim)
        self.cam_encoder = nn.Linear(channels, dim) if channels else None
        nn.init.zeros_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        x: Float[Tensor, "b n dim"],
        view: CameraView,
        head: RadialHead | None = None,
        feature: RadialFeature | None = None,
    ) -> tuple[Float[Tensor, "b n dim"], RadialInterval | None]:
        """What to add to self-attention's output, and the interval predicted on the way, before any substitution."""
        h = x.to(self.out_proj.weight.dtype)
        if self.cam_encoder is not None and view.camera_map is not None:
            h = h + self.cam_encoder(view.camera_map.to(h.dtype))
        predicted = head(h) if head is not None else None
        used = predicted if predicted is None else substituted(predicted, view.given)
        if feature is not None and used is not None:
            h = torch.cat([h, feature(used)], -1)
        q, k, v = (
            rearrange(project(h), "b n (h d) -> b h n d", h=self.config.heads)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = rearrange(self._attention(q, k, v, view, used), "b h n d -> b n (h d)")
        return self.out_proj(out), predicted

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, view: CameraView, used: RadialInterval | None) -> Tensor:
        if self.kind == "curved":
            assert used is not None, "a curved block is given the radial head"
            return curved_ray_attention(
                q,
                k,
                v,
                view.cameras,
                view.grid,
                used.mu,
                used.sigma,
                breakpoints=self.config.path_points,
                frequencies=view.frequencies,
                rays=self.config.rays_per_patch,
                query_rotation=self.config.query_rotation,
            )
        if self.kind == "plain":
            return F.scaled_dot_product_attention(q, k, v)
        return view.relative[self.kind].attention(q, k, v)


def substituted(predicted: RadialInterval, given: tuple[RadialInterval, Tensor] | None) -> RadialInterval:
    """The given interval where its mask holds, for all clips or each; the prediction elsewhere."""
    if given is None:
        return predicted
    mu, sigma, mask = (i.expand_as(predicted.mu) for i in (given[0].mu, given[0].sigma, given[1]))
    return predicted.where(mask, RadialInterval(mu, sigma))


class AttentionCopy(nn.Module):
    """ReCamMaster: a trained copy of the block's self-attention that also sees an embedding of pose and lens.

    It takes self-attention's place. The embedding starts at zero, so the first output is the backbone's.
    """

    def __init__(self, config: AdapterConfig, attention: nn.Module, dim: int):
        super().__init__()
        self.attention = copy.deepcopy(attention).requires_grad_(True)
        self.cam_encoder = nn.Linear(map_channels(config), dim)
        nn.init.zeros_(self.cam_encoder.weight)
        nn.init.zeros_(self.cam_encoder.bias)

    def forward(
        self, x: Float[Tensor, "b n dim"], view: CameraView, *args: Any, **kwargs: Any
    ) -> Float[Tensor, "b n dim"]:
        assert view.camera_map is not None, "recammaster always has a pose map"
        embedding = self.cam_encoder(view.camera_map.to(self.cam_encoder.weight.dtype))
        weights = next(self.attention.parameters()).dtype
        return self.attention((x + embedding.to(x.dtype)).to(weights), *args, **kwargs)
