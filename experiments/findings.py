"""docs/findings.md from the results that are committed: claim by claim, what the paper says and what ours shows.

    python experiments/findings.py

Numbers are read from experiments/results and typed nowhere. A claim whose item was not run says so, with the command.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvedray.evaluate.report import ARROWS, interval_text
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
SETTING = Setting(EMBEDDED, ROOT / "runs" / "paper" / EMBEDDED.name)
SHOWN_VERDICTS = 12  # of an item; its table has all of them
MAIN_COLUMNS = 4


@dataclass(frozen=True)
class Finding:
    """A claim, where the paper makes it, the items that test it, and what to doubt."""

    title: str
    paper: str
    items: tuple[str, ...]
    doubt: str = ""
    reading: str = ""  # of the committed results, by us; no numbers, which the table above it has


PAPERS = (
    Finding(
        "Curved rays follow the camera better than rays alone",
        "On PanShot CRePE leads UCPE and ReCamMaster in pose, lens and orientation, through pinholes and bent lenses "
        "(CamMC 19.02 against 20.60 and 54.56 through bent ones, 15.33 against 18.50 and 57.83 through pinholes).",
        ("lenses", "overall", "qualitative"),
        reading="Every adapter obeys: all its errors lie far below the backbone's. The paper's order does not show. "
        "UCPE leads the paper's CRePE in pose and lens, and in the flow loss, which no estimator reads; "
        "ReCamMaster leads CRePE in pose and is behind it in the flow loss. UCPE turns queries and values, the "
        "paper's CRePE keys alone: with those turned too, CRePE comes about level with it (*Turning queries "
        "and values too*, below).",
        doubt="The embedded model has eight blocks and five latent frames of 8 x 12 tokens: a difference that needs "
        "more of them cannot show there.",
    ),
    Finding(
        "It is the curve that helps, not the samples",
        "Without supervision K = 3 beats K = 2 in pose (CamMC 12.31 against 14.75), K = 5 has the best average "
        "rank, K = 1 is "
        "far behind, and the gain is larger through bent lenses (18.6 against 10.8 %).",
        ("breakpoints", "breakpoints-full", "stratified"),
        reading="A single point (K = 1), which the paper has far behind, is not behind here. From K = 2 up, more "
        "breakpoints turn more exactly, and the flow loss agrees; in translation and CamMC they do not help. Whether "
        "the gain is larger through bent lenses stays undecided.",
        doubt="Without any training, K is a quadrature error that falls as it should (docs/images/k_quadrature.png); "
        "whether a trained model notices is the question here. Without supervision a head learns no distances in so "
        "short a training (`supervision` below, SSI-L1), so intervals stay as wide as they began, and K = 1 alone is "
        "spared that.",
    ),
    Finding(
        "The middle blocks are the place for it",
        "Probes read radii best in the middle blocks, and the middle window has the best average rank.",
        ("placement", "probing", "layer-maps"),
        reading="Curved rays in all blocks are worse than in a window, as in the paper. Which window matters less, and "
        "here the middle one is the last of the three.",
        doubt="Of eight blocks the window is four, so the three windows overlap, which Wan's do not.",
    ),
    Finding(
        "Distance must enter as a phase",
        "Depth-Concat, the same radii as a feature, falls below UCPE in pose (CamMC 23.21 against 21.87; CRePE 18.15).",
        ("injection",),
        reading="Depth as a feature is level with UCPE, and both lead the paper's CRePE. With queries and values "
        "turned too, as theirs are, CRePE is level with them in pose and ahead in the flow loss. So distance may enter as a "
        "phase or as a feature; what holds the paper's form back here is that only keys are turned.",
        doubt="The row `crepe, query and value` was trained twice, on two days, with the same seed (here and in "
        "`query-rotation`), and its two flow losses are as far apart as this lead: one seed tells little.",
    ),
    Finding(
        "Supervision steadies long training",
        "At 1K steps supervision brings nothing (CamMC 56.27 with, 52.02 without), at 10K it does (18.15 and "
        "22.19), and the "
        "unsupervised head drifts away from its own video (SSI-L1 0.129 to 0.133).",
        ("supervision",),
        reading="At full length it is as in the paper: with supervision pose is better, and without it CRePE falls "
        "behind UCPE. At the short length the paper finds no advantage, and we find one in rotation. A head without "
        "supervision learns no distances at either length (SSI-L1), so it has none to drift from.",
        doubt="The paper's short training is a tenth of its long one, ours a half.",
    ),
    Finding(
        "The teacher does not matter much",
        "UniDepthV2 in UniK3D's place: CamMC 15.41 and 15.23, RotErr 5.72 and 5.89.",
        ("alternate-teacher",),
    ),
    Finding(
        "What moves is given wider intervals",
        "Dynamic tokens disagree more with their labels (log-MAE 0.294 against 0.208) and are given 1.51 times "
        "the width.",
        ("dynamic-regions",),
        reading="The same signs as the paper's, with a smaller difference of widths; of the two errors neither "
        "interval is clear of zero. The world's labels of moving things are exact, so a worse label is not the "
        "reason here.",
    ),
    Finding(
        "The head filters its teacher's jitter",
        "Per-frame log-radial statistics change less than the teacher's and more than a SLAM reference's (0.0084 "
        "< 0.0156 < "
        "0.0375 for the median).",
        ("stability", "denoising"),
        doubt="A head that answers a constant is perfectly steady; the drift column is what tells it apart.",
    ),
    Finding(
        "It transfers to cameras it never saw",
        "Untuned on KITTI-360 and RealCam-Vid, CRePE leads UCPE in every pose metric, on KITTI-360 without "
        "supervision too.",
        ("zero-shot", "kitti-orientation"),
    ),
    Finding(
        "A supplied map is obeyed",
        "With Radial MixForcing, seven of eight adherence numbers on DAVIS are the best of six methods, and "
        "temporal scale "
        "jitter is far lower (0.178 against VACE's 0.252).",
        ("adherence", "non-pinhole-control", "davis", "external"),
        doubt="The embedded model's own table (docs/embedded.md) has the harder test: maps of a layout that neither "
        "caption nor camera tells.",
    ),
    Finding(
        "The injected width hardly matters",
        "Over a factor of 20 in sigma_T, CamMC changes by 3.9 %.",
        ("teacher-width",),
    ),
)
OURS = (
    Finding(
        "A path behind the camera must not jump",
        "The paper's bounded coordinate changes sign where beta < 0. Ours does not.",
        ("behind-camera",),
    ),
    Finding(
        "How an interval is bounded decides what is learned",
        "The paper bounds the predicted interval to [-3, 3], on which the first interval lies, and does not say how. A "
        "plain clamp leaves some ends no gradient to return by, one that passes all gradients drives others away.",
        ("clamp-gradient",),
    ),
    Finding(
        "The radial loss has spikes",
        "The loss divides by s, whose floor in the paper is 1e-3.",
        ("loss-spikes",),
        doubt="What was seen by hand while the embedded model was trained is in the LOG of 2026-11-16.",
    ),
    Finding(
        "Turning queries and values too",
        "The paper turns keys alone, so a query does not know its own pixel.",
        ("query-rotation",),
        reading="Turned queries make the paper's CRePE better in rotation, in pose and in the flow loss, and turned "
        "values keep that. It is then about level with UCPE. The far end of the ray alone (endpoint) does as "
        "well as the expectation along it, without these.",
        doubt="One seed. The embedded model that is shipped turns both, and takes maps of distances, which UCPE "
        "cannot.",
    ),
    Finding(
        "Guidance towards the camera, for free",
        "The paper guides towards the text alone. With the adapter off the network is the backbone, so the camera "
        "can be "
        "guided towards without training for it.",
        ("camera-guidance",),
        reading="From 1 to 3 the field of view, the lens's other numbers and the words are obeyed far better, and "
        "films are nearer to real clips in distribution; rotation hardly changes. Beyond 3 little is gained.",
        doubt="At this scale the same guidance also leaves out the text, so the words' part of it is text guidance.",
    ),
)


def page() -> str:
    lines = [
        "# Findings",
        "",
        "Claim by claim: what the paper says, what our runs show, and what to doubt. `python experiments/findings.py` "
        "writes this page from the results in `experiments/results`; no number of ours is typed.",
        "",
        f"At the embedded scale the model is the [embedded one](embedded.md), the data its procedural world, the judge "
        f"its own estimator: what is tested is the order of rows, never the paper's numbers, which stand in brackets. "
        f"Every adapter of a full row is trained for {EMBEDDED.steps['full']} steps of {recipe(EMBEDDED.recipe).batch} "
        f"clips, where the paper has 10,000, and so are the breakpoints' rows, where the paper has 1,000; of other "
        f"ablations for {EMBEDDED.steps['short']}; then it films up to {EMBEDDED.clips} test clips. Means have 95 % "
        "intervals over clips.",
        "",
        "*Shown*, *contradicted* and *undecided* are computed: an ordering is shown where the whole interval of the "
        "paired difference, over clips and over seeds where there are several, lies on the paper's side of zero. With "
        "one seed, what chance in training does is not in the interval. *Rotation* is the error in degrees per frame "
        "(the backbone alone, which knows no camera: the row `none`); the *flow loss* says how well a row guesses "
        "real test clips out of noise, told their cameras: it has no estimator in it.",
        "",
        overview(),
        "",
        "## In short",
        "",
        "How many of the orderings in the paper's tables, that belong to each claim, are shown, contradicted and "
        "undecided by ours: in the paper's metrics, then in the flow loss. Some orderings of the paper go against the "
        "claim that its table as a whole makes; they count like the others. A claim with no ordering is told by its "
        "pictures or numbers. Trainings have one seed where no other number is said, so a difference that another "
        "seed would turn round may stand here as shown or contradicted.",
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


TELLS_APART = ("better", "worse", "metric", "subset", "than")  # verdicts


def in_short() -> str:
    """Every claim in a line."""
    lines = []
    for finding in (*PAPERS, *OURS):
        each = [one for name in finding.items for one in (record_of(name) or {}).get("verdicts", [])]
        found = {tuple(one.get(key) for key in TELLS_APART): one for one in each}.values()  # some stand in two tables
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
