"""A table's experiment: train every row alike, film the same clips, estimate, score, and print ours beside the paper's.

Stages go row by row, and the next stage begins when every row has passed the last, so that a run that lacks a judge has
trained and filmed all that it could when it says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curvedray.evaluate.results import ClipResult
from curvedray.paper.catalogue import Item
from curvedray.paper.clips import TestClips, make_test_clips
from curvedray.paper.experiment import Experiment, Row
from curvedray.paper.features import set_scores
from curvedray.paper.film import film_row
from curvedray.paper.flow_losses import FLOW_LOSS, flow_losses
from curvedray.paper.judging import Judges, open_judges, score_row
from curvedray.paper.listener import Listener
from curvedray.paper.measured import Measured, by_seed
from curvedray.paper.provenance import Provenance
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.tables import comparison_page
from curvedray.paper.train import train_row
from curvedray.paper.verdicts import claims_of, verdicts

LENSES = ("non-pinhole", "pinhole")


@dataclass(frozen=True)
class Table:
    """An experiment as an item's runner."""

    experiment: Experiment

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        return self.experiment.needs_at(scale)

    def work(self, setting: Setting) -> Work:
        rows = self.experiment.rows_at(setting.scale)
        trainings: dict[Path, int] = {}
        films = 0
        for row in rows.values():
            count = runs_of(row, setting)
            films += 0 if row.videos else count
            if is_trained(row):
                for seed in range(count):
                    trainings[setting.trained_file(row, seed)] = setting.steps(row)
        done = sum(file.is_file() for file in trainings)
        clips = sum(min(setting.clips or setting.scale.clips, test.most) for test in self.experiment.tests.values())
        judges = len(self.experiment.judges_at(setting.scale))
        scored = sum(runs_of(row, setting) for row in rows.values())
        return Work(
            {file.parent.name: steps for file, steps in trainings.items()},
            done,
            films * clips,
            (scored + 1) * clips * judges,
        )

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        experiment = self.experiment
        measured, judges = run_experiment(experiment, setting, hears)
        found = verdicts(entry, claims_of(entry, experiment), measured)
        made = Provenance.now(entry, setting, experiment.says)
        text = comparison_page(entry, experiment, setting, measured, found, judges, made)
        return Page(text, record_of(entry, experiment, setting, measured, found, judges, made))


def is_trained(row: Row) -> bool:
    return not row.videos and row.changes.get("adapter.method") != "none"


def runs_of(row: Row, setting: Setting) -> int:
    """Seeds of a row: what is not trained has no chance in it, beyond the clips' noise, which all rows share."""
    return setting.seeds if is_trained(row) else 1


def run_experiment(experiment: Experiment, setting: Setting, hears: Listener) -> tuple[Measured, Judges]:
    """Every stage of every row."""
    rows = experiment.rows_at(setting.scale)
    weights: dict[str, list[Path | None]] = {}
    for name, row in rows.items():
        for seed in range(runs_of(row, setting)):
            trained = train_row(setting, name, row, seed, hears) if is_trained(row) else None
            weights.setdefault(name, []).append(trained)
    tests: dict[str, TestClips] = {}
    for subset, wanted in experiment.tests.items():
        tests[subset] = make_test_clips(setting, wanted, hears.tick)
    videos: dict[tuple[str, str], list[Path]] = {}
    for subset, clips in tests.items():
        for name, row in rows.items():
            label = f"{name}, {subset}" if subset else name
            videos[subset, name] = [film_row(setting, label, row, one, clips, hears) for one in weights[name]]
    judges = open_judges(setting, experiment.judges_at(setting.scale))
    results: dict[str, list[list[ClipResult]]] = {}
    failed: dict[str, list[str]] = {}
    sets: dict[str, dict[str, list[float]]] = {}
    for (subset, name), folders in videos.items():
        hears.say(f"{name}: scoring" + (f", {subset}" if subset else ""))
        label = f"{subset} | {name}" if subset else name
        scored = [score_row(setting, experiment, folder, tests[subset], judges, hears) for folder in folders]
        results[label] = [one.results for one in scored]
        if setting.scale.is_world:  # whose clips every row can be shown, and whose model is small
            row, files = rows[name], weights[name]
            losses = [flow_losses(setting, row, file, tests[subset], hears) for file in files]
            results[label] = [with_losses(*pair) for pair in zip(results[label], losses, strict=True)]
        failed[label] = sorted({failure for one in scored for failure in one.failures})
        for folder in folders:
            for metric, value in set_scores(setting, judges, folder, tests[subset]).items():
                sets.setdefault(label, {}).setdefault(metric, []).append(value)
    if not experiment.by_lens:
        return Measured({label: by_seed(runs) for label, runs in results.items()}, sets, failed), judges
    return Measured(apart_by_lens(results), {}, failed), judges


def with_losses(results: Sequence[ClipResult], losses: Mapping[str, float]) -> list[ClipResult]:
    """Clips as scored, and as guessed out of noise."""
    return [replace(one, scores=[*one.scores, FLOW_LOSS.of(one.clip, losses[one.clip])]) for one in results]


def apart_by_lens(results: Mapping[str, Sequence[Sequence[ClipResult]]]) -> dict[str, Any]:
    """Pinhole and non-pinhole clips as rows of their own."""
    rows = {}
    for lens in LENSES:
        for name, runs in results.items():
            chosen = [[result for result in run if result.stratum == lens] for run in runs]
            if all(chosen):
                rows[f"{lens} | {name}"] = by_seed(chosen)
    return rows


def record_of(
    entry: Item,
    experiment: Experiment,
    setting: Setting,
    measured: Measured,
    found: Sequence[Any],
    judges: Judges,
    made: Provenance,
) -> dict[str, Any]:
    """Everything a script would want: recipes, cells with both intervals, verdicts, what failed and what is missing."""
    rows = experiment.rows_at(setting.scale)
    labels = list(measured.values)
    cells = {
        label: {
            metric: cell.to_json()
            for metric in measured.metrics()
            if (cell := measured.cell(label, metric)) is not None
        }
        for label in labels
    }
    return {
        "item": entry.name,
        **made.to_json(),
        "recipes": {name: setting.recipe_of(row).to_json() for name, row in rows.items() if is_trained(row)},
        "rows": {
            name: {
                "teacher": row.teacher_at(setting.scale),
                "seen": row.seen_at(setting.scale),
                "map": row.map,
                "sigma": row.sigma,
            }
            for name, row in rows.items()
        },
        "cells": cells,
        "verdicts": [verdict.to_json() for verdict in found],
        "filming": setting.film_settings,
        "failed": {label: list(names) for label, names in measured.failed.items()},
        "missing": list(judges.missing),
        "judges": {judge.name: {"version": judge.version, "floor": judge.floor} for judge in judges.present},
    }
