"""What several commands ask for and show alike."""

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.errors import InputError

if TYPE_CHECKING:
    from curvedray.cameras import Cameras
    from curvedray.engine import Engine

LARGEST_SIDE = 8192  # pixels; a larger one is a typo, and more than a video player takes
LONGEST_OPTION = 1000  # characters
LARGEST_WHOLE = 10**18  # of an option's value; larger ones fit no reader's number
NOT_OPTIONS = ("path", "format", "dtype", "lens_needed")  # of read_cameras: what `--option` must not say

Options = Annotated[
    list[str] | None, typer.Option("--option", help="A reader's own option as NAME=VALUE; may be repeated.")
]

PANEL_WORKERS = "Many machines"
EngineKind = Annotated[
    str | None,
    typer.Option("--engine", help="`ray`: the jobs go to many workers (docs/scale.md).", rich_help_panel=PANEL_WORKERS),
]
Address = Annotated[
    str | None,
    typer.Option(help="A Ray cluster, HOST:PORT or auto; else this machine's.", rich_help_panel=PANEL_WORKERS),
]
Workers = Annotated[
    int | None, typer.Option(help="How many; else one per processor or GPU.", min=1, rich_help_panel=PANEL_WORKERS)
]


def chosen_engine(kind: str | None, address: str | None, workers: int | None) -> "Engine":
    """What `--engine`, `--address` and `--workers` say; this process, where they say nothing."""
    from curvedray.engine import Engine

    return Engine(kind or "here", address or "", workers or 0)


def pixels(size: str | None) -> tuple[int, int] | None:
    """832x480 -> (832, 480), always width first; nothing stays nothing."""
    if size is None:
        return None
    sides = [i.strip() for i in re.split("[xX×]", size)]
    if len(sides) == 2 and all(re.fullmatch("[0-9]{1,5}", i) for i in sides):
        width, height = (int(i) for i in sides)
        if 0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE:
            return width, height
    fix = "The number of frames goes in --frames." if len(sides) == 3 else ""
    raise InputError("--size", f"WIDTHxHEIGHT, such as 832x480, each from 1 to {LARGEST_SIDE}", size, fix)


def reader_options(options: list[str] | None) -> dict[str, Any]:
    """What `--option` said, all of it."""
    return dict(_option(text) for text in options or [])


def _option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where a value that is a Python literal (a number, a tuple, True) is taken as that, else as text."""
    name, equals, said = text.partition("=")
    name = name.replace("-", "_")
    if not (name and equals) or name in NOT_OPTIONS:
        raise InputError("--option", "NAME=VALUE, a reader's own option", text)
    value = _value(name, said)
    from curvedray.formats import GENERAL

    for option in GENERAL:
        if option.name == name:
            option.check(value, "--option")
    return name, value


def _value(name: str, said: str) -> Any:
    """A number, True or False, None, text, or a list of numbers; nothing that nests deeper or fits no number."""
    if len(said) > LONGEST_OPTION:
        raise InputError(f"--option {name}", f"at most {LONGEST_OPTION} characters", said)
    try:
        value = ast.literal_eval(said)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return said
    inside = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in inside:
        if not isinstance(item, (bool, int, float, str, type(None))):
            raise InputError(f"--option {name}", "a number, text, True or False, or a list of them", said)
        if isinstance(item, int) and abs(item) >= LARGEST_WHOLE:
            raise InputError(f"--option {name}", "a number of at most 18 digits", said)
    return value


def file_cameras(
    file: Path,
    format: str,
    options: dict[str, Any],
    lens: str | None = None,
    size: tuple[int, int] | None = None,
    frames: int | None = None,
) -> "tuple[Cameras, list[str]]":
    """A camera file's path, with the lens, size and frames asked for, and what that changed, in words.

    A format that carries no lens or no size is told them; the lens, size and frames that a file has are changed.
    """
    from curvedray.formats import FORMATS, read_cameras
    from curvedray.moves.trajectory import fitted_to

    known = FORMATS[format].carries if format in FORMATS else frozenset()
    told: dict[str, Any] = {} if lens is None else {"lens": lens}
    if size is not None and (lens is not None or "size" not in known):
        told["size"] = size
    cameras = read_cameras(file, format, **(options | told))
    changed = [f"the file's lens was replaced by {lens}"] if lens is not None and "focal" in known else []
    cameras, refitted = fitted_to(cameras, len(cameras) if frames is None else frames, *(size or cameras.lens.size))
    return cameras, changed + refitted
