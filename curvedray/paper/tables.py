"""The paper's numbers alone, and ours beside them: which is best, and whether the order is the paper's."""

from collections.abc import Mapping, Sequence

from curvedray.errors import InputError
from curvedray.evaluate.report import ARROWS, interval_text, number_text
from curvedray.evaluate.statistics import Interval, average_rank
from curvedray.paper.items import Item
from curvedray.tables import markdown_table


def papers_table(entry: Item) -> str:
    """The paper's numbers as Markdown, its best in bold, what is odd about them below."""
    if entry.values is None:
        raise InputError(f"{entry.kind} {entry.name}", "one with numbers", "one without")
    columns, rows = entry.values
    best = _best(entry, columns, {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()})
    cells = []
    for name, row in rows.items():
        numbers = zip(columns, row, strict=True)
        shown = [f"**{value:g}**" if (name, column) in best else f"{value:g}" for column, value in numbers]
        cells.append([_row_name(name), *shown])
    return "\n".join([markdown_table(_head(entry, columns), cells), *_notes(entry)]) + "\n"


def side_by_side(entry: Item, ours: Mapping[str, Mapping[str, Interval]], how: str) -> str:
    """Ours with 95 % intervals, the paper's in brackets after them, and whether the order is the same.

    `ours[row][metric]`, rows named as the paper's where they are the same setting; `how` says what was run.
    """
    if entry.values is None:
        raise InputError(f"{entry.kind} {entry.name}", "one with numbers", "one without")
    columns, rows = entry.values
    theirs = {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()}
    shown = list(dict.fromkeys(metric for row in ours.values() for metric in row))
    means = {name: {metric: interval.mean for metric, interval in row.items()} for name, row in ours.items()}
    best = _best(entry, tuple(shown), means)
    table = []
    for name, row in ours.items():
        cells = [_row_name(name)]
        for metric in shown:
            text = interval_text(row[metric]) if metric in row else "-"
            text = f"**{text}**" if (name, metric) in best else text
            printed = theirs.get(name, {}).get(metric)
            cells.append(text if printed is None else f"{text} (paper {printed:g})")
        table.append(cells)
    lines = [
        how,
        "",
        markdown_table(_head(entry, shown), table),
        "",
        "Best of a column (within a subset) in bold. Absolute values differ: another model, data and estimator.",
        "",
    ]
    lines += [f"- {sentence}" for sentence in orderings(entry, means, theirs)]
    ranks = _rank_sentence(entry, means, shown)
    return "\n".join([*lines, *([ranks] if ranks else []), *_notes(entry)]) + "\n"


def orderings(
    entry: Item, ours: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """For every metric and subset that both have: is the order from best to worst the paper's? Said either way."""
    sentences = []
    for subset in dict.fromkeys(_subset(name) for name in ours):
        names = [name for name in ours if _subset(name) == subset and name in theirs]
        for metric in dict.fromkeys(metric for name in names for metric in ours[name] if metric in theirs[name]):
            sign = 1 if entry.direction(metric) == "lower" else -1
            both = [name for name in names if metric in ours[name]]
            if len(both) < 2:
                continue
            mine = sorted(both, key=lambda name: sign * ours[name][metric])
            paper = sorted(both, key=lambda name: sign * theirs[name][metric])
            short = [_setting(name) for name in mine]
            where = f"{metric}, {subset}" if subset else metric
            if mine == paper:
                sentences.append(f"{where}: the paper's order ({', '.join(short)}).")
            else:
                other = ", ".join(_setting(name) for name in paper)
                sentences.append(f"{where}: **not the paper's order**. Ours {', '.join(short)}; the paper's {other}.")
    return sentences


def _best(entry: Item, columns: tuple[str, ...], rows: Mapping[str, Mapping[str, float]]) -> set[tuple[str, str]]:
    """(row, column) of the best value of every column within its subset; ties are all best."""
    best = set()
    for subset in {_subset(name) for name in rows}:
        names = [name for name in rows if _subset(name) == subset]
        for column in columns:
            present = [name for name in names if column in rows[name]]
            better = entry.direction(column)
            if len(present) > 1 and better != "neither":
                pick = min if better == "lower" else max
                top = pick(rows[name][column] for name in present)
                best |= {(name, column) for name in present if rows[name][column] == top}
    return best


def _rank_sentence(entry: Item, means: Mapping[str, Mapping[str, float]], shown: list[str]) -> str:
    if len({_subset(name) for name in means}) > 1 or len(means) < 2:
        return ""
    ranks, counted = average_rank(means, {metric: entry.direction(metric) for metric in shown})
    said = ", ".join(f"{name} {number_text(rank)}" for name, rank in ranks.items())
    return f"\nAverage rank over {len(counted)} metrics ({', '.join(counted)}): {said}."


def _head(entry: Item, columns: Sequence[str]) -> list[str]:
    return ["setting", *(f"{column} {ARROWS[entry.direction(column)]}".strip() for column in columns)]


def _notes(entry: Item) -> list[str]:
    return ["", *(f"- On the paper's numbers: {note}" for note in entry.notes)] if entry.notes else []


def _row_name(name: str) -> str:
    """A row's name as a reader sees it: its subset, if it has one, and its setting."""
    return name.replace(" | ", ", ")


def _subset(name: str) -> str:
    return name.partition(" | ")[0] if " | " in name else ""


def _setting(name: str) -> str:
    return name.partition(" | ")[2] or name
