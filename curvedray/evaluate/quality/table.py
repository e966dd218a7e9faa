"""Quality scores for scripts (JSON) and for people (Markdown), with what made each and what could not be measured."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curvedray.evaluate.quality.measure import Quality, grouped
from curvedray.evaluate.report import ARROWS, definition_of, text_of, without_nan
from curvedray.files import whole_file
from curvedray.tables import markdown_table, plain


def to_dict(quality: Quality) -> dict[str, Any]:
    record = {
        "table": [asdict(cell) for cell in quality.cells],
        "definitions": {
            cell.metric: known.definition for cell in quality.cells if (known := definition_of(cell.metric))
        },
        "scores": [asdict(score) for score in quality.scores],
        "extractors": quality.versions,
        "notes": quality.notes,
        "absent": quality.absent,
        "failed": quality.failed,
    }
    return dict(without_nan(record))


def to_markdown(quality: Quality) -> str:
    rows = [[f"{cell.metric} {ARROWS[cell.better]}".strip(), text_of(cell)] for cell in quality.cells]
    how = "Mean over clips with its 95 % bootstrap interval, or one number for the whole set; clips in parentheses."
    lines = [how, "", markdown_table(["metric", "value"], rows), ""]
    known = [definition_of(cell.metric) for cell in quality.cells]
    lines += [f"- **{metric.name}**: {metric.definition}" for metric in known if metric]
    lines += ["", *(f"- {name}: {plain(text)}" for name, text in quality.versions.items())]
    lines += [f"- {plain(note)}" for note in quality.notes]
    lines += [f"- {name}: not measured. {plain(why)}" for name, why in grouped(quality.absent).items()]
    lines += [f"- {plain(name)}: failed, {plain(why)}" for name, why in quality.failed.items()]
    return "\n".join(lines) + "\n"


def write_quality(quality: Quality, folder: Path) -> None:
    """quality.json and quality.md, each whole or not at all."""
    texts = {
        "quality.json": json.dumps(to_dict(quality), indent=1, allow_nan=False),
        "quality.md": to_markdown(quality),
    }
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
