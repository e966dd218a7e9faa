"""Maps of metric distances, on pixels and on tokens.

A radial map holds metric distances from the camera's centre. What is valid is decided on those raw metres: a far
value is unknown, never clipped into a target. Valid values are then divided by the clip's near distance, which also
divides its translations, and pooled to tokens.

    t frame   h w pixels   n token, in the grid's order (t y x)
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Lens, TokenGrid, Unit
from curvedray.errors import InputError
from curvedray.files import named_file, whole_file
from curvedray.inputs import MB, read_arrays
from curvedray.radial.interval import TEACHER_SIGMA, RadialInterval

FARTHEST = 20.0  # metres; beyond it a monocular estimate is not trusted
NEAR_QUANTILE = 0.05
SMALLEST_NEAR, LARGEST_NEAR = 1e-6, 1e6  # metres; a near distance beyond is a mistake of units, or of a file
LARGEST_MAP = 700 * MB  # unpacked: 81 frames of 1920 x 1080 in 32-bit numbers


MapUnit = Literal["metric", "cameras"]
UNITS: tuple[MapUnit, ...] = get_args(MapUnit)


@dataclass(frozen=True, eq=False)
class RadialMap:
    """Metric distances of every pixel of every frame, which of them are to be believed, and the near distance."""

    radius: Float[Tensor, "t h w"]  # metres
    valid: Bool[Tensor, "t h w"]
    near: float  # metres; the unit of what the model sees
    unit: MapUnit = "metric"  # `cameras`: not metres but the unit of the clip's own cameras, whose scale nobody knows

    def __post_init__(self) -> None:
        if self.radius.ndim != 3 or self.radius.shape != self.valid.shape:
            got = f"{tuple(self.radius.shape)} and {tuple(self.valid.shape)}"
            raise InputError("radial map", "a radius and a validity of the same shape (frames, height, width)", got)
        if self.radius.numel() == 0:
            raise InputError("radial map", "at least one frame of at least one pixel", tuple(self.radius.shape))
        if not SMALLEST_NEAR <= self.near <= LARGEST_NEAR:
            expected = f"metres, from {SMALLEST_NEAR:g} to {LARGEST_NEAR:g}"
            raise InputError("near distance", expected, f"{self.near:g}", "Are the distances in metres?")

    @classmethod
    def from_metric(
        cls,
        radius: Float[Tensor, "t h w"],
        trusted: Bool[Tensor, "t h w"] | None = None,
        near: float | None = None,
        farthest: float = FARTHEST,
        unit: MapUnit = "metric",
    ) -> "RadialMap":
        """Filter raw metres: non-finite, non-positive, beyond `farthest` or not trusted is invalid.

        Without a near distance it is the 5th percentile of the valid radii; a map with none is in metres. Distances in
        the cameras' own unit have no farthest: nobody knows how many of them 20 metres are.
        """
        farthest = farthest if unit == "metric" else math.inf
        radius = radius.float()
        valid = torch.isfinite(radius) & (radius > 0) & (radius <= farthest)
        if trusted is not None:
            valid = valid & trusted
        if near is None:
            near = near_distance(radius, valid)
        return cls(radius, valid, 1.0 if near is None else near, unit)

    @classmethod
    def from_depth(cls, depth: Float[Tensor, "t h w"], lens: Lens, near: float | None = None) -> "RadialMap":
        """From distances along the optical axis (what most depth maps hold), which need rays that look forward. A lens
        that changes is one per frame of the depth, or of a video whose every so many-th frame it has."""
        rays, exists = _lens_per_frame(lens, len(depth)).resized(depth.shape[-1], depth.shape[-2]).rays()
        forward = rays[..., 2]
        return cls.from_metric(depth / forward.clamp_min(1e-6), (exists & (forward > 0)).expand(depth.shape), near)

    def on(
        self, grid: TokenGrid, sigma: float = TEACHER_SIGMA, coverage: float = 0.5
    ) -> tuple[RadialInterval, Bool[Tensor, " n"]]:
        """A narrow interval per token around the mean of its valid pixels, and which tokens have one.

        A token counts where at least `coverage` of its pixels are valid. The paper keeps 56.3 % of pixels and 55.7 %
        of tokens, so its rule is near a half: "any valid pixel" would keep more tokens than pixels.
        """
        frames = self._at_latent_frames(grid)
        valid = frames.valid.float()
        size = (grid.rows, grid.cols)
        share = F.adaptive_avg_pool2d(valid[:, None], size)[:, 0]
        scaled = torch.where(frames.valid, frames.radius / self.near, 0.0)
        mean = F.adaptive_avg_pool2d(scaled[:, None], size)[:, 0] / share.clamp_min(1e-12)
        # A mean that has no logarithm (a radius of 1e-40, or of 1e38 in a map without a limit) is no target either.
        mask = (share >= coverage) & (share > 0) & torch.isfinite(mean) & (mean > 0)
        mu = torch.where(mask, mean, 1.0).log()
        mu, mask = (rearrange(i, "t y x -> (t y x)") for i in (mu, mask))
        return RadialInterval(mu, torch.full_like(mu, sigma)), mask

    def _at_latent_frames(self, grid: TokenGrid) -> "RadialMap":
        """The frames the poses are taken at: the first and every stride-th, or as they are."""
        t, h, w = self.radius.shape
        if t not in (grid.frames, grid.video_frames):
            expected = f"{grid.video_frames} frames (one per video frame) or {grid.frames} (one per latent frame)"
            raise InputError("radial map", expected, t)
        if abs(math.log((w / h) / (grid.cols * grid.stride[2] / (grid.rows * grid.stride[1])))) > 0.05:
            expected = f"the video's shape, {grid.cols * grid.stride[2]} x {grid.rows * grid.stride[1]}, at any scale"
            raise InputError("radial map", expected, f"{w} x {h}", "Crop the map as the video is cropped.")
        step = 1 if t == grid.frames else grid.stride[0]
        return replace(self, radius=self.radius[::step], valid=self.valid[::step])


def _lens_per_frame(lens: Lens, frames: int) -> Lens:
    """One lens for all, or of lenses per frame those of so many frames, evenly in time from the first to the last."""
    lenses = lens.batch_shape[0] if lens.batch_shape else frames
    every, rest = divmod(lenses - 1, max(1, frames - 1))
    if lenses == frames:
        return lens
    if rest or frames == 1:
        raise InputError("depth", f"{lenses} frames, as the cameras have lenses, or an even part of them", frames)
    return lens[::every]


def near_distance(radius: Float[Tensor, "*shape"], valid: Bool[Tensor, "*shape"]) -> float | None:
    """The 5th percentile of the valid radii of a clip (nearest rank), or None where nothing is valid."""
    values = radius[valid].detach().cpu().float().numpy()  # a copy, which is then sorted as far as need be
    if not len(values):
        return None
    rank = round(NEAR_QUANTILE * (len(values) - 1))
    values.partition(rank)
    return float(values[rank])


def check_scale(name: str, unit: Unit, near: float | None, map: RadialMap | None) -> None:
    """Refuse poses of a scale nobody knows beside a map in metres: the same rule for training and for generation."""
    if map is not None and map.unit == "metric" and unit == "arbitrary" and near is None:
        fix = "Give their near distance in their own unit (near): `curvedray radial label --teacher colmap` tells it."
        raise InputError(name, "poses in metres, as its radial map is", "poses of an unknown scale", fix)


def write_radial_map(map: RadialMap, path: str | Path) -> Path:
    """A .npz that `read_radial_map` reads back: radius in metres, valid, near."""
    path = named_file(path, (".npz",))
    with whole_file(path) as temporary, temporary.open("wb") as file:
        radius = torch.where(map.valid, map.radius, 0.0).numpy()  # what is invalid packs well, and says nothing
        arrays: dict[str, Any] = {"radius": radius, "valid": map.valid.numpy(), "near": np.float64(map.near)}
        if map.unit != "metric":
            arrays["unit"] = np.array(map.unit)
        np.savez_compressed(file, **arrays)
    return path


def read_radial_map(path: str | Path, near: float | None = None) -> RadialMap:
    """A .npz with `radius` in metres, (T, H, W), and if need be `valid` and `near`; or a .npy with the radii alone."""
    arrays = read_arrays(path, "a radial map", LARGEST_MAP)
    arrays = {"radius": arrays["array"]} if set(arrays) == {"array"} else arrays
    if "radius" not in arrays:
        raise InputError(str(path), "an array called radius", ", ".join(arrays))
    radius, trusted = arrays["radius"], arrays.get("valid")
    if radius.ndim != 3 or radius.dtype.kind not in "fiu" or not radius.size:
        raise InputError(str(path), "radii of shape (frames, height, width)", f"{radius.dtype} {radius.shape}")
    if trusted is not None and (trusted.shape != radius.shape or trusted.dtype.kind not in "biu"):
        raise InputError(f"{path}: valid", f"true or false of shape {radius.shape}", f"{trusted.dtype} {trusted.shape}")
    own_near, unit = near_and_unit(path, arrays)
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes infinite, which is not valid
        metres = torch.from_numpy(radius.astype(np.float32, copy=False))
    try:
        known = None if trusted is None else torch.from_numpy(trusted.astype(bool))
        return RadialMap.from_metric(metres, known, own_near if near is None else near, unit=unit)
    except InputError as error:
        raise InputError(f"{path}: {error.name}", error.expected, error.got, error.fix) from error


def near_and_unit(path: str | Path, arrays: dict[str, np.ndarray]) -> tuple[float | None, MapUnit]:
    """What a map's file says beside its radii: the near distance, if it does, and the unit of its distances."""
    near = arrays.get("near")
    if near is not None and (near.size != 1 or near.dtype.kind not in "fiu"):
        raise InputError(f"{path}: near", "one number", f"{near.dtype} {near.shape}")
    said = str(arrays["unit"].item()) if "unit" in arrays and arrays["unit"].size == 1 else "metric"
    unit = next((unit for unit in UNITS if unit == said), None)
    if unit is None:
        raise InputError(f"{path}: unit", " or ".join(UNITS), said)
    return None if near is None else float(near.item()), unit
