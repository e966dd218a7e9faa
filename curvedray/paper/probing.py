"""A probe per block: how much of each token's radius can be read from the frozen backbone's features there.

All probes are trained at once on the same passes of the frozen backbone, each from the features that the adapter would
be given in its block, with the radial loss alone; they are judged on test clips. Each is the adapter's own radial head.

    b clip   n token
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from curvedray.adapter.branches import RadialHead
from curvedray.data.clips import Skipped
from curvedray.data.sources import open_clips
from curvedray.files import write_tensors
from curvedray.inputs import is_file, read_tensors
from curvedray.models.flow import noised
from curvedray.models.interface import VideoModel, self_attentions
from curvedray.paper.catalogue import Item
from curvedray.paper.clips import TestClips, make_test_clips
from curvedray.paper.experiment import Claim, Experiment, Row, TestSet
from curvedray.paper.heads import block_inputs, encoded_clips, hidden
from curvedray.paper.judging import Judges
from curvedray.paper.listener import Listener
from curvedray.paper.measured import Measured
from curvedray.paper.needs import of_scale, require
from curvedray.paper.provenance import Provenance
from curvedray.paper.run import record_of
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting, key_of
from curvedray.paper.svg import curve_chart
from curvedray.paper.tables import comparison_page
from curvedray.paper.train import cache_of
from curvedray.paper.verdicts import verdicts
from curvedray.radial.loss import radial_loss
from curvedray.training.checkpoints import (
    Checkpoint,
    latest_checkpoint,
    optimiser_tensors,
    restore_optimisers,
    save_checkpoint,
)
from curvedray.training.feed import Feed
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe, changed

LEVELS = (0.5, 0.8, 0.95)  # of noise, at which probes are judged
PROBE_LR = 1e-3
SAVED_EVERY = 100  # steps
ERROR = "radial error"
THIRDS = ("first third", "middle third", "last third")


EXPERIMENT = Experiment(
    rows={},
    measured_rows=("constant", *THIRDS),
    tests={"": TestSet(most=96)},
    columns=(ERROR,),
    claims=tuple(Claim("middle third", other, ERROR) for other in ("first third", "last third")),
    says="Each block's probe is the adapter's radial head on that block's features; `constant` answers the mean "
    "of the training clips. The claim is that radii are easiest to read in the middle third.",
)


@dataclass(frozen=True)
class Probe:
    """The item's runner. Its experiment has no rows to train: blocks and thirds of the depth are what is measured."""

    experiment: Experiment = EXPERIMENT

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        return () if scale.is_world else ("panshot", "labels")

    def work(self, setting: Setting) -> Work:
        return Work({"probes": setting.probe_steps})

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        for key in (*of_scale(setting.scale), *self.needs_at(setting.scale)):
            require(key, setting.places)
        seeds = [train_probes(setting, seed, hears) for seed in range(setting.seeds)]
        tests = make_test_clips(setting, self.experiment.tests[""], hears.tick)
        runs = [judge_probes(setting, file, tests, hears) for file in seeds]
        measured = Measured({row: {ERROR: [run[row] for run in runs]} for row in runs[0]}, {}, {})
        found = verdicts(entry, self.experiment.claims, measured)
        made = Provenance.now(entry, setting, self.experiment.says)
        how = (
            f"{setting.probe_steps} steps of batch {setting.base.batch} at {PROBE_LR:g} for every block at "
            f"once; judged on {len(tests.clips)} test clips at noise levels {', '.join(f'{i:g}' for i in LEVELS)}, "
            "a clip's mean."
        )
        text = comparison_page(entry, self.experiment, setting, measured, found, Judges((), ()), made, how)
        text += "\n![Held-out radial error by block](probing.svg)\n"
        record = record_of(entry, self.experiment, setting, measured, found, Judges((), ()), made)
        return Page(text, record, {"probing.svg": chart(setting, measured).encode()})


def probe_recipe(setting: Setting, seed: int) -> Recipe:
    row = Row()
    recipe = setting.recipe_of(row, seed)
    return changed(recipe, {"steps": setting.probe_steps, "lr": PROBE_LR})


