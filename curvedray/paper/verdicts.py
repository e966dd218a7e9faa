"""Does what was measured show what the paper claims? Shown, contradicted or undecided, computed from intervals.

A claim is an ordering of two rows in a metric. It is shown where the paired difference lies on the paper's side of zero
with its whole interval over clips (and over seeds, where there are several), contradicted where it lies on the other.
A claim that two rows are alike is shown where the whole difference stays within a share of their size; one that a gain
is larger in one subset, where the difference of the two gains, as shares, lies above zero. Fewer than eight
clips decide nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from curvedray.evaluate.report import interval_text
from curvedray.paper.catalogue import Item
from curvedray.paper.experiment import Claim, Experiment
from curvedray.paper.flow_losses import FLOW_LOSS
from curvedray.paper.measured import Measured, Spread

Word = Literal["shown", "contradicted", "undecided"]
CAMERA = "CamMC"  # whose order of rows is also looked for in the flow loss, where that is measured
FEWEST = 8  # clips: an interval over fewer says little of the others


@dataclass(frozen=True)
class Verdict:
    """A claim, the paired difference (better - worse) that was measured, and what it says."""

    claim: Claim
    difference: Spread
    word: Word

    @property
    def sentence(self) -> str:
        claim, found = self.claim, self.difference
        where = f", {claim.subset}" if claim.subset else ""
        says = f"{claim.better} {relation_of(claim)} {claim.worse}"
        margin = f" within {100 * claim.alike:.0f} %" if claim.alike else ""
        margin += f" by a larger share than with {claim.than}" if claim.than else ""
        seeds = "" if found.over_seeds is None else f"; over {found.seeds} seeds {interval_text(found.over_seeds)}"
        return (
            f"{claim.metric}{where}: {says}{margin}: **{self.word}** "
            f"(difference {interval_text(found.over_clips)} over {found.clips} clips{seeds})."
        )

    def to_json(self) -> dict[str, Any]:
        return {**vars(self.claim), "word": self.word, "difference": self.difference.to_json()}


def relation_of(claim: Claim) -> str:
    return "like" if claim.alike else "larger than" if claim.larger else "better than"


def claims_of(entry: Item, experiment: Experiment) -> list[Claim]:
    """The orderings of the paper's own printed numbers, for the experiment's pairs, and what it claims in words."""
    found = list(experiment.claims)
    if entry.values is None or experiment.pairs is None:
        return found
    columns, rows = entry.values
    settings = [name for name in experiment.rows if name != experiment.baseline]
    pairs = experiment.pairs or tuple((name, experiment.baseline) for name in settings if experiment.baseline)
    for subset in dict.fromkeys(_subset(name) for name in rows):
        for ours, theirs in pairs:
            a, b = (rows.get(f"{subset} | {name}" if subset else name) for name in (ours, theirs))
            if a is None or b is None:
                continue
            for column, x, y in zip(columns, a, b, strict=True):
                better = entry.direction(column)
                if better == "neither" or x == y:
                    continue
                order = (ours, theirs) if (x < y) == (better == "lower") else (theirs, ours)
                found.append(Claim(*order, column, subset))
                if column == CAMERA:
                    found.append(Claim(*order, FLOW_LOSS.name, subset))
    return found


def verdicts(entry: Item, claims: Sequence[Claim], measured: Measured) -> list[Verdict]:
    """A verdict on every claim whose metric was measured clip by clip for both rows."""
    found = []
    for claim in claims:
        if claim.than:
            apart = measured.gain_apart(claim.better, claim.worse, claim.metric, claim.subset, claim.than)
            if apart is not None:
                found.append(Verdict(claim, apart, _word(claim, apart, 1.0, "higher")))
            continue
        better, worse = (f"{claim.subset} | {name}" if claim.subset else name for name in (claim.better, claim.worse))
        difference = measured.difference(better, worse, claim.metric)
        whole = measured.cell(worse, claim.metric)
        if difference is not None and whole is not None:
            found.append(
                Verdict(claim, difference, _word(claim, difference, whole.mean, entry.direction(claim.metric)))
            )
    return found


def _word(claim: Claim, difference: Spread, size: float, better: str) -> Word:
    if difference.clips < FEWEST:
        return "undecided"
    if claim.alike:
        margin = claim.alike * abs(size)
        if difference.side_of(-margin) > 0 and difference.side_of(margin) < 0:
            return "shown"
        return "contradicted" if difference.side_of(margin) > 0 or difference.side_of(-margin) < 0 else "undecided"
    wanted = -1 if better == "lower" and not claim.larger else 1
    side = difference.side_of(0.0)
    if side == 0:
        return "undecided"
    return "shown" if side == wanted else "contradicted"


def summary(entry: Item, found: Sequence[Verdict]) -> str:
    """All verdicts in a sentence, those by the flow loss in one of their own: it is no metric of the paper's. Nor are
    the orderings of what we add to it."""
    whose = "" if entry.kind == "ours" else " of the paper"
    if not found:
        return f"None of the orderings{whose} could be tested by what was measured."
    others = [verdict.word for verdict in found if verdict.claim.metric != FLOW_LOSS.name]
    losses = [verdict.word for verdict in found if verdict.claim.metric == FLOW_LOSS.name]
    seeds = max(verdict.difference.seeds for verdict in found)
    runs = "one seed of training" if seeds == 1 else f"{seeds} seeds of training"
    said = f"Of {len(others)} orderings{whose} that could be tested: {counted(others)} ({runs})."
    return said + (f" In the flow loss, which is ours: {counted(losses)}." if losses else "")


def counted(words: Sequence[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{counts[word]} {word}" for word in get_args(Word))


def _subset(name: str) -> str:
    return name.partition(" | ")[0] if " | " in name else ""
