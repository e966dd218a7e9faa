"""The page of `score.py`: readings in, Markdown out.

s seed of training   n clip
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.map_obedience import LayoutObedience, layout_obedience
from curvedray.evaluate.metrics.geometry import adherence
from curvedray.evaluate.report import number_text, without_nan
from curvedray.evaluate.statistics import Interval, bootstrap
from curvedray.evaluate.world_truth import AXES, ClipErrors, KnownClips, errors_of
from curvedray.files import whole_file
from curvedray.radial.map import near_distance
from curvedray.tables import markdown_table

FAMILIES = ("pinhole", "wide", "fisheye")
FLOOR, STILL, SHUFFLED = "real clips (the estimator's floor)", "no motion", "shuffled cameras"
OTHERS = "real clips of that layout"
MEASURES = {
    "rotation": "rotation, degrees per frame",
    "metres": "translation, m",
    "nears": "translation, near distances",
    "fov": "FoV, degrees",
    "xi": "xi",
    "rot_err": "RotErr, rad",
    "cam_mc": "CamMC",
}
OBEYED = {"theme": "theme", "colour": "colours", "kind": "kinds"}
ADHERENCE = {"silog": "SILog", "abs_rel": "AbsRel", "delta_1": "delta_1", "scale_jitter": "scale jitter"}
OBEDIENCE = {
    "error": "error of distances, log",
    "error_without": "without a map",
    "error_of_real": "floor",
    "share_of_the_way": "share of the way",
    "change": "r of change",
    "change_by_chance": "by chance: r of change, another clip's map",
    "bearing": "r of left to right",
    "distance": "r of near to far",
}


@dataclass(frozen=True, eq=False)
class Row:
    """What was read of one set of films."""

    name: str
    said: Reading
    edges: np.ndarray  # mean gradient on edges, by clip
    borders: np.ndarray  # energy on borders of patches over that inside, by clip


Seeds = dict[str, list[ClipErrors]]  # by row


def write_page(
    out: Path,
    truth: KnownClips,
    asked: KnownClips,
    families: Sequence[str],
    real: Row,
    others: Row,
    rows: Sequence[Row],
    mapped: Sequence[Row],
    floor: str,
    command: str,
) -> None:
    """All tables as one page of Markdown, and their numbers as JSON."""
    errors: Seeds = {FLOOR: [_errors(truth, real.said)], STILL: [_errors(truth, truth.without_looking())]}
    errors[SHUFFLED] = [_errors(truth.with_next_cameras(), real.said)]
    for row in rows:
        errors.setdefault(row.name, []).append(_errors(truth, row.said))
    for row in mapped:
        errors.setdefault(f"{row.name}, with a map", []).append(_errors(asked, row.said))
    layouts = _layouts(asked, rows, mapped, others)
    page = [
        "# The embedded model, measured",
        "",
        f"{len(truth)} clips, five poses each (every fourth frame), read by the embedded estimator: {floor}. Means "
        "with 95 % bootstrap intervals over clips; behind a plus-minus sign, where a row was trained with several "
        "seeds, the standard deviation over seeds. A near distance is the fifth percentile of a clip's distances, "
        "read likewise: it is the unit that a model is told its path in, and only a map tells it how many metres that "
        "is. "
        f"`{command}`, {date.today().isoformat()}, two CPU cores.",
        "",
        "## In short",
        "",
        _summary(errors),
        "",
        "## Does it obey the camera?",
        "",
        _table(errors, MEASURES),
        "",
        "Correlation over clips between what was asked and what was found, at the last frame:",
        "",
        markdown_table(
            ["row", *AXES],
            [
                [name, *(over_seeds([e.correlation(axis) for e in many]) for axis in AXES)]
                for name, many in errors.items()
            ],
        ),
        "",
        "## By lens family",
        "",
        _by_family(errors, np.array(families)),
        "",
        "## Does it obey the prompt?",
        "",
        "Share of themes, of colours that are there or not, and of the kinds of things that are, which the estimator "
        "reads as the caption says.",
        "",
        _table(errors, OBEYED),
        "",
        "## Does it obey a map of distances?",
        "",
        "Each clip filmed with the exact map of another layout, which caption and camera do not tell. Share of the "
        "way: from the error of the same row without a map (0) to the estimator's on real clips of that layout (1). "
        "Correlations: of the change of log distance that was asked and seen, and of where things stand and are read. "
        "The r of the change is not 0 for a map that is ignored, as what was asked and what was seen are both counted "
        "from the same film without a map: beside it stands the same r with another clip's map, its chance level.",
        "",
        markdown_table(
            ["row", *OBEDIENCE.values(), *ADHERENCE.values()],
            [
                [name, *(over_seeds([i[key] for i in many]) for key in (*OBEDIENCE, *ADHERENCE))]
                for name, many in layouts
            ],
        ),
        "",
        "## Is it crisp?",
        "",
        "Mean gradient on edges, and energy on the borders of patches relative to inside, of real clips = 1.",
        "",
        _crispness(real, [*rows, *mapped], len(rows)),
    ]
    record = {
        "rows": {name: [one.to_json() for one in many] for name, many in errors.items()},
        "maps": {name: [{key: vars(value) for key, value in one.items()} for one in many] for name, many in layouts},
    }
    for file, text in (
        ("table.md", "\n".join(page) + "\n"),
        ("rows.json", json.dumps(without_nan(record), indent=1) + "\n"),
    ):
        with whole_file(out / file) as temporary:
            temporary.write_text(text)


def row_numbers(
    truth: KnownClips, asked: KnownClips, real: Row, others: Row, free: Row, mapped: Row | None
) -> dict[str, dict[str, Interval]]:
    """All that is counted of one adapter: `camera` of its films without a map; of those with one `mapped`, and `map`,
    how the map was obeyed."""

    def of_films(known: KnownClips, row: Row) -> dict[str, Interval]:
        errors = _errors(known, row.said)
        crisp = {"edges": bootstrap(row.edges / real.edges.mean())}
        crisp["borders"] = bootstrap(row.borders / real.borders.mean())
        means = {name: bootstrap(values) for name, values in errors.measures.items()}
        return means | {f"r {axis}": errors.correlation(axis) for axis in AXES} | crisp

    found = {"camera": of_films(truth, free)}
    if mapped is not None:
        obeyed = vars(layout_obedience(asked, mapped.said, free.said, others.said))
        found |= {"mapped": of_films(asked, mapped), "map": obeyed | _adherence(asked, mapped.said)}
    return found


def _errors(truth: KnownClips, said: Reading) -> ClipErrors:
    """Errors of a reading, with that of the path in near distances beside that in metres."""
    found = errors_of(truth, said)
    return ClipErrors(found.measures | {"nears": path_in_nears(truth, said)}, found.asked, found.found)


def path_in_nears(truth: KnownClips, said: Reading) -> np.ndarray:
    """Mean distance of the read path from the true one, each in its own near distances."""
    paths = [x.shift.double() / near_of(x.log_radius, truth.known)[:, None, None] for x in (truth, said)]
    return (paths[0] - paths[1])[:, 1:].norm(dim=-1).mean(1).numpy()


def near_of(log_radius: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Each clip's near distance, as a model is told it."""
    nears = [near_distance(radius.exp(), valid) for radius, valid in zip(log_radius, known, strict=True)]
    return torch.tensor([1.0 if near is None else near for near in nears], dtype=torch.float64)


