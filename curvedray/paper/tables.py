"""The paper's numbers alone, and ours beside them: which is best, how sure it is, whether the claims hold."""

from collections.abc import Mapping, Sequence

from curvedray.errors import InputError
from curvedray.evaluate.report import ARROWS, definition_of, interval_text, number_text
from curvedray.evaluate.scores import Metric
from curvedray.evaluate.statistics import average_rank
from curvedray.paper.catalogue import Item
from curvedray.paper.experiment import Experiment
from curvedray.paper.features import METRICS as SET_METRICS
from curvedray.paper.flow_losses import FLOW_LOSS
from curvedray.paper.judging import SELF, WORDS, Judges
from curvedray.paper.measured import Measured, Spread
from curvedray.paper.provenance import Provenance
from curvedray.paper.setting import Setting
from curvedray.paper.verdicts import Verdict, summary
from curvedray.tables import markdown_table

# Of radial heads, which are read and not filmed; `delta_1` among them is of a whole clip, without a scale.
HEAD_METRICS = (
    Metric("log-MAE", "log", "lower", "Mean |mu - log target| over a kind of token of a clip."),
    Metric("width", "log", "neither", "Mean |sigma|: half the predicted interval of log radius."),
    *(
        Metric(i, "log", "lower", f"Median over frames of |change of the {i} of log r|.")
        for i in ("median", "q1", "q3", "iqr")
    ),
    Metric("drift", "log", "lower", "Median over frames of |change of the median of log r - that of the exact one|."),
    Metric("radial error", "log", "lower", "Mean |mu - log target| over the tokens of a clip whose radius is known."),
)
OWN = {metric.name: metric for metric in (WORDS, SELF, FLOW_LOSS, *SET_METRICS, *HEAD_METRICS)}
STAND_INS = tuple(metric.name for metric in (WORDS, *SET_METRICS))  # for what only real networks tell
NOT_SHOWN = ("Frames found", "Reprojection", "Inliers")  # of the estimator, not of a method


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
        cells.append([row_name(name), *shown])
    return "\n".join([markdown_table(_head(entry, columns), cells), *_notes(entry)]) + "\n"


def comparison_page(
    entry: Item,
    experiment: Experiment,
    setting: Setting,
    measured: Measured,
    found: Sequence[Verdict],
    judges: Judges,
    made: Provenance,
    how: str = "",
) -> str:
    """A table's page: how it was run, the table, what it says of the paper's claims, differences, definitions."""
    columns = columns_of(entry, experiment, measured)
    lines = [f"# {entry.title}", "", *made.lines(), ""]
    lines += [how or how_it_was_run(experiment, setting, measured, judges), ""]
    lines += [our_table(entry, measured, columns), "", LEGEND.format(seeds=SEEDS if setting.seeds > 1 else ""), ""]
    lines += [f"**{summary(entry, found)}**", "", *(f"- {verdict.sentence}" for verdict in found), ""]
    means = {row: {c: cell.mean for c in columns if (cell := measured.cell(row, c))} for row in measured.values}
    ranks = rank_sentence(entry, means, columns)
    lines += [ranks, ""] if ranks else []
    lines += [differences(entry, experiment, measured, columns), ""] if experiment.baseline else []
    lines += ["Columns:", "", *(f"- {one}" for one in definitions(columns)), *_notes(entry)]
    lines += ["", "Not measured, for want of:", "", *(f"- {one}" for one in judges.missing)] if judges.missing else []
    return "\n".join(lines) + "\n"


LEGEND = (
    "Means with 95 % bootstrap intervals over clips{seeds}; in brackets the number of clips and the paper's value. "
    "Best of a column (within a subset) in bold. Absolute values compare with the paper's only where model, data and "
    "estimators are its own."
)
SEEDS = ", then with Student's interval over seeds of training"


def columns_of(entry: Item, experiment: Experiment, measured: Measured) -> list[str]:
    """The experiment's own columns, then the paper's, then all else that was measured."""
    present = [metric for metric in measured.metrics() if metric not in NOT_SHOWN]
    papers = entry.values[0] if entry.values else ()
    first = [column for column in (*experiment.columns, *papers) if column in present]
    return list(dict.fromkeys([*first, *present]))


def our_table(entry: Item, measured: Measured, columns: Sequence[str]) -> str:
    theirs = _printed(entry)
    cells = {row: {c: cell for c in columns if (cell := measured.cell(row, c))} for row in measured.values}
    best = _best(entry, columns, {row: {c: cell.mean for c, cell in i.items()} for row, i in cells.items()})
    table = []
    for row, by_column in cells.items():
        line = [row_name(row)]
        for column in columns:
            cell, paper = by_column.get(column), theirs.get(row, {}).get(column)
            text = "-" if cell is None else spread_text(cell)
            text = f"**{text}**" if (row, column) in best else text
            beside = [str(cell.clips)] if cell is not None and cell.clips else []
            beside += [] if paper is None else [f"paper {paper:g}"]
            line.append(f"{text} ({'; '.join(beside)})" if beside else text)
        table.append(line)
    if len(columns) <= len(table):
        return markdown_table(_head(entry, columns), table)
    # More metrics than settings: a line per metric, so that a page or a terminal need not be endlessly wide.
    head, *lines = zip(_head(entry, columns), *table, strict=True)
    return markdown_table(["metric", *head[1:]], lines)


