"""What the adapter adds to a denoising step: time and memory beside the frozen backbone's, and operations counted.

Three blocks of Wan-1.3B's width stand for its thirty: as there, a third of them are curved. Weights are random.
"""

import multiprocessing
import os
import statistics
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.adapter.cost import adapter_operations, backbone_operations, parameter_count
from curvedray.bench.harness import peak_growth
from curvedray.cameras import Cameras, TokenGrid
from curvedray.cameras.named_lenses import named_lens
from curvedray.models.wan import SHAPES, wan_transformer
from curvedray.moves.trajectory import trajectory

GRID, FULL_GRID = TokenGrid(5, 15, 26), TokenGrid(21, 30, 52)
TEXT_TOKENS, TEXT_CHANNELS = 512, 4096
BLOCKS = 3


@dataclass(frozen=True)
class StepShare:
    """A step with the adapter over a step without it; 1 is free."""

    grid: TokenGrid
    seconds: float  # of processor time, of the backbone's step alone, on BLOCKS blocks
    time: float  # processor time, which other programs on the machine disturb less than a clock's
    memory: float  # weights and the peak of a step beyond them
    operations: float
    operations_full_grid: float  # at 81 frames of 480 x 832


def adapter_share(method: str = "crepe", repeats: int = 5, grid: TokenGrid = GRID) -> StepShare:
    """Steps with and without the adapter in turn, after one of each to warm up; the median of `repeats` ratios."""
    stage = _Stage(method, grid)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for enabled in seconds:
        stage.step(enabled)
    for _ in range(repeats):
        for enabled, taken in seconds.items():
            start = time.process_time()
            stage.step(enabled)
            taken.append(time.process_time() - start)
    ratio = statistics.median(both / alone for both, alone in zip(seconds[True], seconds[False], strict=True))
    alone, with_adapter = (_in_fresh_process(name, grid) for name in ("none", method))
    shares = []
    for size in (grid, FULL_GRID):
        counted = backbone_operations(stage.transformer, size, TEXT_TOKENS)
        shares.append(1 + adapter_operations(stage.adapter, size) / counted)
    return StepShare(grid, statistics.median(seconds[False]), ratio, with_adapter / alone, *shares)


class _Stage:
    """A backbone of a few blocks, its adapter, and inputs for one step."""

    def __init__(self, method: str, grid: TokenGrid):
        torch.manual_seed(0)
        shape = SHAPES["wan2.1-1.3b"] | {"num_layers": BLOCKS}
        self.transformer: nn.Module = wan_transformer(**shape).eval()
        self.adapter = Adapter(self.transformer, AdapterConfig(method)).attach(self.transformer)
        self.grid = grid
        self.latents = torch.randn(1, 16, grid.frames, grid.rows * 2, grid.cols * 2)
        self.text = torch.randn(1, TEXT_TOKENS, TEXT_CHANNELS)

    @property
    def cameras(self) -> Cameras:
        size = self.grid.cols * self.grid.stride[2], self.grid.rows * self.grid.stride[1]
        return trajectory("orbit left 40deg", named_lens("fisheye-160", *size), self.grid.video_frames)

    @torch.no_grad()
    def step(self, enabled: bool) -> Tensor:
        call = {"hidden_states": self.latents, "timestep": torch.tensor([500.0]), "encoder_hidden_states": self.text}
        if not enabled:
            with self.adapter.disabled():
                return self.transformer(**call, return_dict=False)[0]
        with self.adapter.viewing(self.cameras, grid=self.grid):
            return self.transformer(**call, return_dict=False)[0]


def _in_fresh_process(method: str, grid: TokenGrid) -> float:
    """`_peak` in a process that gives freed memory back at once (glibc's own variable), so that peaks compare."""
    before = dict(os.environ)
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(2**20)
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return float(pool.apply(_peak, (method, grid)))
    finally:
        os.environ.clear()
        os.environ.update(before)


def _peak(method: str, grid: TokenGrid) -> float:
    """MiB of weights and of what a step needs beyond them at its largest. Not a number where the system is silent."""
    stage = _Stage(method, grid)
    stage.step(True)
    growth = peak_growth(lambda: stage.step(True))
    weights = parameter_count(stage.transformer) + parameter_count(stage.adapter)
    return float("nan") if growth is None else growth + weights * 4 / 2**20
