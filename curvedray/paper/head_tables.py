"""Tables that need no video: an adapter is trained, and its radial head is read at one noise level of test clips."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from curvedray.evaluate.metrics.geometry import drift_disagreement, dynamic_tokens, pooled_to, temporal_stability
from curvedray.paper.catalogue import Item
from curvedray.paper.clips import TestClips, make_test_clips
from curvedray.paper.experiment import Experiment
from curvedray.paper.heads import LEVEL, HeadReading, read_heads
from curvedray.paper.judging import Judges
from curvedray.paper.listener import Listener
from curvedray.paper.measured import Measured
from curvedray.paper.provenance import Provenance
from curvedray.paper.run import Table, record_of, runs_of
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.tables import comparison_page
from curvedray.paper.teachers import taught
from curvedray.paper.train import train_row
from curvedray.paper.verdicts import claims_of, verdicts

Heads = Mapping[str, HeadReading]
ByMetric = dict[str, dict[str, float]]  # metric -> clip -> value
# Rows of a table from the heads of the experiment's rows, one seed of each: row -> metric -> clip -> value.
Measure = Callable[[Setting, Mapping[str, Heads], TestClips], dict[str, ByMetric]]
NOBODY = Judges((), ())


@dataclass(frozen=True)
class HeadTable:
    """An experiment whose rows are trained, and read instead of filmed."""

    experiment: Experiment
    measure: Measure

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        judges = self.experiment.judges_at(scale)
        return tuple(key for key in self.experiment.needs_at(scale) if key not in (*judges, "judge"))

    def work(self, setting: Setting) -> Work:
        trained = Table(self.experiment).work(setting)
        return Work(trained.trainings, trained.done)

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        experiment = self.experiment
        rows = experiment.rows_at(setting.scale)
        weights = {}
        for name, row in rows.items():
            weights[name] = [train_row(setting, name, row, seed, hears) for seed in range(runs_of(row, setting))]
        (wanted,) = experiment.tests.values()
        tests = make_test_clips(setting, wanted, hears.tick)
        values: dict[str, dict[str, list[dict[str, float]]]] = {}
        for seed in range(setting.seeds):
            heads = {}
            for name, files in weights.items():
                file = files[seed]
                assert file is not None, "a row that is trained"
                heads[name] = read_heads(setting, file, tests, hears)
            for row_name, columns in self.measure(setting, heads, tests).items():
                for metric, by_clip in columns.items():
                    values.setdefault(row_name, {}).setdefault(metric, []).append(by_clip)
        measured = Measured(values, {}, {})
        found = verdicts(entry, claims_of(entry, experiment), measured)
        made = Provenance.now(entry, setting, experiment.says)
        how = (
            f"Trained: {', '.join(f'{name} {setting.steps(row)} steps' for name, row in rows.items())}, batch "
            f"{setting.base.batch}. The middle curved block's radial head, read on {len(tests.clips)} test clips in "
            f"noise of level {LEVEL:g}; nothing is filmed."
        )
        text = comparison_page(entry, experiment, setting, measured, found, NOBODY, made, how)
        return Page(text, record_of(entry, experiment, setting, measured, found, NOBODY, made))


def stability(setting: Setting, heads: Mapping[str, Heads], tests: TestClips) -> dict[str, ByMetric]:
    """Frame-to-frame change of log-radial statistics: of each head, of its teacher's labels, of the exact radii.

    The exact radii stand where the paper has ViPE's, which are consistent over time; a jittering teacher's where it
    has UniK3D's. At Wan's size the teacher's labels are the clips' maps, and there are no exact ones.
    """
    rows: dict[str, ByMetric] = {}
    any_head = next(iter(heads.values()))
    for clip, one in any_head.items():
        always = one.known.all(0)
        if len(one.mu) < 2 or not always.any():
            continue
        exact = one.target
        sources = {name: read[clip].mu for name, read in heads.items()}
        if setting.scale.is_world:
            flat = torch.from_numpy(exact).float().flatten()
            jittery, _ = taught(flat, torch.from_numpy(one.known).flatten(), len(exact), "jittery", clip)
            sources |= {"UniK3D": jittery.reshape(exact.shape).numpy(), "ViPE": exact}
        else:
            sources["UniK3D"] = exact
        for name, log_radius in sources.items():
            radius, true = (np.where(always, np.exp(i.astype(np.float64)), np.nan) for i in (log_radius, exact))
            numbers = temporal_stability(radius)
            if setting.scale.is_world:  # elsewhere nobody knows the true change
                numbers |= {"drift": drift_disagreement(radius, true)}
            for metric, value in numbers.items():
                rows.setdefault(name, {}).setdefault(metric, {})[clip] = value
    return rows


def dynamic_regions(setting: Setting, heads: Mapping[str, Heads], tests: TestClips) -> dict[str, ByMetric]:
    """Tokens that show what moves beside those that do not: agreement with the target, and predicted width."""
    rows: dict[str, ByMetric] = {}
    (read,) = heads.values()
    grid = setting.grid
    for clip in tests.clips:
        one = read[clip.id]
        step = grid.stride[0]
        # Pooling counts positive values alone, so what moves is 2 and what stands is 1.
        moving = pooled_to(tests.moving(clip)[::step].double() + 1, grid.rows, grid.cols) - 1
        target = np.where(one.known, np.exp(one.target.astype(np.float64)), np.nan)
        groups = dynamic_tokens(one.mu, one.sigma, target, moving)
        if len(groups) < 2:  # the paper, too, keeps the clips that have tokens of both kinds
            continue
        for name, group in groups.items():
            for metric, value in (("log-MAE", group.log_mae), ("delta_1", group.delta_1), ("width", group.width)):
                rows.setdefault(name, {}).setdefault(metric, {})[clip.id] = value
    return rows
