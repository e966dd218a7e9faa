"""A table of the paper at a desk: train every row alike, generate the same clips, score them, show the paper's beside.

Every step leaves files and is skipped if they are there, so that a stopped run goes on where it was.
"""

import hashlib
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from curvedray.adapter.file import load_adapter
from curvedray.data.sources import open_clips, video_shape
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimator
from curvedray.evaluate.matching import match
from curvedray.evaluate.page import write_report
from curvedray.evaluate.report import ARROWS, Report, interval_text
from curvedray.evaluate.run import score_folder
from curvedray.evaluate.scores import Score
from curvedray.evaluate.statistics import Interval, paired_difference
from curvedray.files import whole_file
from curvedray.formats import write_cameras
from curvedray.generation.generate import generate_batch
from curvedray.media.video import write_video
from curvedray.models.open import load_model
from curvedray.paper.items import ITEMS, SCALES, Item, item
from curvedray.paper.tables import side_by_side
from curvedray.radial.map import RadialMap
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipes import Recipe, differences, with_overrides
from curvedray.world.world import WorldClip, world_clip

MAY_DIFFER = ("name:", "adapter.", "radial_weight:", "mixforcing")  # what a row is; all else must be the same
ALMOST_LOSSLESS = 4  # crf of the videos that are scored
BATCH = 16  # clips generated at once


@dataclass(frozen=True)
class Experiment:
    """The rows of a table: a recipe each, alike in steps, data, order and learning rate."""

    rows: Mapping[str, Recipe]
    clips: int = 48  # of the world's test split, the same for every row
    stride: int = 4
    by_lens: bool = False  # pinhole and non-pinhole clips apart
    baseline: str = ""  # the row that the others are compared with, clip by clip

    def __post_init__(self) -> None:
        first, *others = self.rows.values()
        for other in others:
            unlike = [line for line in differences(first, other) if not line.startswith(MAY_DIFFER)]
            if unlike:
                raise InputError(f"row {other.name}", f"the training of {first.name}", "; ".join(unlike))

    def changed(self, overrides: list[str]) -> "Experiment":
        """Every row changed alike: `steps=100 data.clips=64`."""
        return replace(self, rows={name: with_overrides(row, overrides) for name, row in self.rows.items()})


def load(name: str, scale: str) -> Experiment:
    """A table's experiment, from its file, which defines it and nothing else."""
    entry = item(name)
    if scale not in SCALES:
        raise InputError("scale", " or ".join(SCALES), scale)
    if scale not in entry.scales:
        can = " or ".join(i.name for i in ITEMS if scale in i.scales) or "none yet"
        needs = f"it needs {', '.join(entry.needs)}" if entry.needs else "it is a drawing"
        raise InputError(f"{entry.kind} {name}", f"one that runs at scale {scale} ({can})", needs)
    if not entry.script.is_file():
        fix = "Run it from a checkout of the repository that has it."
        raise InputError(f"{entry.kind} {name}", f"its experiment, experiments/{name}.py", "it is not there", fix)
    found = runpy.run_path(str(entry.script)).get("experiment")
    assert isinstance(found, Experiment), f"{entry.script} defines no experiment"
    return found


def check_ready(name: str) -> None:
    """Refuse, in one sentence, a table that lacks what it needs at a desk."""
    entry = item(name)
    if entry.missing:
        raise InputError(f"{entry.kind} {name}", "all that its experiment needs", entry.missing)


def run_experiment(
    entry: Item, experiment: Experiment, estimator: Estimator, out: Path, say: Callable[[str], None] = lambda line: None
) -> str:
    """The finished table as Markdown, also written to `out` with everything that led to it."""
    shape_of = next(iter(experiment.rows.values()))
    clips = held_out_clips(shape_of, experiment.clips, out / "cameras")
    reports: dict[str, Report] = {}
    for name, recipe in experiment.rows.items():
        recipe, folder = placed(recipe, out)
        say(f"{name}: training, {recipe.steps} steps")
        weights = trained(recipe, folder)
        say(f"{name}: generating {len(clips)} clips")
        generated(recipe, weights, clips, folder / "videos")
        say(f"{name}: scoring")
        jobs = match([folder / "videos"], out / "cameras")
        results = score_folder(jobs, estimator, experiment.stride, folder)
        reports[name] = Report(results, estimator.name, estimator.version, estimator.floor, experiment.stride)
        write_report(reports[name], folder)
    page = side_by_side(entry, rows_of(reports, experiment.by_lens), how_it_was_run(experiment, reports))
    page += paired(reports, experiment.baseline) if experiment.baseline else ""
    record = {"table": entry.name, "recipes": {name: row.to_json() for name, row in experiment.rows.items()}}
    record["cells"] = {name: [asdict(cell) for cell in report.cells()] for name, report in reports.items()}
    record["failed"] = {name: [result.clip for result in report.failed] for name, report in reports.items()}
    for file, text in (("table.md", page), ("results.json", json.dumps(record, indent=1))):
        with whole_file(out / file) as temporary:
            temporary.write_text(text)
    return page


