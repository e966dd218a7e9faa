"""Curved-ray expected RoPE: where could a token be, as seen from each query frame?

A token is not at a pixel but somewhere along a ray. We keep an interval of log-radius per token, carry it into the
query camera, whose lens bends it into a curve, and average the rotary phasor along that curve. Pure functions of
tensors; geometry in float32 or better, keys back in their own dtype. This file is the twin every faster path is
tested against.

    b batch   h head   q query frame   s source frame   p patch   a ray inside the patch   k breakpoint
    c coordinate (u, v, range, and optionally depth)    f frequency    d channel    tokens are ordered (s p)
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid, depth_of
from curvedray.errors import InputError

Backend = Literal["auto", "fast", "reference"]
OFFSETS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))  # of a patch's rays, (x, y) in patches: three of its corners
LONGEST_BEARING, LONGEST_RANGE, SHORTEST_RANGE = 8.0, 80.0, 2.0  # periods; finer range only adds float32 noise


def default_frequencies(
    grid: TokenGrid, dim: int, rays: int = len(OFFSETS), coordinates: int = 3
) -> Float[Tensor, "c f"]:
    """Radians per unit of (u, v, range[, depth]) for heads of `dim` channels, with log-spaced periods.

    u and v from 8 down to two patch widths (a frame is about one unit wide); range from 80 down to 2.
    """
    return _default_frequencies(grid, dim, rays, coordinates).clone()


@functools.lru_cache(maxsize=16)
def _default_frequencies(grid: TokenGrid, dim: int, rays: int, coordinates: int) -> Float[Tensor, "c f"]:
    count = dim // (2 * rays * coordinates)
    if count < 1:
        raise InputError("head width", f"at least {2 * rays * coordinates} channels for one frequency", dim)
    finest = 2 / torch.tensor([grid.cols, grid.rows, 1, max(grid.cols, grid.rows)], dtype=torch.float64)
    finest[2] = SHORTEST_RANGE
    coarsest = torch.tensor([LONGEST_BEARING, LONGEST_BEARING, LONGEST_RANGE, LONGEST_BEARING], dtype=torch.float64)
    step = torch.linspace(0, 1, count, dtype=torch.float64)
    periods = coarsest[:, None] * (finest / coarsest)[:, None] ** step
    return (2 * math.pi / periods)[:coordinates].float()


def breakpoints(mu: Float[Tensor, "*batch"], sigma: Float[Tensor, "*batch"], num: int) -> Float[Tensor, "*batch k"]:
    """Radii at even steps of log-radius across [mu - |sigma|, mu + |sigma|]."""
    return torch.exp(mu[..., None] + sigma.abs()[..., None] * log_steps(num, mu))


def log_steps(num: int, like: Tensor) -> Float[Tensor, "k"]:
    """Even steps from -1 to 1. One breakpoint is two that coincide, as if sigma were 0."""
    return torch.linspace(-1, 1, num, dtype=like.dtype, device=like.device) if num > 1 else like.new_zeros(2)


def curved_path(
    radii: Float[Tensor, "*#b s p k"],
    rays: Float[Tensor, "*#b s p a 3"],
    query_from_source: Float[Tensor, "*#b s 4 4"],
    lens: Lens,
) -> Float[Tensor, "*_ s p a k 4"]:
    """Carry radii along unit rays into the query camera -> (u, v, range, depth) at every breakpoint.

    In space a ray is a line, origin + r * direction. Only the lens makes it a curve.
    """
    rotation, origin = query_from_source[..., :3, :3], query_from_source[..., :3, 3]
    direction = torch.einsum("...sij,...spaj->...spai", rotation, rays)
    points = origin[..., None, None, None, :] + radii[..., None, :, None] * direction[..., None, :]
    return lens_coordinates(points, lens)


def lens_coordinates(points: Float[Tensor, "*points 3"], lens: Lens) -> Float[Tensor, "*points 4"]:
    """Points in a camera's frame -> (u, v, range, depth): a bounded direction through the lens, and a distance.

    The direction is (fx/W X, fy/H Y, beta) at unit length, beta = Z + xi |X|. It is smooth where beta changes sign,
    so a path behind the camera has no jump. A point at the camera's centre, or one straight behind it that the lens
    sends to a zero vector (xi = 1), gets zeros.
    """
    ones = (1,) * (points.ndim - 1 - len(lens.batch_shape))
    focal, xi = lens.focal.reshape(*lens.batch_shape, *ones, 2), lens.xi.reshape(*lens.batch_shape, *ones)
    # Directions do not change when a point is scaled, so the scale is taken out, undifferentiated, before squaring.
    scale = points.detach().abs().amax(-1)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    x, y, z = (points / scale[..., None]).unbind(-1)
    distance = norm(torch.stack([x, y, z], -1))
    across = focal / focal.new_tensor(lens.size) * torch.stack([x, y], -1)
    ray = torch.cat([across, depth_of(x * x + y * y, z, distance, xi)[..., None]], -1)
    length = norm(ray)
    ray = torch.where((length > 0)[..., None], ray / torch.where(length > 0, length, 1.0)[..., None], 0.0)
    return torch.stack([ray[..., 0], ray[..., 1], scale * distance, ray[..., 2]], -1)


def norm(x: Float[Tensor, "*batch c"]) -> Float[Tensor, "*batch"]:
    """Euclidean length, whose gradient at the zero vector is zero."""
    square = x.square().sum(-1)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, torch.ones_like(square), square).sqrt())


def expected_phasor(theta: Float[Tensor, "*batch k"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Mean of exp(i theta) along a path of K phases joined by straight segments, as (cos, sin).

    A segment from a to b integrates to sinc((b - a)/2) exp(i (a + b)/2): exact, and smooth as b -> a.
    """
    if theta.shape[-1] < 2:
        return theta[..., 0].cos(), theta[..., 0].sin()
    a, b = theta[..., :-1], theta[..., 1:]
    middle, shrink = (a + b) / 2, sinc((b - a) / 2)
    return (shrink * middle.cos()).mean(-1), (shrink * middle.sin()).mean(-1)


