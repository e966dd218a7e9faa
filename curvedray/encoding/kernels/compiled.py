"""The compiled curved-ray attention: keys modulated in C++ for one query frame at a time, torch's own attention on top.

Keys are modulated again in backward instead of being kept, so memory is that of one frame however long the video.

    b batch   h head   q query frame   s source frame   p patch   a ray   k breakpoint   n token, ordered (s p)
"""

import ctypes
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from curvedray.encoding.curved import breakpoints, log_steps
from curvedray.encoding.kernels.build import compiled
from curvedray.encoding.view import View

SOURCE = Path(__file__).with_name("curved.cpp")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MOST_HALF_TURNS = 2.0**20  # of a phase; the kernel's sine and cosine reduce phases exactly below 2^21
FARTHEST, LOG_NEAREST = 1e15, -34.0  # lengths whose squares the kernel can take for floats (e^-34 is about 1e-15)
POINTERS = ("keys", "radii", "rays", "exists", "poses", "lenses", "frequency")
SIZES = ("batch", "camera_batch", "heads", "tokens", "patches", "dim", "breakpoints", "rays_per_patch")
COUNTS = ("coordinates", "frequencies", "threads")

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class Problem(ctypes.Structure):
    """The same layout as Problem in curved.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in SIZES + COUNTS),
        ("pool", ctypes.c_void_p),
    ]


def library() -> ctypes.CDLL | None:
    """The compiled kernel, built on the first call; None where it cannot be had."""
    return compiled(SOURCE, "curved")


@functools.cache
def torch_threads() -> int | None:
    """Where the OpenMP runtime that torch has loaded starts its threads; None where there is none to be found."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):  # another runtime, or Windows, where None names no library
        return None


def suits(q: Tensor, k: Tensor, v: Tensor, view: View, mu: Tensor, sigma: Tensor) -> bool:
    """Whether these tensors are ones the kernel takes: on the CPU, no wider than float32, phases within its reach."""
    if any(x.device.type != "cpu" for x in (q, k, v, mu)) or view.requires_grad:
        return False
    if not (q.dtype == k.dtype == v.dtype and k.dtype in DTYPES and mu.dtype == torch.float32):
        return False
    if v.shape[-1] != k.shape[-1] or k.shape[-1] < 2 * view.phasors:
        return False
    mu, width = mu.detach(), sigma.detach().abs()
    log_radius = min(float((mu + width).amax()), 700.0)  # e^700 is still a float
    farthest = math.exp(log_radius) + 2 * float(view.query_from_source.abs().amax())
    if farthest > FARTHEST or not float((mu - width).amin()) > LOG_NEAREST:
        return False
    return max(farthest, 1.0) * float(view.frequencies.abs().amax()) / math.pi < MOST_HALF_TURNS


