"""Several methods' videos of the same clips in one table and on one page, with frames: a column per method."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from curvedray.errors import InputError
from curvedray.evaluate.html_page import environment
from curvedray.evaluate.metrics import geometry
from curvedray.evaluate.report import ARROWS, Report, definition_of, number_text, text_of, to_dict, value_of
from curvedray.evaluate.results import ClipResult
from curvedray.files import whole_file
from curvedray.tables import markdown_table


def method_names(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by the name of their method, which is the folder's."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError("--side-by-side", "a folder of videos per method", folder)
        name = folder.resolve().name
        if name in found:
            raise InputError("--side-by-side", "folders of different names", f"{found[name]} and {folder}")
        found[name] = folder
    if len(found) < 2:
        raise InputError("--side-by-side", "two folders or more", len(found))
    return found


def write_side_by_side(reports: Mapping[str, Report], folder: Path) -> None:
    """scores.json, table.md and index.html of all methods, with means over the clips that they share; each method's own
    report is in a folder of its name."""
    tables = shared_tables(reports)
    texts = {
        "scores.json": json.dumps(
            {name: to_dict(report) | {"table": tables[name]} for name, report in reports.items()},
            indent=1,
            allow_nan=False,
        ),
        "table.md": to_markdown(reports),
        "index.html": to_html(reports),
    }
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def to_markdown(reports: Mapping[str, Report]) -> str:
    """A row per metric, a column per method, over the clips that every method has."""
    rows = [[row["name"], row["unit"], *row["means"]] for row in table(reports)]
    lines = [_summary(reports), "", markdown_table(["metric", "unit", *reports], rows)]
    lines += ["", *(f"- **{row['name']}**: {row['definition']}" for row in table(reports) if row["definition"])]
    lines += ["", geometry.VALIDITY] if any(report.has_distances for report in reports.values()) else []
    return "\n".join(lines) + "\n"


def to_html(reports: Mapping[str, Report]) -> str:
    assets = files("curvedray").joinpath("assets")
    page = environment().from_string(assets.joinpath("side_by_side.html").read_text(encoding="utf-8"))
    distances = any(report.has_distances for report in reports.values())
    return page.render(
        style=assets.joinpath("report.css").read_text(encoding="utf-8"),
        methods=list(reports),
        summary=_summary(reports),
        rows=table(reports),
        validity=geometry.VALIDITY if distances else "",
        clips=[{"name": clip, "methods": _of_clip(reports, clip)} for clip in clip_names(reports)],
    )


def table(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    cells = {
        name: {cell.metric: cell for cell in report.cells() if cell.group == "all"}
        for name, report in shared(reports).items()
    }
    metrics = dict.fromkeys(metric for own in cells.values() for metric in own)
    rows = []
    for metric in metrics:
        first = next(own[metric] for own in cells.values() if metric in own)
        known = definition_of(metric)
        rows.append(
            {
                "name": f"{metric} {ARROWS[first.better]}".strip(),
                "unit": "" if first.unit == "-" else first.unit,
                "means": [text_of(own.get(metric)) for own in cells.values()],
                "definition": known.definition if known else "",
            }
        )
    return rows


def shared(reports: Mapping[str, Report]) -> dict[str, Report]:
    """The reports over the clips that every method scored: a mean over others would compare clips, not methods."""
    scored = [{result.clip for result in report.scored} for report in reports.values()]
    common = set.intersection(*scored)
    if not common:
        raise InputError("--side-by-side", "clips that every method has, of the same names", "none that all scored")
    return {
        name: Report(
            [one for one in report.results if one.clip in common],
            *(report.estimator, report.version, report.floor, report.stride),
        )
        for name, report in reports.items()
    }


def shared_tables(reports: Mapping[str, Report]) -> dict[str, list[dict[str, Any]]]:
    """The same means for scripts, those by lens too."""
    return {name: to_dict(report)["table"] for name, report in shared(reports).items()}


def clip_names(reports: Mapping[str, Report]) -> list[str]:
    return sorted({result.clip for report in reports.values() for result in report.results})


def _summary(reports: Mapping[str, Report]) -> str:
    common = len(next(iter(shared(reports).values())).results)
    first = next(iter(reports.values()))
    failed = ", ".join(f"{name} {len(report.failed)}" for name, report in reports.items())
    return (
        f"Means over the {common} clips that every method was scored on, 95 % bootstrap interval in brackets, "
        "the number of clips in parentheses; "
        f"estimator {first.estimator} ({first.version}). Failed: {failed}."
    )


def _of_clip(reports: Mapping[str, Report], clip: str) -> list[dict[str, Any]]:
    found = []
    for name, report in reports.items():
        result = next((one for one in report.results if one.clip == clip), ClipResult(clip, failure="no such video"))
        metric = report.sorted_by
        value = "" if result.failure or not metric else f"{metric} {number_text(value_of(result, metric))}"
        found.append({"name": name, "result": result, "value": value})
    return found
