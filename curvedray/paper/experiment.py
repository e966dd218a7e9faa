"""What a table's experiment is: its rows, a recipe each, that may differ in nothing but what the table compares."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from curvedray.errors import InputError
from curvedray.paper.items import ITEMS, SCALES, item
from curvedray.training.recipe import Recipe, differences, with_overrides

MAY_DIFFER = ("name:", "adapter.", "radial_weight:", "mixforcing")  # what a row is; all else must be the same
CLIPS_PER_HOUR = 70_000  # of training the embedded model's adapter on two quiet cores: 8 clips in 0.4 s


@dataclass(frozen=True)
class Experiment:
    """The rows of a table: a recipe each, alike in steps, data, order and learning rate."""

    rows: Mapping[str, Recipe]
    clips: int = 48  # of the world's test split, the same for every row
    stride: int = 4
    by_lens: bool = False  # pinhole and non-pinhole clips apart
    baseline: str = ""  # the row that the others are compared with, clip by clip

    def __post_init__(self) -> None:
        first, *others = self.rows.values()
        for other in others:
            unlike = [line for line in differences(first, other) if not line.startswith(MAY_DIFFER)]
            if unlike:
                raise InputError(f"row {other.name}", f"the training of {first.name}", "; ".join(unlike))

    def changed(self, overrides: list[str]) -> "Experiment":
        """Every row changed alike: `steps=100 data.clips=64`."""
        return replace(self, rows={name: with_overrides(row, overrides) for name, row in self.rows.items()})

    @property
    def trained_rows(self) -> list[Recipe]:
        return [row for row in self.rows.values() if row.adapter.method != "none"]


def plan(experiment: Experiment, folder: Path) -> str:
    """What running it will take and where it writes, in two sentences.

    The time is the embedded model's; other models' is not guessed.
    """
    row, count = next(iter(experiment.rows.values())), len(experiment.trained_rows)
    hours = count * row.steps * row.batch / CLIPS_PER_HOUR
    time = f", about {max(hours, 0.1):.1f} hours on two cores" if row.model == "embedded" else ""
    return (
        f"It encodes {row.data.clips} clips, trains {count} rows of {row.steps} steps{time}, and generates and scores "
        f"{experiment.clips} clips for each of {len(experiment.rows)} rows. It writes to {folder}, and if it was "
        "stopped it goes on there."
    )


def load(name: str, scale: str) -> Experiment:
    """A table's experiment, from its file in `experiments/`, which defines it and nothing else."""
    entry = item(name)
    if scale not in SCALES:
        raise InputError("scale", " or ".join(SCALES), scale)
    if scale not in entry.scales:
        can = " or ".join(i.name for i in ITEMS if scale in i.scales) or "none yet"
        needs = f"it needs {', '.join(entry.needs)}" if entry.needs else "it is a drawing"
        raise InputError(f"{entry.kind} {name}", f"one that runs at scale {scale} ({can})", needs)
    found = importlib.import_module(entry.module).experiment
    assert isinstance(found, Experiment), f"{entry.module} defines no experiment"
    return found


def check_ready(name: str) -> None:
    """Refuse, in one sentence, a table that lacks what it needs at a desk."""
    entry = item(name)
    if entry.missing:
        raise InputError(f"{entry.kind} {name}", "all that its experiment needs", entry.missing)
