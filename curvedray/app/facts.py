"""What there is to choose from, told once when the page opens: models, adapters, lenses, moves, formats, limits."""

import math
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import curvedray
from curvedray.adapter.file import parsed_header
from curvedray.app import limits
from curvedray.app.lenses import lens_of
from curvedray.app.requests import LensAsked
from curvedray.cameras.lens_table import LENSES
from curvedray.errors import InputError
from curvedray.formats.options import Option
from curvedray.formats.registry import FORMATS
from curvedray.generation.parts import NO_ADAPTER, SHIPPED
from curvedray.inputs import read_header
from curvedray.media.distance_colours import near_to_far
from curvedray.models.embedded.trained_on import TRAINED_ON
from curvedray.models.open import EMBEDDED_NAMES, load_model, usual_video
from curvedray.moves.move import KINDS, Ease, Kind, Quantity
from curvedray.world.blocks import USUAL
from curvedray.world.scene import Kind as ThingKind
from curvedray.world.themes import COLOURS, THEMES, Side

SIDES = {"box": ["width", "depth", "height"], "ball": ["width"], "pillar": ["width", "height"]}
SIDES |= {"wall": ["width", "height"]}
EXAMPLE = "a red ball and a blue box in a desert courtyard"
ABOUT = {
    "embedded": "cameras and maps of distances: the embedded model's own",
    NO_ADAPTER: "the model alone, which sees no camera",
}
WAN_STEPS, WAN_GUIDANCE = 50, 5.0


@dataclass(frozen=True)
class Shelf:
    """The models and adapters that the page may name: those in the package, and those that the command was given."""

    models: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()

    def check(self, model: str, adapter: str | None) -> None:
        if model not in ("embedded", *self.models):
            fix = "Start the studio with --model to add one."
            raise InputError("model", f"one of {', '.join(('embedded', *self.models))}", model, fix)
        known = (*SHIPPED, NO_ADAPTER, *self.adapters)
        if adapter is not None and adapter not in known:
            fix = "Start the studio with --adapter to add one."
            raise InputError("adapter", f"one of {', '.join(known)}", adapter, fix)


def facts(shelf: Shelf, folder: Path) -> dict[str, Any]:
    return _unchanging() | {
        "folder": str(folder.absolute()),
        "models": [_model(name) for name in ("embedded", *shelf.models)],
        "adapters": [_adapter(name) for name in (*SHIPPED, NO_ADAPTER, *shelf.adapters)],
    }


@cache
def _unchanging() -> dict[str, Any]:
    return {
        "version": curvedray.__version__,
        "lenses": [asdict(row) | {"max_angle": _max_angle(row.name)} for row in LENSES],
        "moves": [_move(name, kind) for name, kind in KINDS.items()],
        "easings": list(get_args(Ease)),
        "formats": [
            {
                "name": format.name,
                "extensions": list(format.extensions),
                "convention": format.convention,
                "lost": format.lost,
                "read": True,
                "write": format.written,
                "folder": format.reads_folders,
                "options": [_option(option) for option in format.options],
            }
            for format in FORMATS.values()
        ],
        "blocks": [{"kind": kind, "size": list(size), "sides": SIDES[kind]} for kind, size in USUAL.items()],
        "colours": near_to_far().tolist(),
        "limits": {
            "queue": limits.MOST_WAITING,
            "body": limits.LARGEST_BODY,
            "uploads": limits.LARGEST_UPLOAD,
            "keys": limits.MOST_KEYS,
            "blocks": limits.MOST_BLOCKS,
            "cuts": limits.MOST_CUTS,
            "frames": limits.MOST_FRAMES,
            "picture": limits.LARGEST_PICTURE,
            "prompt": limits.LONGEST_PROMPT,
            "moves": limits.LONGEST_MOVES,
            "scene": limits.LONGEST_SCENE,
        },
    }


def _max_angle(name: str) -> float:
    angle = lens_of(LensAsked(name=name), 96, 64).max_angle
    return angle if math.isfinite(angle) else math.pi


def _move(name: str, kind: Kind) -> dict[str, Any]:
    distance = None if kind.distance is None else _quantity(kind.distance) | {"word": kind.distance_word}
    return {
        "name": name,
        "directions": list(kind.directions),
        "amount": None if kind.amount is None else _quantity(kind.amount),
        "distance": distance,
        "to": name in ("zoom", "spiral"),
        "seed": name == "handheld",
        "meaning": kind.meaning,
        "note": kind.note,
    }


def _quantity(quantity: Quantity) -> dict[str, Any]:
    return {"value": quantity.value, "unit": quantity.unit}


def _option(option: Option) -> dict[str, Any]:
    return {"name": option.name, "kinds": [kind.__name__ for kind in option.kinds], "meaning": option.meaning}


@cache
def _model(name: str) -> dict[str, Any]:
    if name in EMBEDDED_NAMES:
        own = load_model("").defaults
        names = ("frames", "width", "height", "fps", "steps", "guidance", "camera_guidance", "zoom")
        return (
            {"name": name}
            | {i: getattr(own, i) for i in names}
            | {
                "about": "a tiny model that knows a world of coloured balls, boxes and pillars in courtyards",
                "trained": {
                    key: list(value) if isinstance(value, tuple) else value for key, value in asdict(TRAINED_ON).items()
                },
                "words": {
                    "colours": list(COLOURS),
                    "kinds": list(get_args(ThingKind)),
                    "places": list(THEMES),
                    "sides": list(get_args(Side)),
                    "example": EXAMPLE,
                },
            }
        )
    frames, height, width, fps = usual_video(name)
    return {
        "name": name,
        "frames": frames,
        "width": width,
        "height": height,
        "fps": fps,
        "steps": WAN_STEPS,
        "guidance": WAN_GUIDANCE,
        "camera_guidance": 1.0,
        "zoom": 1,
        "about": "a Wan model",
        "trained": None,
        "words": None,
    }


@cache
def _adapter(name: str) -> dict[str, Any]:
    """What an adapter's file says of itself; no tensor is read."""
    if name == NO_ADAPTER:
        return {"name": name, "method": "none", "maps": False, "models": None, "about": ABOUT[name]}
    _, entries = read_header(SHIPPED.get(name, Path(name)), "an adapter's .safetensors file")
    header = parsed_header(entries["curvedray"], f"adapter {name}") if "curvedray" in entries else None
    method = "ucpe" if header is None else header.config.method
    maps = header is not None and header.accepts_radial_maps
    models = ["embedded"] if name in SHIPPED else None  # a user's own file says itself which model it fits
    about = ABOUT.get(name, f"method {method}")
    return {"name": name, "method": method, "maps": maps, "models": models, "about": about}
