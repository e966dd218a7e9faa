"""The backbone split over the processes (FSDP2): each holds its share, and gathers a block when it runs.

An adapter, a few per cent of the weights, stays whole in every process, with its optimiser: gathering it would cost
more than it takes. A backbone that is itself trained is split with all that training keeps of it: gradients, what the
optimiser remembers, the average. Files hold whole tensors all the same, so any number of processes reads them.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from curvedray.models.interface import self_attentions


def shard_backbone(transformer: nn.Module, device: torch.device, count: int) -> None:
    """Split a transformer's weights over all processes, block by block. It stays so until the process ends."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    self_attentions(transformer)  # refuses a model without blocks
    mesh = init_device_mesh(device.type, (count,))
    for block in transformer.blocks:  # type: ignore[union-attr]
        fully_shard(block, mesh=mesh)
    fully_shard(transformer, mesh=mesh)
    # Wan's output is a view of a larger tensor; FSDP2 warns of changing it in place, which nothing here does.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")


# -- what is split, and all of it again: every process asks for the same, in the same order, or they wait for ever


def _is_one_of_several() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def is_split(tensor: Tensor) -> bool:
    if not _is_one_of_several():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that is split; another is itself."""
    return tensor.full_tensor() if is_split(tensor) else tensor  # type: ignore[attr-defined]


def split_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, on the other's device and split as it is, if it is."""
    tensor = tensor.to(other.device)
    if not is_split(other):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, other.device_mesh, other.placements)  # type: ignore[attr-defined]


def split_again(module: nn.Module) -> None:
    """Let go of what the last forward pass gathered and kept, so that the next one sees weights set meanwhile."""
    if not _is_one_of_several():
        return
    from torch.distributed.fsdp import FSDPModule

    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()


@contextmanager
def whole_weights(module: nn.Module, keep: bool) -> Iterator[None]:
    """A module whose weights are whole, on the CPU, while the block lasts, in the processes that `keep` them."""
    split_again(module)
    owned = [(owner, leaf, p) for owner in module.modules() for leaf, p in owner._parameters.items() if p is not None]
    owned = [(owner, leaf, p) for owner, leaf, p in owned if is_split(p)]
    try:
        for owner, leaf, parameter in owned:
            gathered = whole(parameter.detach())
            if keep:
                owner._parameters[leaf] = nn.Parameter(gathered.cpu(), requires_grad=False)
        yield
    finally:
        for owner, leaf, parameter in owned:
            owner._parameters[leaf] = parameter


# -- what it takes


def gathered_weights(transformer: nn.Module) -> int:
    """Weights that a process gathers at the most beside its share: two blocks, and what is in none.

    FSDP2 gathers the next block while one runs; the root's own weights stay until backward has passed.
    """
    blocks = [sum(p.numel() for p in block.parameters()) for block in transformer.blocks]  # type: ignore[union-attr]
    rest = sum(p.numel() for p in transformer.parameters()) - sum(blocks)
    return 2 * max(blocks, default=0) + rest


def held_bytes(transformer: nn.Module, count: int) -> float:
    """Bytes of frozen weights that each of `count` processes holds at the most: its share, and what it gathers."""
    weights = sum(p.numel() for p in transformer.parameters())
    each = sum(p.numel() * p.element_size() for p in transformer.parameters()) / weights
    return each * (weights / count + gathered_weights(transformer) * (count > 1))
