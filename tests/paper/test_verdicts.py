"""What was measured decides what is said of the paper: intervals over clips and seeds, and a word for each claim."""

from dataclasses import replace

import numpy as np
import pytest

from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.scores import Score
from curvedray.paper.catalogue import item
from curvedray.paper.experiment import Claim, Experiment, Row
from curvedray.paper.flow_losses import FLOW_LOSS
from curvedray.paper.judging import merged, share_of_words
from curvedray.paper.measured import Measured, by_seed, spread_of
from curvedray.paper.runner import runner_of
from curvedray.paper.tables import rank_sentence
from curvedray.paper.verdicts import claims_of, summary, verdicts

CLIPS = [f"clip-{i}" for i in range(24)]
LENSES = item("lenses")


def measured(seeds=1, **means):
    """Rows whose clips scatter alike, so that differences between rows are exact."""
    scatter = np.random.default_rng(0).normal(size=len(CLIPS))
    values = {
        row: {"CamMC": [{c: mean + x + 0.01 * s for c, x in zip(CLIPS, scatter, strict=True)} for s in range(seeds)]}
        for row, mean in means.items()
    }
    return Measured(values, {}, {})


def word(claim, found):
    (verdict,) = verdicts(LENSES, [claim], found)
    return verdict.word


def test_an_order_is_shown_contradicted_or_undecided_by_its_interval():
    claim = Claim("a", "b", "CamMC")
    assert word(claim, measured(a=1.0, b=2.0)) == "shown"
    assert word(claim, measured(a=2.0, b=1.0)) == "contradicted"
    assert word(claim, measured(a=1.0, b=1.0)) == "undecided"


def test_a_difference_pairs_clips_so_that_what_is_hard_for_both_cancels():
    gap = measured(a=1.0, b=1.1).difference("a", "b", "CamMC")
    assert gap.mean == pytest.approx(-0.1)
    assert gap.over_clips.high - gap.over_clips.low < 1e-6  # while each row alone scatters by 1
    assert gap.clips == len(CLIPS)


def test_a_gain_that_is_larger_in_one_subset_is_told_from_one_that_is_not():
    """By shares: 2 of 4 is more than 2 of 10, and no more than 5 of 10."""

    def rows(bent, straight):
        spread = np.random.default_rng(0).normal(scale=0.1, size=len(CLIPS))
        means = {"bent | ours": bent, "bent | theirs": 4.0, "straight | ours": straight, "straight | theirs": 10.0}
        by_clip = {row: {c: mean * (1 + s) for c, s in zip(CLIPS, spread, strict=True)} for row, mean in means.items()}
        return Measured({row: {"CamMC": [values]} for row, values in by_clip.items()}, {}, {})

    claim = Claim("ours", "theirs", "CamMC", "bent", than="straight")
    assert word(claim, rows(2.0, 8.0)) == "shown"
    assert word(claim, rows(2.0, 5.0)) == "undecided"
    assert word(claim, rows(3.9, 2.0)) == "contradicted"
    (found,) = verdicts(LENSES, [claim], rows(2.0, 8.0))
    assert found.difference.mean == pytest.approx(0.3)
    assert "ours better than theirs by a larger share than with straight" in found.sentence
    assert verdicts(LENSES, [claim], measured(ours=1.0, theirs=2.0)) == []


def test_the_average_rank_is_over_the_papers_columns_alone():
    """It once counted ours too, and near-static clips twice."""
    columns = ("CamMC", "RotErr", "k1", "CamMC (moving)", "Flow loss", "Words")
    means = {"ucpe": dict.fromkeys(columns, 1.0), "crepe": dict.fromkeys(columns, 2.0)}
    said = rank_sentence(item("overall"), means, columns)
    assert said == "Average rank over 4 metrics (CamMC, RotErr, k1, Words): ucpe 1.25, crepe 1.75."
    assert rank_sentence(item("overall"), means, columns[1:3]) == ""
    assert rank_sentence(item("query-rotation"), means, columns) == ""


def test_seeds_must_agree_too():
    """One row is better with every seed but by amounts that scatter more than they are large."""
    noisy = {"a": [dict.fromkeys(CLIPS, x) for x in (0.9, 1.0, -3.0)], "b": [dict.fromkeys(CLIPS, 1.5)] * 3}
    found = Measured({row: {"CamMC": values} for row, values in noisy.items()}, {}, {})
    gap = found.difference("a", "b", "CamMC")
    assert gap.over_clips.high < 0 < gap.over_seeds.high
    assert word(Claim("a", "b", "CamMC"), found) == "undecided"
    steady = measured(3, a=1.0, b=2.0)
    assert word(Claim("a", "b", "CamMC"), steady) == "shown"
    assert "over 3 seeds" in verdicts(LENSES, [Claim("a", "b", "CamMC")], steady)[0].sentence


def test_a_row_that_is_not_trained_pairs_with_every_seed():
    values = {"a": {"CamMC": [dict.fromkeys(CLIPS, 1.0), dict.fromkeys(CLIPS, 2.0)]}}
    values["b"] = {"CamMC": [dict.fromkeys(CLIPS, 4.0)]}
    gap = Measured(values, {}, {}).difference("a", "b", "CamMC")
    assert (gap.mean, gap.seeds) == (-2.5, 2)


