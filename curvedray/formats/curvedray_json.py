"""curvedray's own JSON: everything a Cameras holds, to the last bit. Its schema is cameras.schema.json."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast, get_args

import torch
from torch import Tensor

from curvedray.cameras import Cameras, Unit
from curvedray.errors import InputError
from curvedray.formats.build import gather
from curvedray.formats.lenses import gather_lens, given_lens
from curvedray.formats.source import Node, Source

NAME, VERSION = "curvedray-cameras", 1
CONVENTION = {"pose": "world_from_camera", "axes": "x right, y down, z forward", "pixel_center": 0.5}
KEYS = ("format", "version", "convention", "unit", "fps", "lens", "provenance", "frames")
FRAME_KEYS = ("world_from_camera", "focal", "center", "xi")


def detect(source: Source) -> str | None:
    return f'"format": "{NAME}"' if source.is_json and "format" in source.json and _is_ours(source.json) else None


def _is_ours(document: Node) -> bool:
    return bool(document["format"].value == NAME)


def read(source: Source) -> Cameras:
    return _cameras(source, source.json)


def cameras_from_json(record: Any, name: str = "cameras", dtype: torch.dtype = torch.float32) -> Cameras:
    """The cameras of a JSON value, as `cameras_to_json` makes it and `.json` files hold it; `name` is for messages."""
    source = Source(Path(name))
    return _cameras(source, Node(source, record, "")).to(dtype)


def _cameras(source: Source, document: Node) -> Cameras:
    if not _is_ours(document):
        document["format"].fail(f'"{NAME}"', document["format"].value, "Is it another format?")
    if (found := document["version"].integer()) != VERSION:
        document["version"].fail(f"version {VERSION}", found, "Update curvedray to read newer files.")
    only(document["convention"], tuple(CONVENTION))
    for key, value in CONVENTION.items():
        if document["convention"][key].value != value:
            document["convention"][key].fail(repr(value), document["convention"][key].value)
    only(document, KEYS)
    document["provenance"]["writer"].text()
    unit = document["unit"].text()
    if unit not in get_args(Unit):
        document["unit"].fail(" or ".join(get_args(Unit)), unit)
    fps = None if document["fps"].value is None else document["fps"].number()
    if fps is not None and fps <= 0:
        document["fps"].fail("a positive number of frames per second, or null", fps)
    lens, frames = document["lens"], document["frames"].items()
    only(lens, ("model", "size", "max_angle"))
    if lens["model"].value != "ucm":
        lens["model"].fail('"ucm"', lens["model"].value)
    width, height = (side.integer() for side in lens["size"].pair())
    numbers = []
    for frame in frames:
        only(frame, FRAME_KEYS)
        if len(frame["world_from_camera"].items()) != 4:
            frame["world_from_camera"].fail("four rows of four numbers", frame["world_from_camera"].value)
        numbers.append([*frame["focal"].numbers(2), *frame["center"].numbers(2), frame["xi"].number()])
    where = [f"field {frame.where}" for frame in frames]
    poses = torch.stack([frame["world_from_camera"].pose() for frame in frames])
    chosen = given_lens(source, (width, height)) or gather_lens(
        source, where, numbers, (width, height), lens["max_angle"].number()
    )
    return gather(source, where, poses, chosen, cast(Unit, unit), fps, exact=True)


def only(node: Node, known: tuple[str, ...]) -> None:
    """Refuse a key that nobody would read."""
    for key in node.names():
        if key not in known:
            node.fail(f"only {', '.join(known)}", key, "Is it misspelt?")


def cameras_to_json(cameras: Cameras, provenance: Mapping[Any, Any] | None = None) -> dict[str, Any]:
    """Everything the cameras hold, as a JSON value."""
    return _head(cameras, provenance or {}) | {"frames": _frames(cameras)}


def write(cameras: Cameras, *, provenance: Mapping[Any, Any] | None = None) -> bytes:
    head = json.dumps(_head(cameras, provenance or {}), indent=2)[:-2]
    # One frame per line: short enough to read, and a line that is wrong can be found.
    frames = ",\n    ".join(json.dumps(frame) for frame in _frames(cameras))
    return f'{head},\n  "frames": [\n    {frames}\n  ]\n}}\n'.encode()


def _head(cameras: Cameras, provenance: Mapping[Any, Any]) -> dict[str, Any]:
    for key, value in provenance.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError("provenance", "names and texts", f"{key!r}: {value!r}")
    return {
        "format": NAME,
        "version": VERSION,
        "convention": dict(CONVENTION),
        "unit": cameras.unit,
        "fps": cameras.fps,
        "lens": {"model": "ucm", "size": list(cameras.lens.size), "max_angle": cameras.lens.max_angle},
        "provenance": {"writer": f"curvedray {version('curvedray')}", **provenance},
    }


def _frames(cameras: Cameras) -> list[dict[str, Any]]:
    lens = cameras.frame_lens
    fields = zip(*(decimals(i) for i in (cameras.world_from_camera, lens.focal, lens.center, lens.xi)), strict=True)
    return [dict(zip(FRAME_KEYS, values, strict=True)) for values in fields]


def decimals(values: Tensor) -> list:
    """Nested lists of numbers that read back to the same bits, nine digits for a float32."""
    if values.dtype == torch.float64:
        return values.tolist()
    flat = torch.tensor([float(f"{number:.9g}") for number in values.float().reshape(-1).tolist()], dtype=torch.float64)
    return flat.reshape(values.shape).tolist()