def placed(recipe: Recipe, out: Path) -> tuple[Recipe, Path]:
    """A row's recipe with the cache that all share, and its own folder, which another recipe never finds."""
    recipe = replace(recipe, data=replace(recipe.data, cache=str(out / "cache")))
    digest = hashlib.sha256(json.dumps(recipe.to_json(), sort_keys=True).encode()).hexdigest()[:8]
    return recipe, out / f"{recipe.name}-{digest}"


def held_out_clips(recipe: Recipe, count: int, folder: Path) -> list[WorldClip]:
    """The world's test clips at the model's size, their cameras written as files."""
    shape = video_shape(recipe.data, load_model(recipe.model, device=torch.device("cpu")))
    clips = [world_clip(index, "test", shape.frames, shape.height, shape.width) for index in range(count)]
    for clip in clips:
        write_cameras(clip.cameras, folder / f"{clip.id}.json")
    return clips


def trained(recipe: Recipe, out: Path) -> Path | None:
    """The row's adapter, trained now or before; the backbone alone needs none."""
    weights = out / "adapter.safetensors"
    if recipe.adapter.method == "none":
        return None
    if not weights.is_file():
        process = Process(recipe, out)
        model = load_model(recipe.model, device=process.device)
        source, _ = open_clips(recipe.data, model, out, held_out=recipe.validation_clips)
        if train(recipe, model, source, out, process, resume=True).weights is None:
            raise KeyboardInterrupt
    return weights


def generated(recipe: Recipe, weights: Path | None, clips: list[WorldClip], folder: Path) -> None:
    """A video a test clip: its caption, its cameras, and a seed that all rows share."""
    missing = [(seed, clip) for seed, clip in enumerate(clips) if not (folder / f"{clip.id}.mp4").is_file()]
    if not missing:
        return
    model = load_model(recipe.model, device="cuda" if torch.cuda.is_available() else "cpu")
    adapter = None if weights is None else load_adapter(weights, model.transformer).attach(model.transformer)
    for first in range(0, len(missing), BATCH):
        seeds, some = zip(*missing[first : first + BATCH], strict=True)
        near = [RadialMap.from_metric(clip.radius, clip.valid).near for clip in some]
        paths, captions = [clip.cameras for clip in some], [clip.caption for clip in some]
        for clip, video in zip(
            some, generate_batch(model, captions, paths, seeds, adapter=adapter, near=near), strict=True
        ):
            write_video(video, folder / f"{clip.id}.mp4", model.defaults.fps, crf=ALMOST_LOSSLESS)


def rows_of(reports: Mapping[str, Report], by_lens: bool) -> dict[str, dict[str, Interval]]:
    """The table's rows: a setting, or a subset and a setting where lenses are apart."""
    rows: dict[str, dict[str, Interval]] = {}
    for group in ("non-pinhole", "pinhole") if by_lens else ("all",):
        for name, report in reports.items():
            cells = report.cells_by_lens() if by_lens else report.cells()
            row = {cell.metric: cell.interval for cell in cells if cell.group == group}
            if row:
                rows[f"{group} | {name}" if by_lens else name] = row
    return rows


def how_it_was_run(experiment: Experiment, reports: Mapping[str, Report]) -> str:
    """One paragraph above the table: the training, the clips, the estimator and its floor, and what failed."""
    recipe, report = next(iter(experiment.rows.values())), next(iter(reports.values()))
    failed = ", ".join(f"{name} {len(one.failed)}" for name, one in reports.items() if one.failed) or "none"
    return (
        f"Model `{recipe.model}`. Every trained row: {recipe.steps} steps of batch {recipe.batch}, learning rate "
        f"{recipe.lr:g}, {recipe.data.clips} clips in the same order, seed {recipe.seed}. {experiment.clips} test "
        f"clips, every {experiment.stride} frames, estimator {report.estimator} ({report.version}; floor: "
        f"{report.floor}). Failed clips: {failed}. Means over clips, 95 % bootstrap intervals."
    )


def paired(reports: Mapping[str, Report], baseline: str) -> str:
    """Every row against the baseline, clip by clip; an interval that leaves out zero is in bold."""
    lines = [
        "",
        f"Differences from {baseline}, clip by clip:",
        "",
        "| row | metric | clips | difference |",
        "|---|---|---|---|",
    ]
    theirs = by_metric(reports[baseline].scores)
    for name, report in reports.items():
        for metric, ours in by_metric(report.scores).items() if name != baseline else ():
            if ours.keys() & theirs.get(metric, {}).keys():
                interval, clips = paired_difference(ours, theirs[metric])
                text = f"**{interval_text(interval)}**" if interval.excludes(0) else interval_text(interval)
                better = next(score.better for score in report.scores if score.metric == metric)
                lines.append(f"| {name} | {metric} {ARROWS[better]} | {clips} | {text} |")
    return "\n".join(lines) + "\n"


def by_metric(scores: list[Score]) -> dict[str, dict[str, float]]:
    table: dict[str, Any] = {}
    for score in scores:
        table.setdefault(score.metric, {})[score.clip] = score.value
    return table