def spread_text(spread: Spread) -> str:
    """`4.65 [4.20, 5.11]`, and the interval over seeds after it where there are several."""
    text = interval_text(spread.over_clips)
    if spread.over_seeds is None:
        return text
    low, high = (number_text(i) for i in (spread.over_seeds.low, spread.over_seeds.high))
    return f"{text}, seeds [{low}, {high}]"


def how_it_was_run(experiment: Experiment, setting: Setting, measured: Measured, judges: Judges) -> str:
    """One paragraph: the training, the clips, the judges and their floors, and what failed."""
    rows, base = experiment.rows_at(setting.scale), setting.base
    steps = {name: setting.steps(row) for name, row in rows.items() if not row.videos}
    alike = len(set(steps.values())) == 1
    told = f"{next(iter(steps.values()), 0)} steps" if alike else ", ".join(f"{k} {v} steps" for k, v in steps.items())
    failed = ", ".join(f"{name} {len(clips)}" for name, clips in measured.failed.items() if clips) or "none"
    own = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in setting.film_settings.items())
    own = own or "the model's own settings"
    who = "; ".join(f"{judge.name} ({judge.version}; floor: {judge.floor})" for judge in judges.present)
    return (
        f"Every trained row: {told} of batch {base.batch}, learning rate {base.lr:g}, radial weight "
        f"{base.radial_weight:g} and least s {base.radial_floor:g} where the row says no other, the same clips in the "
        f"same order where it does not choose some of them, {setting.seeds} seed{'s' * (setting.seeds > 1)} from "
        f"{base.seed}. The same test clips and noise for every row, filmed with {own} "
        f"where the row says no other, scored at every {experiment.stride_at(setting.scale)} frames by {who}. Failed "
        f"clips: {failed}."
    )


def differences(entry: Item, experiment: Experiment, measured: Measured, columns: Sequence[str]) -> str:
    """Every row against the baseline, clip by clip; one that lies on one side of zero is in bold."""
    rows = []
    for row in measured.values:
        subset, setting = _subset(row), _setting(row)
        baseline = f"{subset} | {experiment.baseline}" if subset else experiment.baseline
        for column in columns if setting != experiment.baseline else ():
            gap = measured.difference(row, baseline, column)
            if gap is not None:
                text = f"**{spread_text(gap)}**" if gap.side_of() else spread_text(gap)
                rows.append([row_name(row), f"{column} {ARROWS[entry.direction(column)]}", str(gap.clips), text])
    table = markdown_table(["row", "metric", "clips", "difference"], rows)
    return f"Differences from {experiment.baseline}, clip by clip:\n\n{table}"


def rank_sentence(entry: Item, means: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> str:
    """The paper's average rank, over those of its columns that were measured; of a table with subsets there is none."""
    papers = () if entry.values is None else entry.values[0]
    columns = [column for column in columns if column in (*papers, *STAND_INS)]
    if len({_subset(row) for row in means}) > 1 or len(means) < 2:
        return ""
    try:
        ranks, counted = average_rank(means, {column: entry.direction(column) for column in columns})
    except InputError:  # no column that all rows have
        return ""
    if len({*counted} & {*papers}) < 3:  # a rank over one or two columns is those columns
        return ""
    said = ", ".join(f"{name} {number_text(rank)}" for name, rank in ranks.items())
    return f"Average rank over {len(counted)} metrics ({', '.join(counted)}): {said}."


def definitions(columns: Sequence[str]) -> list[str]:
    """What each column is, in its metric's own words."""
    known = {column: OWN.get(column) or definition_of(column) for column in columns}
    return [f"{column} ({metric.unit}): {metric.definition}" for column, metric in known.items() if metric is not None]


def row_name(name: str) -> str:
    """A row's name as a reader sees it: its subset, if it has one, and its setting."""
    return name.replace(" | ", ", ")


def _best(entry: Item, columns: Sequence[str], rows: Mapping[str, Mapping[str, float]]) -> set[tuple[str, str]]:
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


def _printed(entry: Item) -> dict[str, dict[str, float]]:
    if entry.values is None:
        return {}
    columns, rows = entry.values
    return {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()}


def _head(entry: Item, columns: Sequence[str]) -> list[str]:
    return ["setting", *(f"{column} {ARROWS[entry.direction(column)]}".strip() for column in columns)]


def _notes(entry: Item) -> list[str]:
    return ["", *(f"- On the paper's numbers: {note}" for note in entry.notes)] if entry.notes else []


def _subset(name: str) -> str:
    return name.partition(" | ")[0] if " | " in name else ""


def _setting(name: str) -> str:
    return name.partition(" | ")[2] or name
