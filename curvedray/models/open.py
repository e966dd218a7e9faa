"""A model by its name: the embedded one, its shape untrained, a file of its kind, or Wan from a folder or hub id."""

from pathlib import Path

import torch

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.inputs import first_line, read_json
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

    `random` is the embedded model's shape with untrained weights. The small ones are float32 alone and need none of
    these savings. Nothing heavy is imported before it is needed.
    """
    check_device(device)
    if dtype not in DTYPES:
        raise InputError("dtype", " or ".join(DTYPES), dtype)
    if is_embedded(name):
        if dtype not in ("auto", "float32"):
            raise InputError("dtype", "float32 or auto for the embedded model, which is small", dtype)
        from curvedray.models.embedded.model import WEIGHTS, load_embedded, random_embedded

        if name == "random":
            return random_embedded().to(device or "cpu")
        model = load_embedded(WEIGHTS if name in EMBEDDED_NAMES else Path(name))
        model.name = "" if name in EMBEDDED_NAMES else name
        return model.to(device) if device else model
    from curvedray.models.wan import Wan

    return Wan.load(name, dtype=DTYPES[dtype], device=device, offload=offload, tiling=tiling)


def load_on_gpu_if_any(name: str = "") -> VideoModel:
    """The model on a GPU of whatever machine this is called on, or on its processor."""
    return load_model(name, device="cuda" if torch.cuda.is_available() else "cpu")


def usual_shape(name: str = "") -> tuple[int, int, int]:
    """Frames, height and width that a model makes where nobody says others."""
    return usual_video(name)[:3]


def usual_video(name: str = "") -> tuple[int, int, int, int]:
    """The same and the frames per second, known before a large model is loaded."""
    if is_embedded(name):
        own = load_model(name).defaults
        return own.frames, own.height, own.width, own.fps
    from curvedray.models.wan import T2V, TI2V

    index = Path(name) / "model_index.json"
    expands = read_json(index).get("expand_timesteps", False) if index.is_file() else "TI2V" in name
    return TI2V if expands else T2V


def token_stride(name: str = "") -> tuple[int, int, int]:
    """Frames, rows and columns of a video per token, known before a large model is loaded."""
    if is_embedded(name):
        model = load_model(name)
        return model.grid_for(model.defaults.frames, model.defaults.height, model.defaults.width).stride
    from curvedray.models.wan import TI2V

    return (4, 32, 32) if usual_video(name) == TI2V else TokenGrid(1, 1, 1).stride


def is_embedded(name: str) -> bool:
    """Whether a name means the embedded model, or another of its kind."""
    return name in (*EMBEDDED_NAMES, "random") or name.endswith(".safetensors")


def check_device(device: str | torch.device | None) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        expected = "one this machine has (cpu, cuda, mps ...)"
        raise InputError("device", expected, f"{device}: {first_line(error)}") from error
