"""How sure are we? Bootstrap intervals over clips and over seeds of training, paired differences, average ranks.

n clip   s seed   b bootstrap draw
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from curvedray.errors import InputError
from curvedray.extras import needed

DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over clips and its percentile bootstrap interval (95 % unless said otherwise)."""

    mean: float
    low: float
    high: float

    def excludes(self, value: float = 0.0) -> bool:
        """Whether the interval leaves a value out; one that is not known (a single clip) leaves nothing out."""
        return value < self.low or value > self.high


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and clips, and how far it would move with other clips, other seeds, or both at once.

    `both` decides whether two methods differ. `seeds` alone is NaN for one seed, and `both` is then `clips`.
    """

    clips: Interval
    seeds: Interval
    both: Interval

    @property
    def mean(self) -> float:
        return self.both.mean

    def excludes(self, value: float = 0.0) -> bool:
        """Whether the interval over clips and seeds leaves a value out."""
        return self.both.excludes(value)


def resamples(clips: int, draws: int = DRAWS, seed: int = 0) -> Int[np.ndarray, "b n"]:
    """Indices of clips drawn with replacement; the same for the same number of clips, so that differences pair."""
    return np.random.default_rng(seed).integers(0, clips, (draws, clips))


def bootstrap(values: Float[np.ndarray, " n"], draws: int = DRAWS, seed: int = 0, level: float = LEVEL) -> Interval:
    """The mean over clips with its percentile interval. One clip says nothing about spread: its interval is NaN."""
    if values.size == 0:
        raise InputError("bootstrap", "at least one clip", "none")
    mean = float(values.mean())
    if values.size == 1:
        return Interval(mean, float("nan"), float("nan"))
    return _percentiles(mean, values[resamples(values.size, draws, seed)].mean(1), level)


def bootstrap_seeds(
    values: Float[np.ndarray, "s n"], draws: int = DRAWS, seed: int = 0, level: float = LEVEL
) -> Spread:
    """The mean over seeds and clips with its three intervals, from one value per seed and clip.

    Every draw of `both` takes seeds and clips with replacement, each on its own, and all the values where they cross.
    With fewer than six seeds the interval over seeds is hardly more than their range, which is too narrow.
    """
    if values.size == 0:
        raise InputError("bootstrap", "at least one seed and one clip", "none")
    seeds, clips = values.shape
    over_clips, over_seeds = (
        bootstrap(values.mean(0), draws, seed, level),
        bootstrap(values.mean(1), draws, seed, level),
    )
    if seeds == 1 or clips == 1:
        return Spread(over_clips, over_seeds, over_clips if seeds == 1 else over_seeds)
    # A draw's mean is w' values w / (s n), w the number of times each was taken; other draws for seeds than for clips.
    weight_of_seed = _counts(resamples(seeds, draws, seed + 1), seeds)
    weight_of_clip = _counts(resamples(clips, draws, seed), clips)
    means = ((weight_of_seed @ values) * weight_of_clip).sum(1) / values.size
    return Spread(over_clips, over_seeds, _percentiles(float(values.mean()), means, level))


def correlation(
    asked: Float[np.ndarray, " n"], found: Float[np.ndarray, " n"], draws: int = DRAWS, seed: int = 0
) -> Interval:
    """Pearson's r over clips with its percentile interval; NaN where one of the two does not vary."""
    if asked.std() == 0 or found.std() == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    drawn = resamples(len(asked), draws, seed)
    a, b = (x[drawn] - x[drawn].mean(1, keepdims=True) for x in (asked, found))
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    many = (a * b).sum(1)[size > 0] / size[size > 0]  # a draw of one clip over and over has no correlation
    return _percentiles(float(np.corrcoef(asked, found)[0, 1]), many)


def paired_difference(
    ours: Mapping[str, float], theirs: Mapping[str, float], draws: int = DRAWS, seed: int = 0
) -> tuple[Interval, int]:
    """Mean of ours - theirs over the clips both have, its interval, and how many clips those are.

    Each clip is compared with itself, so what makes a clip hard for both cancels.
    """
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        raise InputError("paired difference", "clips that both have scores for", "none in common")
    return bootstrap(np.array([ours[clip] - theirs[clip] for clip in shared]), draws, seed), len(shared)


def paired_difference_of_seeds(
    ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], draws: int = DRAWS, seed: int = 0
) -> tuple[Spread, int]:
    """Mean of ours - theirs over seeds and the clips that every seed of both has, its intervals, and how many clips.

    Runs of one seed are compared with each other (they saw the same clips in the same order); what was never trained
    has a single run, which every seed is compared with.
    """
    if len(ours) != len(theirs) and 1 not in (len(ours), len(theirs)):
        raise InputError("paired difference", f"{len(ours)} seeds of both, or a single run of one", len(theirs))
    a, b = seeds_by_clips(ours), seeds_by_clips(theirs)
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise InputError("paired difference", "clips that every seed of both has scores for", "none in common")
    gap = np.stack([a[clip] - b[clip] for clip in shared], axis=1)
    return bootstrap_seeds(gap, draws, seed), len(shared)


def seeds_by_clips(runs: Sequence[Mapping[str, float]]) -> dict[str, Float[np.ndarray, " s"]]:
    """The values of every clip that all runs scored, one per run."""
    if not runs:
        return {}
    shared = sorted(set.intersection(*(set(run) for run in runs)))
    return {clip: np.array([run[clip] for run in runs], dtype=np.float64) for clip in shared}


def average_rank(
    table: Mapping[str, Mapping[str, float]], better: Mapping[str, str]
) -> tuple[dict[str, float], list[str]]:
    """Mean rank of every method over metrics (1 is best, ties share their mean rank), and the metrics counted.

    `table[method][metric]`. A metric that a method lacks, or that has no better direction, is not counted.
    """
    methods = list(table)
    everyone = [metric for metric in better if all(metric in table[method] for method in methods)]
    counted = [metric for metric in everyone if better[metric] in ("lower", "higher")]
    if not methods or not counted:
        raise InputError("average rank", "a metric with a better direction that every method has", "none")
    sign = np.array([1.0 if better[metric] == "lower" else -1.0 for metric in counted])
    values = np.array([[table[method][metric] for metric in counted] for method in methods])
    if np.isnan(values).any():
        method, metric = (int(index[0]) for index in np.nonzero(np.isnan(values)))
        raise InputError(
            "average rank", "a number for every method and metric", f"NaN for {methods[method]}, {counted[metric]}"
        )
    needed("scipy")
    from scipy.stats import rankdata

    ranks = rankdata(values * sign, axis=0).mean(1)
    return {method: float(rank) for method, rank in zip(methods, ranks, strict=True)}, counted


def strata(xi: Sequence[float]) -> list[str]:
    """The paper's split: a clip is pinhole where xi = 0, non-pinhole elsewhere."""
    return ["pinhole" if value == 0 else "non-pinhole" for value in xi]


def _counts(drawn: Int[np.ndarray, "b n"], size: int) -> Float[np.ndarray, "b n"]:
    """How often each index was drawn."""
    rows = np.arange(len(drawn))[:, None] * size
    return np.bincount((rows + drawn).ravel(), minlength=drawn.size).reshape(len(drawn), size).astype(np.float64)


def _percentiles(mean: float, means: Float[np.ndarray, " b"], level: float = LEVEL) -> Interval:
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    return Interval(mean, float(low), float(high))
