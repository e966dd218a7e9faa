"""Distances along rays: the interval a token believes in, maps that teach it, the loss, and Radial MixForcing.

A radial map holds metric distances from the camera's centre. What is valid is decided on those raw metres: a far
value is unknown, never clipped into a target. Valid values are then divided by the clip's near distance, which also
divides its translations, and pooled to tokens.

    b clip   t frame   h w pixels   n token, in the grid's order (t y x)
"""

import math
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Lens, TokenGrid
from curvedray.encoding import breakpoints
from curvedray.errors import InputError

FARTHEST = 20.0  # metres; beyond it a monocular estimate is not trusted
NEAR_QUANTILE = 0.05
TEACHER_SIGMA = 0.1
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-3, 10.0


def held(x: Float[Tensor, "*shape"], low: float, high: float) -> Float[Tensor, "*shape"]:
    """x within bounds, straight-through: a plain clamp would leave what is outside there, without a gradient."""
    return x + (x.clamp(low, high) - x).detach()


@dataclass(frozen=True, eq=False)
class RadialInterval:
    """Log radius per token, uniform on [mu - |sigma|, mu + |sigma|], in near distances."""

    mu: Float[Tensor, "*batch n"]
    sigma: Float[Tensor, "*batch n"]

    @property
    def radius(self) -> Float[Tensor, "*batch n"]:
        return self.mu.exp()

    @property
    def spread(self) -> Float[Tensor, "*batch n"]:
        """s: the standard deviation of a uniform radius on [e^(mu-|sigma|), e^(mu+|sigma|)], held in [1e-3, 10]."""
        width = (self.mu + self.sigma.abs()).exp() - (self.mu - self.sigma.abs()).exp()
        return held(width / math.sqrt(12), SMALLEST_SPREAD, LARGEST_SPREAD)

    def breakpoints(self, num: int) -> Float[Tensor, "*batch n k"]:
        """Radii at `num` even steps of log radius across the interval."""
        return breakpoints(self.mu, self.sigma, num)

    def where(self, mask: Bool[Tensor, "*batch n"], other: "RadialInterval") -> "RadialInterval":
        """`other` where the mask is set, this one elsewhere: MixForcing in one word."""
        return RadialInterval(
            torch.where(mask, other.mu.to(self.mu), self.mu), torch.where(mask, other.sigma.to(self.sigma), self.sigma)
        )

    def pictures(self, grid: TokenGrid) -> tuple[Float[Tensor, "*batch t y x"], Float[Tensor, "*batch t y x"]]:
        """Radius and spread as one small image a latent frame."""
        shape = (*self.mu.shape[:-1], grid.frames, grid.rows, grid.cols)
        return self.radius.reshape(shape), self.spread.reshape(shape)

    def to(self, *args: Any, **kwargs: Any) -> "RadialInterval":
        return RadialInterval(self.mu.to(*args, **kwargs), self.sigma.to(*args, **kwargs))


