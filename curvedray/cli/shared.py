"""What several commands ask for and show alike."""

import ast
from typing import Annotated, Any

import typer

from curvedray.errors import InputError

LARGEST_SIDE = 8192  # pixels; a larger one is a slip of the finger, and more than a video player takes

# What every format takes, with its types, and what `--option` must not say for it.
COMMON_OPTIONS = {"unit": (str,), "fps": (int, float), "mirrored_world": (bool,)}
SAID_OTHERWISE = ("path", "format", "dtype")

Options = Annotated[
    list[str] | None, typer.Option("--option", help="A reader's own option as NAME=VALUE; may be repeated.")
]


def pixels(size: str | None) -> tuple[int, int] | None:
    """832x480 -> (832, 480); nothing stays nothing."""
    if size is None:
        return None
    width, _, height = size.lower().partition("x")
    if not all(side.isdecimal() and len(side) < 6 and 0 < int(side) <= LARGEST_SIDE for side in (width, height)):
        raise InputError("--size", f"WIDTHxHEIGHT, such as 832x480, each from 1 to {LARGEST_SIDE}", size)
    return int(width), int(height)


def reader_options(options: list[str] | None) -> dict[str, Any]:
    """What `--option` said, all of it."""
    return dict(_option(text) for text in options or [])


def _option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where a value that is a Python literal (a number, a tuple, True) is taken as that, else as text."""
    name, equals, said = text.partition("=")
    name = name.replace("-", "_")
    if not (name and equals) or name in SAID_OTHERWISE:
        raise InputError("--option", "NAME=VALUE, a reader's own option", text)
    try:
        value = ast.literal_eval(said)
    except (ValueError, SyntaxError):
        value = said
    kinds = COMMON_OPTIONS.get(name, (object,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and float in kinds):
        raise InputError(f"--option {name}", " or ".join(kind.__name__ for kind in kinds), repr(value))
    return name, value
