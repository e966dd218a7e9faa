"""The adapter's branches: attention beside a block's self-attention, in every way the paper compares.

b clip   n token, in the grid's order (t y x)   e encoding   h head   d channel of a head   c channel of a camera map
"""

import copy
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from curvedray.adapter.config import AdapterConfig, Kind
from curvedray.adapter.view import View, map_channels
from curvedray.radial.interval import RadialInterval, inward_clamp

WIDEST_INTERVAL = 3.0


class RadialHead(nn.Module):
    """(mu, sigma) of a token's log radius from its features. Untrained, every interval is the whole range."""

    def __init__(self, dim: int, log_radius: tuple[float, float]):
        super().__init__()
        hidden = max(16, dim // 4)
        self.log_radius = log_radius
        self.norm, self.hidden, self.interval = nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.Linear(hidden, 2)
        nn.init.zeros_(self.interval.weight)
        with torch.no_grad():
            self.interval.bias.copy_(torch.tensor([0.0, WIDEST_INTERVAL]))

    def forward(self, h: Float[Tensor, "b n dim"]) -> RadialInterval:
        """(mu, sigma) = Linear(SiLU(Linear(LayerNorm(h)))), both ends of the interval held within bounds."""
        with torch.autocast(h.device.type, enabled=False):  # geometry stays in full precision
            mu, sigma = self.interval(F.silu(self.hidden(self.norm(h)))).float().unbind(-1)
            return bounded_interval(mu, sigma, self.log_radius)


def bounded_interval(
    mu: Float[Tensor, "b n"], sigma: Float[Tensor, "b n"], bounds: tuple[float, float]
) -> RadialInterval:
    """Both ends held within bounds, on which the first interval lies."""
    low, high = (inward_clamp(end, *bounds) for end in (mu - sigma.abs(), mu + sigma.abs()))
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
        stacked = torch.stack([interval.mu, interval.sigma], -1)
        return self.feature(F.silu(self.hidden(stacked.to(self.hidden.weight.dtype))))


class GeometricAttention(nn.Module):
    """One block's branch: narrow attention between tokens that know their cameras. Its output starts at zero."""

    def __init__(self, config: AdapterConfig, kind: Kind, dim: int):
        super().__init__()
        width, channels = config.branch_width(dim), map_channels(config)
        features = dim + (RadialFeature.width(dim) if config.has_radius_feature(kind) else 0)
        self.config, self.kinds = config, config.kinds(kind)
        across = width * len(self.kinds)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(features, across) for _ in range(3))
        self.out_proj = _zero_linear(across, dim)
        self.cam_encoder = nn.Linear(channels, dim) if channels else None

    def forward(
        self,
        x: Float[Tensor, "b n dim"],
        view: View,
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
            rearrange(project(h), "b n (e h d) -> e b h n d", e=len(self.kinds), h=self.config.heads)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        radii = () if used is None else (used.mu, used.sigma)
        seen = [view.encodings[kind].attention(*qkv, *radii) for kind, *qkv in zip(self.kinds, q, k, v, strict=True)]
        return self.out_proj(torch.cat([rearrange(one, "b h n d -> b n (h d)") for one in seen], -1)), predicted


def substituted(predicted: RadialInterval, given: tuple[RadialInterval, Tensor] | None) -> RadialInterval:
    """The given interval where its mask holds, for all clips or each; the prediction elsewhere."""
    if given is None:
        return predicted
    mu, sigma, mask = (i.expand_as(predicted.mu) for i in (given[0].mu, given[0].sigma, given[1]))
    return predicted.where(mask, RadialInterval(mu, sigma))


class AttentionCopy(nn.Module):
    """ReCamMaster: a trained copy of the block's self-attention that also sees an embedding of pose and lens.

    It takes self-attention's place. Beyond theirs, it may see an embedding of the radius too: a control in which
    nothing that is given is a phase. Embeddings start at zero, so the first output is the backbone's.
    """

    def __init__(self, config: AdapterConfig, kind: Kind, attention: nn.Module, dim: int):
        super().__init__()
        self.kinds = (kind,)
        self.attention = copy.deepcopy(attention).requires_grad_(True)
        self.cam_encoder = _zero_linear(map_channels(config), dim)
        self.radius_encoder = _zero_linear(RadialFeature.width(dim), dim) if kind.radius_feature else None

    def forward(
        self,
        x: Float[Tensor, "b n dim"],
        view: View,
        head: RadialHead | None,
        feature: RadialFeature | None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Float[Tensor, "b n dim"], RadialInterval | None]:
        """What takes the place of self-attention's output, and the interval predicted on the way."""
        assert view.camera_map is not None, "a copy always has a pose map"
        h = x.to(self.cam_encoder.weight.dtype)
        h = h + self.cam_encoder(view.camera_map.to(h.dtype))
        predicted = head(h) if head is not None else None
        if predicted is not None and feature is not None and self.radius_encoder is not None:
            h = h + self.radius_encoder(feature(substituted(predicted, view.given)))
        return self.attention(h.to(next(self.attention.parameters()).dtype), *args, **kwargs), predicted


def _zero_linear(inputs: int, outputs: int) -> nn.Linear:
    """A layer that adds nothing until it is trained."""
    linear = nn.Linear(inputs, outputs)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
