"""The frozen backbone split over the processes (FSDP2): each holds its share, and gathers a block when it runs.

What is trained, an adapter of a few per cent of the weights, stays whole in every process, with its optimiser:
gathering it would cost more than it takes. So checkpoints, averages and gradients are those of processes without
sharding, and the numbers are the same.
"""

import warnings

import torch
from torch import nn

from curvedray.errors import InputError
from curvedray.models.interface import self_attentions


def shard_backbone(transformer: nn.Module, device: torch.device, count: int) -> None:
    """Split a frozen transformer's weights over all processes, block by block. It stays so until the process ends."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    self_attentions(transformer)  # refuses a model without blocks
    if any(parameter.requires_grad for parameter in transformer.parameters()):
        raise InputError("--shard", "a frozen backbone beside an adapter", "a backbone that is trained")
    mesh = init_device_mesh(device.type, (count,))
    for block in transformer.blocks:  # type: ignore[union-attr]
        fully_shard(block, mesh=mesh)
    fully_shard(transformer, mesh=mesh)
    # Wan's output is a view of a larger tensor; FSDP2 warns of changing it in place, which nothing here does.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")


def held_bytes(transformer: nn.Module, count: int) -> float:
    """Bytes of frozen weights that each of `count` processes holds at the most: its share, and two gathered blocks.

    FSDP2 gathers the next block while one runs.
    """
    whole = sum(p.numel() * p.element_size() for p in transformer.parameters())
    blocks = [
        sum(p.numel() * p.element_size() for p in block.parameters())
        for block in transformer.blocks  # type: ignore[union-attr]
    ]
    rest = whole - sum(blocks)  # the root's own weights are gathered once and kept until backward has passed
    return whole / count + (2 * max(blocks, default=0) + rest) * (count > 1)
