"""Where each query camera sees the keys: their rays, the cameras between them, and the phasors that follow.

b batch   q query frame   s source frame   p patch   a ray inside the patch   k breakpoint   c coordinate
f frequency   n phasor   tokens are ordered (s p)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.encoding.curved import curved_path, expected_phasor, lens_coordinates
from curvedray.errors import InputError


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
class Geometry:
    """What depends on cameras alone: rays of keys, poses between cameras, lenses of queries, and the frequencies."""

    rays: Float[Tensor, "*b s p a 3"]
    exists: Bool[Tensor, "*b s p a"]
    query_from_source: Float[Tensor, "*b q s 4 4"]
    lens: Lens  # of the query frames, leading axes (*b q)
    frequencies: Float[Tensor, "c f"]

    @classmethod
    def between(
        cls, cameras: Cameras, grid: TokenGrid, queries: Cameras, frequencies: Float[Tensor, "c f"], offsets: Tensor
    ) -> "Geometry":
        """From the cameras of keys to those of queries, in double precision where the device has it."""
        wide = torch.float32 if offsets.device.type == "mps" else torch.float64
        offsets, frequencies = offsets.to(wide), frequencies.to(offsets.device, wide)
        batch = cameras.batch_shape or queries.batch_shape
        if queries.batch_shape not in ((), batch):
            raise InputError("query cameras", f"one path, or {batch[0]} as the cameras have", queries.batch_shape[0])
        same, cameras = queries is cameras, batched(cameras.to(offsets), batch)
        queries = cameras if same else batched(queries.to(offsets), batch)
        rays, exists = patch_rays(cameras, grid, offsets)
        return cls(rays, exists, cameras.query_from_source(queries), queries.frame_lens, frequencies)

    def to(self, dtype: torch.dtype) -> "Geometry":
        poses = self.query_from_source.to(dtype)
        return Geometry(self.rays.to(dtype), self.exists, poses, self.lens.to(dtype), self.frequencies.to(dtype))

    @property
    def query_frames(self) -> int:
        return self.query_from_source.shape[-4]

    @property
    def requires_grad(self) -> bool:
        """Whether a camera, lens or frequency is being learned."""
        lens = (self.lens.focal, self.lens.center, self.lens.xi)
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
