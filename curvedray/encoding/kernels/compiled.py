"""The compiled curved-ray attention: for one query frame at a time, keys modulated in C++ and attended to.

The attention is the kernel's own in float32, and torch's where there is a mask or half precision, and in backward. Keys
are modulated again in backward instead of being kept, so memory is that of one frame however long the video.
Values that are turned too take the same pass: a phasor is computed once, and both add to the gradient of a radius.

    b batch   h head   q query frame   s source frame   p patch   a ray   k breakpoint   n token, ordered (s p)
"""

import ctypes
import functools
import math
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from curvedray.encoding.call import Bearings, Call
from curvedray.encoding.curved import log_steps
from curvedray.encoding.geometry import Geometry
from curvedray.encoding.kernels.build import compiled
from curvedray.encoding.masks import Mask

SOURCE = Path(__file__).with_name("curved.cpp")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MOST_HALF_TURNS = 2.0**20  # of a phase; the kernel's sine and cosine reduce phases exactly below 2^21
FARTHEST, NEAREST = 1e15, 1e-15  # lengths whose squares the kernel can take for floats
LARGEST_KEPT = 2**21  # floats of modulated keys for which a buffer is kept between calls: 8 MiB
POINTERS = ("keys", "values", "radii", "rays", "exists", "poses", "lenses", "frequency")
SIZES = ("batch", "camera_batch", "heads", "tokens", "patches", "dim", "breakpoints", "rays_per_patch")
COUNTS = ("coordinates", "frequencies", "threads")

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


class Problem(ctypes.Structure):
    """The same layout as Problem in curved.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in SIZES + COUNTS),
        ("pool", ctypes.c_void_p),
    ]


class Tokens(ctypes.Structure):
    """Those of attend.cpp: the first number, and the numbers between entries of the batch, heads and tokens."""

    _fields_ = [("first", ctypes.c_void_p), ("steps", ctypes.c_int64 * 3)]

    @classmethod
    def of(cls, x: Float[Tensor, "b h n d"]) -> "Tokens":
        return cls(x.data_ptr(), x.stride()[:3])


class Frames(ctypes.Structure):
    """The same layout as Frames in curved.cpp."""

    _fields_ = [
        *((name, Tokens) for name in ("queries", "values")),
        *((name, ctypes.c_void_p) for name in ("out", "logsumexp", "turned_keys", "turned_values", "cosine", "sine")),
        *((name, ctypes.c_int64) for name in ("bearing_batch", "turn_queries", "turn_out", "count", "patches")),
    ]


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernel, built on the first call; None where it cannot be had."""
    return declared(compiled(SOURCE, "curved"))


def declared(kernel: ctypes.CDLL | None) -> ctypes.CDLL | None:
    """The same, told what its functions take: without it pointers are cut to 32 bits."""
    if kernel is not None:
        kernel.curved_modulate.argtypes = [ctypes.POINTER(Problem), *2 * [ctypes.c_void_p]]
        kernel.curved_attention.argtypes = [ctypes.POINTER(Problem), ctypes.POINTER(Frames)]
        kernel.curved_modulate_backward.argtypes = [ctypes.POINTER(Problem), *5 * [ctypes.c_void_p]]
        kernel.curved_radii.argtypes = [*2 * [ctypes.c_void_p], *3 * [ctypes.c_int64], *2 * [ctypes.c_void_p]]
        kernel.curved_turn.argtypes = [*3 * [ctypes.c_void_p], *6 * [ctypes.c_int64], ctypes.c_void_p]
    return kernel


@functools.cache
def torch_threads() -> int | None:
    """Where the OpenMP runtime that torch has loaded starts its threads; None where there is none to be found."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):  # another runtime, or Windows, where None names no library
        return None


def suits(call: Call) -> bool:
    """Whether these are tensors the kernel takes: on the CPU, no wider than float32, cameras not being learned."""
    q, k, v, mu = call.q, call.k, call.v, call.mu
    if not (q.is_cpu and k.is_cpu and v.is_cpu and mu.is_cpu) or call.geometry.requires_grad:
        return False
    if not (q.dtype == k.dtype == v.dtype and k.dtype in DTYPES and mu.dtype == torch.float32):
        return False
    return v.shape[-1] == k.shape[-1] and not (call.mask is not None and call.mask.requires_grad)


def suits_turning(x: Tensor, cos: Tensor) -> bool:
    """The same of tokens to be turned, whose gradient nobody wants."""
    if torch.is_grad_enabled() and (x.requires_grad or cos.requires_grad):
        return False
    return x.is_cpu and cos.is_cpu and x.dtype in DTYPES and cos.dtype == torch.float32


def attends(call: Call) -> bool:
    """Whether the kernel does all of it, also what queries' own bearings turn: no gradient, no mask, float32."""
    if call.mask is not None or call.q.dtype != torch.float32 or _learned(call):
        return False
    return call.own is None or call.own.cos.dtype == torch.float32


