"""What several commands ask for and show alike."""

from collections.abc import Iterator

from curvedray.errors import InputError

LARGEST_SIDE = 16384  # pixels; a larger one is a slip of the finger


def pixels(size: str | None) -> tuple[int, int] | None:
    """832x480 -> (832, 480); nothing stays nothing."""
    if size is None:
        return None
    width, _, height = size.lower().partition("x")
    if not all(side.isdecimal() and 0 < int(side) <= LARGEST_SIDE for side in (width, height)):
        raise InputError("--size", f"WIDTHxHEIGHT, such as 832x480, each from 1 to {LARGEST_SIDE}", size)
    return int(width), int(height)


def progress(work: Iterator[tuple], words: str, total: int) -> Iterator[tuple]:
    """A bar on stderr while the work is done; none where nobody watches."""
    from rich.progress import track

    from curvedray.cli import console

    hidden = not console.is_terminal
    return iter(track(work, words, total=total, console=console, transient=True, disable=hidden))
