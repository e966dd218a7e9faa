"""docs/findings.md from the results that are committed: claim by claim, what the paper says and what ours shows.

    python experiments/findings.py

Numbers are read from experiments/results and typed nowhere. A claim whose item was not run says so, with the command.
"""

import json
import re
from pathlib import Path
from typing import Any

from claims import OURS, PAPERS, Finding

from curvedray.evaluate.report import ARROWS, interval_text, number_text
from curvedray.evaluate.statistics import Interval
from curvedray.files import whole_file
from curvedray.paper.catalogue import ITEMS, item
from curvedray.paper.experiment import Experiment
from curvedray.paper.flow_losses import FLOW_LOSS
from curvedray.paper.outdated import changed_since
from curvedray.paper.runner import runner_of
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.paper.tables import rank_sentence, row_name
from curvedray.paper.verdicts import counted
from curvedray.tables import markdown_table
from curvedray.training.recipes import recipe

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "findings.md"
SCORED = RESULTS / "embedded" / "rows.json"  # what score.py found of the model that is shipped
SETTING = Setting(EMBEDDED, ROOT / "runs" / "paper" / EMBEDDED.name)
SHOWN_VERDICTS = 12  # of an item; its table has all of them
MAIN_COLUMNS = 4


def page() -> str:
    full, short = EMBEDDED.steps["full"], EMBEDDED.steps["short"]
    scored = json.loads(SCORED.read_text())["rows"]
    turned = [scored[row][0]["rotation"]["mean"] for row in ("real clips (the estimator's floor)", "no motion")]
    own, still = (f"{degrees:.1f}" for degrees in turned)
    lines = [
        "# Findings",
        "",
        "Claim by claim: what the paper says, what our runs show, and what to doubt. `python experiments/findings.py` "
        "writes this page from the results in `experiments/results`; no number of ours is typed.",
        "",
        "At the embedded scale the model is the [embedded one](embedded.md), the data its procedural world, the judge "
        "its own estimator: what is tested is the order of rows, never the paper's numbers, which stand beside ours as "
        f"(paper ...). Adapters of the main comparisons and of the breakpoints are trained for {full} steps of "
        f"{recipe(EMBEDDED.recipe).batch} clips (paper: 10,000 and 1,000 steps), those of other short trainings for "
        f"{short} (paper: 1,000); each films up to {EMBEDDED.clips} test clips. Labels such as `10K` and `middle 10` "
        "are the paper's: here `10K` is the long training, `1K` the short one, `middle 10` four of eight blocks.",
        "",
        "Rows: `none`, the backbone, which is not told the camera; `recammaster`, a pose embedded into a trained copy "
        "of "
        "self-attention; `ucpe`, relative rays in every block, no distances; `depth_concat`, the same with the "
        "distance "
        "that is predicted as a feature; `crepe`, curved rays with K = 5 breakpoints in the middle blocks, keys "
        "turned; "
        "`endpoint`, the same with K = 2; `-mix`, trained with MixForcing to take maps.",
        "",
        "[ ]: 95 % interval over clips. *A over B*: A is better than B. *Shown*: the whole interval of the paired "
        "difference, over clips and over seeds where there are several, lies on the paper's side of zero; "
        "*contradicted*: on the other side; *undecided*: it holds zero. *A like B*: shown where the whole difference "
        "stays "
        "within a share of B that the table says. What each metric is, and its unit, stands at the foot of each linked "
        "table; ↓: lower is better, ↑: higher is better, of average ranks lower is better. *Rotation* is the error of "
        "rotation in degrees, averaged over frames, the first of which is zero by definition: the estimator's own on "
        f"real clips is {own}, a video without motion has {still} (200 clips, [its page](embedded.md)). The *flow "
        "loss* says how well a row guesses real test clips out of noise, told their cameras; "
        "no estimator has a part in it.",
        "",
        trained_twice(),
        "",
        overview(),
        "",
        "## In short",
        "",
        "How many of the orderings in the paper's tables, by the claim that they belong to, are shown, contradicted "
        "and "
        "undecided: in the paper's metrics, then in the flow loss. A table of the paper may have an ordering against "
        "its "
        "own claim, K = 2 over K = 5 in TransErr through pinholes for instance; it counts like the others, so *shown* "
        "does "
        "not always support the claim. One that stands in two tables of the same films is counted once. A claim with "
        "no "
        "ordering is told by its pictures or numbers, or was not run yet.",
        "",
        in_short(),
        "",
        "## The paper's claims",
        "",
    ]
    for finding in PAPERS:
        lines += section(finding)
    lines += ["## Where we differ from the paper, or go beyond it", ""]
    for finding in OURS:
        lines += section(finding)
    lines += ["## What does not add up in the paper's tables", ""]
    lines += [f"- {note}" for note in dict.fromkeys(note for entry in ITEMS for note in entry.notes) if is_odd(note)]
    return "\n".join(lines).rstrip() + "\n"