def _learned(call: Call) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in (call.q, call.k, call.v, call.mu, call.sigma))


@dataclass(frozen=True, eq=False)
class Radii:
    """curved.breakpoints in double precision, breakpoints before tokens, as the kernel reads them; and their ends."""

    values: Float[Tensor, "b k n"]
    nearest: float
    farthest: float  # neither is a number where some radius is not

    @classmethod
    def of(cls, mu: Float[Tensor, "b n"], sigma: Float[Tensor, "b n"], num: int) -> "Radii":
        kernel, mu, sigma, (b, n) = library(), mu.contiguous(), sigma.float().contiguous(), mu.shape
        assert kernel is not None
        values, ends = mu.new_empty(b, max(num, 2), n, dtype=torch.float64), (ctypes.c_double * 2)()
        kernel.curved_radii(mu.data_ptr(), sigma.data_ptr(), b, n, num, values.data_ptr(), ends)
        return cls(values, *ends)


def reaches(geometry: Geometry, radii: Radii) -> bool:
    """Whether lengths and phases are within the kernel's reach; radii that are not numbers are not."""
    if not (radii.nearest > NEAREST and radii.farthest < FARTHEST):
        return False
    layout = Layout.of(geometry)
    farthest = radii.farthest + 2 * layout.farthest_camera
    return farthest < FARTHEST and max(farthest, 1.0) * layout.highest_frequency / math.pi < MOST_HALF_TURNS


