"""Relative encodings without a radius: relative-ray (UCPE), PRoPE and GTA, as lists of (transform, channels).

A token carries a 4x4 matrix. Queries, keys, values and outputs are turned so that only products of one token's matrix
with another's inverse remain: where the world's origin lies does not matter. Also here, the maps an adapter may add to
its input: absolute orientation (up and latitude) and Pluecker coordinates.

    b batch   h head   t frame   p patch   n token, ordered (t p)   d channel
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Cameras, TokenGrid, inverse_pose
from curvedray.encoding.curved import norm
from curvedray.encoding.plain import plain_attention
from curvedray.errors import InputError

Transform = Callable[[Tensor], Tensor]
Blocks = Sequence[tuple[Transform, int]]  # which transform, on how many channels
ROTARY_BASE = 100.0
UCPE_STEP = 0.1  # radians


@dataclass(frozen=True, eq=False)
class RelativeEncoding:
    """Block-diagonal transforms of queries, of keys and values, and of outputs."""

    queries: Blocks
    keys: Blocks
    outputs: Blocks

    def attention(
        self,
        q: Float[Tensor, "b h n d"],
        k: Float[Tensor, "b h n d"],
        v: Float[Tensor, "b h n d"],
        mu: Float[Tensor, "b n"] | None = None,
        sigma: Float[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b h n d"]:
        """Scaled dot-product attention between turned tokens; a value is carried from its frame to the query's."""
        with torch.autocast(q.device.type, enabled=False):  # matrices of positions stay in float32
            out = plain_attention(
                block_diagonal(q, self.queries), block_diagonal(k, self.keys), block_diagonal(v, self.keys)
            )
            return block_diagonal(out, self.outputs)


def block_diagonal(x: Float[Tensor, "*batch d"], blocks: Blocks) -> Float[Tensor, "*batch d"]:
    """Each transform on its own run of channels."""
    parts = x.split([channels for _, channels in blocks], -1)
    return torch.cat([transform(part) for (transform, _), part in zip(blocks, parts, strict=True)], -1)


def times_matrix(matrix: Float[Tensor, "*b n 4 4"], x: Float[Tensor, "b h n c"]) -> Float[Tensor, "b h n c"]:
    """Channels four by four, each four a vector that the token's matrix multiplies."""
    vectors = x.to(matrix.dtype).unflatten(-1, (-1, 4))
    return (vectors @ matrix.unsqueeze(-4).mT).flatten(-2).to(x.dtype)


def rotated(
    cos: Float[Tensor, "n half"], sin: Float[Tensor, "n half"], x: Float[Tensor, "*batch n c"]
) -> Float[Tensor, "*batch n c"]:
    """Rotary encoding of split halves (a, b): (c a + s b, -s a + c b)."""
    a, b = x.to(cos.dtype).chunk(2, -1)
    return torch.cat([cos * a + sin * b, cos * b - sin * a], -1).to(x.dtype)


