"""One page that a stranger can read: the request and what was recovered, drawn over each other, worst clips first.

Self-contained: pictures inline, no scripts from elsewhere, nothing fetched.
"""

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from curvedray.cameras.angles import rotation_angle
from curvedray.evaluate.report import (
    ARROWS,
    Report,
    definition_of,
    interval_text,
    number_text,
    ordinal,
    text_of,
    to_dict,
    to_latex,
    to_markdown,
    value_of,
)
from curvedray.evaluate.run import ClipResult
from curvedray.files import whole_file

SMALL_ANGLE = 0.5  # degrees; smaller errors are not stretched to fill their plot
CARD_METRICS = ("CamMC", "RotErr", "TransErr", "Rotation")


def to_html(report: Report) -> str:
    """The whole page."""
    style = files("curvedray").joinpath("assets/report.css").read_text()
    idea = (
        "Each video was made for a requested camera path. An estimator recovered the path that the video really shows; "
        "the closer the two, the better the video obeys."
    )
    how = f"Every {ordinal(report.stride)} frame; cameras recovered by {report.estimator} ({report.version})."
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Camera report: {len(report.results)} clips</title><style>{style}</style><main>",
        "<h1>Does the video obey its camera?</h1>",
        f"<p>{idea}</p>",
        f'<p class="soft">{html.escape(how)} Its own error: {html.escape(report.floor)}.</p>',
        _tiles(report),
        _table(report) if report.scored else "",
        _differences(report) if report.differences else "",
        _clips(report),
        "</main></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _tiles(report: Report) -> str:
    tiles = [(str(len(report.scored)), "clips scored"), (str(len(report.failed)), "clips failed")]
    if report.near_static:
        tiles.append((str(len(report.near_static)), "near-static clips, without TransErr and CamMC"))
    cells = {cell.metric: cell for cell in report.cells() if cell.group == "all"} if report.scored else {}
    for metric in ("Rotation", "CamMC", "Gravity", "Ray", "AbsRel (pixel)"):
        if metric in cells:
            cell = cells[metric]
            unit = "" if cell.unit == "-" else f", {cell.unit}"
            tiles.append((number_text(cell.interval.mean), f"{metric}{unit} ({cell.better} is better)"))
    drawn = "".join(f"<div class=tile><b>{number}</b><span>{html.escape(text)}</span></div>" for number, text in tiles)
    return f'<div class="tiles">{drawn}</div>'


def _table(report: Report) -> str:
    cells = {(cell.metric, cell.group): cell for cell in report.cells()}
    head = "".join(f"<th>{html.escape(group)}</th>" for group in report.groups)
    rows = [f"<tr><th>Metric</th>{head}<th class=what>What it is</th></tr>"]
    for metric in dict.fromkeys(cell.metric for cell in cells.values()):
        first = cells[metric, "all"]
        unit = "" if first.unit == "-" else f' <span class="ci">{html.escape(first.unit)}</span>'
        values = "".join(f"<td>{_with_interval(text_of(cells.get((metric, group))))}</td>" for group in report.groups)
        known = definition_of(metric)
        what = html.escape(known.definition) if known else ""
        name = f"{html.escape(metric)} {ARROWS[first.better]}{unit}"
        rows.append(f"<tr><td>{name}</td>{values}<td class=what>{what}</td></tr>")
    counted = "Means over clips; in brackets the 95 % bootstrap interval. Failed clips are in no mean."
    return f'<h2>Scores</h2><div class=wide><table>{"".join(rows)}</table></div><p class="soft under">{counted}</p>'


def _differences(report: Report) -> str:
    rows = ["<tr><th>Metric</th><th>Clips</th><th>Difference</th><th class=what>Reading</th></tr>"]
    for difference in report.differences:
        better = (difference.interval.mean < 0) == (difference.better == "lower")
        sure = difference.interval.excludes(0)
        reading = ("better" if better else "worse") if sure else "no difference shown: the interval holds zero"
        name = f"{html.escape(difference.metric)} {ARROWS[difference.better]}"
        value = _with_interval(interval_text(difference.interval))
        rows.append(f"<tr><td>{name}</td><td>{difference.clips}</td><td>{value}</td><td class=what>{reading}</td></tr>")
    title = f"<h2>Against {html.escape(report.against)}, clip by clip</h2>"
    return f"{title}<div class=wide><table>{''.join(rows)}</table></div>"


def _clips(report: Report) -> str:
    order = f"Worst first, by {html.escape(report.sorted_by)}." if report.sorted_by else ""
    lines = '<i class="asked"></i>requested<i class="found"></i>recovered.'
    how = "Paths start at the dot, seen from the first camera, each scaled to its own largest distance."
    legend = f'<p class="legend soft">{order}{lines} {how}</p>'
    return f"<h2>Clips</h2>{legend}" + "".join(_clip(result) for result in report.worst_first())