@dataclass(frozen=True, eq=False)
class RadialMap:
    """Metric distances of every pixel of every frame, which of them are to be believed, and the near distance."""

    radius: Float[Tensor, "t h w"]  # metres
    valid: Bool[Tensor, "t h w"]
    near: float  # metres; the unit of what the model sees

    def __post_init__(self) -> None:
        if self.radius.ndim != 3 or self.radius.shape != self.valid.shape:
            got = f"{tuple(self.radius.shape)} and {tuple(self.valid.shape)}"
            raise InputError("radial map", "a radius and a validity of the same shape (frames, height, width)", got)
        if not (math.isfinite(self.near) and self.near > 0):
            raise InputError("near distance", "a positive number of metres", self.near)

    @classmethod
    def from_metric(
        cls,
        radius: Float[Tensor, "t h w"],
        trusted: Bool[Tensor, "t h w"] | None = None,
        near: float | None = None,
        farthest: float = FARTHEST,
    ) -> "RadialMap":
        """Filter raw metres: non-finite, non-positive, beyond `farthest` or not trusted is invalid.

        Without a near distance it is the 5th percentile of the valid radii; a map with none is in metres.
        """
        radius = radius.float()
        valid = torch.isfinite(radius) & (radius > 0) & (radius <= farthest)
        if trusted is not None:
            valid = valid & trusted
        return cls(radius, valid, near or near_distance(radius, valid) or 1.0)

    @classmethod
    def from_depth(cls, depth: Float[Tensor, "t h w"], lens: Lens, near: float | None = None) -> "RadialMap":
        """From distances along the optical axis (what most depth maps hold), which need rays that look forward."""
        rays, exists = lens.resized(depth.shape[-1], depth.shape[-2]).rays()
        forward = rays[..., 2]
        return cls.from_metric(depth / forward.clamp_min(1e-6), (exists & (forward > 0)).expand(depth.shape), near)

    def on(
        self, grid: TokenGrid, sigma: float = TEACHER_SIGMA, coverage: float = 0.5
    ) -> tuple[RadialInterval, Bool[Tensor, "n"]]:
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
        mask = (share >= coverage) & (share > 0)
        mu = torch.where(mask, mean, 1.0).log()
        mu, mask = (rearrange(i, "t y x -> (t y x)") for i in (mu, mask))
        return RadialInterval(mu, torch.full_like(mu, sigma)), mask

    def _at_latent_frames(self, grid: TokenGrid) -> "RadialMap":
        """The frames the poses are taken at: the first and every stride-th, or as they are."""
        t, h, w = self.radius.shape
        if t not in (grid.frames, grid.video_frames):
            expected = f"{grid.video_frames} frames (one a video frame) or {grid.frames} (one a latent frame)"
            raise InputError("radial map", expected, t)
        if abs(math.log((w / h) / (grid.cols * grid.stride[2] / (grid.rows * grid.stride[1])))) > 0.05:
            expected = f"the video's shape, {grid.cols * grid.stride[2]} x {grid.rows * grid.stride[1]}, at any scale"
            raise InputError("radial map", expected, f"{w} x {h}", "Crop the map as the video is cropped.")
        step = 1 if t == grid.frames else grid.stride[0]
        return replace(self, radius=self.radius[::step], valid=self.valid[::step])


def near_distance(radius: Float[Tensor, "*shape"], valid: Bool[Tensor, "*shape"]) -> float | None:
    """The 5th percentile of the valid radii of a clip (nearest rank), or None where nothing is valid."""
    values = radius[valid]
    if not len(values):
        return None
    return float(values.kthvalue(1 + round(NEAR_QUANTILE * (len(values) - 1))).values)


