"""What came out, for scripts (JSON), for people (Markdown), for papers (LaTeX). page.py writes them, and the page."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from curvedray.errors import InputError, quoted
from curvedray.evaluate.metrics import distribution, fidelity, geometry, lens, perceptual, pose
from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.run import METRICS, PROTOCOL
from curvedray.evaluate.scores import Cell, Metric, Score, group_by
from curvedray.evaluate.statistics import Interval, bootstrap, paired_difference
from curvedray.inputs import is_file, is_folder, read_json, reading
from curvedray.tables import markdown_table, plain

EVERY_METRIC = (
    *pose.METRICS,
    *METRICS,
    *lens.METRICS,
    *geometry.METRICS,
    geometry.SSI_L1,
    *geometry.STABILITY,
    geometry.DRIFT,
    *fidelity.METRICS,
    *distribution.METRICS,
    *perceptual.METRICS,
)
ARROWS = {"lower": "↓", "higher": "↑", "neither": ""}
LATEX_ARROWS = {"lower": r" $\downarrow$", "higher": r" $\uparrow$", "neither": ""}
MOVING = " (moving)"  # behind the name of a metric whose mean leaves near-static clips out
WORST_BY = ("CamMC", "RotErr", "Gravity", "Ray", "AbsRel (pixel)", "AbsRel (token)")


@dataclass(frozen=True)
class Difference:
    """One metric, ours minus another report's, over the clips that both scored."""

    metric: str
    unit: str
    better: str
    clips: int
    interval: Interval


@dataclass(frozen=True)
class Report:
    """A folder's results and how they came about."""

    results: Sequence[ClipResult]
    estimator: str
    version: str
    floor: str
    stride: int
    against: str = ""
    differences: Sequence[Difference] = ()

    @property
    def scored(self) -> list[ClipResult]:
        return [result for result in self.results if not result.failure]

    @property
    def failed(self) -> list[ClipResult]:
        return [result for result in self.results if result.failure]

    @property
    def near_static(self) -> list[ClipResult]:
        return [result for result in self.scored if result.near_static]

    @property
    def suspects(self) -> list[ClipResult]:
        """Scored clips whose recovered cameras are in doubt."""
        return [result for result in self.scored if result.suspect]

    @property
    def scores(self) -> list[Score]:
        return [score for result in self.scored for score in result.scores]

    @property
    def scores_of_table(self) -> list[Score]:
        """The scores; where there are near-static clips, also those of the others again for what is noise in these."""
        static = {result.clip for result in self.near_static}
        noisy = {metric.name for metric in pose.NOISE_IF_STATIC} if static else set()
        moving = [score for score in self.scores if score.metric in noisy and score.clip not in static]
        order = list(dict.fromkeys(score.metric for score in self.scores))
        both = self.scores + [replace(score, metric=score.metric + MOVING) for score in moving]
        return sorted(both, key=lambda score: order.index(score.metric.removesuffix(MOVING)))

    @property
    def groups(self) -> list[str]:
        strata = [name for name in ("pinhole", "non-pinhole") if any(r.stratum == name for r in self.scored)]
        return ["all", *strata] if len(strata) > 1 else ["all"]

    def cells(self) -> list[Cell]:
        """Means over all clips and, where there are both, over pinhole and non-pinhole ones."""
        return group_by(self.scores_of_table) + (self.cells_by_lens() if len(self.groups) > 1 else [])

    def cells_by_lens(self) -> list[Cell]:
        stratum = {result.clip: result.stratum for result in self.scored}
        return group_by(self.scores_of_table, lambda score: stratum[score.clip])

    def worst_first(self) -> list[ClipResult]:
        """Failed clips, then suspicious ones, then the others; worst first, by the first of WORST_BY that there is."""
        metric = self.sorted_by
        return self.failed + sorted(
            self.scored, key=lambda result: (not result.suspect, -value_of(result, metric, 0.0))
        )

    @property
    def has_distances(self) -> bool:
        """Whether any clip was scored against a map of distances."""
        return any(score.metric.startswith(geometry.ABS_REL.name) for score in self.scores)

    @property
    def sorted_by(self) -> str:
        present = {score.metric for score in self.scores}
        return next((name for name in WORST_BY if name in present), next(iter(sorted(present)), ""))