def test_alike_is_a_claim_that_a_difference_stays_within_a_share():
    claim = Claim("a", "b", "CamMC", alike=0.1)
    assert word(claim, measured(a=10.1, b=10.0)) == "shown"
    assert word(claim, measured(a=13.0, b=10.0)) == "contradicted"
    wide = {"a": {"CamMC": [{c: 10 + x for c, x in zip(CLIPS, np.linspace(-9, 9, 24), strict=True)}]}}
    wide["b"] = {"CamMC": [dict.fromkeys(CLIPS, 10.0)]}
    assert word(claim, Measured(wide, {}, {})) == "undecided"


def test_few_clips_decide_nothing():
    few = {row: {"CamMC": [dict.fromkeys(CLIPS[:3], value)]} for row, value in (("a", 1.0), ("b", 2.0))}
    assert word(Claim("a", "b", "CamMC"), Measured(few, {}, {})) == "undecided"


def test_larger_is_for_what_is_neither_good_nor_bad():
    values = {row: {"width": [dict.fromkeys(CLIPS, x)]} for row, x in (("dynamic", 1.2), ("static", 0.8))}
    (verdict,) = verdicts(
        item("dynamic-regions"), [Claim("dynamic", "static", "width", larger=True)], Measured(values, {}, {})
    )
    assert verdict.word == "shown"
    assert "larger than" in verdict.sentence


def test_claims_are_the_printed_orders_of_the_paper():
    rows = {name: Row() for name in ("recammaster", "ucpe", "crepe")}
    claims = claims_of(LENSES, Experiment(rows, pairs=(("crepe", "ucpe"),)))
    assert {claim.subset for claim in claims} == {"pinhole", "non-pinhole"}
    assert all((claim.better, claim.worse) == ("crepe", "ucpe") for claim in claims)  # CRePE leads every column
    overall = claims_of(item("overall"), Experiment(rows, pairs=(("crepe", "ucpe"),)))
    assert {claim.metric for claim in overall if claim.better == "ucpe"} == {"FVD", "FVD-C", "IS", "Subject Cons."}


def test_the_summary_counts():
    found = verdicts(LENSES, [Claim("a", "b", "CamMC"), Claim("b", "a", "CamMC")], measured(a=1.0, b=2.0))
    words = "Of 2 orderings of the paper that could be tested: 1 shown, 1 contradicted, 0"
    assert summary(LENSES, found).startswith(words)
    assert "None" in summary(LENSES, [])
    ours = replace(found[0], claim=replace(found[0].claim, metric=FLOW_LOSS.name))
    said = summary(LENSES, [*found, ours])  # counted apart: the paper has no such metric
    assert said.startswith("Of 2 orderings of the paper")
    assert said.endswith("In the flow loss, which is ours: 1 shown, 0 contradicted, 0 undecided.")


def test_the_paper_is_said_to_claim_what_it_claims_and_no_more():
    """The orderings of what we add were called the paper's, and those by the flow loss its order by CamMC, which they
    need not follow."""
    entry = item("query-rotation")
    found = verdicts(entry, [Claim("a", "b", "CamMC")], measured(a=1.0, b=2.0))
    ours = replace(found[0], claim=replace(found[0].claim, metric=FLOW_LOSS.name))
    for said in (summary(entry, []), summary(entry, [*found, ours])):
        assert "paper" not in said
        assert "CamMC" not in said
    assert "CamMC" not in summary(item("adherence"), [ours])


def test_one_run_says_nothing_about_seeds():
    alone = spread_of([dict.fromkeys(CLIPS, 1.0)])
    assert alone.over_seeds is None
    two = spread_of([dict.fromkeys(CLIPS, 1.0), dict.fromkeys(CLIPS, 3.0)])
    assert (two.mean, two.seeds) == (2.0, 2)
    assert two.over_seeds.low < 1 < 3 < two.over_seeds.high  # two runs hardly bound a mean


def test_two_judges_make_one_result_and_no_number_counts_twice():
    def result(*scores, failure=""):
        return ClipResult("a", [Score("a", name, value, "-", "lower") for name, value in scores], failure)

    both = merged(result(("CamMC", 1.0)), result(("CamMC", 2.0), ("k1", 3.0)))
    assert by_seed([[both]]) == {"CamMC": [{"a": 1.0}], "CamMC (moving)": [{"a": 1.0}], "k1": [{"a": 3.0}]}
    assert "CamMC (moving)" not in by_seed([[replace(both, near_static=True)]])
    assert item("lenses").direction("CamMC (moving)") == "lower"
    assert merged(result(failure="no"), result(("k1", 3.0))).scores
    assert merged(result(("k1", 3.0)), result(failure="no")).scores


def test_words_that_name_something_are_what_counts():
    caption = "a red ball and a blue box in a desert courtyard"
    assert share_of_words(caption, "reads as desert, red ball, blue box") == 1
    assert share_of_words(caption, "reads as snowy, red ball, blue pillar") == pytest.approx(3 / 5)


def test_where_the_paper_claims_no_difference_no_order_is_counted():
    """The printed numbers of two rows that are claimed to be alike are no claim that one is better."""
    for name in ("teacher-width", "alternate-teacher"):
        experiment = runner_of(item(name)).experiment
        assert experiment.claims
        assert all(claim.alike for claim in claims_of(item(name), experiment))


def test_the_papers_order_by_cammc_is_also_looked_for_in_the_flow_loss():
    entry, experiment = item("lenses"), runner_of(item("lenses")).experiment
    claims = claims_of(entry, experiment)
    orders = {
        metric: {(c.better, c.worse, c.subset) for c in claims if c.metric == metric}
        for metric in ("Flow loss", "CamMC")
    }
    assert orders["Flow loss"] == orders["CamMC"] != set()
