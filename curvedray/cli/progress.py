"""Progress on standard error, for every command: the rooms below take a plain callback and know nothing of bars."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Tick = Callable[..., None]  # tick(done, total, words): `words`, if given, take the place of the bar's text
Item = TypeVar("Item")


@contextmanager
def progress_bar(words: str, *, shown: bool = True) -> Iterator[Tick]:
    """A bar with how many are done, the time gone and the time left; none where nobody watches."""
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from curvedray.cli import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not (shown and console.is_terminal)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(escape(words), total=None)

        def tick(done: int, total: int | None, words: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=None if words is None else escape(words))

        yield tick


def tracked(work: Iterable[Item], words: str, total: int) -> Iterator[Item]:
    """The same items, with a bar that counts them."""
    with progress_bar(words) as tick:
        tick(0, total)
        for done, item in enumerate(work, 1):
            yield item
            tick(done, total)
