"""Radial MixForcing: when and where a teacher's interval takes the prediction's place during training."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.radial.interval import TEACHER_SIGMA


@dataclass(frozen=True)
class MixForcing:
    """When and where the teacher's interval takes the prediction's place during training."""

    kind: Literal["block", "video"]
    sigma: float = TEACHER_SIGMA
    hold: float = 0.1  # share of the run at probability 1
    settle: float = 0.7  # share of the run after which the probability stays at the floor
    floor: float | None = None  # None: the paper's, 0.1 for blocks and 0.5 for whole videos
    block: int = 3  # latent frames that are drawn together

    def __post_init__(self) -> None:
        if self.kind not in ("block", "video"):
            raise InputError("mixforcing.kind", "block or video", self.kind)
        if not 0 <= self.hold < self.settle <= 1:
            raise InputError("mixforcing", "0 <= hold < settle <= 1", f"hold {self.hold}, settle {self.settle}")
        if not 0 <= self.sigma < math.inf or self.block < 1 or not (self.floor is None or 0 <= self.floor <= 1):
            raise InputError("mixforcing", "sigma >= 0, block >= 1 and a floor in [0, 1]", self)

    def probability(self, step: int, steps: int) -> float:
        """1 up to `hold` of the run, then down a straight line to the floor at `settle`."""
        floor = self.floor if self.floor is not None else {"block": 0.1, "video": 0.5}[self.kind]
        down = (step / steps - self.hold) / (self.settle - self.hold)
        return 1 - (1 - floor) * min(max(down, 0.0), 1.0)

    def mask(
        self, step: int, steps: int, clips: int, grid: TokenGrid, generator: torch.Generator
    ) -> Bool[Tensor, "b n"]:
        """Per forward pass one mask for all curved layers: blocks of latent frames, or whole videos, clip by clip."""
        together = self.block if self.kind == "block" else grid.frames  # the last block has what is left
        drawn = torch.rand(clips, math.ceil(grid.frames / together), generator=generator)
        forced = drawn < self.probability(step, steps)
        frames = forced.repeat_interleave(together, dim=1)[:, : grid.frames]
        return frames.repeat_interleave(grid.patches, dim=1)
