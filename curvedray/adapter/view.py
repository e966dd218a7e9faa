"""What a pass sees of its cameras: an encoding for each kind of block, and the map added to the adapter's input.

b clip   n token, in the grid's order (t y x)   c channel of a camera map
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.adapter.config import CONCAT, CURVED, GTA, PLAIN, PROPE, RAY, AdapterConfig, CameraMap, Kind
from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding.attention import CurvedEncoding
from curvedray.encoding.interface import Encoding, PlainEncoding
from curvedray.encoding.relative import absolute_maps, gta, per_token, pluecker_map, prope, ray_map, relative_ray
from curvedray.radial.interval import RadialInterval

MAP_CHANNELS: dict[CameraMap, int] = {"plucker": 6, "pose": 17}


@dataclass(frozen=True, eq=False)
class View:
    """What a pass sees, computed once and shared by every block."""

    grid: TokenGrid
    batch_shape: tuple[int, ...]  # of the cameras: none for all clips, or one for each
    camera_map: Float[Tensor, "*b n c"] | None
    encodings: dict[Kind, Encoding]
    given: tuple[RadialInterval, Bool[Tensor, "*g n"]] | None  # a teacher's or a user's radii, and where they hold


@dataclass(frozen=True, eq=False)
class Sight:
    """What the encodings of a pass are made from. Cameras in two worlds, one per latent frame, in float32."""

    config: AdapterConfig
    head_width: int
    cameras: Cameras  # in their own world
    nearby: Cameras  # in the world of the first camera, where a far origin costs no digits
    grid: TokenGrid


def view_of(
    config: AdapterConfig,
    head_width: int,
    cameras: Cameras,
    grid: TokenGrid,
    given: tuple[RadialInterval, Bool[Tensor, "*g n"]] | None,
    device: torch.device,
) -> View:
    """Everything the blocks of this adapter need to know of the cameras, in float32."""
    cameras = cameras.latent_frames(grid)
    nearby = cameras.relative_to_first().to(device, torch.float32)
    cameras = cameras.to(device, torch.float32)
    sight = Sight(config, head_width, cameras, nearby, grid)
    kinds = {config.rule.curved, config.rule.outside}
    encodings = {kind: encode(sight) for kind, encode in ENCODERS.items() if kind in kinds}
    return View(grid, nearby.batch_shape, camera_map(config, cameras, grid), encodings, given)


def curved_rays(sight: Sight) -> Encoding:
    config = sight.config
    return CurvedEncoding.between(
        sight.nearby,
        sight.grid,
        config.frequencies(sight.head_width),
        breakpoints=config.path_points,
        rays=config.rays_per_patch,
        query_rotation=config.query_rotation,
        value_rotation=config.value_rotation,
    )


def relative_rays(sight: Sight) -> Encoding:
    """In the first camera's world; only UCPE's identity frame, for tokens without a ray, needs the world's own axes."""
    if sight.config.ucpe_conventions:
        return relative_ray(sight.cameras, sight.grid, sight.head_width, missing="identity")
    return relative_ray(sight.nearby, sight.grid, sight.head_width)


ENCODERS: dict[Kind, Callable[[Sight], Encoding]] = {
    CURVED: curved_rays,
    RAY: relative_rays,
    CONCAT: relative_rays,
    PROPE: lambda sight: prope(sight.nearby, sight.grid, sight.head_width),
    GTA: lambda sight: gta(sight.nearby, sight.grid, sight.head_width),
    PLAIN: lambda sight: PlainEncoding(),
}


def map_channels(config: AdapterConfig) -> int:
    """Channels of the camera map this adapter adds to its input; 0 for none."""
    kind = config.rule.camera_map
    if kind == "orientation":
        return 3 * config.orientation + 3 * config.ray_map
    return 0 if kind is None else MAP_CHANNELS[kind]


def camera_map(config: AdapterConfig, cameras: Cameras, grid: TokenGrid) -> Float[Tensor, "*b n c"] | None:
    """Up, latitude and rays, Plücker lines, or pose and lens: what goes through a Linear onto the adapter's input."""
    kind = config.rule.camera_map if map_channels(config) else None
    if kind == "orientation":
        form: Literal["exact", "ucpe"] = "ucpe" if config.ucpe_conventions else "exact"
        maps = [absolute_maps(cameras, grid, form=form)] if config.orientation else []
        return torch.cat([*maps, ray_map(cameras, grid)] if config.ray_map else maps, -1)
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