def _clip(result: ClipResult) -> str:
    tags = [f'<span class="tag">{html.escape(text)}</span>' for text in (result.lens, result.note) if text]
    if result.failure:
        tags.append(f'<span class="tag bad">failed: {html.escape(result.failure)}</span>')
    if result.near_static:
        tags.append('<span class="tag">near-static: position errors mean nothing here</span>')
    frames = "".join(f'<img alt="" src="data:image/jpeg;base64,{picture}">' for picture in result.thumbnails)
    plots = _plots(result) if result.requested else ""
    main = "".join(
        f"<div><span>{metric}</span>{number_text(value_of(result, metric))}</div>"
        for metric in CARD_METRICS
        if any(score.metric == metric for score in result.scores)
    )
    rest = [score for score in result.scores if score.metric not in CARD_METRICS]
    more = "".join(f"<div><span>{html.escape(s.metric)}</span>{number_text(s.value)}</div>" for s in rest)
    numbers = f'<div class="numbers">{main}{more}</div>' if result.scores else ""
    header = f"<header><h3>{html.escape(result.clip)}</h3>{''.join(tags)}</header>"
    return f'<section class="clip">{header}<div class="frames">{frames}</div>{plots}{numbers}</section>'


def _plots(result: ClipResult) -> str:
    asked, got = np.array(result.requested), np.array(result.recovered)
    degrees = np.degrees(rotation_angle(asked[:, :, :3], got[:, :, :3]))
    above = _path_plot(asked, got, (0, 2), (1, -1), "right →", "forward ↑")
    side = _path_plot(asked, got, (2, 1), (1, 1), "forward →", "up ↑")
    figures = [
        (above, "The path from above"),
        (side, "The path from the side"),
        (_error_plot(degrees), f"Rotation error by frame, degrees (largest {number_text(float(degrees.max()))})"),
    ]
    drawn = "".join(f"<figure>{plot}<figcaption>{text}</figcaption></figure>" for plot, text in figures)
    return f'<div class="plots">{drawn}</div>'


def _path_plot(
    asked: np.ndarray, got: np.ndarray, axes: tuple[int, int], signs: tuple[int, int], across: str, upward: str
) -> str:
    """Two paths on two axes of the first camera, with a tick at some frames for where the camera looks."""
    width, height, edge = 320, 220, 26
    places = [path[:, list(axes), 3] * signs for path in (asked, got)]
    # A tick points where the camera looks; on a static clip the ticks are all there is to see.
    spread = np.concatenate(places)
    reach = max(float(np.ptp(spread, axis=0).max()), 0.3)
    looks = [path[:, list(axes), 2] * signs * 0.16 * reach for path in (asked, got)]
    every = np.concatenate([*places, *(place + look for place, look in zip(places, looks, strict=True))])
    low, high = every.min(0), every.max(0)
    scale = min((width - 2 * edge) / max(high[0] - low[0], 1e-6), (height - 2 * edge) / max(high[1] - low[1], 1e-6))
    middle = (low + high) / 2

    def at(points: np.ndarray) -> np.ndarray:
        return (points - middle) * scale + np.array([width / 2, height / 2])

    parts = [
        f'<text x="{width - 6}" y="{height - 6}" text-anchor="end">{across}</text><text x="6" y="14">{upward}</text>'
    ]
    for place, look, name, dash in zip(places, looks, ("ask", "got"), (' stroke-dasharray="5 4"', ""), strict=True):
        chosen = np.linspace(0, len(place) - 1, min(7, len(place))).round().astype(int)
        for index in chosen:
            (x1, y1), (x2, y2) = at(place[index]), at(place[index] + look[index])
            parts.append(
                f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" opacity=".55"/>'
            )
        parts.append(f'<path class="{name}" stroke-width="2.4"{dash} d="{_line(at(place))}"/>')
    x, y = at(places[0][0])
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--ink)"/>')
    return f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'


def _error_plot(values: np.ndarray) -> str:
    width, height, edge = 320, 220, 36
    top = max(float(values.max()), SMALL_ANGLE)
    x = np.linspace(edge, width - 12, len(values))
    y = height - edge - values / top * (height - 2 * edge)
    base = height - edge
    parts = [
        f'<line class="axis" x1="{edge}" y1="{base}" x2="{width - 12}" y2="{base}"/>',
        f'<line class="axis" x1="{edge}" y1="{edge}" x2="{width - 12}" y2="{edge}"/>',
        f'<text x="{edge - 4}" y="{edge + 4}" text-anchor="end">{number_text(top)}</text>',
        f'<text x="{edge - 4}" y="{base + 4}" text-anchor="end">0</text>',
        f'<text x="{width - 12}" y="{height - 10}" text-anchor="end">frame {len(values) - 1}</text>',
        f'<path class="got" stroke-width="2.4" d="{_line(np.stack([x, y], 1))}"/>',
    ]
    return f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'


def _line(points: Sequence[Sequence[float]] | np.ndarray) -> str:
    return "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _with_interval(text: str) -> str:
    value, bracket, rest = text.partition(" [")
    return f'{value}<br><span class="ci">[{rest}</span>' if bracket else value


def write_report(report: Report, folder: Path) -> None:
    """scores.json, table.md, table.tex and index.html, each written whole."""
    texts = {
        "scores.json": json.dumps(to_dict(report), indent=1),
        "table.md": to_markdown(report),
        "table.tex": to_latex(report),
        "index.html": to_html(report),
    }
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
