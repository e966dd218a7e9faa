"""How sure are we? Bootstrap intervals over clips, paired differences, average ranks.

n clip   b bootstrap draw
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
    means = values[resamples(values.size, draws, seed)].mean(1)
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    return Interval(mean, float(low), float(high))


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
    low, high = np.percentile(many, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Interval(float(np.corrcoef(asked, found)[0, 1]), float(low), float(high))


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
    needed("scipy")
    from scipy.stats import rankdata

    ranks = rankdata(values * sign, axis=0).mean(1)
    return {method: float(rank) for method, rank in zip(methods, ranks, strict=True)}, counted


def strata(xi: Sequence[float]) -> list[str]:
    """The paper's split: a clip is pinhole where xi = 0, non-pinhole elsewhere."""
    return ["pinhole" if value == 0 else "non-pinhole" for value in xi]
