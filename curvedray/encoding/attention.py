"""The call: scaled dot-product attention in which each query frame sees keys where it would see them.

b batch   h head   n token   d channel   k breakpoint   c coordinate   f frequency
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding import kernels
from curvedray.encoding.call import Bearings, Call, turned_around
from curvedray.encoding.curved import OFFSETS, _default_frequencies, breakpoints, modulate
from curvedray.encoding.geometry import Geometry, batched, patch_rays
from curvedray.encoding.masks import mask_of
from curvedray.errors import InputError

Backend = Literal["auto", "fast", "reference"]


def curved_ray_attention(
    q: Float[Tensor, "b h nq d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n dv"],
    cameras: Cameras,
    grid: TokenGrid,
    mu: Float[Tensor, "b n"],
    sigma: Float[Tensor, "b n"],
    *,
    breakpoints: int = 5,
    frequencies: Float[Tensor, "c f"] | None = None,
    backend: Backend = "auto",
    query_cameras: Cameras | None = None,
    query_grid: TokenGrid | None = None,
    rays: int = len(OFFSETS),
    query_rotation: bool = False,
    value_rotation: bool = False,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "b h nq dv"]:
    """Scaled dot-product attention in which each query frame sees keys where *it* would see them.

    Keys and values come with one camera per frame of `grid`, tokens in the order (t, y, x), and a log-radius interval
    mu -+ |sigma| per token. `frequencies` are radians per unit of (u, v, range), or of (u, v, range, depth) if there
    are four rows. Queries have the same cameras unless `query_cameras` and `query_grid` say otherwise; with
    `query_rotation` they are turned by their own bearing, so that a score depends on where a key is seen *relative*
    to its query. With `value_rotation` values are turned as keys are, and the output is turned back by the query's own
    bearing, so that what a value carries is relative to where its query looks; else values are never touched.
    `attn_mask` and `is_causal` are those of scaled_dot_product_attention.

    Layers that share cameras share a `CurvedEncoding`, which is what this call makes and uses once.
    """
    q, k, v = (_tensor(name, x) for name, x in (("q", q), ("k", k), ("v", v)))
    if q.ndim != 4 or 0 in q.shape:
        raise InputError("q", "shape (batch, heads, tokens, channels), none of them 0", tuple(q.shape))
    mu, sigma = (_tensor(name, x, like=q) for name, x in (("mu", mu), ("sigma", sigma)))
    _check_cameras("cameras", cameras, "grid", grid)
    if frequencies is None:
        _check_rays(rays)
        frequencies = _default_frequencies(grid, q.shape[-1], rays, 3)
    encoding = CurvedEncoding.between(
        cameras,
        grid,
        _tensor("frequencies", frequencies),
        breakpoints=breakpoints,
        backend=backend,
        query_cameras=query_cameras,
        query_grid=query_grid,
        rays=rays,
        query_rotation=query_rotation,
        value_rotation=value_rotation,
        device=mu.device,
    )
    return encoding.attention(q, k, v, mu, sigma, attn_mask=attn_mask, is_causal=is_causal)


@dataclass(frozen=True, eq=False)
class CurvedEncoding:
    """Curved rays between cameras, made once per pass: a layer attends through it with its own mu and sigma.

    All that depends on the cameras alone is computed here, the compiled kernel's layout of it included.
    """

    geometry: Geometry
    tokens: int  # keys, and
    query_tokens: int
    breakpoints: int  # K
    backend: Backend
    query_rotation: bool  # queries are turned by their own bearing
    value_rotation: bool  # values are turned as keys are, and outputs turned back by the query's own bearing
    bearings: dict[torch.dtype, Bearings]  # in each precision; empty where no rotation needs them

    @classmethod
    def between(
        cls,
        cameras: Cameras,
        grid: TokenGrid,
        frequencies: Float[Tensor, "c f"],
        *,
        breakpoints: int = 5,
        backend: Backend = "auto",
        query_cameras: Cameras | None = None,
        query_grid: TokenGrid | None = None,
        rays: int = len(OFFSETS),
        query_rotation: bool = False,
        value_rotation: bool = False,
        device: torch.device | None = None,
    ) -> "CurvedEncoding":
        """The arguments of `curved_ray_attention`, on the device of the tokens."""
        query_cameras = cameras if query_cameras is None else query_cameras
        query_grid = grid if query_grid is None else query_grid
        _check_cameras("cameras", cameras, "grid", grid)
        _check_cameras("query_cameras", query_cameras, "query_grid", query_grid)
        _check_rays(rays)
        _check_options(breakpoints, frequencies, backend)
        device = device or cameras.world_from_camera.device
        with full_precision(device):
            offsets = torch.tensor(OFFSETS[:rays], device=device)
            geometry = Geometry.between(cameras, grid, query_cameras, frequencies, offsets)
            bearings = {}
            if query_rotation or value_rotation:
                own = batched(query_cameras.to(geometry.rays), geometry.rays.shape[:-4])
                cos, sin = geometry.own_bearings(*patch_rays(own, query_grid, offsets.to(geometry.rays)))
                cos, sin = cos[..., None, :, :].contiguous(), sin[..., None, :, :].contiguous()
                for dtype in {torch.float32, cos.dtype}:
                    c, s = cos.to(dtype), sin.to(dtype)
                    bearings[dtype] = Bearings(c, s, -s, query_rotation, value_rotation)
        rotations = (query_rotation, value_rotation)
        return cls(geometry, grid.tokens, query_grid.tokens, breakpoints, backend, *rotations, bearings)

    def attention(
        self,
        q: Float[Tensor, "b h nq d"],
        k: Float[Tensor, "b h n d"],
        v: Float[Tensor, "b h n dv"],
        mu: Float[Tensor, "b n"] | None = None,
        sigma: Float[Tensor, "b n"] | None = None,
        *,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "b h nq dv"]:
        """Attention between queries and keys placed by mu and sigma.

        With e^(i o) a query's own bearing and e^(i s) the expected phasor of a key as that query's frame sees it, both
        rotations together are
            score = Re conj(q) k e^(i (s - o)),    out = sum over keys of softmax(score) v e^(i (s - o)).
        """
        if mu is None or sigma is None:
            raise InputError("mu and sigma", "an interval of log radius per key", "none", "Curved rays need radii.")
        self._check(q, k, v, mu, sigma)
        mask = mask_of(attn_mask, is_causal, q, k)
        with full_precision(q.device):
            mu, sigma = (i.to(torch.promote_types(i.dtype, torch.float32)) for i in (mu, sigma))
            twin = self.backend == "reference" or (self.backend == "auto" and self.geometry.requires_grad)
            own = self.bearings[mu.dtype] if self.bearings else None
            call = Call(q, k, v, mu, sigma, self.geometry, self.breakpoints, mask, self.value_rotation, own)
            return turned_around(call, reference_attention, modulate) if twin else kernels.attention(call)

    def _check(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor) -> None:
        """Refuse tensors that do not fit the grids, the cameras or one another, by name."""
        if q.ndim != 4 or 0 in q.shape:
            raise InputError("q", "shape (batch, heads, tokens, channels), none of them 0", tuple(q.shape))
        batch, heads, _, dim = q.shape
        for name, tensor, shape in (
            ("q", q, (batch, heads, self.query_tokens, dim)),
            ("k", k, (batch, heads, self.tokens, dim)),
            ("v", v, (batch, heads, self.tokens, v.shape[-1])),
            ("mu", mu, (batch, self.tokens)),
            ("sigma", sigma, (batch, self.tokens)),
        ):
            if tensor.shape != shape:
                fix = "Tokens are ordered (t, y, x) on the grid."
                raise InputError(name, f"shape {shape}", tuple(tensor.shape), fix)
        if not q.dtype == k.dtype == v.dtype:
            raise InputError("q, k, v", "one dtype", ", ".join(str(x.dtype).removeprefix("torch.") for x in (q, k, v)))
        if self.geometry.rays.shape[:-4] not in ((), (batch,)):
            got = f"{len(self.geometry.rays)} paths"
            raise InputError("cameras", f"one path for all clips, or one for each of {batch}", got)
        if 2 * self.geometry.phasors > dim:
            need = f"at most {dim} channels (2 x rays x coordinates x frequencies)"
            fix = "Use fewer frequencies or wider heads."
            raise InputError("frequencies", need, 2 * self.geometry.phasors, fix)
        if self.value_rotation and 2 * self.geometry.phasors > v.shape[-1]:
            need = f"at least {2 * self.geometry.phasors} channels, to be turned as keys are"
            fix = "Use wider values or fewer frequencies, or leave value_rotation out."
            raise InputError("v", need, v.shape[-1], fix)


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Under a user's autocast, products of coordinates and frequencies would be rounded to half precision."""
    autocast = torch.is_autocast_enabled(device.type)
    return torch.autocast(device.type, enabled=False) if autocast else nullcontext()