def value_of(result: ClipResult, metric: str, missing: float = math.nan) -> float:
    return next((score.value for score in result.scores if score.metric == metric), missing)


def definition_of(metric: str) -> Metric | None:
    """A metric's definition; `AbsRel (pixel)` has AbsRel's."""
    name = metric.removesuffix(" (pixel)").removesuffix(" (token)").removesuffix(MOVING)
    found = next((known for known in EVERY_METRIC if known.name == name), None)
    if found is not None and metric.endswith(MOVING):
        return replace(found, name=metric, definition=f"{found.definition} Near-static clips left out.")
    return found


def compare(report: Report, other: Path) -> list[Difference]:
    """Paired differences from another report of the same clips, which must have been scored in the same way."""
    path = other / "scores.json" if is_folder(other) else other
    if not is_file(path):
        raise InputError("other report", "a folder that `curvedray evaluate` wrote, with scores.json", other)
    content = read_json(path, "a report's scores")
    theirs: dict[str, dict[str, float]] = {}
    with reading(str(path), "a report's scores", "Write it again with `curvedray evaluate`."):
        for clip in content["clips"]:
            for score in clip["scores"]:
                theirs.setdefault(str(score["metric"]), {})[str(clip["clip"])] = float(score["value"])
    how = {
        "estimator": report.estimator,
        "estimator_version": report.version,
        "stride": report.stride,
        "protocol": PROTOCOL,
    }
    for name, value in how.items():
        if content.get(name) != value:
            raise InputError(
                f"other report's {name}", value if isinstance(value, str) else str(value), content.get(name)
            )
    differences = []
    for cell in group_by(report.scores_of_table):
        ours = {score.clip: score.value for score in report.scores_of_table if score.metric == cell.metric}
        other_scores = theirs.get(cell.metric.removesuffix(MOVING), {})
        if ours.keys() & other_scores.keys():
            interval, clips = paired_difference(ours, other_scores)
            differences.append(Difference(cell.metric, cell.unit, cell.better, clips, interval))
    if not differences:
        raise InputError("other report", "clips and metrics that both have", "none in common")
    return differences


def to_dict(report: Report) -> dict[str, Any]:
    """Everything but the pictures."""
    shown = dict.fromkeys(score.metric for score in report.scores_of_table)
    clips = []
    for result in report.worst_first():
        content = asdict(result)
        del content["thumbnails"]
        clips.append(content)
    record = {
        "protocol": PROTOCOL,
        "estimator": report.estimator,
        "estimator_version": report.version,
        "estimator_floor": report.floor,
        "stride": report.stride,
        "scored": len(report.scored),
        "failed": len(report.failed),
        "near_static": [result.clip for result in report.near_static],
        "suspects": {result.clip: result.suspect for result in report.suspects},
        "definitions": {name: metric.definition for name in shown if (metric := definition_of(name))},
        "table": [asdict(cell) for cell in report.cells()],
        "differences": [asdict(difference) for difference in report.differences],
        "clips": clips,
    }
    return dict(without_nan(record))


