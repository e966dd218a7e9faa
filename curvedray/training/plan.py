"""What a run takes on 1, 8 or 64 GPUs, counted from the shapes of its model before anything is loaded or rented.

Operations and bytes are counted; what share of a GPU's peak is reached is not known before it is measured, so it is
stated: hours = operations / (GPUs x peak x utilisation).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import parameter_count
from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.tables import markdown_table
from curvedray.training.estimate import kept_bytes
from curvedray.training.recipe import Recipe
from curvedray.training.sharding import held_bytes
from curvedray.training.work import Work

# Multiplications and additions per second in bf16 without sparsity, and bytes of memory, as the makers state them.
GPUS = {"a100": (312e12, 80e9), "h100": (989e12, 80e9)}
UTILISATION = 0.4
ALONE, NODE, MANY = 1, 8, 64


@dataclass(frozen=True)
class Plan:
    """A run on some GPUs."""

    gpus: int
    batch: int  # clips per step, over all of them
    accumulate: int
    steps: int
    hours: float
    memory: float  # bytes per GPU, at the largest
    memory_split: float  # the same with the frozen backbone split over the GPUs
    exchanged: float  # bytes of gradients per GPU and step
    exchanged_split: float  # and of the backbone's weights, if it is split


def wan_shape(recipe: Recipe) -> str:
    """Which of Wan's published shapes a recipe's model has, by its name."""
    if recipe.what != "adapter":
        fix = "`--dry-run` opens the model and measures."
        raise InputError("--plan", "a recipe that trains an adapter", f"one that trains the {recipe.what}", fix)
    known = {"1.3B": "wan2.1-1.3b", "14B": "wan2.1-14b", "TI2V-5B": "wan2.2-ti2v-5b"}
    found = [shape for word, shape in known.items() if word.lower() in recipe.model.lower()]
    if len(found) != 1:
        fix = "For other models, `--dry-run` opens the model and measures."
        raise InputError("--plan", "a recipe for one of Wan's published models", recipe.model, fix)
    return found[0]


@lru_cache(maxsize=4)
def counted(recipe: Recipe) -> tuple[nn.Module, Adapter, TokenGrid, Work]:
    """The recipe's backbone and adapter, without any numbers in them, its tokens, and the work of a clip."""
    from curvedray.models.wan import SHAPES, T2V, TEXT_TOKENS, TI2V, wan_transformer

    shape = wan_shape(recipe)
    own = TI2V if "ti2v" in shape else T2V
    data, stride = recipe.data, (4, 32, 32) if "ti2v" in shape else (4, 16, 16)
    grid = TokenGrid.from_video(data.frames or own[0], data.height or own[1], data.width or own[2], stride)
    transformer = wan_transformer("meta", **SHAPES[shape])
    for parameter in transformer.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    with torch.device("meta"):
        adapter = Adapter(transformer, recipe.adapter)
    return transformer, adapter, grid, Work.of(recipe, transformer, adapter, grid, TEXT_TOKENS)


def plan(recipe: Recipe, gpus: int, peak: float, utilisation: float = UTILISATION) -> Plan:
    """A run on `gpus`, one clip per GPU and pass. More GPUs than clips in a batch get a larger one, in fewer steps."""
    transformer, adapter, grid, work = counted(recipe)
    batch = max(recipe.batch, gpus)
    steps = math.ceil(recipe.steps * recipe.batch / batch)
    trained = parameter_count(adapter)
    state = trained * 4 * (5 if recipe.ema else 4)  # weights, gradients, what AdamW remembers twice over, the average
    waiting = kept_bytes(recipe, transformer, grid, 1)
    whole, split = (held_bytes(transformer, count) + state + waiting for count in (1, gpus))
    seconds = work.total * batch * steps / (gpus * peak * utilisation)
    gradients = 2 * 4 * trained * (gpus - 1) / gpus  # a ring: every number goes out and comes in
    passes = 2 + recipe.gradient_checkpointing  # in which a split backbone is gathered
    gathered = passes * (batch // gpus) * held_bytes(transformer, 1) * (gpus - 1) / gpus
    return Plan(gpus, batch, batch // gpus, steps, seconds / 3600, whole, split, gradients, gradients + gathered)


def plan_tables(recipe: Recipe, gpu: str = "h100", utilisation: float = UTILISATION) -> str:
    """The plans for one GPU, a node and many, and where the work of a step goes, as Markdown."""
    if gpu not in GPUS:
        raise InputError("--gpu", " or ".join(GPUS), gpu)
    if not 0 < utilisation <= 1:
        raise InputError("--utilisation", "a share of the peak, above 0 and at most 1", utilisation)
    peak, _ = GPUS[gpu]
    unsaved = replace(recipe, gradient_checkpointing=False)
    rows = []
    for count in (ALONE, NODE, MANY):
        one = plan(recipe, count, peak, utilisation)
        without = plan(unsaved, count, peak, utilisation)
        steps = f"{one.steps:,} x {one.batch}" + (f" (accumulate={one.accumulate})" if one.accumulate > 1 else "")
        memory = [f"{value / 1e9:.1f} GB" for value in (one.memory, one.memory_split, without.memory)]
        exchanged = [f"{value / 1e9:.2g} GB" for value in (one.exchanged, one.exchanged_split)]
        rows.append([str(count), steps, f"{one.hours:,.1f}", f"{one.hours * count:,.0f}", *memory, *exchanged])
    header = ["GPUs", "steps x clips", "hours", "GPU hours", "memory per GPU", "with --shard", "without checkpointing"]
    header += ["exchanged per step", "with --shard"]
    transformer, adapter, grid, work = counted(recipe)
    named = {
        "the backbone's matrix products": work.linear,
        "its attention": work.attention,
        "the adapter": work.adapter,
        "backward": work.backward,
        "the forward pass again (gradient checkpointing)": work.again,
    }
    shares = [[name, f"{value / 1e12:,.0f}", f"{value / work.total:.0%}"] for name, value in named.items()]
    trained, frozen = parameter_count(adapter) / 1e6, parameter_count(transformer) / 1e6
    said = (
        f"{recipe.name}: {grid.tokens:,} tokens per clip, {trained:.1f} M weights to train beside {frozen:,.0f} M "
        f"frozen, {work.total / 1e15:.2f} PFLOP per clip and step; on {gpu} ({peak / 1e12:.0f} TFLOP/s in bf16) at "
        f"{utilisation:.0%} of its peak."
    )
    from curvedray.models.wan import encoding_operations

    video = grid.video_frames, grid.rows * grid.stride[1], grid.cols * grid.stride[2]
    once = encoding_operations(*video)
    encoding = (
        f"Encoding a clip once takes the VAE {once / 1e12:,.0f} TFLOP, {once / work.total:.0%} of a step on it (the "
        f"text encoder aside): {once * 10_000 / (peak * utilisation) / 3600:,.1f} GPU hours for 10,000 clips."
    )
    tables = [markdown_table(header, rows), markdown_table(["where a step goes", "TFLOP per clip", "share"], shares)]
    return "\n\n".join([said, *tables, encoding])