def reference_attention(call: Call) -> Float[Tensor, "b h nq dv"]:
    """Keys are modulated for one query frame at a time; its queries attend to them, to all source frames at once."""
    q, k, v, geometry = call.q, call.k, call.v, call.geometry.to(call.mu.dtype)
    radii = breakpoints(call.mu, call.sigma, call.breakpoints)
    radii = rearrange(radii, "b (s p) k -> b s p k", p=geometry.rays.shape[-3])
    patches = q.shape[-2] // geometry.query_frames
    out = []
    for frame, queries in enumerate(q.split(patches, dim=-2)):
        cos, sin = (i.expand(len(k), -1, -1)[:, None] for i in geometry.coefficients(radii, frame))
        rows = call.mask.rows(frame * patches, (frame + 1) * patches, q.device) if call.mask else None
        values = modulate(v, cos, sin) if call.turn_values else v
        out.append(F.scaled_dot_product_attention(queries, modulate(k, cos, sin), values, rows))
    return torch.cat(out, -2)


def _tensor(name: str, value: Any, like: Tensor | None = None) -> Tensor:
    """A tensor, or one made of numpy's numbers: in the precision and on the device of `like`, if there is one."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        made = torch.from_numpy(np.ascontiguousarray(value))
        if like is None:
            return made
        return made.to(like.device, torch.promote_types(like.dtype, torch.float32))
    raise InputError(name, "a torch tensor or a numpy array of numbers", type(value).__name__)


def _check_cameras(name: str, cameras: Any, grid_name: str, grid: Any) -> None:
    if not isinstance(cameras, Cameras):
        fix = "Cameras(lens, world_from_camera) makes one from poses; read_cameras reads a file."
        raise InputError(name, "a curvedray.Cameras", type(cameras).__name__, fix)
    if not isinstance(grid, TokenGrid):
        raise InputError(grid_name, "a curvedray.TokenGrid(frames, rows, cols)", type(grid).__name__)
    if cameras.frames != grid.frames:
        fix = "Cameras.latent_frames(grid) takes one pose per latent frame."
        raise InputError(name, f"{grid.frames} poses, one per frame of the grid", cameras.frames, fix)
    if len(cameras.batch_shape) > 1:
        raise InputError(name, "poses (T, 4, 4) or (B, T, 4, 4)", tuple(cameras.world_from_camera.shape))


def _check_rays(rays: int) -> None:
    if not 1 <= rays <= len(OFFSETS):
        raise InputError("rays", f"1 to {len(OFFSETS)} rays per patch", rays)


def _check_options(num: int, frequencies: Tensor, backend: str) -> None:
    if num < 1:
        raise InputError("breakpoints", "at least 1", num)
    if backend not in get_args(Backend):
        raise InputError("backend", " or ".join(get_args(Backend)), backend)
    if frequencies.ndim != 2 or len(frequencies) not in (3, 4) or not frequencies.numel():
        raise InputError("frequencies", "shape (3, F) or (4, F)", tuple(frequencies.shape))
