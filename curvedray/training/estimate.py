"""What a run will take, before it starts: time from trial steps or a count of operations, the rest by counting."""

import math
import statistics
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import parameter_count
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.data.clips import Clip, VideoShape, batch_of
from curvedray.generation.settings import Settings
from curvedray.inputs import megabytes
from curvedray.models.interface import VideoModel, self_attentions
from curvedray.training.objective import batch_in_view, draw, losses, total_loss
from curvedray.training.optimiser import build_optimisers
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe
from curvedray.training.sharding import gathered_weights, held_bytes
from curvedray.training.start import new_adapter
from curvedray.training.validate import NOISE_LEVELS
from curvedray.training.work import Work

TRIAL_STEPS = 3  # that are timed, after one that is not, in which memory is taken and kernels are chosen
LONGEST_TRIAL = 30.0  # seconds: steps that would take longer are counted, not timed
REACHED = 0.4  # share of a matrix product's speed that whole passes reach
# Numbers that autograd keeps per token and block, in channels of the backbone (of the branch for the adapter), besides
# the feed-forward's width. Measured; a test holds them to it.
KEPT_FROZEN, KEPT_TRAINED, KEPT_ADAPTER = 13, 26, 5


@dataclass(frozen=True)
class Estimate:
    """Of one process. Times are of this machine, as busy as it is."""

    tokens: int  # per clip
    frozen: int  # weights
    trained: int  # weights
    operations: float  # per step, over all processes
    seconds: float  # per step
    hours: float  # the run, with its validations; encoding the clips aside
    memory: float  # bytes, at the largest; text encoder and VAE aside
    disk: float  # bytes of checkpoints kept
    timed: bool  # by trial steps, not by counting

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        how = f"measured on {TRIAL_STEPS} steps" if self.timed else "from a count of operations, not measured"
        beside = f" beside {self.frozen / 1e6:.1f} M frozen" if self.frozen else ""
        return (
            f"{self.trained / 1e6:.2f} M weights to train{beside}, {self.tokens:,} tokens per clip; about "
            f"{self.seconds:.2g} s per step ({how}), {_duration(self.hours)} in all once the clips are encoded; about "
            f"{megabytes(self.memory)} of memory beside the encoders, {megabytes(self.disk)} of checkpoints"
        )


def estimate(recipe: Recipe, model: VideoModel, shape: VideoShape, process: Process) -> Estimate:
    """Nothing of the model is left changed."""
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    transformer = model.transformer
    adapter = new_adapter(recipe, transformer) if recipe.what == "adapter" else None
    work = Work.of(recipe, transformer, adapter, grid, model.text_tokens)
    forward, operations = work.forward, work.total
    if recipe.beginnings:  # of clips, which cost less; a trial is made with whole ones, the most there is to hold
        lengths = [replace(grid, frames=min(grid.frames, 1 + i)) for i in range(len(recipe.beginnings))]
        parts = [Work.of(recipe, transformer, adapter, length, model.text_tokens).total for length in lengths]
        operations = sum(share * part for share, part in zip(recipe.beginnings, parts, strict=True))
    of_process = operations * process.clips_per_pass * recipe.accumulate
    seconds = of_process / (REACHED * _speed(process.device, recipe.precision))
    timed = seconds * (TRIAL_STEPS + 1) < LONGEST_TRIAL
    if timed:
        whole_clips = replace(recipe, beginnings=())
        seconds = _timed_step(whole_clips, model, adapter, shape, grid, process) * operations / work.total
    validations = validation_passes(recipe, model) * forward / of_process  # in steps
    trained = parameter_count(adapter if adapter is not None else transformer)
    frozen = parameter_count(transformer) if adapter is not None else 0
    state = trained * 4 * (4 if recipe.ema else 3)  # weights, what AdamW remembers twice over, the average
    processes = process.count if process.shards else 1
    if frozen:
        held = held_bytes(transformer, processes) + state + trained * 4
    else:  # all of it is split, gradients too
        held = (state + trained * 4) / processes + 4 * gathered_weights(transformer) * (processes > 1)
    return Estimate(
        grid.tokens,
        frozen,
        trained,
        operations * recipe.batch,
        seconds,
        seconds * (recipe.steps + validations) / 3600,
        held + kept_bytes(recipe, transformer, grid, process.clips_per_pass),
        float(recipe.keep * state),
        timed,
    )


def validation_passes(recipe: Recipe, model: VideoModel) -> float:
    """Forward passes of one clip in all validations of a run: their losses, and the videos that are generated."""
    if not recipe.every.validate:
        return 0.0
    own = Settings.of(model)
    a_video = own.steps * own.passes()
    times = 1 + math.ceil(recipe.steps / recipe.every.validate)
    return float(times * recipe.validation_clips * (NOISE_LEVELS + a_video))


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


def _timed_step(
    recipe: Recipe, model: VideoModel, adapter: Adapter | None, shape: VideoShape, grid: TokenGrid, process: Process
) -> float:
    """Seconds of a step as the loop takes it, on clips of zeros: the median of a few, for others use the machine too.

    The optimiser steps at a learning rate of zero, which changes no weight.
    """
    text = model.encode_text([""])[0].cpu()
    lens = Lens.from_fov(90.0, 0.0, shape.width, shape.height)
    cameras = Cameras(lens, torch.eye(4).repeat(grid.frames, 1, 1), "near")
    known = torch.ones(grid.tokens, dtype=torch.bool)
    clip = Clip("trial", "", torch.zeros(model.latent_shape(grid)), text, cameras, torch.zeros(grid.tokens), known)
    batch = batch_of([clip] * process.clips_per_pass).to(process.device)
    draws = draw(recipe, 0, process.slots(0), model.latent_shape(grid), grid).to(process.device)
    trained = adapter if adapter is not None else model.transformer
    wanted = [p.requires_grad for p in model.transformer.parameters()]
    if adapter is not None:
        model.transformer.requires_grad_(False)
        adapter.attach(model.transformer)
    else:
        model.transformer.requires_grad_(True)
    if recipe.gradient_checkpointing:  # as the loop will: it decides both the time and the memory
        model.transformer.enable_gradient_checkpointing()  # type: ignore[operator]
        model.transformer.train()
    try:
        names = {parameter: name for name, parameter in trained.named_parameters()}
        optimisers = build_optimisers(recipe, names)
        taken = []
        for _ in range(TRIAL_STEPS + 1):
            began = time.perf_counter()
            for _ in range(recipe.accumulate):
                with batch_in_view(recipe, adapter, batch, draws, grid):
                    with process.autocast():
                        flow, radial = losses(recipe, model, adapter, batch, draws, text.to(process.device))
                    total_loss(flow, radial, recipe.radial_weight).backward()
            float(torch.nn.utils.clip_grad_norm_(list(names), recipe.optimiser.clip))  # a number waits for the device
            for optimiser in optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = 0.0
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            taken.append(time.perf_counter() - began)
    finally:
        model.transformer.eval()
        if adapter is not None:
            adapter.detach()
        for parameter, before in zip(model.transformer.parameters(), wanted, strict=True):
            parameter.requires_grad_(before)
    return statistics.median(taken[1:])


def _speed(device: torch.device, precision: str) -> float:
    """Operations per second of a matrix product, measured for a moment."""
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
