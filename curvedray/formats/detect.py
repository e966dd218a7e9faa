"""Which format a file is, by what is in it; and, where it is none, what was found in it."""

from pathlib import Path
from typing import NamedTuple

from curvedray.errors import InputError
from curvedray.formats.handlers import HANDLERS
from curvedray.formats.registry import FORMATS
from curvedray.formats.source import Source, is_number


class Detection(NamedTuple):
    """A format's name, and what in the file gave it away."""

    name: str
    reason: str


def detect_format(path: str | Path) -> Detection:
    """Which format a file is, and why; InputError where it is none, or could be several."""
    return detected(Source.open(Path(path)))


def detected(source: Source) -> Detection:
    found = [Detection(name, why) for name, handler in HANDLERS.items() if (why := handler.detect(source)) is not None]
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
    if source.is_folder:
        return "a folder with no COLMAP model in it (cameras and images, .bin or .txt) and no poses.npy"
    if source.path.suffix.lower() in (".yaml", ".yml"):
        return "YAML; a KITTI-360 lens is read with read_lens"
    if source.is_npy or source.is_npz:
        return _arrays_found(source)
    if not source.is_text:
        return "bytes that are not text"
    if source.is_json:
        return f"JSON, {_json_found(source.json.value)}"
    line, words = next(source.rows(), (1, []))
    odd = next((word for word in words if not is_number(word)), None)
    return f"text whose line {line} has {len(words)} columns" + (f", one of them {odd[:40]!r}" if odd else "")


def _json_found(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(list(value)[:5]) or 'nothing'}"
    if not isinstance(value, list) or not value:
        return "an empty list"
    inside = _json_found(value[0]) if isinstance(value[0], dict) else type(value[0]).__name__
    return f"a list of {len(value)}, the first of them {inside}"


def _arrays_found(source: Source) -> str:
    try:
        headers = source.array_headers
    except InputError as error:
        return f"a damaged file of arrays ({error.got})"
    found = [f"{name} {header.shape} {header.dtype}" for name, header in headers.items()]
    return f"NumPy: {', '.join(found[:8])}" + (" ..." if len(found) > 8 else "")
