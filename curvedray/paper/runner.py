"""What runs an item: the one interface that tables, probes, figures and drawings share."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from curvedray.files import whole_file
from curvedray.paper.catalogue import Item
from curvedray.paper.listener import Listener
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting


@dataclass(frozen=True)
class Page:
    """What an item came to: a page for people, a record for scripts, and pictures by file name."""

    text: str
    record: Mapping[str, Any]
    pictures: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What running an item takes, counted before it starts: of trainings each once, however many rows share it."""

    trainings: Mapping[str, int] = field(default_factory=dict)  # folder name -> steps
    done: int = 0  # of those, how many are there
    films: int = 0  # videos
    estimates: int = 0  # videos read by a judge, by each judge


@runtime_checkable
class Runner(Protocol):
    """An item's experiment."""

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        """Names of needs.py beyond the scale's own."""
        ...

    def work(self, setting: Setting) -> Work: ...

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page: ...


def runner_of(entry: Item) -> Runner:
    """What runs an item: its file in `experiments/` defines it and nothing else."""
    found = importlib.import_module(entry.module).runner
    assert isinstance(found, Runner), f"{entry.module} defines no runner"
    return found


def write_page(page: Page, folder: Path) -> None:
    """table.md, results.json and the pictures, each whole; the record last, so that its presence means all is there."""
    for name, content in page.pictures.items():
        with whole_file(folder / name) as temporary:
            temporary.write_bytes(content)
    for name, text in (("table.md", page.text), ("results.json", json.dumps(page.record, indent=1, allow_nan=False))):
        with whole_file(folder / name) as temporary:
            temporary.write_text(text + "\n" if name.endswith("json") else text, encoding="utf-8")
