"""What a model, an adapter and a clip cost, counted from their shapes: parameters, operations, memory.

n token   l text token   d channel of the backbone   w channel of the branch   T latent frames
"""

from dataclasses import dataclass, replace

import torch
from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.branches import GeometricAttention
from curvedray.adapter.config import CURVED, METHODS, AdapterConfig
from curvedray.cameras import TokenGrid
from curvedray.inputs import megabytes
from curvedray.models.interface import VideoModel, self_attentions

PHASOR_OPERATIONS = 40  # of one expected phase: a sine, a cosine, a sinc and their products
ACTIVATIONS = 24  # values per token and channel at the widest point of a block: feed-forward, q, k, v, residual
CPU_SPEED, GPU_SPEED = 2e10, 2e14  # operations per second that are reached in practice, to the order of magnitude


@dataclass(frozen=True)
class ParameterRow:
    method: str
    says: str
    parameters: int


def parameter_table(shape: str = "wan2.1-1.3b", config: AdapterConfig | None = None) -> list[ParameterRow]:
    """The size of every method's adapter on one of Wan's published shapes. Nothing is allocated."""
    from curvedray.models.wan import SHAPES, wan_transformer

    transformer = wan_transformer("meta", **SHAPES[shape])
    rows = []
    for method, rule in METHODS.items():
        with torch.device("meta"):
            adapter = Adapter(transformer, replace(config or AdapterConfig(), method=method))
        rows.append(ParameterRow(method, rule.says, parameter_count(adapter)))
    return rows


def parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def backbone_operations(transformer: nn.Module, grid: TokenGrid, text_tokens: int) -> float:
    """Multiplications and additions of one pass: linear layers, self-attention and attention to the text."""
    n, total = grid.tokens, 0.0
    for module in transformer.modules():
        if isinstance(module, nn.Linear):
            total += 2 * n * module.in_features * module.out_features
    for block in transformer.blocks:  # type: ignore[union-attr]
        d = block.attn1.to_q.out_features
        total += 4 * n * n * d + 4 * n * text_tokens * d
        for linear in (block.attn2.to_k, block.attn2.to_v):  # these see the text, not the tokens
            total += 2 * (text_tokens - n) * linear.in_features * linear.out_features
    return total


def adapter_operations(adapter: Adapter, grid: TokenGrid) -> float:
    """What the adapter adds to one pass: its linear layers, its attention, and the phasors of its curved blocks."""
    n, total = grid.tokens, 0.0
    for module in adapter.blocks.modules():
        if isinstance(module, nn.Linear):
            total += 2 * n * module.in_features * module.out_features
    curved = len(adapter.config.curved(adapter.base.depth))
    for shared in (adapter.radial_head, adapter.radial_feature):
        linears = [] if shared is None else [m for m in shared.modules() if isinstance(m, nn.Linear)]
        total += curved * sum(2 * n * m.in_features * m.out_features for m in linears)
    width = adapter.config.branch_width(adapter.base.dim)
    total += sum(4 * n * n * _attended(branch, adapter.base.dim, width) for branch in adapter.blocks)
    if adapter.config.rule.curved is CURVED:
        phases = width // 2 * max(1, adapter.config.path_points - 1)
        total += curved * grid.frames * n * phases * PHASOR_OPERATIONS
    return total


def _attended(branch: nn.Module, dim: int, width: int) -> int:
    """Channels that a branch's attention has."""
    return width * len(branch.kinds) if isinstance(branch, GeometricAttention) else dim


@dataclass(frozen=True)
class Cost:
    """A preview of one generation."""

    frames: int
    height: int
    width: int
    tokens: int
    steps: int
    passes: int  # of the transformer, over all steps
    parameters: int
    adapter_parameters: int
    operations: float  # over all passes
    adapter_share: float  # operations with the adapter over operations without it
    memory: float  # bytes of the transformer: its weights and the adapter's, and the activations of one pass

    def __str__(self) -> str:
        cpu, gpu = self.operations / CPU_SPEED, self.operations / GPU_SPEED
        said = [
            f"{self.frames} frames of {self.width} x {self.height} in {self.steps} steps",
            f"about {duration(cpu)} on a laptop's CPU" + (f", {duration(gpu)} on a large GPU" if gpu > 1 else ""),
            f"{megabytes(self.memory)} of memory for the transformer",
        ]
        if self.adapter_parameters:
            said.append(f"{100 * (self.adapter_share - 1):.0f} % more work with the camera")
        return "; ".join(said)


def generation_cost(model: VideoModel, adapter: Adapter | None, grid: TokenGrid, steps: int, passes: int) -> Cost:
    """`passes` are transformer calls per step: one, one more for text guidance, one more for camera guidance."""
    backbone = backbone_operations(model.transformer, grid, model.text_tokens)
    extra = adapter_operations(adapter, grid) if adapter is not None else 0.0
    size = next(model.transformer.parameters()).element_size()
    dim = self_attentions(model.transformer)[0].to_q.in_features
    own = parameter_count(adapter) if adapter is not None else 0
    count = parameter_count(model.transformer)
    return Cost(
        frames=grid.video_frames,
        height=grid.rows * grid.stride[1],
        width=grid.cols * grid.stride[2],
        tokens=grid.tokens,
        steps=steps,
        passes=steps * passes,
        parameters=count,
        adapter_parameters=own,
        operations=steps * passes * (backbone + extra),
        adapter_share=(backbone + extra) / backbone,
        memory=float(count * size + own * 4 + ACTIVATIONS * grid.tokens * dim * size),
    )


def duration(seconds: float) -> str:
    """Seconds as a person would say them."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{max(1, round(seconds))} s"
