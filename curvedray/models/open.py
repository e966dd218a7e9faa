"""A model by its name: the embedded one, its shape untrained, a file of its kind, or Wan from a folder or hub id."""

from pathlib import Path

import torch

from curvedray.errors import InputError
from curvedray.models.interface import VideoModel

EMBEDDED_NAMES = ("", "embedded")  # as `--model` leaves it out, and as a recipe says it
DTYPES = {"auto": None, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_model(
    name: str = "",
    *,
    dtype: str = "auto",
    device: str | torch.device | None = None,
    offload: bool = False,
    tiling: bool = False,
) -> VideoModel:
    """Wan from a folder or hub id; the embedded model for no name, or one of its kind from a .safetensors file.

    `random` is the embedded model's shape with untrained weights. The small ones need none of these savings. Nothing
    heavy is imported before it is needed.
    """
    check_device(device)
    if name == "random":
        from curvedray.models.embedded.model import random_embedded

        return random_embedded().to(device or "cpu")
    if name in EMBEDDED_NAMES or name.endswith(".safetensors"):
        from curvedray.models.embedded.model import WEIGHTS, load_embedded

        model = load_embedded(WEIGHTS if name in EMBEDDED_NAMES else Path(name))
        model.name = "" if name in EMBEDDED_NAMES else name
        return model.to(device) if device else model
    from curvedray.models.wan import Wan

    if dtype not in DTYPES:
        raise InputError("dtype", " or ".join(DTYPES), dtype)
    return Wan.load(name, dtype=DTYPES[dtype], device=device, offload=offload, tiling=tiling)


def check_device(device: str | torch.device | None) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0].rstrip(".")
        raise InputError("device", "one this machine has (cpu, cuda, mps ...)", f"{device}: {reason}") from error
