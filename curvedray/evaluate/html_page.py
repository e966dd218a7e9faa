"""One page for readers who were not there: requested and recovered paths over each other, worst clips first.

Frames and plots are inside it and nothing is fetched from elsewhere; videos lie beside it. The text is in the template
`assets/report.html`, which escapes every value.
"""

import json
import os
import shutil
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from curvedray.evaluate.figures import figures
from curvedray.evaluate.matching import Job
from curvedray.evaluate.metrics import geometry
from curvedray.evaluate.report import (
    ARROWS,
    Report,
    definition_of,
    frames_text,
    interval_text,
    number_text,
    text_of,
    to_dict,
    to_latex,
    to_markdown,
)
from curvedray.evaluate.results import ClipResult
from curvedray.extras import needed
from curvedray.files import whole_file
from curvedray.inputs import MB

if TYPE_CHECKING:
    from jinja2 import Environment, Template

CARD_METRICS = ("CamMC", "RotErr", "TransErr", "Rotation")  # first among a clip's numbers
TILES = ("Rotation", "CamMC", "Gravity", "Ray", "AbsRel (pixel)")
PLAYABLE = (".mp4", ".webm", ".mov", ".gif")  # by browsers
LARGEST_COPY = 64 * MB  # of a video put into the report's folder; a larger one is played from where it is


def write_report(report: Report, folder: Path, jobs: Mapping[str, Job] | None = None) -> None:
    """scores.json, table.md, table.tex and index.html, each written whole, and the jobs' videos beside them."""
    videos = {clip: link_video(job, folder) for clip, job in (jobs or {}).items()}
    texts = {
        "scores.json": json.dumps(to_dict(report), indent=1, allow_nan=False),
        "table.md": to_markdown(report),
        "table.tex": to_latex(report),
        "index.html": to_html(report, videos),
    }
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def to_html(report: Report, videos: Mapping[str, str] | None = None) -> str:
    """The whole page. `videos` are addresses by clip, relative to it."""
    return template().render(
        report=report,
        style=files("curvedray").joinpath("assets/report.css").read_text(encoding="utf-8"),
        frames=frames_text(report.stride).capitalize(),
        tiles=_tiles(report),
        validity=geometry.VALIDITY if report.has_distances else "",
        rows=_rows(report) if report.scored else [],
        differences=_differences(report),
        clips=[_card(result, report.stride, (videos or {}).get(result.clip, "")) for result in report.worst_first()],
    )


@cache
def template() -> "Template":
    """The page's template; without jinja2 a sentence, which a command asks for before it starts its work."""
    return environment().from_string(files("curvedray").joinpath("assets/report.html").read_text(encoding="utf-8"))


def environment() -> "Environment":
    """Where templates are read: every value is escaped, and a name that is not there is an error."""
    needed("jinja2")
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined)


def link_video(job: Job, folder: Path) -> str:
    """Where the page finds a clip's video: in `videos/` beside it, or where it is if it is large; or nowhere."""
    ending = job.video.suffix.lower()
    if ending not in PLAYABLE or not job.video.is_file():
        return ""
    source, root = job.video.resolve(), folder.resolve()
    if source.is_relative_to(root) or source.stat().st_size > LARGEST_COPY:
        return quote(Path(os.path.relpath(source, root)).as_posix())
    target = folder / "videos" / f"{job.file}{ending}"
    if not (target.is_file() and target.samefile(source)):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            os.link(source, target)  # the same file under a second name: no room is taken
        except OSError:
            with whole_file(target) as temporary:
                shutil.copyfile(source, temporary)
    return quote(f"videos/{target.name}")


def _tiles(report: Report) -> list[tuple[str, str]]:
    tiles = [(str(len(report.scored)), "clips scored"), (str(len(report.failed)), "clips failed")]
    if report.suspects:
        tiles.append((str(len(report.suspects)), "of the scored are suspicious"))
    if report.near_static:
        tiles.append((str(len(report.near_static)), "near-static clips, whose TransErr and CamMC are mostly noise"))
    cells = {cell.metric: cell for cell in report.cells() if cell.group == "all"} if report.scored else {}
    for metric in TILES:
        if metric in cells:
            cell = cells[metric]
            unit = "" if cell.unit == "-" else f", {cell.unit}"
            tiles.append((number_text(cell.interval.mean), f"{metric}{unit} ({cell.better} is better)"))
    return tiles


def _rows(report: Report) -> list[dict[str, Any]]:
    cells = {(cell.metric, cell.group): cell for cell in report.cells()}
    rows = []
    for metric in dict.fromkeys(cell.metric for cell in cells.values()):
        first, known = cells[metric, "all"], definition_of(metric)
        rows.append(
            {
                "name": f"{metric} {ARROWS[first.better]}".strip(),
                "unit": "" if first.unit == "-" else first.unit,
                "means": [text_of(cells.get((metric, group))) for group in report.groups],
                "definition": known.definition if known else "",
            }
        )
    return rows


def _differences(report: Report) -> list[dict[str, Any]]:
    rows = []
    for difference in report.differences:
        better = (difference.interval.mean < 0) == (difference.better == "lower")
        reading = "better" if better else "worse"
        if difference.better == "neither":
            reading = "other" if difference.interval.excludes(0) else "no difference shown: the interval holds zero"
        elif not difference.interval.excludes(0):
            reading = "no difference shown: the interval holds zero"
        name = f"{difference.metric} {ARROWS[difference.better]}".strip()
        text = interval_text(difference.interval)
        rows.append({"name": name, "clips": difference.clips, "text": text, "reading": reading})
    return rows


def _card(result: ClipResult, stride: int, video: str) -> dict[str, Any]:
    """What the template shows of one clip."""
    first = [score for metric in CARD_METRICS for score in result.scores if score.metric == metric]
    rest = [score for score in result.scores if score.metric not in CARD_METRICS]
    return {
        "result": result,
        "video": video,
        "animation": video.lower().endswith(".gif"),
        "figures": figures(result, stride),
        "numbers": [(score.metric, number_text(score.value)) for score in first + rest],
    }
