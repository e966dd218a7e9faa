"""A table of the paper at a desk: train every row alike, generate the same clips, score them, show the paper's beside.

Every step leaves files and is skipped if they are there, so that a stopped run goes on where it was.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import torch

from curvedray.adapter.file import load_adapter
from curvedray.data.sources import open_clips, video_shape
from curvedray.evaluate.estimators import Estimator
from curvedray.evaluate.html_page import write_report
from curvedray.evaluate.matching import match
from curvedray.evaluate.report import ARROWS, Report, interval_text
from curvedray.evaluate.run import score_folder
from curvedray.evaluate.scores import Score
from curvedray.evaluate.statistics import Interval, paired_difference
from curvedray.files import whole_file
from curvedray.formats import write_cameras
from curvedray.generation.generate import generate_batch
from curvedray.media.video import write_video
from curvedray.models.open import load_model
from curvedray.paper.experiment import Experiment
from curvedray.paper.items import Item
from curvedray.paper.tables import side_by_side
from curvedray.radial.map import RadialMap
from curvedray.tables import markdown_table
from curvedray.training.log import Say, Tick, no_say, no_tick
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe
from curvedray.world.world import WorldClip, world_clip

ALMOST_LOSSLESS = 4  # crf of the videos that are scored
BATCH = 16  # clips generated at once


def run_experiment(
    entry: Item,
    experiment: Experiment,
    estimator: Estimator,
    out: Path,
    say: Say = no_say,
    tick: Tick = no_tick,
) -> str:
    """The finished table as Markdown, also written to `out` with everything that led to it.

    `say` hears of every stage, `tick(done, total, words)` of the steps of those that are long.
    """
    shape_of = next(iter(experiment.rows.values()))
    clips = held_out_clips(shape_of, experiment.clips)
    for clip in clips:
        write_cameras(clip.cameras, out / "cameras" / f"{clip.id}.json")
    reports: dict[str, Report] = {}
    for name, recipe in experiment.rows.items():
        recipe, folder = with_folder(recipe, out)
        say(f"{name}: training, {recipe.steps} steps")
        weights = train_row(recipe, folder, say, tick)
        say(f"{name}: generating {len(clips)} clips")
        generate_row(recipe, weights, clips, folder / "videos", tick)
        say(f"{name}: scoring")
        jobs = match([folder / "videos"], out / "cameras")
        results = score_folder(jobs, estimator, experiment.stride, folder)
        reports[name] = Report(results, estimator.name, estimator.version, estimator.floor, experiment.stride)
        write_report(reports[name], folder, {job.clip: job for job in jobs})
    page = side_by_side(entry, rows_of(reports, experiment.by_lens), how_it_was_run(experiment, reports))
    page += paired(reports, experiment.baseline) if experiment.baseline else ""
    record = {"table": entry.name, "recipes": {name: row.to_json() for name, row in experiment.rows.items()}}
    record["cells"] = {name: [asdict(cell) for cell in report.cells()] for name, report in reports.items()}
    record["failed"] = {name: [result.clip for result in report.failed] for name, report in reports.items()}
    for file, text in (("table.md", page), ("results.json", json.dumps(record, indent=1))):
        with whole_file(out / file) as temporary:
            temporary.write_text(text)
    return page


def with_folder(recipe: Recipe, out: Path) -> tuple[Recipe, Path]:
    """A row's recipe with the cache that all share, and its own folder, which another recipe never finds.

    The digest is the recipe's before its cache is set, so that it is the same however the folder's path is typed.
    """
    digest = hashlib.sha256(json.dumps(recipe.to_json(), sort_keys=True).encode()).hexdigest()[:8]
    return replace(recipe, data=replace(recipe.data, cache=str(out / "cache"))), out / f"{recipe.name}-{digest}"


def held_out_clips(recipe: Recipe, count: int) -> list[WorldClip]:
    """The world's test clips at the model's size."""
    shape = video_shape(recipe.data, load_model(recipe.model, device=torch.device("cpu")))
    return [world_clip(index, "test", shape.frames, shape.height, shape.width) for index in range(count)]


def train_row(recipe: Recipe, out: Path, say: Say = no_say, tick: Tick = no_tick) -> Path | None:
    """Train the row's adapter, unless it was trained before; the backbone alone needs none."""
    weights = out / "adapter.safetensors"
    if recipe.adapter.method == "none":
        return None
    if not weights.is_file():
        process = Process(recipe, out)
        model = load_model(recipe.model, device=process.device)
        source, _ = open_clips(
            recipe.data,
            model,
            out,
            held_out=recipe.validation_clips,
            tick=lambda done, total: tick(done, total, "clips into the cache"),
        )
        if recipe.data.cache != "off":  # everything is encoded, and these rows are not validated
            model.release(text=True, vae=True)
        if train(recipe, model, source, out, process, resume=True, tick=tick, say=say).weights is None:
            raise KeyboardInterrupt
    return weights


def generate_row(
    recipe: Recipe, weights: Path | None, clips: list[WorldClip], folder: Path, tick: Tick = no_tick
) -> None:
    """Write a video per test clip: its caption, its cameras, and a seed that all rows share."""
    missing = [(seed, clip) for seed, clip in enumerate(clips) if not (folder / f"{clip.id}.mp4").is_file()]
    if not missing:
        return
    model = load_model(recipe.model, device="cuda" if torch.cuda.is_available() else "cpu")
    adapter = None if weights is None else load_adapter(weights, model.transformer).attach(model.transformer)
    for first in range(0, len(missing), BATCH):
        tick(first, len(missing), "generating")
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
    rows = []
    theirs = by_metric(reports[baseline].scores)
    for name, report in reports.items():
        for metric, ours in by_metric(report.scores).items() if name != baseline else ():
            if ours.keys() & theirs.get(metric, {}).keys():
                interval, clips = paired_difference(ours, theirs[metric])
                text = f"**{interval_text(interval)}**" if interval.excludes(0) else interval_text(interval)
                better = next(score.better for score in report.scores if score.metric == metric)
                rows.append([name, f"{metric} {ARROWS[better]}", str(clips), text])
    table = markdown_table(["row", "metric", "clips", "difference"], rows)
    return f"\nDifferences from {baseline}, clip by clip:\n\n{table}\n"


def by_metric(scores: list[Score]) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for score in scores:
        table.setdefault(score.metric, {})[score.clip] = score.value
    return table