def _layouts(
    asked: KnownClips, rows: Sequence[Row], mapped: Sequence[Row], others: Row
) -> list[tuple[str, list[dict[str, Interval]]]]:
    """Obedience and adherence of every row that was given maps, beside the same row without, and beside real clips: how
    far these are from the row without, which they are counted from, is each row's own."""
    free: dict[str, list[Row]] = {}
    for row in rows:
        free.setdefault(row.name, []).append(row)
    found: dict[str, list[dict[str, Interval]]] = {}
    for row in mapped:
        without = free[row.name][len(found.get(f"{row.name}, with a map", []))]
        shown = {f"{row.name}, with a map": row, f"{row.name}, without a map": without, f"{row.name}, {OTHERS}": others}
        for name, one in shown.items():
            obeyed: LayoutObedience = layout_obedience(asked, one.said, without.said, others.said)
            found.setdefault(name, []).append(vars(obeyed) | _adherence(asked, one.said))
    return list(found.items())


def _adherence(asked: KnownClips, said: Reading) -> dict[str, Interval]:
    """The paper's scores against the maps that were given, per token, over clips."""
    given = torch.where(asked.known, asked.log_radius, torch.nan).exp().numpy()
    rows = [adherence(g, p) for g, p in zip(given, said.log_radius.exp().numpy(), strict=True)]
    return {name: bootstrap(np.array([getattr(row, name) for row in rows])) for name in ADHERENCE}


def over_seeds(seeds: Sequence[Interval]) -> str:
    """The mean over seeds with the mean interval over clips, and the spread over seeds."""
    means = np.array([one.mean for one in seeds])
    if np.isnan(means).all():
        return "-"
    low, high = (float(np.mean([getattr(one, end) for one in seeds])) for end in ("low", "high"))
    text = f"{number_text(float(means.mean()))} [{number_text(low)}, {number_text(high)}]"
    return text if len(seeds) == 1 else f"{text} ± {number_text(float(means.std(ddof=1)))}"


def _table(errors: Seeds, columns: dict[str, str]) -> str:
    rows: list[list[Any]] = []
    for name, many in errors.items():
        rows.append([name, *(over_seeds([bootstrap(one.measures[key]) for one in many]) for key in columns)])
    return markdown_table(["row", *columns.values()], rows)


def _by_family(errors: Seeds, families: np.ndarray) -> str:
    columns = [(family, measure) for family in FAMILIES if family in families for measure in ("rotation", "fov")]
    rows = []
    for name, many in errors.items():
        cells = [
            over_seeds([bootstrap(one.measures[measure][families == family]) for one in many])
            for family, measure in columns
        ]
        rows.append([name, *cells])
    return markdown_table(["row", *(f"{family}, {measure}" for family, measure in columns)], rows)


def _summary(errors: Seeds) -> str:
    """What the model's page shows."""
    rows = []
    for name, many in errors.items():
        cells = [
            over_seeds([bootstrap(one.measures[key]) for one in many]) for key in ("rotation", "metres", "nears", "fov")
        ]
        groups = [
            "/".join(_mean(np.array([one.correlation(axis).mean for one in many])) for axis in group)
            for group in (("yaw", "pitch", "roll"), ("x", "y", "z"))
        ]
        rows.append([name, *cells, *groups])
    head = [*(MEASURES[key] for key in ("rotation", "metres", "nears", "fov")), "r of yaw/pitch/roll", "r of x/y/z"]
    return markdown_table(["row", *head], rows)


def _mean(values: np.ndarray) -> str:
    return "-" if np.isnan(values).any() else f"{values.mean():.2f}"


def _crispness(real: Row, rows: Sequence[Row], free: int) -> str:
    lines = []
    for number, row in enumerate(rows):
        name = row.name if number < free else f"{row.name}, with a map"
        edges, borders = bootstrap(row.edges / real.edges.mean()), bootstrap(row.borders / real.borders.mean())
        lines.append([name, over_seeds([edges]), over_seeds([borders])])
    return markdown_table(["row", "edges", "borders of patches"], lines)
