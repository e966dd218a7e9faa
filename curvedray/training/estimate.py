"""What a run will take, before it starts: time from a trial pass or a count of operations, the rest by counting."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import adapter_operations, backbone_operations, parameter_count
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.data.clips import Clip, VideoShape, batch_of
from curvedray.models.interface import VideoModel, self_attentions
from curvedray.training.objective import batch_in_view, draw, losses, total_loss
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe

QUICK_PASS = 2e11  # operations: a pass of fewer is timed, one of more is counted
REACHED = 0.4  # share of a matrix product's speed that whole passes reach
# Numbers a token and block that autograd keeps, in channels of the backbone (of the branch for the adapter), besides
# the feed-forward's width. Measured; a test holds them to it.
KEPT_FROZEN, KEPT_TRAINED, KEPT_ADAPTER = 13, 26, 5


@dataclass(frozen=True)
class Estimate:
    """Of one process. Times are of this machine."""

    tokens: int  # a clip
    frozen: int  # weights
    trained: int  # weights
    operations: float  # a step, over all processes
    seconds: float  # a step
    hours: float  # the run
    memory: float  # bytes, at the largest; text encoder and VAE aside
    disk: float  # bytes of checkpoints kept
    timed: bool  # by a trial pass, not by counting

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        how = "timed on one pass" if self.timed else "counted, not timed"
        return (
            f"{self.trained / 1e6:.2f} M weights to train beside {self.frozen / 1e6:.1f} M frozen, "
            f"{self.tokens:,} tokens per clip; about {self.seconds:.2g} s a step ({how}), "
            f"{_duration(self.hours)} in all; about {self.memory / 2**30:.2g} GiB of memory beside the encoders, "
            f"{self.disk / 2**30:.2g} GiB of checkpoints"
        )


def estimate(recipe: Recipe, model: VideoModel, shape: VideoShape, process: Process) -> Estimate:
    """Nothing of the model is left changed."""
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    transformer = model.transformer
    adapter = Adapter(transformer, recipe.adapter, seed=recipe.seed) if recipe.what == "adapter" else None
    forward = backbone_operations(transformer, grid, model.text_tokens)
    backward = 1.0 if adapter is not None else 2.0  # frozen weights need no gradients of their own
    again = 1.0 if recipe.gradient_checkpointing else 0.0
    operations = forward * (1 + backward + again)
    if adapter is not None:
        operations += adapter_operations(adapter, grid) * (3 + again)
    timed = operations * process.clips_a_pass < QUICK_PASS
    if timed:
        a_pass = _timed_pass(recipe, model, adapter, shape, grid, process)
    else:
        a_pass = operations * process.clips_a_pass / (REACHED * _speed(process.device, recipe.precision))
    trained = parameter_count(adapter if adapter is not None else transformer)
    frozen = parameter_count(transformer) if adapter is not None else 0
    state = trained * 4 * (4 if recipe.ema else 3)  # weights, what AdamW remembers twice over, the average
    return Estimate(
        grid.tokens,
        frozen,
        trained,
        operations * recipe.batch,
        a_pass * recipe.accumulate,
        a_pass * recipe.accumulate * recipe.steps / 3600,
        frozen * next(transformer.parameters()).element_size()
        + state
        + trained * 4
        + kept_bytes(recipe, transformer, grid, process.clips_a_pass),
        float(recipe.keep * state),
        timed,
    )


def kept_bytes(recipe: Recipe, transformer: nn.Module, grid: TokenGrid, clips: int) -> float:
    """Bytes of activations that wait for backward in one pass of some clips."""
    attentions = self_attentions(transformer)
    dim, depth = attentions[0].to_q.in_features, len(attentions)
    linears = [module for module in transformer.blocks.modules() if isinstance(module, nn.Linear)]  # type: ignore[union-attr]
    ffn = max(module.out_features for module in linears)
    width = 2 if recipe.precision == "bf16" else 4
    of_block = (KEPT_FROZEN * dim + ffn) if recipe.what == "adapter" else (KEPT_TRAINED * dim + 2 * ffn)
    if recipe.what == "adapter":
        of_block += KEPT_ADAPTER * recipe.adapter.branch_width(dim)
    blocks = (1 + depth * dim / of_block) if recipe.gradient_checkpointing else depth
    return float(clips * grid.tokens * of_block * blocks * width)


def _timed_pass(
    recipe: Recipe, model: VideoModel, adapter: Adapter | None, shape: VideoShape, grid: TokenGrid, process: Process
) -> float:
    """Seconds of one forward and backward on clips of noise: the quickest of three, for others use the machine too."""
    text = model.encode_text([""])[0].cpu()
    lens = Lens.from_fov(90.0, 0.0, shape.width, shape.height)
    cameras = Cameras(lens, torch.eye(4).repeat(grid.frames, 1, 1), "near")
    known = torch.ones(grid.tokens, dtype=torch.bool)
    clip = Clip("trial", "", torch.zeros(model.latent_shape(grid)), text, cameras, torch.zeros(grid.tokens), known)
    batch = batch_of([clip] * process.clips_a_pass).to(process.device)
    draws = draw(recipe, 0, process.slots(0), model.latent_shape(grid), grid).to(process.device)
    trained = adapter if adapter is not None else model.transformer
    wanted = [p.requires_grad for p in model.transformer.parameters()]
    if adapter is not None:
        adapter.attach(model.transformer)
    else:
        model.transformer.requires_grad_(True)
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        with batch_in_view(recipe, adapter, batch, draws, grid):
            flow, radial = losses(recipe, model, adapter, batch, draws, text.to(process.device))
            total_loss(flow, radial, recipe.radial_weight).backward()
        taken.append(time.perf_counter() - began)
    if adapter is not None:
        adapter.detach()
    for parameter, before in zip(model.transformer.parameters(), wanted, strict=True):
        parameter.requires_grad_(before)
    trained.zero_grad(set_to_none=True)
    return min(taken)


def _speed(device: torch.device, precision: str) -> float:
    """Operations a second of a matrix product, measured for a moment."""
    size = 1024 if device.type == "cpu" else 8192
    matrix = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    rounds, began = 0, time.perf_counter()
    while time.perf_counter() - began < 0.3 or rounds < 2:
        float((matrix @ matrix)[0, 0])  # reading a number waits for the device
        rounds += 1
    return 2 * size**3 * rounds / (time.perf_counter() - began)


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{60 * hours:.0f} minutes" if hours > 1 / 20 else f"{3600 * hours:.0f} s"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
