"""The page of `rows.py`: records of rows by seed in, Markdown out."""

from collections.abc import Mapping
from typing import Any

from score_tables import ADHERENCE, MEASURES, OBEDIENCE, over_seeds

from curvedray.evaluate.statistics import Interval
from curvedray.tables import markdown_table

Rows = Mapping[str, Mapping[str, Any]]  # by name, then by seed
CAMERA = {key: MEASURES[key] for key in ("rotation", "metres", "nears", "fov", "cam_mc")}
CAMERA |= {f"r {axis}": f"r of {axis}" for axis in ("yaw", "pitch", "roll", "x", "y", "z")}
PICTURE = {"theme": "themes", "colour": "colours", "kind": "kinds", "edges": "edges", "borders": "borders of patches"}
OBEYED = {key: OBEDIENCE[key] for key in ("error", "error_without", "error_of_real", "share_of_the_way", "change")}


def rows_page(made_by: Mapping[str, Any], rows: Rows) -> str:
    """All tables, of the rows and seeds that are there."""
    days = sorted({one["date"] for seeds in rows.values() for one in seeds.values()})
    machines = sorted({one["hardware"] for seeds in rows.values() for one in seeds.values()})
    filming = ", ".join(f"{key} {value}" for key, value in made_by["filming"].items())
    most = max(map(len, rows.values()))
    mapped = {name: seeds for name, seeds in rows.items() if all("map" in one for one in seeds.values())}
    parts = [
        "# What obeys a camera, and what obeys a map",
        "Adapters of the embedded model that differ in what a row is called after and in nothing else: "
        f"{made_by['steps']} steps of {made_by['batch']} clips each, in the same order. {made_by['clips']} test "
        f"clips, filmed with the same noise for every row ({filming}; else the model's own way) and read by the "
        f"embedded estimator: {made_by['floor']}. Means over clips with 95 % bootstrap intervals, both averaged over "
        "seeds of training; behind a plus-minus sign the standard deviation over seeds. "
        f"`python experiments/embedded/rows.py --seeds {most} -o experiments/results/rows`, "
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {'; '.join(machines)}. {_precision(rows)}",
        "## Cameras, without a map",
        _table(rows, "camera", CAMERA),
        _table(rows, "camera", PICTURE),
    ]
    if mapped:
        parts += [
            "## With the exact map of another layout",
            "Neither caption nor camera tells that layout. *Share of the way*: from the error of the same row without "
            "a map (0) to the estimator's on real clips of that layout (1).",
            _table(mapped, "map", OBEYED | ADHERENCE),
            _table(mapped, "mapped", CAMERA),
            _table(mapped, "mapped", PICTURE),
        ]
    return "\n\n".join(parts) + "\n"


def _precision(rows: Rows) -> str:
    """In what films were computed, where that is not float32 for all of them."""
    kinds: dict[str, list[str]] = {"no": [], "bf16": []}
    for name, seeds in rows.items():
        for seed, one in seeds.items():
            kinds[one.get("filmed in", "no")].append(f"{name}, seed {seed}")
    if not kinds["bf16"]:
        return "Films are computed in float32."
    full = f", but in float32 those of: {'; '.join(kinds['no'])}" if kinds["no"] else ""
    return f"Films are computed in bfloat16{full}."


def _table(rows: Rows, part: str, columns: Mapping[str, str]) -> str:
    lines = []
    for name, seeds in rows.items():
        cells = [over_seeds([_interval(one[part][key]) for one in seeds.values()]) for key in columns]
        lines.append([name, str(len(seeds)), *cells])
    return markdown_table(["row", "seeds", *columns.values()], lines)


def _interval(stored: Mapping[str, float | None]) -> Interval:
    """A number that was not a number is stored as none."""
    return Interval(**{end: float("nan") if value is None else value for end, value in stored.items()})