def is_odd(note: str) -> bool:
    """Notes on strides and numbers of clips are no oddities."""
    return "Stride" not in note and "clips, stride" not in note


def overview() -> str:
    done = [entry.name for entry in ITEMS if record_of(entry.name) is not None]
    left = [entry.name for entry in ITEMS if entry.name not in done]
    return (
        f"Run and committed: {', '.join(done) or 'none'}. Not run yet: {', '.join(left) or 'none'}. Each is one "
        "command: "
        "`curvedray paper run NAME --scale embedded`."
    )


TELLS_APART = ("better", "worse", "metric", "subset", "than", "difference")  # verdicts


def trained_twice() -> str:
    """How far apart the same row is in two tables for which it was trained anew: what one seed cannot tell."""
    found: dict[str, dict[str, set[float]]] = {}
    for entry in ITEMS:
        record = record_of(entry.name) or {}
        tests = str(getattr(getattr(runner_of(entry), "experiment", None), "tests", None))
        for label, made in record.get("recipes", {}).items():
            of_run = [record[key] for key in ("filming", "weights", "clips")]
            same = json.dumps([made, record["rows"][label], *of_run, tests])
            for metric in ("CamMC", "RotErr", "Rotation", FLOW_LOSS.name):
                if cell := record.get("cells", {}).get(label, {}).get(metric):
                    found.setdefault(metric, {}).setdefault(same, set()).add(cell["over_clips"]["mean"])
    apart = {metric: max(max(of) - min(of) for of in rows.values()) for metric, rows in found.items()}
    count = max((sum(len(of) > 1 for of in rows.values()) for rows in found.values()), default=0)
    if not count:
        return ""
    said = ", ".join(f"{number_text(gap)} in {metric}" for metric, gap in apart.items())
    return (
        f"Trainings have one seed where no other number is said. {count} rows were trained twice, with the same recipe "
        f"and seed, for two of these tables, which repeats nothing bit for bit in bfloat16: they differ by up to "
        f"{said}. "
        "A verdict on a smaller difference is not to be trusted, whatever its interval over clips."
    )


def in_short() -> str:
    """Every claim in a line."""
    lines = []
    for finding in (*PAPERS, *OURS):
        each = [one for name in finding.items for one in (record_of(name) or {}).get("verdicts", [])]
        found = {str([one.get(key) for key in TELLS_APART]): one for one in each}.values()  # some stand in two tables
        counts = []
        for is_ours in (False, True):
            words = [one["word"] for one in found if (one["metric"] == FLOW_LOSS.name) == is_ours]
            counts.append(counted(words) if words else "-")
        anchor = re.sub(r"[^a-z0-9 -]", "", finding.title.lower()).replace(" ", "-")
        lines.append([f"[{finding.title}](#{anchor})", *counts])
    return markdown_table(["claim", "orderings", "in the flow loss"], lines)


def section(finding: Finding) -> list[str]:
    lines = [f"### {finding.title}", "", f"**The paper.** {finding.paper}", ""]
    for name in finding.items:
        lines += [f"**{name}.** {told_of(name)}", ""]
        lines += [table, ""] if (table := numbers_of(name)) else []
    lines += [f"**What it says.** {finding.reading}", ""] if finding.reading else []
    return [*lines, f"**Doubt.** {finding.doubt}", ""] if finding.doubt else lines