def without_nan(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON does not have: the interval of a single clip is unknown."""
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summary_line(report: Report) -> str:
    """How it was measured, in one sentence, for every table."""
    static = f", {len(report.near_static)} near-static" if report.near_static else ""
    doubtful = f", {len(report.suspects)} of the scored suspicious" if report.suspects else ""
    return (
        f"{len(report.scored)} clips scored, {len(report.failed)} failed{static}{doubtful}; "
        f"{frames_text(report.stride)}; estimator {report.estimator} ({quoted(report.version)}); "
        "mean over clips, 95 % bootstrap interval in brackets, number of clips in parentheses."
    )


def frames_text(stride: int) -> str:
    """Which frames were scored: `every frame`, `every 4th frame`."""
    if stride == 1:
        return "every frame"
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if stride % 100 in (11, 12, 13) else endings.get(stride % 10, "th")
    return f"every {stride}{ending} frame"


def to_markdown(report: Report) -> str:
    lines = [summary_line(report), ""]
    if report.scored:
        cells = {(cell.metric, cell.group): cell for cell in report.cells()}
        metrics = list(dict.fromkeys(cell.metric for cell in cells.values()))
        rows = []
        for metric in metrics:
            first = cells[metric, "all"]
            means = [text_of(cells.get((metric, group))) for group in report.groups]
            rows.append([f"{metric} {ARROWS[first.better]}", first.unit, *means])
        lines.append(markdown_table(["metric", "unit", *report.groups], rows))
        known = [(metric, definition_of(metric)) for metric in metrics]
        lines += ["", *(f"- **{name}**: {metric.definition}" for name, metric in known if metric)]
        lines += ["", geometry.VALIDITY] if report.has_distances else []
    if report.differences:
        lines += [
            "",
            f"Difference from {plain(report.against)}, clip by clip (bold: the interval leaves out zero):",
            "",
        ]
        rows = []
        for difference in report.differences:
            text = interval_text(difference.interval)
            bold = f"**{text}**" if difference.interval.excludes(0) else text
            rows.append([f"{difference.metric} {ARROWS[difference.better]}", str(difference.clips), bold])
        lines.append(markdown_table(["metric", "clips", "difference"], rows))
    if report.suspects:
        lines += ["", "Suspicious (scored, and in the means; look at them before you trust them):", ""]
        lines += [f"- {plain(one.clip)}: {plain(one.suspect)}" for one in report.suspects]
    if report.failed:
        lines += ["", "Failed:", "", *(f"- {plain(one.clip)}: {plain(one.failure)}" for one in report.failed)]
    lines += ["", f"Estimator's floor: {report.floor}."]
    return "\n".join(lines) + "\n"


def to_latex(report: Report) -> str:
    """A booktabs table: one row per group of clips, one column per metric."""
    cells = {(cell.metric, cell.group): cell for cell in report.cells()} if report.scored else {}
    metrics = list(dict.fromkeys(cell.metric for cell in cells.values()))
    heads = [f"{latex(metric)}{LATEX_ARROWS[cells[metric, 'all'].better]}" for metric in metrics]
    lines = [f"% {summary_line(report)}", rf"\begin{{tabular}}{{l{'r' * len(metrics)}}}", r"\toprule"]
    lines += [" & ".join(["Clips", *heads]) + r" \\", r"\midrule"]
    for group in report.groups:
        row = [text_of(cells.get((metric, group))).replace("–", "--") for metric in metrics]
        lines.append(" & ".join([group, *row]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def latex(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")


def text_of(cell: Cell | None) -> str:
    """A mean, its interval and how many clips it is over: `4.65 [4.20, 5.11] (48)`."""
    return "" if cell is None else f"{interval_text(cell.interval)} ({cell.clips})"


def interval_text(interval: Interval) -> str:
    """`4.65 [4.20, 5.11]`, to a precision that the numbers bear; no brackets for a single clip."""
    if math.isnan(interval.low):
        return number_text(interval.mean)
    return f"{number_text(interval.mean)} [{number_text(interval.low)}, {number_text(interval.high)}]"


def mean_text(values: np.ndarray, digits: int = 3) -> str:
    """A mean over clips and its interval to so many significant digits, for tables of one kind of number."""
    if len(values) == 0:
        return "-"
    interval = bootstrap(values)
    return f"{interval.mean:.{digits}g} [{interval.low:.{digits}g}, {interval.high:.{digits}g}]"


def number_text(value: float) -> str:
    """Three significant digits, at most four decimals, never in exponents."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "n/a"
    return f"{value:.{max(0, min(4, 2 - math.floor(math.log10(abs(value)))))}f}"
