"""What an experiment measured, and how sure it is: over clips, and over seeds of training where there are several.

Clips and seeds are two questions. The interval over clips says how much the test set decides; the one over seeds how
much chance in training does, which one run cannot tell however many clips it films.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from curvedray.evaluate.metrics.pose import NOISE_IF_STATIC
from curvedray.evaluate.report import MOVING
from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.statistics import LEVEL, Interval, bootstrap, resamples
from curvedray.extras import needed

ByClip = Mapping[str, float]
NOT_KNOWN = float("nan")
BY_LENGTH = {metric.name for metric in NOISE_IF_STATIC}  # divided by the length of the path


@dataclass(frozen=True)
class Spread:
    """A mean with its interval over clips and, of two seeds or more, over seeds."""

    over_clips: Interval
    over_seeds: Interval | None
    clips: int
    seeds: int

    @property
    def mean(self) -> float:
        return self.over_clips.mean

    def side_of(self, value: float = 0.0) -> int:
        """1 where every interval lies above a value, -1 below, 0 where one of them holds it or is not known."""
        known = [self.over_clips] if self.over_seeds is None else [self.over_clips, self.over_seeds]
        if all(interval.low > value for interval in known):
            return 1
        return -1 if all(interval.high < value for interval in known) else 0

    def to_json(self) -> dict[str, Any]:
        seeds = None if self.over_seeds is None else _record(self.over_seeds)
        return {"clips": self.clips, "seeds": self.seeds, "over_clips": _record(self.over_clips), "over_seeds": seeds}


@dataclass(frozen=True)
class Measured:
    """`values[row][metric]` holds a seed's values by clip, seed after seed; rows are "subset | setting" or a setting.

    `sets[row][metric]` holds what only a set of videos has (a Frechet distance), a number per seed.
    """

    values: Mapping[str, Mapping[str, Sequence[ByClip]]]
    sets: Mapping[str, Mapping[str, Sequence[float]]]
    failed: Mapping[str, Sequence[str]]

    def metrics(self) -> list[str]:
        """Every metric that some row has, in order of appearance."""
        rows = [*self.values.values(), *self.sets.values()]
        return list(dict.fromkeys(metric for row in rows for metric in row))

    def cell(self, row: str, metric: str) -> Spread | None:
        if metric in self.values.get(row, {}):
            return spread_of(self.values[row][metric])
        if metric in self.sets.get(row, {}):
            return _of_sets(self.sets[row][metric])
        return None

    def gain_apart(self, ours: str, theirs: str, metric: str, subset: str, than: str) -> Spread | None:
        """How much larger a share of theirs ours takes off in one subset than in another, whose clips are others."""
        tables = []
        for where in (subset, than):
            a, b = (self.values.get(f"{where} | {row}", {}).get(metric) for row in (ours, theirs))
            if not a or not b:
                return None
            clips = sorted(set.intersection(*(set(values) for values in (*a, *b))))
            tables.append([np.array([[seed[clip] for clip in clips] for seed in row]) for row in (a, b)])
        by_seed = [1 - x.mean(1) / y.mean(1) for x, y in tables]
        drawn = []
        for number, (x, y) in enumerate(tables):
            some = resamples(x.shape[1], seed=number)
            drawn.append(1 - x.mean(0)[some].mean(1) / y.mean(0)[some].mean(1))
        low, high = np.percentile(drawn[0] - drawn[1], [100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2])
        whole = [1 - x.mean() / y.mean() for x, y in tables]
        found = Interval(float(whole[0] - whole[1]), float(low), float(high))
        return Spread(found, over_seeds(by_seed[0] - by_seed[1]), min(x.shape[1] for x, _ in tables), len(by_seed[0]))

    def difference(self, ours: str, theirs: str, metric: str) -> Spread | None:
        """Ours - theirs by clip and seed, over what both have; a row that is not trained pairs with every seed."""
        a, b = (self.values.get(row, {}).get(metric) for row in (ours, theirs))
        if not a or not b:
            return None
        seeds = max(len(a), len(b))
        pairs = [(a[min(i, len(a) - 1)], b[min(i, len(b) - 1)]) for i in range(seeds)]
        gaps = [{clip: x[clip] - y[clip] for clip in sorted(x.keys() & y.keys())} for x, y in pairs]
        return spread_of(gaps) if all(gaps) else None


def spread_of(by_seed: Sequence[ByClip]) -> Spread:
    """Mean over clips and seeds. A clip's value is its mean over seeds; a seed's its mean over clips."""
    clips = sorted(set.intersection(*(set(values) for values in by_seed)))
    table = np.array([[values[clip] for clip in clips] for values in by_seed])
    return Spread(bootstrap(table.mean(0)), over_seeds(table.mean(1)), len(clips), len(by_seed))


def over_seeds(means: Float[np.ndarray, " s"]) -> Interval | None:
    """Student's interval of a mean over few runs; None of one run, which says nothing."""
    if len(means) < 2:
        return None
    needed("scipy")
    from scipy.stats import t

    half = float(t.ppf((1 + LEVEL) / 2, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)))
    return Interval(float(means.mean()), float(means.mean()) - half, float(means.mean()) + half)


def values_of(results: Iterable[ClipResult]) -> dict[str, dict[str, float]]:
    """metric -> clip -> value, of one seed's results. What divides by the path's length is there a second time, without
    the clips whose path has none."""
    table: dict[str, dict[str, float]] = {}
    for result in results:
        for score in () if result.failure else result.scores:
            table.setdefault(score.metric, {})[score.clip] = score.value
            if score.metric in BY_LENGTH and not result.near_static:
                table.setdefault(f"{score.metric}{MOVING}", {})[score.clip] = score.value
    return table


def by_seed(runs: Sequence[Sequence[ClipResult]]) -> dict[str, list[ByClip]]:
    """metric -> a seed's values by clip, for the metrics that every seed has."""
    tables = [values_of(results) for results in runs]
    return {metric: [table[metric] for table in tables] for metric in tables[0] if all(metric in i for i in tables)}


def _of_sets(values: Sequence[float]) -> Spread:
    mean = float(np.mean(values))
    return Spread(Interval(mean, NOT_KNOWN, NOT_KNOWN), over_seeds(np.array(values)), 0, len(values))


def _record(interval: Interval) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in vars(interval).items()}