def relative_encoding(
    token_from_world: Float[Tensor, "*b n 4 4"],
    world_from_token: Float[Tensor, "*b n 4 4"],
    grid: TokenGrid,
    dim: int,
) -> RelativeEncoding:
    """Half the channels as 4-vectors under the token's matrix, a quarter each x- and y-RoPE over patch indices."""
    if dim % 8:
        raise InputError("head width", "a multiple of 8, for 4-vectors and two rotary quarters", dim)
    exponents = torch.arange(dim // 8, dtype=torch.float64) / (dim // 8)
    index = torch.arange(grid.tokens)
    rotations: list[tuple[Transform, int]] = []
    backwards: list[tuple[Transform, int]] = []
    for position in (index % grid.cols, index // grid.cols % grid.rows):
        angle = position[:, None] * ROTARY_BASE**-exponents
        cos, sin = angle.cos().to(token_from_world), angle.sin().to(token_from_world)
        rotations.append((partial(rotated, cos, sin), dim // 4))
        backwards.append((partial(rotated, cos, -sin), dim // 4))
    return RelativeEncoding(
        [(partial(times_matrix, token_from_world.mT), dim // 2), *rotations],
        [(partial(times_matrix, world_from_token), dim // 2), *rotations],
        [(partial(times_matrix, token_from_world), dim // 2), *backwards],
    )


def gta(cameras: Cameras, grid: TokenGrid, dim: int) -> RelativeEncoding:
    """GTA: a token's matrix is its camera's pose."""
    world_from_camera = per_token(cameras.world_from_camera, grid)
    return relative_encoding(inverse_pose(world_from_camera), world_from_camera, grid, dim)


def prope(cameras: Cameras, grid: TokenGrid, dim: int) -> RelativeEncoding:
    """PRoPE: the pose and the pinhole projection, with the image one unit wide and high; xi is not used."""
    lens, camera_from_world = cameras.frame_lens, inverse_pose(cameras.world_from_camera)
    size = lens.focal.new_tensor(lens.size)
    projection = torch.diag_embed(F.pad(lens.focal / size, (0, 2), value=1.0))
    projection[..., :2, 2] = lens.center / size - 0.5
    image_from_world = projection @ camera_from_world
    world_from_image = cameras.world_from_camera @ torch.linalg.inv(projection)
    return relative_encoding(per_token(image_from_world, grid), per_token(world_from_image, grid), grid, dim)


def relative_ray(
    cameras: Cameras, grid: TokenGrid, dim: int, *, missing: Literal["camera", "identity"] = "camera"
) -> RelativeEncoding:
    """UCPE: a token's matrix is the frame of its patch's first ray.

    A token without a ray takes its camera's own frame. UCPE gives it the world's ("identity"), which is right for its
    weights but makes those tokens depend on where the world's origin is.
    """
    world_from_ray = ray_frames(cameras, grid, missing=missing)
    return relative_encoding(inverse_pose(world_from_ray), world_from_ray, grid, dim)


def ray_frames(
    cameras: Cameras, grid: TokenGrid, *, missing: Literal["camera", "identity"] = "camera"
) -> Float[Tensor, "*b n 4 4"]:
    """world_from_ray: z along the ray, x = camera-y cross z, y = z cross x, at the camera's centre."""
    world_from_camera = per_token(cameras.world_from_camera, grid)
    ray, exists = _first_rays(cameras, grid)
    down = ray.new_tensor([0.0, 1.0, 0.0]).expand_as(ray)
    across = torch.linalg.cross(down, ray)
    length = norm(across)[..., None]
    sideways = ray.new_tensor([1.0, 0.0, 0.0])  # for a ray along camera-y, whose cross product is zero
    x = torch.where(length > 1e-6, across / length.clamp_min(1e-6), sideways)
    frame = torch.eye(4, dtype=ray.dtype, device=ray.device).expand(*ray.shape[:-1], 4, 4).clone()
    frame[..., :3, :3] = torch.stack([x, torch.linalg.cross(ray, x), ray], -1)
    world_from_ray = world_from_camera @ frame
    other = world_from_camera if missing == "camera" else torch.eye(4, dtype=ray.dtype, device=ray.device)
    return torch.where(exists[..., None, None], world_from_ray, other)


def absolute_maps(
    cameras: Cameras, grid: TokenGrid, *, form: Literal["exact", "ucpe"] = "exact"
) -> Float[Tensor, "*b n 3"]:
    """Where up is in the image at each token (a unit 2-vector) and its ray's latitude (radians); world y is down.

    "ucpe" takes the up direction from a step of 0.1 radians, as its weights were trained with. No ray: zeros.
    """
    ray, exists = _first_rays(cameras, grid)
    rotation = per_token(cameras.world_from_camera, grid)[..., :3, :3]
    up = -rotation[..., 1, :]  # of the world, in the camera's frame
    latitude = torch.asin((ray * up).sum(-1).clamp(-1, 1))
    lens = cameras.frame_lens
    xi = per_token(lens.xi[..., None], grid, -2)
    beta = ray[..., 2:] + xi
    if form == "exact":
        towards_up = up - (up * ray).sum(-1, keepdim=True) * ray
        moved = towards_up[..., :2] * beta - ray[..., :2] * towards_up[..., 2:]  # d(X / beta), up to beta^2
    else:
        after = _ucpe_step(ray, rotation)
        moved = after[..., :2] / (after[..., 2:] + xi * norm(after)[..., None]) - ray[..., :2] / beta
    moved = moved * per_token(lens.focal, grid, -2)
    length = norm(moved)[..., None]
    direction = moved / torch.where(length > 0, length, torch.ones_like(length))
    return torch.where(exists[..., None], torch.cat([direction, latitude[..., None]], -1), 0.0)


def _ucpe_step(ray: Tensor, rotation: Tensor) -> Tensor:
    """UCPE's step towards up, in the world's frame; its last Rodrigues term is k (k sum(v)), not k (k . v)."""
    v = (rotation @ ray[..., None])[..., 0]
    k = F.normalize(torch.linalg.cross(v, v.new_tensor([0.0, -1.0, 0.0]).expand_as(v)), dim=-1)
    step = torch.tensor(UCPE_STEP, dtype=v.dtype)
    last = k * (k * v.sum(-1, keepdim=True)) * (1 - step.cos())
    after = v * step.cos() + torch.linalg.cross(k, v) * step.sin() + last
    return (rotation.mT @ after[..., None])[..., 0]


def pluecker_map(cameras: Cameras, grid: TokenGrid) -> Float[Tensor, "*b n 6"]:
    """Each token's ray as a line in the world: direction and moment (centre cross direction). No ray: zeros."""
    ray, exists = _first_rays(cameras, grid)
    pose = per_token(cameras.world_from_camera, grid)
    direction = (pose[..., :3, :3] @ ray[..., None])[..., 0]
    line = torch.cat([direction, torch.linalg.cross(pose[..., :3, 3], direction)], -1)
    return torch.where(exists[..., None], line, 0.0)


def ray_map(cameras: Cameras, grid: TokenGrid) -> Float[Tensor, "*b n 3"]:
    """Each token's ray in its own camera's frame: what the lens makes of a pixel, whatever the pose. No ray: zeros."""
    ray, exists = _first_rays(cameras, grid)
    return torch.where(exists[..., None], ray, 0.0)


def per_token(per_frame: Tensor, grid: TokenGrid, axis: int = -3) -> Tensor:
    """Values per frame, along `axis`, repeated for every token of the frame; poses by default."""
    return per_frame.repeat_interleave(grid.patches, axis)


def _first_rays(cameras: Cameras, grid: TokenGrid) -> tuple[Float[Tensor, "*b n 3"], Bool[Tensor, "*b n"]]:
    """The ray of each patch's top-left corner, which UCPE takes for the patch."""
    rays, exists = cameras.rays(grid, torch.zeros(1, 2))
    return rays[..., 0, :].flatten(-3, -2), exists[..., 0].flatten(-2)
