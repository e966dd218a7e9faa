"""Camera files in and out, each with its own convention, all of them to and from one: `Cameras`.

`read_cameras` tells a file's format by what is in it, `write_cameras` refuses or notes what a format cannot carry.
"""

import inspect
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, cast, get_args, get_origin

import torch

from curvedray.cameras import Cameras, Unit
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.formats.build import lens_numbers, note
from curvedray.formats.mei import read_lens
from curvedray.formats.panshot import read_requests
from curvedray.formats.source import Source, is_number
from curvedray.formats.table import FORMATS, Format

__all__ = [
    "FORMATS",
    "Detection",
    "Format",
    "detect_format",
    "read_cameras",
    "read_lens",
    "read_requests",
    "write_cameras",
]


class Detection(NamedTuple):
    """A format's name, and what in the file gave it away."""

    name: str
    reason: str


def read_cameras(
    path: str | Path,
    format: str | None = None,
    *,
    unit: str | None = None,
    fps: float | None = None,
    mirrored_world: bool = False,
    dtype: torch.dtype = torch.float32,
    **options: Any,
) -> Cameras:
    """Read a camera file of a named format, or of the one its content shows.

    `unit` and `fps` overrule what the file says; `mirrored_world` says that its world is left-handed. Other options
    belong to a format: `size`, `source_size`, `lens`, `camera`, `near_depth` and so on; one that the format does not
    take is refused.
    """
    source = Source.open(Path(path), mirrored_world)
    chosen = _format(format) if format else FORMATS[_detect(source).name]
    if source.path.is_dir() and chosen.name != "colmap":
        raise InputError(str(path), f"a {chosen.name} file", "a folder")
    _check_options(chosen, chosen.read, options)
    cameras = chosen.read(source, **options)
    if unit is not None and unit not in get_args(Unit):
        raise InputError("unit", " or ".join(get_args(Unit)), unit)
    cameras = cameras if unit is None else replace(cameras, unit=cast(Unit, unit))
    cameras = cameras if fps is None else replace(cameras, fps=float(fps))
    return cameras.to(dtype)