def sinc(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """sin(x)/x. A series near zero keeps the digits of its gradient, which sin(x)/x loses there in float32."""
    small = x.abs() < 0.1
    large, square = torch.where(small, torch.ones_like(x), x), torch.where(small, x, torch.zeros_like(x)).square()
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
    return torch.where(small, series, large.sin() / large)


def modulate(
    x: Float[Tensor, "*batch d"], cos: Float[Tensor, "*#batch n"], sin: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """Turn the channel pairs (i, n + i) by their phasors; channels from 2n on pass through."""
    n = cos.shape[-1]
    first, second = x[..., :n].to(cos.dtype), x[..., n : 2 * n].to(cos.dtype)
    turned = torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
    return torch.cat([turned.to(x.dtype), x[..., 2 * n :]], -1)


def batched(cameras: Cameras, batch: Sequence[int]) -> Cameras:
    """The same cameras for every entry of a batch."""
    if cameras.batch_shape == tuple(batch):
        return cameras
    poses = cameras.world_from_camera
    return replace(cameras, world_from_camera=poses.expand(*batch, *poses.shape[-3:]))


def patch_rays(
    cameras: Cameras, grid: TokenGrid, offsets: Float[Tensor, "a 2"]
) -> tuple[Float[Tensor, "*b s p a 3"], Bool[Tensor, "*b s p a"]]:
    """Cameras.rays, but a lens that all frames share is asked once."""
    if cameras.lens.batch_shape:
        return cameras.rays(grid, offsets)
    rays, exists = cameras.lens.unproject(grid.patch_points(cameras.lens.size, offsets))
    frames = cameras.world_from_camera.shape[:-2]
    return rays.expand(*frames, *rays.shape), exists.expand(*frames, *exists.shape)


@dataclass(frozen=True, eq=False)
class View:
    """What places keys in the eyes of queries: the keys' rays, the cameras between them, and the frequencies."""

    rays: Float[Tensor, "*b s p a 3"]
    exists: Bool[Tensor, "*b s p a"]
    query_from_source: Float[Tensor, "*b q s 4 4"]
    lens: Lens  # of the query frames, leading axes (*b q)
    frequencies: Float[Tensor, "c f"]

    @classmethod
    def between(
        cls, cameras: Cameras, grid: TokenGrid, queries: Cameras, frequencies: Float[Tensor, "c f"], offsets: Tensor
    ) -> "View":
        """What depends on cameras alone, in double precision where the device has it."""
        wide = torch.float32 if offsets.device.type == "mps" else torch.float64
        offsets, frequencies = offsets.to(wide), frequencies.to(offsets.device, wide)
        batch = cameras.batch_shape or queries.batch_shape  # where both have one it is the same
        same, cameras = queries is cameras, batched(cameras.to(offsets), batch)
        queries = cameras if same else batched(queries.to(offsets), batch)
        rays, exists = patch_rays(cameras, grid, offsets)
        return cls(rays, exists, cameras.query_from_source(queries), queries.frame_lens, frequencies)

    def to(self, dtype: torch.dtype) -> "View":
        poses = self.query_from_source.to(dtype)
        return View(self.rays.to(dtype), self.exists, poses, self.lens.to(dtype), self.frequencies.to(dtype))

    @property
    def requires_grad(self) -> bool:
        """Whether a camera, lens or frequency is being learned."""
        lens = (self.lens.focal, self.lens.xi)
        return any(i.requires_grad for i in (self.rays, self.query_from_source, self.frequencies, *lens))

    @property
    def phasors(self) -> int:
        return self.rays.shape[-2] * self.frequencies.numel()

    def coefficients(
        self, radii: Float[Tensor, "*#b s p k"], query: int
    ) -> tuple[Float[Tensor, "*_ sp n"], Float[Tensor, "*_ sp n"]]:
        """Expected phasors of every key as query frame `query` sees it, in the order (ray, coordinate, frequency)."""
        path = curved_path(radii, self.rays, self.query_from_source[..., query, :, :, :], self.lens[..., query])
        theta = torch.einsum("...kc,cf->...cfk", path[..., : len(self.frequencies)], self.frequencies)
        return self._per_token(*expected_phasor(theta), self.exists)

    def own_bearings(
        self, rays: Float[Tensor, "*b q p a 3"], exists: Bool[Tensor, "*b q p a"]
    ) -> tuple[Float[Tensor, "*_ qp n"], Float[Tensor, "*_ qp n"]]:
        """Phasors of a query's own rays in its own camera. Its range is unknown, so range channels do not turn."""
        seen = lens_coordinates(rays, self.lens)[..., : len(self.frequencies)]
        bearing = seen.new_tensor([1.0, 1.0, 0.0, 1.0])[: len(self.frequencies)]
        theta = (seen * bearing)[..., None] * self.frequencies
        return self._per_token(theta.cos(), theta.sin(), exists)

    def _per_token(self, cos: Tensor, sin: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
        """Flatten to (token, phasor); a ray that does not exist leaves its channels unmodulated."""
        exists = exists[..., None, None]
        cos, sin = torch.where(exists, cos, torch.ones_like(cos)), torch.where(exists, sin, torch.zeros_like(sin))
        flat = "... s p a c f -> ... (s p) (a c f)"
        return rearrange(cos, flat), rearrange(sin, flat)


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
) -> Float[Tensor, "b h nq dv"]:
    """Scaled dot-product attention in which each query frame sees keys where *it* would see them.

    Keys and values come with one camera a frame of `grid`, tokens in the order (t, y, x), and a log-radius interval
    mu -+ |sigma| a token. `frequencies` are radians per unit of (u, v, range), or of (u, v, range, depth) if there
    are four rows. Queries have the same cameras unless `query_cameras` and `query_grid` say otherwise; with
    `query_rotation` they are turned by their own bearing, so that a score depends on where a key is seen *relative*
    to its query. Values are never touched.
    """
    query_cameras, query_grid = query_cameras or cameras, query_grid or grid
    if frequencies is None:
        frequencies = _default_frequencies(grid, q.shape[-1], rays, 3)
    _check(q, k, v, mu, sigma, grid, query_grid, cameras, query_cameras)
    _check_options(q.shape[-1], breakpoints, frequencies, backend, rays)

    # Under a user's autocast, products of coordinates and frequencies would be rounded to half precision.
    with torch.autocast(q.device.type, enabled=False):
        mu, sigma = (i.to(torch.promote_types(mu.dtype, torch.float32)) for i in (mu, sigma))
        offsets = torch.tensor(OFFSETS[:rays], device=mu.device)
        view = View.between(cameras, grid, query_cameras, frequencies, offsets)
        if query_rotation:
            asking = batched(query_cameras.to(view.rays), view.rays.shape[:-4])
            own = patch_rays(asking, query_grid, offsets.to(view.rays))
            cos, sin = (i.to(mu.dtype)[..., None, :, :] for i in view.own_bearings(*own))
            q = modulate(q, cos, sin)
        if backend == "reference" or (backend == "auto" and view.requires_grad):
            return reference_attention(q, k, v, view, mu, sigma, breakpoints)
        from curvedray import kernels  # imports this file

        return kernels.attention(q, k, v, view, mu, sigma, breakpoints)


def reference_attention(
    q: Float[Tensor, "b h nq d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n dv"],
    view: View,
    mu: Float[Tensor, "b n"],
    sigma: Float[Tensor, "b n"],
    num: int,
) -> Float[Tensor, "b h nq dv"]:
    """Keys are modulated for one query frame at a time; its queries attend to them, to all source frames at once."""
    view = view.to(mu.dtype)
    radii = rearrange(breakpoints(mu, sigma, num), "b (s p) k -> b s p k", p=view.rays.shape[-3])
    frames = view.query_from_source.shape[-4]
    out = []
    for frame, asking in enumerate(q.chunk(frames, dim=-2)):
        cos, sin = (i.expand(len(k), -1, -1)[:, None] for i in view.coefficients(radii, frame))
        out.append(F.scaled_dot_product_attention(asking, modulate(k, cos, sin), v))
    return torch.cat(out, -2)


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mu: Tensor,
    sigma: Tensor,
    grid: TokenGrid,
    query_grid: TokenGrid,
    cameras: Cameras,
    query_cameras: Cameras,
) -> None:
    """Refuse tensors and cameras that do not fit the grids, by name."""
    batch, heads, _, dim = q.shape
    for name, tensor, shape in (
        ("q", q, (batch, heads, query_grid.tokens, dim)),
        ("k", k, (batch, heads, grid.tokens, dim)),
        ("v", v, (batch, heads, grid.tokens, v.shape[-1])),
        ("mu", mu, (batch, grid.tokens)),
        ("sigma", sigma, (batch, grid.tokens)),
    ):
        if tensor.shape != shape:
            raise InputError(name, f"shape {shape}", tuple(tensor.shape), "Tokens are ordered (t, y, x) on the grid.")
    for name, views, tokens in (("cameras", cameras, grid), ("query_cameras", query_cameras, query_grid)):
        if views.frames != tokens.frames:
            fix = "Cameras.latent_frames(grid) takes one pose a latent frame."
            raise InputError(name, f"{tokens.frames} poses, one a frame of the grid", views.frames, fix)
        if views.batch_shape not in ((), (batch,)):
            raise InputError(name, f"poses (T, 4, 4) or ({batch}, T, 4, 4)", tuple(views.world_from_camera.shape))


def _check_options(dim: int, num: int, frequencies: Tensor, backend: str, rays: int) -> None:
    if num < 1:
        raise InputError("breakpoints", "at least 1", num)
    if backend not in get_args(Backend):
        raise InputError("backend", " or ".join(get_args(Backend)), backend)
    if not 1 <= rays <= len(OFFSETS):
        raise InputError("rays", f"1 to {len(OFFSETS)} rays a patch", rays)
    if frequencies.ndim != 2 or len(frequencies) not in (3, 4):
        raise InputError("frequencies", "shape (3, F) or (4, F)", tuple(frequencies.shape))
    if 2 * rays * frequencies.numel() > dim:
        need = f"at most {dim} channels (2 x rays x coordinates x frequencies)"
        raise InputError("frequencies", need, 2 * rays * frequencies.numel(), "Use fewer frequencies or wider heads.")
