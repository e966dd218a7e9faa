"""Train the `embedded` estimator: poses, lens, radii and caption from a clip of the procedural world.

    python experiments/embedded/estimator.py --model runs/embedded/embedded.safetensors -o runs/embedded/estimator

It sees clips as a sampler leaves them: latents with the mistakes of a generator on them, in the end decoded and encoded
again. It resumes where it stopped. Its training clips are of scenes that the backbone never sees; choices were made on
validation clips; the floor in its file is measured once, at the end, on the test clips that are also scored.
"""

import argparse
import json
import logging
import time
from dataclasses import asdict, fields, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from truths import Lessons, mirrored, render_lessons

from curvedray.evaluate.estimators.clip_reader import ClipReader, Reading, joined
from curvedray.evaluate.estimators.embedded import save_reader
from curvedray.evaluate.world_truth import AXES, SHAPE, KnownClips, errors_of
from curvedray.models.embedded.model import EmbeddedModel, load_embedded
from curvedray.training.checkpoints import (
    Checkpoint,
    latest_checkpoint,
    optimiser_tensors,
    restore_optimisers,
    save_checkpoint,
)
from curvedray.training.muon import Muon
from curvedray.training.precision import quick_precision

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
TEST_CLIPS = 240
Optimisers = list[torch.optim.Optimizer]
Names = dict[nn.Parameter, str]
DIRECT = 0.96  # of the steps take latents as they are; the others decode and encode them again, at thrice the price
GRAIN = 0.3  # the largest deviation of noise on the latents, which are of mean square one


def imperfect(latents: Tensor, random: Generator) -> Tensor:
    """Latents with a generator's mistakes on them, each by chance: grain, blotches, smear over space and over time, and
    small errors of exposure and colour."""
    batch, channels, frames, rows, cols = latents.shape

    def amount(largest: float, share: float) -> Tensor:
        drawn = torch.rand(2, batch, 1, 1, 1, 1, generator=random)
        return largest * drawn[0] * (drawn[1] < share)

    blotches = torch.randn(batch, channels, frames, 3, 4, generator=random).flatten(1, 2)
    blotches = F.interpolate(blotches, (rows, cols), mode="bilinear").reshape(latents.shape)
    around = F.avg_pool2d(latents.flatten(1, 2), 3, 1, 1, count_include_pad=False).reshape(latents.shape)
    latents = latents.lerp(around, amount(0.6, 0.4))
    # The first latent frame is of another kind (one video frame, not four), so time smears only the others.
    rest = latents[:, :, 1:]
    before, after = rest[:, :, [0, *range(frames - 2)]], rest[:, :, [*range(1, frames - 1), frames - 2]]
    latents = torch.cat([latents[:, :, :1], rest.lerp((before + after) / 2, amount(0.4, 0.4))], 2)
    noise = torch.randn(latents.shape, generator=random)
    gain = 1 + 0.04 * torch.randn(batch, 1, 1, 1, 1, generator=random)
    tint = 0.05 * torch.randn(batch, channels, 1, 1, 1, generator=random)
    return latents * gain + tint + amount(GRAIN, 0.8) * noise + amount(GRAIN, 0.4) * blotches


def loss_of(reading: Reading, truth: KnownClips) -> Tensor:
    """Squared errors (an absolute error settles on "no motion"), each in a unit that makes it about one at first."""
    known = truth.known.float()
    names = F.cross_entropy(reading.theme, truth.theme)
    for said, true in ((reading.colour, truth.colour), (reading.kind, truth.kind)):
        names = names + F.cross_entropy(said.flatten(0, 1), true.flatten())
    there = (truth.colour == 0)[..., None].float()  # nothing else has a position
    apart = ((reading.position - truth.position).square() * there).sum() / there.sum().clamp_min(1)
    radius = ((reading.log_radius - truth.log_radius).square() * known).sum() / known.sum().clamp_min(1)
    return (
        30 * F.mse_loss(reading.turn, truth.turn)
        + 3 * F.mse_loss(reading.shift, truth.shift)
        + 5 * F.mse_loss(reading.fov, truth.fov)
        + 5 * F.mse_loss(reading.xi, truth.xi)
        + 2 * radius
        + 3 * apart
        + names
    )


def in_full_precision(said: Reading) -> Reading:
    return Reading(*(getattr(said, field.name).float() for field in fields(Reading)))


@torch.no_grad()
def own_errors(reader: ClipReader, model: EmbeddedModel, lessons: Lessons, grain: float = 0.0) -> dict[str, float]:
    """The estimator's own mean errors on clips whose truth is known, shown through the codec.

    `r_` is a correlation over clips of what is read of the last frame with what is true of it.
    """
    random = Generator().manual_seed(0)
    readings = []
    for part in lessons.latents.float().split(40):
        noise = grain * torch.randn(part.shape, generator=random)
        readings.append(reader.read(model.decode(part + noise)))
    found = errors_of(lessons.truth, joined(readings))
    means = {name: float(values.mean()) for name, values in found.measures.items()}
    correlations = {f"r_{axis}": found.correlation(axis).mean for axis in AXES}
    return {name: round(value, 4) for name, value in (means | correlations).items()}