def told_of(name: str) -> str:
    """What an item's committed result says, or that it was not run."""
    record = record_of(name)
    if record is None:
        return f"Not run yet (`curvedray paper run {name} --scale embedded`)."
    link = f"[table](../experiments/results/{name}/table.md)"
    if "verdicts" in record:
        said = f"{verdict_words(record)} {link}, {record['date']}, {record['scale']}, {record['seeds']} seed(s)."
    elif "found" in record:
        said = f"{record['found']}. {link}, {record['date']}, {record['scale']}."
    elif "says" in record and "rows" in record:
        said = f"{record['says']} {link}."
    else:
        said = f"Drawn: {link}."
    changed = changed_since(item(name), record, SETTING) if getattr(runner_of(item(name)), "experiment", None) else []
    return said + (f" Since then the {' and the '.join(changed)} changed: to be run again." if changed else "")


def verdict_words(record: dict[str, Any]) -> str:
    """How many orderings are shown, contradicted and undecided, and which are decided."""
    papers = [one for one in record["verdicts"] if one["metric"] != FLOW_LOSS.name]
    ours = [one["word"] for one in record["verdicts"] if one["metric"] == FLOW_LOSS.name]
    said = f"Of {len(papers)} orderings: {counted([one['word'] for one in papers])}."
    each = []
    for one in [one for one in papers if one["word"] != "undecided"][:SHOWN_VERDICTS]:
        where = f", {one['subset']}" if one["subset"] else ""
        relation = "like" if one.get("alike") else "larger than" if one.get("larger") else "over"
        than = f", more than {one['than']}," if one.get("than") else ""
        each.append(f"{one['metric']}{where}: {one['better']} {relation} {one['worse']}{than} *{one['word']}*")
    said += f" {'; '.join(each)}." if each else ""
    return said + (f" In the flow loss, which is ours: {counted(ours)}." if ours else "")


def numbers_of(name: str) -> str:
    """An item's main columns: the paper's first, or the experiment's own, then turns per frame and the flow loss."""
    record, entry = record_of(name), item(name)
    cells: dict[str, dict[str, Any]] = {} if record is None else record.get("cells", {})
    experiment: Experiment | None = getattr(runner_of(entry), "experiment", None)
    if not cells or experiment is None:
        return ""
    columns, rows = entry.values or (experiment.columns, {})
    measured = [column for column in columns if any(column in row for row in cells.values())]
    measured += [column for column in experiment.columns if column not in measured] if len(measured) < 2 else []
    wanted = dict.fromkeys([*measured[:MAIN_COLUMNS], "Rotation", FLOW_LOSS.name])
    shown = [column for column in wanted if any(column in row for row in cells.values())]
    lines = []
    for label, row in cells.items():
        papers = dict(zip(columns, rows.get(label, ()), strict=False))
        lines.append([row_name(label), *(cell_text(row.get(column), papers.get(column)) for column in shown)])
    head = [f"{column} {ARROWS[entry.direction(column)]}".strip() for column in shown]
    means = {row: {column: cell["over_clips"]["mean"] for column, cell in of.items()} for row, of in cells.items()}
    ranks = rank_sentence(entry, means, list(next(iter(means.values()))))
    return "\n\n".join([markdown_table(["row", *head], lines), *([ranks] if ranks else [])])


def cell_text(cell: dict[str, Any] | None, paper: float | None) -> str:
    """`4.65 [4.20, 5.11] (paper 4.65)`."""
    if cell is None:
        return "-"
    over = {key: float("nan") if value is None else value for key, value in cell["over_clips"].items()}
    return interval_text(Interval(**over)) + ("" if paper is None else f" (paper {paper:g})")


def record_of(name: str) -> dict[str, Any] | None:
    path = RESULTS / name / "results.json"
    return dict(json.loads(path.read_text())) if path.is_file() else None


def main() -> None:
    with whole_file(PAGE) as temporary:
        temporary.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
