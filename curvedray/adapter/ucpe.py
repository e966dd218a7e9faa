"""UCPE's released checkpoints as adapters: their keys, their conventions, nothing unpickled but tensors."""

import pickle
import re
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.errors import InputError

KEY = re.compile(
    r"(?:.*\.)?blocks\.(\d+)\.cam_self_attn\.((?:q_proj|k_proj|v_proj|out_proj|cam_encoder)\.(?:weight|bias))"
)


def read_ucpe(path: str | Path, transformer: nn.Module, *, heads: int = 1) -> Adapter:
    """An adapter of method `ucpe` with the weights of UCPE's checkpoint, and its own up map and missing rays.

    Its file does not say how many heads it has; the released one has one of 192 channels on Wan-1.3B.
    """
    weights = ucpe_weights(_tensors(Path(path)), str(path))
    width = weights["blocks.0.q_proj.weight"].shape[0]
    orientation = "blocks.0.cam_encoder.weight" in weights
    config = AdapterConfig("ucpe", width=width, heads=heads, orientation=orientation, ucpe_conventions=True)
    adapter = Adapter(transformer, config)
    own = adapter.state_dict()
    wrong = [f"no {k}" for k in own.keys() - weights.keys()] + [f"an extra {k}" for k in weights.keys() - own.keys()]
    wrong += [f"{k} of {tuple(weights[k].shape)}" for k in own if k in weights and weights[k].shape != own[k].shape]
    if wrong:
        shape = f"cam_self_attn weights for {adapter.base.depth} blocks of {adapter.base.dim} channels"
        raise InputError(f"UCPE checkpoint {path}", shape, sorted(wrong)[0], "Load the transformer it was trained on.")
    adapter.load_state_dict(weights)
    adapter.notes = {"from": "UCPE"}
    return adapter


def ucpe_weights(tensors: dict[str, Tensor], name: str = "UCPE checkpoint") -> dict[str, Tensor]:
    """Our names for UCPE's camera branch; everything else in the checkpoint is left alone."""
    found = {f"blocks.{m[1]}.{m[2]}": tensor for key, tensor in tensors.items() if (m := KEY.fullmatch(key))}
    if "blocks.0.q_proj.weight" not in found:
        raise InputError(name, "keys like blocks.0.cam_self_attn.q_proj.weight", next(iter(tensors), "no keys"))
    return found


def _tensors(path: Path) -> dict[str, Tensor]:
    """Every tensor of a .safetensors or a torch checkpoint, which may hold them under `state_dict`."""
    if not path.is_file():
        raise InputError(f"UCPE checkpoint {path}", "a file", "a folder" if path.is_dir() else "nothing there")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"UCPE checkpoint {path}", "a file of tensors alone", reason) from error
    stored = stored.get("state_dict", stored) if isinstance(stored, dict) else {}
    return {key: value for key, value in stored.items() if isinstance(value, Tensor)}
