"""Wan's transformer, small enough to read and quick to import: the embedded model's backbone.

diffusers' `WanTransformer3DModel` computes the same numbers from the same weights under the same names, and a test
holds the two together. This twin exists because importing diffusers takes longer than filming with the embedded model.

    b clip   c latent channel   t y x latent frame, row, column   n token, in the order (t y x)   d channel
    l e text token and its width   h head   k channel of a head
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from curvedray.encoding.plain import plain_attention
from curvedray.errors import InputError

Rotation = tuple[Float[Tensor, "1 n 1 k"], Float[Tensor, "1 n 1 k"]]  # cosines and sines, each said twice in a row
EPSILON = 1e-6
ROPE_BASE = 10_000.0


class EmbeddedTransformer(nn.Module):
    """Noisy latents, a timestep and a text -> the velocity. `config` says it as diffusers would."""

    def __init__(self, *, channels: int, heads: int, head_dim: int, layers: int, ffn: int, text_width: int, patch: int):
        super().__init__()
        dim, time_width, longest = heads * head_dim, 64, 64
        self.patch = (1, patch, patch)
        self.config = _config(self.patch, channels, heads, head_dim, layers, ffn, text_width, time_width, longest)
        self.head_dim, self.longest, self.gradient_checkpointing = head_dim, longest, False
        self.patch_embedding = nn.Conv3d(channels, dim, kernel_size=self.patch, stride=self.patch)
        self.condition_embedder = Conditions(dim, time_width, text_width)
        self.blocks = nn.ModuleList([Block(dim, ffn, heads) for _ in range(layers)])
        self.norm_out = nn.LayerNorm(dim, EPSILON, elementwise_affine=False)
        self.proj_out = nn.Linear(dim, channels * math.prod(self.patch))
        self.scale_shift_table = nn.Parameter(torch.randn(1, 2, dim) / dim**0.5)

    def enable_gradient_checkpointing(self) -> None:
        self.gradient_checkpointing = True

    def forward(
        self,
        hidden_states: Float[Tensor, "b c t y x"],
        timestep: Float[Tensor, " b"],
        encoder_hidden_states: Float[Tensor, "b l e"],
        return_dict: bool = False,
    ) -> tuple[Float[Tensor, "b c t y x"]]:
        """Named and returned as diffusers does, with `return_dict=False`."""
        assert not return_dict, "only the tuple is offered"
        grid = [side // patch for side, patch in zip(hidden_states.shape[2:], self.patch, strict=True)]
        rotation = rotary_embedding(self.head_dim, grid, self.longest, hidden_states.device)
        x = self.patch_embedding(hidden_states).flatten(2).transpose(1, 2).contiguous()
        time, modulation, text = self.condition_embedder(timestep, encoder_hidden_states)
        for block in self.blocks:
            if self.gradient_checkpointing and torch.is_grad_enabled():
                x = checkpoint(block, x, text, modulation, rotation, use_reentrant=False)
            else:
                x = block(x, text, modulation, rotation)
        shift, scale = (self.scale_shift_table + time[:, None]).chunk(2, dim=1)
        x = self.proj_out((self.norm_out(x.float()) * (1 + scale) + shift).type_as(x))
        sizes = dict(zip(("t", "y", "x", "i", "j", "k"), (*grid, *self.patch), strict=True))
        return (rearrange(x, "b (t y x) (i j k c) -> b c (t i) (y j) (x k)", **sizes),)


class Conditions(nn.Module):
    """A timestep -> a vector, and six vectors that modulate a block; a text -> tokens of the transformer's width."""

    def __init__(self, dim: int, time_width: int, text_width: int):
        super().__init__()
        self.time_width = time_width
        self.time_embedder = TwoLinears(time_width, dim, nn.SiLU())
        self.time_proj = nn.Linear(dim, 6 * dim)
        self.text_embedder = TwoLinears(text_width, dim, nn.GELU(approximate="tanh"))

    def forward(
        self, timestep: Float[Tensor, " b"], text: Float[Tensor, "b l e"]
    ) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b 6 d"], Float[Tensor, "b l d"]]:
        half = self.time_width // 2
        exponent = -math.log(ROPE_BASE) * torch.arange(half, dtype=torch.float32, device=timestep.device) / half
        phase = timestep[:, None].float() * torch.exp(exponent)[None]
        waves = torch.cat([phase.cos(), phase.sin()], -1).to(self.time_proj.weight.dtype)
        time = self.time_embedder(waves).type_as(text)
        return time, self.time_proj(F.silu(time)).unflatten(1, (6, -1)), self.text_embedder(text)


class TwoLinears(nn.Module):
    def __init__(self, width: int, dim: int, activation: nn.Module):
        super().__init__()
        self.linear_1, self.activation, self.linear_2 = nn.Linear(width, dim), activation, nn.Linear(dim, dim)

    def forward(self, x: Float[Tensor, "*b width"]) -> Float[Tensor, "*b d"]:
        return self.linear_2(self.activation(self.linear_1(x)))


