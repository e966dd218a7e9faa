"""Camera-controlled video generation: a trajectory and a lens, from pinhole to fisheye.

Every name is loaded when it is first asked for, so that importing this costs nothing: cameras and attention then bring
in torch and nothing heavier.
"""

import importlib
from typing import TYPE_CHECKING, Any

from curvedray.extras import missing_extra

if TYPE_CHECKING:
    from curvedray.adapter.adapter import Adapter
    from curvedray.cameras import Cameras, Lens, TokenGrid
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.encoding.attention import curved_ray_attention
    from curvedray.encoding.curved import expected_phasor
    from curvedray.errors import InputError
    from curvedray.formats import read_cameras, write_cameras
    from curvedray.generation.generate import generate
    from curvedray.generation.parts import load_parts
    from curvedray.media.video import write_video
    from curvedray.models.open import load_model
    from curvedray.moves.trajectory import trajectory
    from curvedray.training.run import train

__version__ = "0.1.0"
__all__ = [
    "Adapter",
    "Cameras",
    "InputError",
    "Lens",
    "TokenGrid",
    "curved_ray_attention",
    "expected_phasor",
    "generate",
    "load_model",
    "load_parts",
    "named_lens",
    "read_cameras",
    "train",
    "trajectory",
    "write_cameras",
    "write_video",
]

# name -> the module that has it. The first few take what `pip install curvedray` brings, the others an extra.
_LATER = {
    "Cameras": "curvedray.cameras",
    "Lens": "curvedray.cameras",
    "TokenGrid": "curvedray.cameras",
    "InputError": "curvedray.errors",
    "curved_ray_attention": "curvedray.encoding.attention",
    "expected_phasor": "curvedray.encoding.curved",
    "named_lens": "curvedray.cameras.named_lenses",
    "Adapter": "curvedray.adapter.adapter",
    "generate": "curvedray.generation.generate",
    "load_model": "curvedray.models.open",
    "load_parts": "curvedray.generation.parts",
    "read_cameras": "curvedray.formats",
    "train": "curvedray.training.run",
    "trajectory": "curvedray.moves.trajectory",
    "write_cameras": "curvedray.formats",
    "write_video": "curvedray.media.video",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER and name != "evaluate":  # `curvedray.evaluate.pose_errors` without a second import
        raise AttributeError(f"module 'curvedray' has no attribute {name!r}")
    try:
        module = importlib.import_module(_LATER.get(name, "curvedray.evaluate"))
    except ModuleNotFoundError as error:
        sentence = missing_extra(error)
        if sentence is None:
            raise
        raise sentence from error
    return module if name == "evaluate" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
