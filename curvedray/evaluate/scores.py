"""What is measured, one record per measurement: every table is a group-by over Scores.

A clip is scored first; tables then take plain means over clips. A clip that could not be scored is a Failure with
its reason, counted beside the means and never left out without a word.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Num
from torch import Tensor

from curvedray.errors import InputError
from curvedray.evaluate.statistics import Interval, bootstrap

Better = Literal["lower", "higher", "neither"]
Array = Tensor | np.ndarray


@dataclass(frozen=True)
class Metric:
    """A metric's name, unit, direction, and its definition in one sentence, printed wherever its numbers are."""

    name: str
    unit: str
    better: Better
    definition: str

    def of(self, clip: str, value: float) -> "Score":
        return Score(clip, self.name, float(value), self.unit, self.better)


@dataclass(frozen=True)
class Score:
    """One clip's value of one metric. `better` says which way is good."""

    clip: str
    metric: str
    value: float
    unit: str
    better: Better


@dataclass(frozen=True)
class Failure:
    """A clip that could not be scored, and why."""

    reason: str
    clip: str = ""


@dataclass(frozen=True)
class Cell:
    """One mean of a table: over how many clips, with its 95 % interval."""

    metric: str
    group: str
    unit: str
    better: Better
    clips: int
    interval: Interval


def group_by(scores: Iterable[Score], group_of: Callable[[Score], str] = lambda score: "all") -> list[Cell]:
    """A table: for every metric and group, the mean over clips and its bootstrap interval, in order of appearance."""
    buckets: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        buckets.setdefault((score.metric, group_of(score)), []).append(score)
    cells = []
    for (metric, group), members in buckets.items():
        repeated = duplicates([score.clip for score in members])
        if repeated:
            raise InputError(f"scores of {metric}", "one value per clip and group", f"clip {repeated[0]!r} twice")
        values = np.array([score.value for score in members])
        cells.append(Cell(metric, group, members[0].unit, members[0].better, len(members), bootstrap(values)))
    return cells


def duplicates(items: Sequence[str]) -> list[str]:
    """What occurs more than once, in order of first appearance."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for item in items:
        if item in seen:
            again[item] = None
        seen.add(item)
    return list(again)


def as_float64(x: Num[Array, "*shape"]) -> Num[np.ndarray, "*shape"]:
    """A tensor or array as a float64 array: scores are always computed in double precision."""
    return np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float64)
