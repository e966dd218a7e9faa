"""The call: scaled dot-product attention in which each query frame sees keys where it would see them.

b batch   h head   n token   d channel   k breakpoint   c coordinate   f frequency
"""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding.curved import OFFSETS, _default_frequencies, breakpoints, modulate
from curvedray.encoding.view import View, batched, patch_rays
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
        from curvedray.encoding import kernels  # imports this file

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
            fix = "Cameras.latent_frames(grid) takes one pose per latent frame."
            raise InputError(name, f"{tokens.frames} poses, one per frame of the grid", views.frames, fix)
        if views.batch_shape not in ((), (batch,)):
            raise InputError(name, f"poses (T, 4, 4) or ({batch}, T, 4, 4)", tuple(views.world_from_camera.shape))


def _check_options(dim: int, num: int, frequencies: Tensor, backend: str, rays: int) -> None:
    if num < 1:
        raise InputError("breakpoints", "at least 1", num)
    if backend not in get_args(Backend):
        raise InputError("backend", " or ".join(get_args(Backend)), backend)
    if not 1 <= rays <= len(OFFSETS):
        raise InputError("rays", f"1 to {len(OFFSETS)} rays per patch", rays)
    if frequencies.ndim != 2 or len(frequencies) not in (3, 4):
        raise InputError("frequencies", "shape (3, F) or (4, F)", tuple(frequencies.shape))
    if 2 * rays * frequencies.numel() > dim:
        need = f"at most {dim} channels (2 x rays x coordinates x frequencies)"
        raise InputError("frequencies", need, 2 * rays * frequencies.numel(), "Use fewer frequencies or wider heads.")