class Block(nn.Module):
    """Self-attention, attention to the text and a feed-forward layer, modulated by the timestep."""

    def __init__(self, dim: int, ffn: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, EPSILON, elementwise_affine=False)
        self.attn1 = Attention(dim, heads)
        self.attn2 = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, EPSILON)
        self.ffn = FeedForward(dim, ffn)
        self.norm3 = nn.LayerNorm(dim, EPSILON, elementwise_affine=False)
        self.scale_shift_table = nn.Parameter(torch.randn(1, 6, dim) / dim**0.5)

    def forward(
        self,
        x: Float[Tensor, "b n d"],
        text: Float[Tensor, "b l d"],
        modulation: Float[Tensor, "b 6 d"],
        rotation: Rotation,
    ) -> Float[Tensor, "b n d"]:
        shift, scale, gate, ffn_shift, ffn_scale, ffn_gate = (self.scale_shift_table + modulation.float()).chunk(6, 1)
        normed = (self.norm1(x.float()) * (1 + scale) + shift).type_as(x)
        x = (x.float() + self.attn1(normed, None, None, rotation) * gate).type_as(x)
        x = x + self.attn2(self.norm2(x.float()).type_as(x), text)
        normed = (self.norm3(x.float()) * (1 + ffn_scale) + ffn_shift).type_as(x)
        return (x.float() + self.ffn(normed).float() * ffn_gate).type_as(x)


class Attention(nn.Module):
    """Attention with normalised queries and keys; its arguments are those of diffusers' WanAttention."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(dim, dim)])
        self.norm_q, self.norm_k = nn.RMSNorm(dim, EPSILON), nn.RMSNorm(dim, EPSILON)

    def forward(
        self,
        hidden_states: Float[Tensor, "b n d"],
        encoder_hidden_states: Float[Tensor, "b l d"] | None = None,
        attention_mask: None = None,
        rotary_emb: Rotation | None = None,
    ) -> Float[Tensor, "b n d"]:
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        # Under autocast projections are narrower than the norms' weights, for which torch has no fused norm, and warns.
        q, k = self.norm_q(self.to_q(hidden_states).float()), self.norm_k(self.to_k(source).float())
        v = self.to_v(source)
        q, k, v = (i.unflatten(2, (self.heads, -1)) for i in (q, k, v))
        if rotary_emb is not None:
            q, k = rotated(q, rotary_emb), rotated(k, rotary_emb)
        out = plain_attention(*(i.permute(0, 2, 1, 3) for i in (q, k, v)))
        return self.to_out[0](out.permute(0, 2, 1, 3).flatten(2, 3).type_as(v))


class FeedForward(nn.Module):
    def __init__(self, dim: int, width: int):
        super().__init__()
        # Names of diffusers: net.0.proj, then dropout, which has no weights, then net.2.
        self.net = nn.ModuleDict({"0": nn.ModuleDict({"proj": nn.Linear(dim, width)}), "2": nn.Linear(width, dim)})

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        inner: Any = self.net["0"]
        return self.net["2"](F.gelu(inner["proj"](x), approximate="tanh"))


def rotary_embedding(head_dim: int, grid: list[int], longest: int, device: torch.device) -> Rotation:
    """Phases of every token's frame, row and column: a third of the channels each, what is left over to the frame."""
    if max(grid) > longest:
        raise InputError("video", f"at most {longest} tokens along each side", f"{' x '.join(map(str, grid))} tokens")
    space = 2 * (head_dim // 6)
    widths = (head_dim - 2 * space, space, space)
    cosines: list[Tensor] = []
    sines: list[Tensor] = []
    for axis, (count, width) in enumerate(zip(grid, widths, strict=True)):
        frequency = 1.0 / ROPE_BASE ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        phase = torch.outer(torch.arange(count), frequency).repeat_interleave(2, dim=1)
        shape = [count if i == axis else 1 for i in range(3)]
        for kind, values in ((cosines, phase.cos()), (sines, phase.sin())):
            kind.append(values.float().view(*shape, width).expand(*grid, width))
    cos, sin = (torch.cat(i, -1).reshape(1, math.prod(grid), 1, head_dim).to(device) for i in (cosines, sines))
    return cos, sin


def rotated(x: Float[Tensor, "b n h k"], rotation: Rotation) -> Float[Tensor, "b n h k"]:
    """Turn neighbouring pairs of channels by their token's phases: a product of complex numbers, which is one pass."""
    turn = torch.complex(rotation[0][..., 0::2].contiguous(), rotation[1][..., 1::2].contiguous())
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).type_as(x)


def _config(
    patch: tuple[int, int, int],
    channels: int,
    heads: int,
    head_dim: int,
    layers: int,
    ffn: int,
    text_width: int,
    time_width: int,
    longest: int,
) -> dict[str, Any]:
    """What diffusers' class would hold: an adapter knows its base by it."""
    return {
        "_class_name": "WanTransformer3DModel",
        "patch_size": patch,
        "num_attention_heads": heads,
        "attention_head_dim": head_dim,
        "in_channels": channels,
        "out_channels": channels,
        "text_dim": text_width,
        "freq_dim": time_width,
        "ffn_dim": ffn,
        "num_layers": layers,
        "cross_attn_norm": True,
        "qk_norm": "rms_norm_across_heads",
        "eps": EPSILON,
        "image_dim": None,
        "added_kv_proj_dim": None,
        "rope_max_seq_len": longest,
        "pos_embed_seq_len": None,
    }