def read_radial_map(path: Path, near: float | None = None) -> RadialMap:
    """A .npz with `radius` in metres, (T, H, W), and if need be `valid` and `near`; or a .npy with the radii alone."""
    if not path.is_file():
        raise InputError("radial map", "a .npy or .npz file", f"{path}, which does not exist")
    try:
        stored = np.load(path, allow_pickle=False)
        arrays = {"radius": stored} if isinstance(stored, np.ndarray) else dict(stored)
    except (ValueError, OSError, EOFError, NotImplementedError, struct.error, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(str(path), "a readable .npy or .npz of numbers", error) from error
    if "radius" not in arrays:
        raise InputError(str(path), "an array called radius", ", ".join(arrays) or "nothing")
    radius, trusted, own_near = arrays["radius"], arrays.get("valid"), arrays.get("near")
    if radius.ndim != 3 or radius.dtype.kind not in "fiu":
        raise InputError(str(path), "radii of shape (frames, height, width)", f"{radius.dtype} {radius.shape}")
    if trusted is not None and (trusted.shape != radius.shape or trusted.dtype.kind not in "biu"):
        raise InputError(f"{path}: valid", f"true or false of shape {radius.shape}", f"{trusted.dtype} {trusted.shape}")
    if own_near is not None and (own_near.size != 1 or own_near.dtype.kind not in "fiu"):
        raise InputError(f"{path}: near", "one number", f"{own_near.dtype} {own_near.shape}")
    return RadialMap.from_metric(
        torch.from_numpy(radius.astype(np.float32)),
        None if trusted is None else torch.from_numpy(trusted.astype(bool)),
        near or (None if own_near is None else float(own_near.item())),
    )


def radial_loss(
    predicted: RadialInterval,
    target: Float[Tensor, "b n"],
    valid: Bool[Tensor, "b n"],
    alpha: float = 1.0,
    floor: float = SMALLEST_SPREAD,
) -> Float[Tensor, "b"]:
    """|r - r_hat| / s + alpha log s, averaged over each clip's valid tokens; a clip with none gives zero.

    `predicted` is the head's own interval, never a substituted one; `target` is r_hat in near distances. Averaging a
    clip at a time keeps the loss the same however a batch is split over processes. s is at least `floor`: where sigma
    passes zero, the paper's 1e-3 lets a token's gradient grow to 1e5 times the others', a wider one does not.
    """
    spread = held(predicted.spread.float(), floor, LARGEST_SPREAD)
    loss = (predicted.radius.float() - target).abs() / spread + alpha * spread.log()
    return torch.where(valid, loss, 0.0).sum(-1) / valid.sum(-1).clamp_min(1)


def supervised(rank: Float[Tensor, "b"], noisiest: float = 0.03) -> Bool[Tensor, "b"]:
    """Which clips of a batch the radial loss sees: all but the noisiest 3 % of timestep draws.

    `rank` is the uniform number a noise level was drawn from: 0.97 and over are the noisiest 3 %.
    """
    return rank < 1 - noisiest


@dataclass(frozen=True)
class MixForcing:
    """When and where the teacher's interval takes the prediction's place during training."""

    kind: Literal["block", "video"]
    sigma: float = TEACHER_SIGMA
    hold: float = 0.1  # of the run spent at probability 1
    settle: float = 0.7  # of the run after which the floor holds
    floor: float | None = None  # None: the paper's, 0.1 for blocks and 0.5 for whole videos
    block: int = 3  # latent frames that are drawn together

    def __post_init__(self) -> None:
        if self.kind not in ("block", "video"):
            raise InputError("mixforcing.kind", "block or video", self.kind)
        if not 0 <= self.hold < self.settle <= 1:
            raise InputError("mixforcing", "0 <= hold < settle <= 1", f"hold {self.hold}, settle {self.settle}")
        if self.sigma < 0 or self.block < 1 or not (self.floor is None or 0 <= self.floor <= 1):
            raise InputError("mixforcing", "sigma >= 0, block >= 1 and a floor in [0, 1]", self)

    def probability(self, step: int, steps: int) -> float:
        """1 up to `hold` of the run, then down a straight line to the floor at `settle`."""
        floor = self.floor if self.floor is not None else {"block": 0.1, "video": 0.5}[self.kind]
        down = (step / steps - self.hold) / (self.settle - self.hold)
        return 1 - (1 - floor) * min(max(down, 0.0), 1.0)

    def mask(
        self, step: int, steps: int, clips: int, grid: TokenGrid, generator: torch.Generator
    ) -> Bool[Tensor, "b n"]:
        """One mask a forward pass, shared by all curved layers: blocks of latent frames, or whole videos, per clip."""
        groups = math.ceil(grid.frames / self.block) if self.kind == "block" else 1
        drawn = torch.rand(clips, groups, generator=generator) < self.probability(step, steps)
        frames = drawn.repeat_interleave(math.ceil(grid.frames / groups), dim=1)[:, : grid.frames]
        return frames.repeat_interleave(grid.patches, dim=1)