def write_cameras(cameras: Cameras, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write one trajectory whole or not at all, in a named format or the one that the path's ending belongs to.

    A lens that the format would falsify is refused; what it merely leaves out is noted, with how to say it again.
    """
    path = Path(path)
    chosen = _format(format) if format else _format_of_ending(path)
    if chosen.write is None:
        raise InputError(f"format {chosen.name}", "one that can be written", "one that is only read")
    if cameras.batch_shape:
        raise InputError("cameras", "one trajectory (T, 4, 4)", f"a batch {cameras.batch_shape}", "Write one by one.")
    _check_options(chosen, chosen.write, options)
    wide = cameras.world_from_camera.dtype if cameras.world_from_camera.dtype == torch.float64 else torch.float32
    cameras = cameras.to("cpu", wide)
    _check_lens(cameras, chosen)
    _put(path, chosen.write(cameras, **options))
    if lost := _lost(cameras, chosen):
        note(f"{path.name}: {chosen.name} files do not carry {'; '.join(lost)}.")


def _put(path: Path, content: bytes | dict[str, bytes]) -> None:
    """A file, or a folder of files, that appears whole or not at all."""
    if isinstance(content, bytes):
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
        return
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(str(path), "a folder that is new or empty", "one that holds something", "Name another.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as outer:
            inner = Path(outer) / path.name
            inner.mkdir()
            for name, data in content.items():
                (inner / name).write_bytes(data)
            os.replace(inner, path)
    except OSError as error:
        raise InputError(str(path), "a folder that can be written", error.strerror) from error


def detect_format(path: str | Path) -> Detection:
    """Which format a file is, and why; InputError where it is none, or could be several."""
    return _detect(Source.open(Path(path)))


def _detect(source: Source) -> Detection:
    found = [Detection(name, why) for name, format in FORMATS.items() if (why := format.detect(source)) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        could_be = ", ".join(f"{name} ({reason})" for name, reason in found)
        raise InputError(source.name, "one format", could_be, f"Choose one: format={found[0].name!r}.")
    raise InputError(
        source.name,
        f"a camera file ({', '.join(FORMATS)})",
        _description(source),
        "If you know what it is, say so with format= and read what is wrong with it.",
    )


def _description(source: Source) -> str:
    """What a file that is no format looks like."""
    if source.path.is_dir():
        return "a folder with no COLMAP model in it (cameras and images, .bin or .txt)"
    if source.path.suffix.lower() in (".yaml", ".yml"):
        return "YAML; a KITTI-360 lens is read with read_lens"
    if not source.is_text:
        return "bytes that are not text"
    if source.is_json:
        keys = source.json.names() if isinstance(source.json.value, dict) else ["a list"]
        return f"JSON with {', '.join(keys[:5]) or 'nothing'}"
    line, words = next(source.rows(), (1, []))
    odd = next((word for word in words if not is_number(word)), None)
    return f"text whose line {line} has {len(words)} columns" + (f", one of them {odd[:40]!r}" if odd else "")


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise InputError("format", f"one of {', '.join(FORMATS)}", name)
    return FORMATS[name]


def _format_of_ending(path: Path) -> Format:
    """curvedray's own for .json; otherwise the one format with that ending."""
    able = [format for format in FORMATS.values() if path.suffix.lower() in format.extensions and format.write]
    if path.suffix.lower() == ".json":
        return FORMATS["curvedray"]
    if len(able) == 1:
        return able[0]
    names = ", ".join(format.name for format in able or FORMATS.values() if format.write)
    raise InputError(
        str(path), f"a format= ({names})", f"the ending {path.suffix or '(none)'}, which does not decide it"
    )


def _check_options(format: Format, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse an option that the format does not take, or a value of another type than it takes."""
    known = {p.name: p.annotation for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    for name, value in options.items():
        if name not in known:
            raise InputError(f"option {name}", f"one that {format.name} takes ({', '.join(known) or 'none'})", name)
        kinds = [get_origin(kind) or kind for kind in (get_args(known[name]) or (known[name],))]
        kinds += [int] if float in kinds else []
        kinds += [list] if tuple in kinds else []
        if not isinstance(value, tuple(kinds)) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
            raise InputError(f"option {name}", wanted, f"{value!r}, a {type(value).__name__}")


def _check_lens(cameras: Cameras, format: Format) -> None:
    """Refuse a lens that would be read back as another one."""
    if "focal" in format.carries and "xi" not in format.carries and cameras.lens.xi.any():
        raise InputError(
            f"{format.name} file",
            "a pinhole lens (xi 0), the only one it can hold",
            f"xi {cameras.lens.xi.max().item():.4g}",
            "Write the curvedray or colmap format, or one without a lens (kitti, tum) and keep the lens apart.",
        )


def _lost(cameras: Cameras, format: Format) -> list[str]:
    """What of these cameras the file leaves out, each with how to say it again when reading."""
    lens, (width, height) = cameras.lens, cameras.lens.size
    lost = []
    if "focal" not in format.carries:
        numbers = lens_numbers(cameras)
        changes = " that changes over time" if bool((numbers != numbers[0]).any()) else ""
        lost.append(f"the lens{changes} (read it with lens=)")
    elif "size" not in format.carries:
        lost.append(f"the image size (read it with size=({width}, {height}))")
    if "focal" in format.carries and "max_angle" not in format.carries and lens.max_angle < math.pi:
        lost.append("the lens's max_angle")
    if "unit" not in format.carries and cameras.unit != format.unit:
        lost.append(f"the unit (read it with unit={cameras.unit!r})")
    if "fps" not in format.carries and cameras.fps is not None:
        lost.append(f"the frame rate (read it with fps={cameras.fps:g})")
    return lost
