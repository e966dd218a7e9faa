"""What an experiment is: rows that differ in nothing but what the table compares, test sets, and what is claimed.

It is a value: it trains nothing and knows no model. `setting.py` says at which size it runs, `run.py` runs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from curvedray.adapter.config import METHODS
from curvedray.errors import InputError
from curvedray.paper.scales import Budget, Scale

Window = Literal["", "first", "middle", "last", "all"]
# What a row may change of the base recipe; all else (data, order, learning rate) is the same for every row of a table.
MAY_CHANGE = ("adapter.", "radial_weight", "radial_floor", "mixforcing")


@dataclass(frozen=True)
class Row:
    """One line of a table: how its adapter is trained, and how it films."""

    changes: Mapping[str, Any] = field(default_factory=dict)  # of the base recipe, by dotted keys
    budget: Budget = "full"
    curved: Window = ""  # which third of the blocks has curved rays; empty: the recipe's own
    teacher: str = "exact"  # of teachers.py: whose distances it learns from
    teacher_in_world: str = ""  # the same at a world's scale alone; empty: `teacher`
    seen: str = "all"  # of families.py: which cameras its training clips have
    seen_in_world: str = ""  # the same at a world's scale alone; empty: `seen`
    map: str = ""  # of teachers.py: whose map it is given when it films; empty: none
    sigma: float | None = None  # half the width of what that map says; None: as in training
    filming: Mapping[str, Any] = field(default_factory=dict)  # settings of filming other than the model's own
    videos: str = ""  # a place: nothing is trained, these videos of another method are scored
    labels: str = "labels"  # the place that holds its teacher's maps, where clips have none of their own
    scales: tuple[str, ...] = ("embedded", "wan", "tiny")

    def __post_init__(self) -> None:
        for key in self.changes:
            if not key.startswith(MAY_CHANGE):
                raise InputError("row", f"changes of {', '.join(MAY_CHANGE)}", key)

    def seen_at(self, scale: Scale) -> str:
        return self.seen_in_world or self.seen if scale.is_world else self.seen

    def teacher_at(self, scale: Scale) -> str:
        return self.teacher_in_world or self.teacher if scale.is_world else self.teacher

    @property
    def learns_radii(self) -> bool:
        """Whether its training takes a teacher's distances, the recipe's own radial weight being positive."""
        method = self.changes.get("adapter.method", "crepe")
        return METHODS[method].predicts_radius and (
            self.changes.get("radial_weight", 1) > 0 or self.changes.get("mixforcing") is not None
        )


@dataclass(frozen=True)
class TestSet:
    """Which clips are filmed: at a world's scale its test split, else a data set that a user has."""

    __test__ = False  # not a test, whatever pytest makes of its name

    place: str = "panshot"
    family: str = "all"  # of families.py
    in_world: str = ""  # of families.py, at a world's scale alone; empty: `family`
    most: int = 10**6  # clips
    moving: bool = False  # clips alone in which something moves
    least_known: float = 0.0  # clips alone of whose tokens at least this share has a distance: fixed beforehand

    def family_at(self, scale: Scale) -> str:
        return self.in_world or self.family if scale.is_world else self.family


@dataclass(frozen=True)
class Claim:
    """An ordering that the paper claims: one row better than another in a metric, or the two alike within a share."""

    better: str
    worse: str
    metric: str
    subset: str = ""
    alike: float = 0.0  # the paper claims no difference: within this share of `worse`'s mean
    larger: bool = False  # of a metric that is neither good nor bad: the first row has more of it
    than: str = ""  # the first row's gain over the second, as a share, is larger in `subset` than in this one


@dataclass(frozen=True)
class Experiment:
    """Rows that are trained, filmed and scored alike."""

    rows: Mapping[str, Row]
    columns: tuple[str, ...] = ()  # shown first, in this order; the other measured ones follow
    tests: Mapping[str, TestSet] = field(default_factory=lambda: {"": TestSet()})  # by subset
    by_lens: bool = False  # pinhole and non-pinhole clips apart
    stride: int = 4
    stride_at_wan: int | None = None  # where the paper scores every frame; the embedded one reads every fourth
    baseline: str = ""  # what the other rows are compared with, clip by clip
    # Whose order the paper's printed numbers claim; empty: all with the baseline; None: they claim no order.
    pairs: tuple[tuple[str, str], ...] | None = ()
    claims: tuple[Claim, ...] = ()  # beyond those
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by scale, where not the scale's own
    needs: tuple[str, ...] = ()  # beyond those that rows, test sets and judges name
    radii: bool = False  # the radial head's own distances against those seen in the video (SSI-L1)
    maps: bool = False  # videos are scored against the clips' maps, also those of a row that was given worse ones
    measured_rows: tuple[str, ...] = ()  # rows that are measured and not trained: a teacher's, the truth's
    says: str = ""  # what the reader should know of this experiment: a sentence or two

    def __post_init__(self) -> None:
        known = {*self.rows, *self.measured_rows}
        named = {name for pair in self.pairs or () for name in pair} | {self.baseline} - {""}
        named |= {name for claim in self.claims for name in (claim.better, claim.worse)}
        if unknown := sorted(named - known):
            raise InputError("experiment", f"rows among {', '.join(sorted(known))}", ", ".join(unknown))

    def rows_at(self, scale: Scale) -> dict[str, Row]:
        return {name: row for name, row in self.rows.items() if scale.name in row.scales}

    def stride_at(self, scale: Scale) -> int:
        return self.stride if scale.is_world or self.stride_at_wan is None else self.stride_at_wan

    def judges_at(self, scale: Scale) -> tuple[str, ...]:
        return self.judges.get(scale.name, scale.judges)

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        """Places and programs that it takes at a scale, in the order in which they are first needed."""
        found: dict[str, None] = {}
        if not scale.is_world:
            rows = self.rows_at(scale).values()
            found["panshot"] = None
            found |= dict.fromkeys(row.labels for row in rows if row.learns_radii and not row.videos)
            found |= dict.fromkeys(test.place for test in self.tests.values())
            found |= dict.fromkeys(row.videos for row in rows if row.videos)
            found |= dict.fromkeys(self.judges_at(scale))
            found |= dict.fromkeys(self.needs)
        elif scale.name == "embedded":
            found["judge"] = None
        return tuple(found)