def sentence(found: dict[str, float]) -> str:
    """The floor, as every report prints it."""
    return (
        f"{found['rotation']:.2g} degrees per frame, {found['metres']:.2g} m, {found['fov']:.2g} degrees of "
        f"field of view, {found['xi']:.2g} of xi; theme {found['theme']:.0%}, colour {found['colour']:.0%}, kind "
        f"{found['kind']:.0%} right: its own errors on {TEST_CLIPS} rendered test clips, seen through the codec"
    )


def optimisers_of(reader: ClipReader) -> Optimisers:
    inner = [p for part in (reader.transformer, reader.summary, reader.looking) for p in part.parameters()]
    matrices = [p for p in inner if p.ndim == 2]
    chosen = {id(p) for p in matrices}
    rest = [p for p in reader.parameters() if id(p) not in chosen]
    return [Muon(matrices, lr=6e-3), torch.optim.AdamW(rest, lr=2e-3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="embedded model whose codec encodes and decodes")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--first", type=int, default=1_000_000, help="number of the first clip to train on")
    parser.add_argument("--clips", type=int, default=12_000, help="how many there are")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=500, help="steps between looks at validation clips")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = load_embedded(options.model)
    train = render_lessons(model, options.first, options.clips, "train", options.out / "truths")
    held_out = render_lessons(model, 0, 120, "val", options.out / "truths")
    reader = ClipReader(replace(SHAPE, channels=model.shape.channels))
    reader.components.load_state_dict(model.codec.state_dict(), strict=False)  # the codec has a decoder besides
    reader.spread.copy_(model.spread)
    optimisers = optimisers_of(reader)
    groups = [group for optimiser in optimisers for group in optimiser.param_groups]
    base_rates = [group["lr"] for group in groups]
    names = {parameter: name for name, parameter in reader.named_parameters()}
    checkpoints, first = options.out / "checkpoints", 0
    saved = latest_checkpoint(checkpoints)
    if saved is not None:
        first = restore(saved, reader, optimisers, names)
        log.info("going on from step %d", first)
    quick = torch.autocast("cpu", torch.bfloat16, enabled=quick_precision() == "bf16")
    began, used, smooth = time.time(), time.process_time(), 0.0
    for step in range(first, options.steps):
        random = Generator().manual_seed(options.seed * 1_000_003 + step)
        share = min(1, (step + 1) / 100) * (1 - step / options.steps)
        for group, rate in zip(groups, base_rates, strict=True):
            group["lr"] = rate * share
        some = train[torch.randint(options.clips, (options.batch,), generator=random)]
        some = replace(some, latents=some.latents.float())
        if torch.rand((), generator=random) < 0.5:
            some = mirrored(some, model.codec)
        latents = imperfect(some.latents, random)
        if step >= DIRECT * options.steps:
            with quick:
                shown = model.decode(latents)
            latents = reader.encode(shown.float())
        with quick:
            said = reader(latents)
        loss = loss_of(in_full_precision(said), some.truth)
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 5.0)
        for optimiser in optimisers:
            optimiser.step()
        smooth += (loss.item() - smooth) / min(step - first + 1, 25)
        if (step + 1) % 25 == 0:
            log.info("step %d, loss %.3f", step + 1, smooth)
        if (step + 1) % options.every == 0 or step + 1 == options.steps:
            spent = (time.time() - began, time.process_time() - used)
            found = {f"grain {grain}": own_errors(reader.eval(), model, held_out, grain) for grain in (0.0, 0.2)}
            reader.train()
            log.info("step %d, %.0f s (processor %.0f s): %s", step + 1, *spent, found)
            save_checkpoint(checkpoints, checkpoint_of(reader, optimisers, names, step + 1, options), keep=1)
    finish(reader.eval(), model, options)


def checkpoint_of(
    reader: ClipReader, optimisers: Optimisers, names: Names, step: int, options: argparse.Namespace
) -> Checkpoint:
    recipe = {name: str(value) for name, value in vars(options).items()}
    return Checkpoint(step, recipe, dict(reader.state_dict()), optimiser_tensors(optimisers, names), {})


def restore(saved: Checkpoint, reader: ClipReader, optimisers: Optimisers, names: Names) -> int:
    """Put everything back as it was; the step to go on from."""
    reader.load_state_dict(saved.weights)
    restore_optimisers(optimisers, names, saved.optimiser)
    return saved.step


def finish(reader: ClipReader, model: EmbeddedModel, options: argparse.Namespace) -> None:
    """Measure the floor on test clips and write the whole estimator."""
    floor = own_errors(reader, model, render_lessons(model, 0, TEST_CLIPS, "test", options.out / "truths"))
    log.info("floor on %d test clips: %s", TEST_CLIPS, json.dumps(floor))
    training = {name: str(value) for name, value in vars(options).items() if name != "out"}
    card = {"floor": floor, "training": training, "shape": asdict(reader.shape)}
    save_reader(reader, options.out / "estimator.safetensors", sentence(floor), card)
    log.info("wrote %s: %s", options.out / "estimator.safetensors", sentence(floor))


if __name__ == "__main__":
    main()
