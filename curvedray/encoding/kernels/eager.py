"""The best form in plain torch, for any device: chunks of query frames, one batched attention per chunk.

Phases are laid out with tokens last, so that elementwise work runs over long rows, and on the CPU a few source frames
at a time, so that it stays in cache. Where gradients are wanted a chunk is computed again in backward instead of
being kept.

    b batch   h head   q query frame   s source frame   p patch   a ray   k breakpoint   c coordinate   f frequency
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from curvedray.encoding.call import Call
from curvedray.encoding.curved import breakpoints, curved_path, modulate, sinc
from curvedray.encoding.geometry import Geometry

CHUNK = 64 * 2**20  # bytes of modulated keys (and values) held at once: how many query frames share an attention call
CACHED_TOKENS = 2048  # whose phases fit in a CPU's cache


def attention(call: Call) -> Float[Tensor, "b h nq dv"]:
    """attention.reference_attention, for any device and dtype, with gradients to everything."""
    call = replace(call, geometry=call.geometry.to(call.mu.dtype))
    frames = call.geometry.query_frames
    held = call.k.numel() + call.v.numel() if call.turn_values else call.k.numel()
    step = max(1, min(frames, CHUNK // (held * call.k.element_size())))
    learned = (call.q, call.k, call.v, call.mu, call.sigma, call.geometry)
    learning = torch.is_grad_enabled() and any(x.requires_grad for x in learned)
    out = []
    for first in range(0, frames, step):
        queries = range(first, min(first + step, frames))
        out.append(checkpoint(_attend, call, queries, use_reentrant=False) if learning else _attend(call, queries))
    return rearrange(torch.cat(out), "q b h p d -> b h (q p) d")


def _attend(call: Call, queries: range) -> Float[Tensor, "q b h p dv"]:
    """Some query frames' attention, in one call."""
    q, k, v, geometry, mask = call.q, call.k, call.v, call.geometry, call.mask
    q = rearrange(q, "b h (q p) d -> q b h p d", q=geometry.query_frames)[queries.start : queries.stop]
    patches = geometry.rays.shape[-3]
    radii = breakpoints(call.mu, call.sigma, call.breakpoints)
    radii = rearrange(radii, "b (s p) k -> b s p k", p=patches)
    sources = radii.shape[1]
    step = max(1, CACHED_TOKENS // (len(k) * patches)) if k.device.type == "cpu" else sources
    parts = []
    for query in queries:
        for first in range(0, sources, step):
            some = slice(first * patches, (first + step) * patches)
            cos, sin = _coefficients(geometry, radii, query, first, step)
            parts.append([modulate(x[:, :, some], cos, sin) for x in ((k, v) if call.turn_values else (k,))])
    keys, *turned = (
        torch.cat(part, -2).unflatten(-2, (len(queries), -1)).movedim(-3, 0).flatten(0, 1)
        for part in zip(*parts, strict=True)
    )
    values = turned[0] if call.turn_values else v.expand(len(queries), *v.shape).flatten(0, 1)
    rows = None
    if mask is not None:
        rows = mask.rows(queries.start * q.shape[-2], queries.stop * q.shape[-2], q.device)
        rows = rearrange(rows.expand(len(k), -1, -1, -1), "b h (q p) n -> (q b) h p n", q=len(queries))
    return F.scaled_dot_product_attention(q.flatten(0, 1), keys, values, rows).unflatten(0, (len(queries), -1))


def _coefficients(
    geometry: Geometry, radii: Float[Tensor, "b s p k"], query: int, first: int, step: int
) -> tuple[Float[Tensor, "b 1 sp n"], Float[Tensor, "b 1 sp n"]]:
    """Geometry.coefficients for some source frames, for the query frame `query`."""
    some = slice(first, first + step)
    poses, lens = geometry.query_from_source[..., query, some, :, :], geometry.lens[..., query]
    path = curved_path(radii[:, some], geometry.rays[..., some, :, :, :], poses, lens)[..., : len(geometry.frequencies)]
    path = torch.where(geometry.exists[..., some, :, :, None, None], path, 0.0)  # no ray: no phase
    b, s, p, *_ = path.shape
    path = rearrange(path, "b s p a k c -> k a c 1 (b s p)").contiguous()
    omega = geometry.frequencies[..., None]
    middle, half = omega * ((path[1:] + path[:-1]) / 2), (path[1:] - path[:-1]) / 2
    if half.requires_grad:
        shrink = sinc(omega * half)
    else:  # sin(h)/h keeps its digits for any h but 0; only its derivative needs the series
        half = omega * half  # 0 also where a frequency is
        half = torch.where(half == 0, 1e-20, half)
        shrink = half.sin().div_(half)
    back = "a c f (b s p) -> b 1 (s p) (a c f)"
    cos, sin = ((wave * shrink).mean(0) for wave in (middle.cos(), middle.sin()))
    return rearrange(cos, back, b=b, s=s, p=p).contiguous(), rearrange(sin, back, b=b, s=s, p=p).contiguous()