def attention(
    q: Float[Tensor, "b h nq d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n d"],
    view: View,
    mu: Float[Tensor, "b n"],
    sigma: Float[Tensor, "b n"],
    num: int,
) -> Float[Tensor, "b h nq d"]:
    """encoding.reference_attention, with gradients to q, k, v, mu and sigma."""
    return CurvedAttention.apply(q, k, v, mu, sigma, view, num)


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys and the geometry that places them, laid out as the kernel reads them."""

    keys: Float[Tensor, "b h n d"]
    radii: Float[Tensor, "b k n"]
    rays: Float[Tensor, "bc a 3 n"]
    exists: Tensor
    poses: Float[Tensor, "q bc s 12"]
    lenses: Float[Tensor, "q bc 3"]
    frequencies: Float[Tensor, "c f"]
    patches: int

    @classmethod
    def of(cls, k: Tensor, view: View, mu: Tensor, sigma: Tensor, num: int) -> "Keys":
        size = view.lens.focal.new_tensor(view.lens.size)
        lenses = torch.cat([view.lens.focal / size, view.lens.xi[..., None]], -1)
        patches = view.rays.shape[-3]
        batched = view.rays.ndim > 4
        rays, exists, poses = view.rays, view.exists, view.query_from_source[..., :3, :].flatten(-2)
        if not batched:
            rays, exists, poses, lenses = rays[None], exists[None], poses[None], lenses[None]
        return cls(
            k.float().contiguous(),
            breakpoints(mu.double(), sigma.double(), num).movedim(-1, 1).contiguous(),
            rearrange(rays, "b s p a i -> b a i (s p)").double().contiguous(),
            rearrange(exists, "b s p a -> b a (s p)").contiguous(),
            poses.double().movedim(1, 0).contiguous(),
            lenses.double().movedim(1, 0).contiguous(),
            view.frequencies.double().contiguous(),
            patches,
        )

    def problem(self, query: int) -> Problem:
        b, h, n, d = self.keys.shape
        tensors = (self.keys, self.radii, self.rays, self.exists, self.poses, self.lenses, self.frequencies)
        pointers = [x.data_ptr() for x in tensors]
        for place in (4, 5):  # a query frame's own poses and lenses
            pointers[place] += query * tensors[place].stride(0) * tensors[place].element_size()
        sizes = (b, len(self.rays), h, n, self.patches, d, self.radii.shape[1], self.rays.shape[1])
        return Problem(*pointers, *sizes, *self.frequencies.shape, torch.get_num_threads(), torch_threads())

    def modulated(self, dtype: torch.dtype) -> Iterator[Tensor]:
        """The keys as each query frame sees them. One buffer serves all frames."""
        kernel, buffer = library(), torch.empty_like(self.keys)
        assert kernel is not None
        for query in range(len(self.poses)):
            kernel.curved_modulate(ctypes.byref(self.problem(query)), ctypes.c_void_p(buffer.data_ptr()))
            yield buffer.to(dtype)

    def add_gradients(self, query: int, grad: Tensor, grad_keys: Tensor, grad_log_radii: Tensor) -> None:
        """From the gradient of one frame's modulated keys to those of the keys and of every log-radius."""
        kernel, grad = library(), grad.float().contiguous()
        assert kernel is not None
        pointers = (ctypes.c_void_p(x.data_ptr()) for x in (grad, grad_keys, grad_log_radii))
        kernel.curved_modulate_backward(ctypes.byref(self.problem(query)), *pointers)


class CurvedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor, view: View, num: int) -> Tensor:
        keys = Keys.of(k, view, mu, sigma, num)
        frames = q.chunk(len(keys.poses), dim=-2)
        parts = [flash(frame, key, v) for frame, key in zip(frames, keys.modulated(k.dtype), strict=True)]
        out = torch.cat([part for part, _ in parts], -2)
        ctx.save_for_backward(q, k, v, mu, sigma, out, torch.stack([logsumexp for _, logsumexp in parts]))
        ctx.view, ctx.num = view, num
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mu, sigma, out, logsumexp = ctx.saved_tensors
        keys = Keys.of(k, ctx.view, mu, sigma, ctx.num)
        grad_q = torch.empty_like(q)
        grad_k, grad_v = torch.zeros_like(keys.keys), torch.zeros_like(keys.keys)
        grad_log_radii = torch.zeros_like(keys.radii)
        frames = [x.chunk(len(keys.poses), dim=-2) for x in (grad_out, q, out, grad_q)]
        for index, key in enumerate(keys.modulated(k.dtype)):
            grad_frame, q_frame, out_frame, to_frame = (x[index] for x in frames)
            dq, dk, dv = flash_backward(grad_frame, q_frame, key, v, out_frame, logsumexp[index], 0.0, False)
            to_frame.copy_(dq)
            grad_v += dv
            keys.add_gradients(index, dk, grad_k, grad_log_radii)
        steps = log_steps(ctx.num, grad_log_radii)
        grad_sigma = sigma.sign() * torch.einsum("bkn,k->bn", grad_log_radii, steps)
        grad_mu = grad_log_radii.sum(1).to(mu.dtype)
        return grad_q, grad_k.to(k.dtype), grad_v.to(v.dtype), grad_mu, grad_sigma.to(sigma.dtype), None, None
