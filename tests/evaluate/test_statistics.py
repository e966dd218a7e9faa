"""Statistics: how often intervals cover the truth, what pairing cancels, ranks worked by hand."""

import math

import numpy as np
import pytest

from curvedray.errors import InputError
from curvedray.evaluate import (
    average_rank,
    bootstrap,
    bootstrap_seeds,
    group_by,
    paired_difference,
    paired_difference_of_seeds,
)
from curvedray.evaluate.scores import Score
from curvedray.evaluate.statistics import correlation, strata


def test_bootstrap_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = sum(not bootstrap(rng.normal(3, 1, 40), draws=400, seed=k).excludes(3) for k in range(200))
    assert 0.89 <= hits / 200 <= 0.99


def test_bootstrap_is_seeded_and_one_clip_has_no_interval():
    values = np.random.default_rng(0).normal(size=20)
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(values) != bootstrap(values, seed=1)
    assert math.isnan(bootstrap(values[:1]).low)
    assert not bootstrap(values[:1]).excludes(99)
    assert bootstrap(np.full(5, 2.0)) == bootstrap(np.full(5, 2.0))
    assert (bootstrap(np.full(5, 2.0)).low, bootstrap(np.full(5, 2.0)).high) == (2, 2)


def test_correlation_and_its_interval():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    noisy = correlation(a, a + rng.normal(size=60))
    assert noisy.low < noisy.mean < noisy.high
    assert noisy.mean == pytest.approx(np.corrcoef(a, a)[0, 1] / math.sqrt(2), abs=0.15)
    assert correlation(a, -3 * a + 1).high == pytest.approx(-1)
    assert math.isnan(correlation(a, np.ones(60)).mean)


def test_pairing_cancels_what_is_hard_for_both():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, 30)
    ours = {str(k): hard[k] for k in range(30)}
    theirs = {str(k): hard[k] + 0.5 + rng.normal(0, 0.1) for k in range(30)}
    difference, clips = paired_difference(ours, theirs | {"only theirs": 99.0})
    assert clips == 30
    assert difference.mean == pytest.approx(-0.5, abs=0.1)
    assert difference.excludes(0)
    with pytest.raises(InputError, match="in common"):
        paired_difference({"a": 1.0}, {"b": 1.0})


def test_average_rank_with_ties_and_a_metric_nobody_ranks():
    table = {
        "a": {"RotErr": 1.0, "CS-T": 5.0, "IS Std.": 1.0, "FVD": 3.0},
        "b": {"RotErr": 1.0, "CS-T": 7.0, "IS Std.": 2.0},
        "c": {"RotErr": 2.0, "CS-T": 6.0, "IS Std.": 3.0},
    }
    better = {"RotErr": "lower", "CS-T": "higher", "IS Std.": "neither", "FVD": "lower"}
    ranks, counted = average_rank(table, better)
    assert ranks == {"a": (1.5 + 3) / 2, "b": (1.5 + 1) / 2, "c": (3 + 2) / 2}
    assert counted == ["RotErr", "CS-T"]


def test_a_clip_is_pinhole_only_without_distortion():
    assert strata([0.0, 0.3]) == ["pinhole", "non-pinhole"]


def test_tables_are_a_group_by():
    scores = [Score(f"{k}", "RotErr", float(k), "rad", "lower") for k in range(4)]
    cells = group_by(scores, lambda score: "even" if int(score.clip) % 2 == 0 else "odd")
    assert [(cell.group, cell.clips, cell.interval.mean) for cell in cells] == [("even", 2, 1.0), ("odd", 2, 2.0)]
    with pytest.raises(InputError, match="twice"):
        group_by([*scores, scores[0]])


# -- seeds


def runs(rng: np.random.Generator, seeds: int, clips: int, of_seed: float, of_clip: float, noise: float) -> np.ndarray:
    """Values whose true mean is 3: an effect of the seed, one of the clip, and noise."""
    return (
        3
        + rng.normal(0, of_seed, (seeds, 1))
        + rng.normal(0, of_clip, (1, clips))
        + rng.normal(0, noise, (seeds, clips))
    )


def test_the_interval_over_both_covers_the_truth_where_the_one_over_clips_does_not():
    rng = np.random.default_rng(0)
    many = [bootstrap_seeds(runs(rng, 8, 30, 1.0, 1.0, 0.5), draws=400) for _ in range(150)]
    assert sum(not spread.excludes(3) for spread in many) / 150 >= 0.88
    assert sum(not spread.clips.excludes(3) for spread in many) / 150 < 0.8  # blind to what a seed does


def test_without_an_effect_of_seeds_both_is_the_interval_over_clips():
    values = np.tile(np.random.default_rng(0).normal(size=(1, 25)), (4, 1))
    spread = bootstrap_seeds(values)
    assert spread.seeds.low == pytest.approx(spread.seeds.high)
    assert spread.both.low == pytest.approx(spread.clips.low)
    assert spread.both.high == pytest.approx(spread.clips.high)
    assert spread.clips == bootstrap(values[0])


def test_draws_of_seeds_and_clips_cross():
    """The matrix form is the mean over the drawn rows and columns."""
    from curvedray.evaluate.statistics import resamples

    values = np.random.default_rng(0).normal(size=(3, 5))
    rows, columns = resamples(3, 200, 1), resamples(5, 200, 0)
    means = [values[np.ix_(row, column)].mean() for row, column in zip(rows, columns, strict=True)]
    expected = np.percentile(means, [2.5, 97.5])
    spread = bootstrap_seeds(values, draws=200)
    assert (spread.both.low, spread.both.high) == pytest.approx(tuple(expected))
    assert spread.mean == pytest.approx(values.mean())


def test_one_seed_has_no_interval_over_seeds_and_one_clip_none_over_clips():
    values = np.random.default_rng(0).normal(size=(1, 12))
    alone = bootstrap_seeds(values)
    assert math.isnan(alone.seeds.low)
    assert alone.both == alone.clips == bootstrap(values[0])
    turned = bootstrap_seeds(values.T)
    assert math.isnan(turned.clips.low)
    assert turned.both == turned.seeds
    with pytest.raises(InputError, match="at least one"):
        bootstrap_seeds(np.zeros((0, 4)))


def test_seeds_are_paired_and_what_was_never_trained_is_compared_with_each():
    rng = np.random.default_rng(0)
    base = runs(rng, 3, 20, 2.0, 5.0, 0.01)
    ours = [{str(clip): row[clip] for clip in range(20)} for row in base]
    theirs = [{clip: value + 0.5 for clip, value in run.items()} for run in ours]
    theirs[1].pop("7")  # a clip that failed once is compared in no seed
    spread, clips = paired_difference_of_seeds(ours, theirs)
    assert clips == 19
    assert spread.mean == pytest.approx(-0.5)
    assert spread.excludes(0)
    single, clips = paired_difference_of_seeds(ours, [{str(clip): 0.0 for clip in range(20)}])
    assert clips == 20
    assert single.mean == pytest.approx(base.mean())
    assert single.seeds.low < single.seeds.mean < single.seeds.high
    with pytest.raises(InputError, match="seeds"):
        paired_difference_of_seeds(ours, theirs[:2])
    with pytest.raises(InputError, match="in common"):
        paired_difference_of_seeds([{"a": 1.0}], [{"b": 1.0}])


def test_a_rank_of_nan_is_refused():
    with pytest.raises(InputError, match="NaN for b, RotErr"):
        average_rank({"a": {"RotErr": 1.0}, "b": {"RotErr": math.nan}}, {"RotErr": "lower"})