def new_probes(model: VideoModel, setting: Setting, seed: int) -> nn.ModuleList:
    dims = [int(attention.to_q.in_features) for attention in self_attentions(model.transformer)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        heads = [RadialHead(dim, setting.base.adapter.log_radius) for dim in dims]
    return nn.ModuleList(heads).to(model.device)


def train_probes(setting: Setting, seed: int, hears: Listener) -> Path:
    """All blocks' probes, trained now, before, or from where they were stopped."""
    recipe = probe_recipe(setting, seed)
    folder = setting.folder("trained", f"probes-{key_of([setting.training_key(Row(), seed), recipe.steps, PROBE_LR])}")
    file = folder / "probes.safetensors"
    if is_file(file):
        return file
    hears.say(f"probes of {setting.depth} blocks: training, {recipe.steps} steps")
    process = Process(recipe, folder)
    model = setting.open_model()
    data = changed(recipe, {"data.cache": str(cache_of(setting, recipe))}).data
    tick = hears.tick
    clips, _ = open_clips(
        data, model, folder, held_out=recipe.validation_clips, tick=lambda a, b: tick(a, b, "clips into the cache")
    )
    grid = setting.grid
    probes = new_probes(model, setting, seed)
    optimiser = torch.optim.AdamW(probes.parameters(), lr=PROBE_LR)
    names = {parameter: name for name, parameter in probes.named_parameters()}
    before = latest_checkpoint(folder / "checkpoints")
    if before is not None:
        probes.load_state_dict(before.weights)
        restore_optimisers([optimiser], names, before.optimiser)
    known_sum = np.zeros(2) if before is None else np.array(before.circumstances["log_radius"])
    with Feed(recipe, clips, model.latent_shape(grid), grid, process, Skipped()) as feed:
        for step in range(0 if before is None else before.step, recipe.steps):
            optimiser.zero_grad()
            for batch, draws in feed.step(step):
                sigma = recipe.timesteps.sigma(draws.rank)
                with torch.no_grad(), block_inputs(model.transformer) as seen:
                    model.velocity(noised(batch.latents, draws.noise, sigma), sigma, batch.text)
                target, known = batch.log_radius.exp(), batch.radius_known
                losses = [
                    radial_loss(probe(features), target, known, recipe.radial_alpha, recipe.radial_floor).mean()
                    for probe, features in zip(probes, seen, strict=True)
                ]
                (torch.stack(losses).sum() / recipe.accumulate).backward()
                known_sum += [float(batch.log_radius[known].sum()), float(known.sum())]
            optimiser.step()
            tick(step + 1, recipe.steps, "probing")
            done = step + 1
            if done % SAVED_EVERY == 0 or done == recipe.steps:
                remembered = optimiser_tensors([optimiser], names)
                notes: dict[str, Any] = {"log_radius": known_sum.tolist()}
                state = Checkpoint(done, recipe.to_json(), probes.state_dict(), remembered, {}, notes)
                save_checkpoint(folder / "checkpoints", state, 1)
    mean = torch.tensor([known_sum[0] / max(1.0, known_sum[1])])
    write_tensors(file, {**probes.state_dict(), "mean_log_radius": mean})
    return file


@torch.no_grad()
def judge_probes(setting: Setting, file: Path, tests: TestClips, hears: Listener) -> dict[str, dict[str, float]]:
    """Each clip's mean error at the levels of noise: by block, by third of the depth, and of a constant."""
    model = setting.open_model()
    probes = new_probes(model, setting, 0)
    stored, _ = read_tensors(file)
    mean = float(stored.pop("mean_log_radius"))
    probes.load_state_dict(stored)
    errors = np.zeros((setting.depth + 1, len(tests.clips)))
    size = setting.scale.together
    for first in range(0, len(tests.clips), size):
        hears.tick(first, len(tests.clips), "judging probes")
        batch = encoded_clips(setting, model, tests, tests.clips[first : first + size])
        known = batch.radius_known.double()
        weight = known / known.sum(1, keepdim=True).clamp_min(1)
        columns = slice(first, first + len(batch))
        errors[-1, columns] = ((batch.log_radius - mean).abs() * weight).sum(1).cpu().numpy()
        for level in LEVELS:
            with block_inputs(model.transformer) as seen:
                model.velocity(*hidden(setting, model, batch, first, level), batch.text)
            for block, (probe, features) in enumerate(zip(probes, seen, strict=True)):
                missed = (probe(features).mu - batch.log_radius).abs() * weight
                errors[block, columns] += missed.sum(1).cpu().numpy() / len(LEVELS)
    names = [clip.id for clip in tests.clips]
    rows = {f"block {block}": dict(zip(names, errors[block].tolist(), strict=True)) for block in range(setting.depth)}
    rows["constant"] = dict(zip(names, errors[-1].tolist(), strict=True))
    middle = setting.base.adapter.curved(setting.depth)
    parts = (range(middle.start), middle, range(middle.stop, setting.depth))
    for name, blocks in zip(THIRDS, parts, strict=True):
        rows[name] = dict(zip(names, errors[list(blocks)].mean(0).tolist(), strict=True))
    return rows


def chart(setting: Setting, measured: Measured) -> str:
    """The curve over blocks with intervals over clips, the curved window shaded, as in the paper's figure."""
    cells = [measured.cell(f"block {block}", ERROR) for block in range(setting.depth)]
    spans = [(cell.over_clips.low, cell.over_clips.high) for cell in cells if cell is not None]
    means = [cell.mean for cell in cells if cell is not None]
    constant = measured.cell("constant", ERROR)
    level = 0.0 if constant is None else constant.mean
    middle = setting.base.adapter.curved(setting.depth)
    finite = {"probe": spans} if all(np.isfinite(spans).ravel()) else {}
    return curve_chart(
        "Radial distance in each block of the frozen backbone",
        {"probe": means, "a constant": [level] * setting.depth},
        list(range(setting.depth)),
        ("block", "held-out error, log radius"),
        (middle.start, middle.stop - 1),
        finite,
    )
