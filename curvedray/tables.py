"""Markdown tables, written in one place, and foreign text made harmless in them."""

import re
from collections.abc import Iterable, Sequence

from curvedray.errors import quoted

MARKUP = re.compile(r"([\\`*\[\]<>|])")


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without a line break at its end. Cells are Markdown themselves; each stays one cell."""
    lines = [head, ["---"] * len(head), *rows]
    assert all(len(line) == len(head) for line in lines), "every row has a cell per column"
    return "\n".join(f"| {' | '.join(_one_cell(cell) for cell in line)} |" for line in lines)


def plain(text: object) -> str:
    """Other people's text (a file's name, a reason) inside Markdown: on one line, nothing in it is markup."""
    return MARKUP.sub(r"\\\1", " ".join(quoted(text).split()))


def _one_cell(text: str) -> str:
    """A bar that is not escaped yet would begin another column, a line break another row."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.splitlines()))