def turned(
    x: Float[Tensor, "b h nq d"], cos: Float[Tensor, "*b 1 nq n"], sin: Float[Tensor, "*b 1 nq n"]
) -> Float[Tensor, "b h nq d"]:
    """curved.modulate."""
    kernel, rows, cos, sin = library(), x.float().contiguous(), cos.contiguous(), sin.contiguous()
    assert kernel is not None
    out, (b, h, n, d) = torch.empty_like(rows), x.shape
    phasors = (cos.numel() // (n * cos.shape[-1]), h, n, cos.shape[-1])
    kernel.curved_turn(rows.data_ptr(), cos.data_ptr(), sin.data_ptr(), b, *phasors, d, out.data_ptr())
    return out.to(x.dtype)


def attention(call: Call, radii: Float[Tensor, "b k n"]) -> Float[Tensor, "b h nq d"]:
    """attention.reference_attention, with gradients to q, k, v, mu and sigma."""
    # The kernel and torch's own op, called past scaled_dot_product_attention's guard, read channels as neighbours
    # whatever the strides say: numbers of other tokens, or memory that is nobody's.
    call = replace(call, q=_rows(call.q), v=_rows(call.v))
    if _learned(call):
        return CurvedAttention.apply(call.q, call.k, call.v, call.mu, call.sigma, call, radii)
    return _attended(call, radii)[0]


def _rows(x: Tensor) -> Tensor:
    """The same, with every token's channels side by side in memory."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _attended(call: Call, radii: Float[Tensor, "b k n"]) -> tuple[Tensor, Float[Tensor, "b h nq"]]:
    """The attention's output, and the logarithms of its softmax's sums."""
    q, v, mask = call.q, call.v, call.mask
    keys = Keys.of(call.k, v, call.turn_values, radii, Layout.of(call.geometry))
    if mask is None and q.dtype == torch.float32:
        return keys.attended(q, v, call.own)
    patches = q.shape[-2] // keys.layout.query_frames
    parts = []
    for index, (queries, (key, value)) in enumerate(zip(q.split(patches, -2), keys.modulated(v.dtype), strict=True)):
        rows = None if mask is None else added(mask, index, patches, q)
        parts.append(flash(queries, key, v if value is None else value, attn_mask=rows))
    out, logsumexp = zip(*parts, strict=True)
    return torch.cat(out, -2), torch.cat(logsumexp, -1)


def added(mask: Mask, frame: int, patches: int, q: Tensor) -> Tensor:
    """A frame's rows of the mask as what is added to its scores, which is all that this attention takes."""
    rows = mask.rows(frame * patches, (frame + 1) * patches, q.device)
    if rows.dtype != torch.bool:
        return rows
    return torch.zeros(rows.shape, dtype=q.dtype).masked_fill_(~rows, float("-inf"))


@dataclass(frozen=True, eq=False)
class Layout:
    """What depends on cameras alone, laid out as the kernel reads it; made once for each Geometry."""

    rays: Float[Tensor, "bc a 3 n"]
    exists: Bool[Tensor, "bc a n"]
    poses: Float[Tensor, "q bc s 12"]
    lenses: Float[Tensor, "q bc 3"]
    frequencies: Float[Tensor, "c f"]
    patches: int
    farthest_camera: float  # the largest entry of any pose
    highest_frequency: float

    @classmethod
    def of(cls, geometry: Geometry) -> "Layout":
        if geometry not in _LAYOUTS:
            _LAYOUTS[geometry] = cls.made(geometry)
        return _LAYOUTS[geometry]

    @classmethod
    def made(cls, geometry: Geometry) -> "Layout":
        lens, rays, exists = geometry.lens, geometry.rays, geometry.exists
        lenses = torch.cat([lens.focal / lens.focal.new_tensor(lens.size), lens.xi[..., None]], -1)
        poses = geometry.query_from_source[..., :3, :].flatten(-2)
        if rays.ndim == 4:  # the same cameras for every entry of a batch
            rays, exists, poses, lenses = rays[None], exists[None], poses[None], lenses[None]
        return cls(
            rearrange(rays, "b s p a i -> b a i (s p)").double().contiguous(),
            rearrange(exists, "b s p a -> b a (s p)").contiguous(),
            poses.double().movedim(1, 0).contiguous(),
            lenses.double().movedim(1, 0).contiguous(),
            geometry.frequencies.double().contiguous(),
            geometry.rays.shape[-3],
            float(geometry.query_from_source.abs().amax()),
            float(geometry.frequencies.abs().amax()),
        )

    @property
    def query_frames(self) -> int:
        return len(self.poses)

    @cached_property
    def pointers(self) -> tuple[int, ...]:
        placed = (self.rays, self.exists, self.poses, self.lenses, self.frequencies)
        return tuple(x.data_ptr() for x in placed)

    @cached_property
    def frame_pointers(self) -> list[tuple[int, int]]:
        """Each query frame's own poses and lenses."""
        return [(pose.data_ptr(), lens.data_ptr()) for pose, lens in zip(self.poses, self.lenses, strict=True)]


_LAYOUTS: "weakref.WeakKeyDictionary[Geometry, Layout]" = weakref.WeakKeyDictionary()


_KEPT = threading.local()


def _buffers(like: Float[Tensor, "b h n d"], count: int) -> list[Float[Tensor, "b h n d"]]:
    """Room for modulated keys and values. A small one is kept per thread: fresh pages cost as much as the work in them.

    Large ones are made one by one: glibc's malloc has used pages at hand for 32 MiB at most.
    """
    if count * like.numel() > LARGEST_KEPT:
        return [torch.empty_like(like) for _ in range(count)]
    kept: list[Tensor] = getattr(_KEPT, "room", [])
    if len(kept) < count or kept[0].shape != like.shape:
        kept = _KEPT.room = list(like.new_empty(count, *like.shape))
    return kept[:count]


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys, where along their rays they lie, the layout that places the rays, and values if they are to be turned."""

    keys: Float[Tensor, "b h n d"]
    radii: Float[Tensor, "b k n"]
    layout: Layout
    values: Float[Tensor, "b h n d"] | None = None

    @classmethod
    def of(cls, k: Tensor, v: Tensor, turn_values: bool, radii: Tensor, layout: Layout) -> "Keys":
        """In the kernel's own precision and order."""
        keys = k.float().contiguous()
        return cls(keys, radii, layout, v.float().contiguous() if turn_values else None)

    def problem(self) -> Problem:
        """What the kernel is told of the first query frame; `at` moves it to another."""
        (b, h, n, d), layout = self.keys.shape, self.layout
        sizes = (b, len(layout.rays), h, n, layout.patches, d, self.radii.shape[1], layout.rays.shape[1])
        pointers = (_pointer(x) for x in (self.keys, self.values, self.radii))
        counts = (*layout.frequencies.shape, torch.get_num_threads())
        return Problem(*pointers, *layout.pointers, *sizes, *counts, torch_threads())

    def at(self, problem: Problem, query: int) -> Problem:
        """The same problem with a query frame's own poses and lenses."""
        problem.poses, problem.lenses = self.layout.frame_pointers[query]
        return problem

    def modulated(self, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The keys as each query frame sees them, and the values if they are turned. One buffer serves all frames."""
        kernel, problem = library(), self.problem()
        assert kernel is not None
        key, *turned = _buffers(self.keys, 1 if self.values is None else 2)
        value = turned[0] if turned else None
        pointers = _pointer(key), _pointer(value)
        for query in range(self.layout.query_frames):
            kernel.curved_modulate(self.at(problem, query), *pointers)
            yield (key, value) if dtype == key.dtype else (key.to(dtype), None if value is None else value.to(dtype))

    def attended(self, q: Tensor, v: Tensor, own: Bearings | None = None) -> tuple[Tensor, Float[Tensor, "b h nq"]]:
        """Every query frame's attention to the keys as it sees them, and the logarithms of its softmax's sums."""
        kernel, count = library(), self.layout.query_frames
        assert kernel is not None
        out, logsumexp = q.new_empty(q.shape), q.new_empty(q.shape[:-1])
        key, *turned = _buffers(self.keys, 1 if self.values is None else 2)
        room = (_pointer(x) for x in (out, logsumexp, key, turned[0] if turned else None))
        bearings: tuple[int | None, ...] = (None, None, 0, False, False)
        if own is not None:
            bearings = (own.cos.data_ptr(), own.sin.data_ptr(), own.batch, own.turn_queries, own.turn_out)
        frames = Frames(Tokens.of(q), Tokens.of(v), *room, *bearings, count, q.shape[-2] // count)
        kernel.curved_attention(self.problem(), frames)
        return out, logsumexp

    def add_gradients(self, query: int, dk: Tensor, dv: Tensor, to_k: Tensor, to_v: Tensor, to_radii: Tensor) -> None:
        """From the gradients of one frame's modulated keys and values to those of keys, values and every log-radius."""
        kernel, dk, dv = library(), dk.float().contiguous(), dv.float().contiguous()
        assert kernel is not None
        pointers = (x.data_ptr() for x in (dk, dv, to_k, to_v, to_radii))
        kernel.curved_modulate_backward(self.at(self.problem(), query), *pointers)
        if self.values is None:
            to_v += dv


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


class CurvedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mu: Tensor,
        sigma: Tensor,
        call: Call,
        radii: Tensor,
    ) -> Tensor:
        out, logsumexp = _attended(call, radii)
        ctx.save_for_backward(q, k, v, sigma, out, radii, logsumexp)
        ctx.layout, ctx.num = Layout.of(call.geometry), call.breakpoints
        ctx.mask, ctx.turn_values = call.mask, call.turn_values
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, sigma, out, radii, logsumexp = ctx.saved_tensors
        keys = Keys.of(k, v, ctx.turn_values, radii, ctx.layout)
        grad_q = torch.empty_like(q)
        grad_k, grad_v = torch.zeros_like(keys.keys), torch.zeros_like(keys.keys)
        grad_log_radii = torch.zeros_like(radii)
        patches = q.shape[-2] // ctx.layout.query_frames
        frames = [x.split(patches, dim=-2) for x in (grad_out, q, out, grad_q)]
        sums = logsumexp.split(patches, dim=-1)
        for index, (key, value) in enumerate(keys.modulated(k.dtype)):
            grad_frame, q_frame, out_frame, to_frame = (x[index] for x in frames)
            rows = None if ctx.mask is None else added(ctx.mask, index, patches, q)
            saved = (out_frame, sums[index], 0.0, False)
            seen = v if value is None else value
            dq, dk, dv = flash_backward(grad_frame, q_frame, key, seen, *saved, attn_mask=rows)
            to_frame.copy_(dq)
            keys.add_gradients(index, dk, dv, grad_k, grad_v, grad_log_radii)
        steps = log_steps(ctx.num, grad_log_radii)
        grad_sigma = sigma.sign() * torch.einsum("bkn,k->bn", grad_log_radii, steps)
        grad_mu = grad_log_radii.sum(1)
        grads = (grad_q, grad_k.to(k.dtype), grad_v.to(v.dtype), grad_mu.float(), grad_sigma.to(sigma.dtype))
        return *grads, None, None
