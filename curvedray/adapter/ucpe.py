"""UCPE's released checkpoints as adapters: their keys, their conventions."""

import re
from collections.abc import Iterable

from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.errors import InputError
from curvedray.models.interface import self_attentions

KEY = re.compile(
    r"(?:.*\.)?blocks\.(\d+)\.cam_self_attn\.((?:q_proj|k_proj|v_proj|out_proj|cam_encoder)\.(?:weight|bias))"
)


def is_ucpe(names: Iterable[str]) -> bool:
    """Whether any tensor of a checkpoint is of UCPE's camera branch."""
    return any(KEY.fullmatch(name) for name in names)


def ucpe_adapter(tensors: dict[str, Tensor], transformer: nn.Module, name: str = "UCPE checkpoint") -> Adapter:
    """An adapter of method `ucpe` with the weights of UCPE's checkpoint, and its own up map and missing rays."""
    weights = ucpe_weights(tensors, name)
    query = weights["blocks.0.q_proj.weight"]
    if query.ndim != 2 or 0 in query.shape:
        raise InputError(f"{name}: q_proj", "a matrix", tuple(query.shape))
    width, heads = len(query), ucpe_heads(transformer, len(query), name)
    orientation = "blocks.0.cam_encoder.weight" in weights
    config = AdapterConfig("ucpe", width=width, heads=heads, orientation=orientation, ucpe_conventions=True)
    adapter = Adapter(transformer, config)
    own = adapter.state_dict()
    wrong = [f"no {k}" for k in own.keys() - weights.keys()] + [f"an extra {k}" for k in weights.keys() - own.keys()]
    wrong += [f"{k} of {tuple(weights[k].shape)}" for k in own if k in weights and weights[k].shape != own[k].shape]
    if wrong:
        shape = f"cam_self_attn weights for {adapter.base.depth} blocks of {adapter.base.dim} channels"
        raise InputError(name, shape, sorted(wrong)[0], "Load the transformer it was trained on.")
    adapter.load_state_dict(weights)
    adapter.notes = {"from": "UCPE"}
    return adapter


def ucpe_heads(transformer: nn.Module, width: int, name: str) -> int:
    """UCPE divides its backbone's channels and heads by one number: 192 of 1536 and 1 of 12, 640 of 5120 and 5 of 40.

    Its file holds the channels alone, so the backbone says the rest. Other heads would give other videos in silence.
    """
    attention = self_attentions(transformer)[0]
    dim, base_heads = int(attention.to_q.in_features), getattr(attention, "heads", None)
    if not isinstance(base_heads, int) or base_heads < 1 or dim % width:
        expected = f"channels that divide the backbone's {dim}, and a backbone that says its heads"
        raise InputError(name, expected, f"{width} channels, {base_heads} heads", "Load the model it was trained on.")
    return max(1, base_heads // (dim // width))


def ucpe_weights(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """Our names for UCPE's camera branch; everything else in the checkpoint is left alone."""
    found = {f"blocks.{m[1]}.{m[2]}": tensor for key, tensor in tensors.items() if (m := KEY.fullmatch(key))}
    if "blocks.0.q_proj.weight" not in found:
        raise InputError(name, "keys like blocks.0.cam_self_attn.q_proj.weight", next(iter(tensors), "no keys"))
    return found
