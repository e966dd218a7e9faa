"""One training loop, read top to bottom: the same for the embedded model and for Wan, for one CPU and many GPUs.

It can be killed at any moment. Everything random follows from (seed, step, slot in the batch) and the clips from
(seed, position in the stream), so a run that goes on from a checkpoint repeats, bit for bit on a CPU, the run that was
never stopped.
"""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import save_adapter
from curvedray.data.clips import ClipSource, HeldOut, Skipped
from curvedray.data.sources import video_shape
from curvedray.errors import InputError
from curvedray.files import writing
from curvedray.models.embedded.model import EmbeddedModel, save_embedded
from curvedray.models.interface import VideoModel
from curvedray.training.checkpoints import (
    Checkpoint,
    optimiser_tensors,
    remove_old,
    restore_optimisers,
    save_checkpoint,
    save_transformer,
)
from curvedray.training.feed import Feed
from curvedray.training.log import RESUME, RunLog, Say, Tick, no_say, no_tick
from curvedray.training.objective import batch_in_view, losses, total_loss
from curvedray.training.optimiser import build_optimisers, learning_rate
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe
from curvedray.training.sharding import is_split, split_again, split_like, whole, whole_weights
from curvedray.training.start import (
    checkpoint_to_resume,
    circumstances,
    notes_on_resuming,
    own_run_folder,
    what_is_trained,
)
from curvedray.training.validate import validate


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    first: int  # the step it began at: 0, or the checkpoint's that it went on from
    step: int
    loss: float | None  # the mean of the last tenth of the steps; None where none was taken or logged
    weights: Path | None  # None: it was asked to stop before its end
    skipped: int
    seconds: float
    busy: float  # share of the time in forward, backward and optimiser


def train(
    recipe: Recipe,
    model: VideoModel,
    clips: ClipSource,
    out: Path,
    process: Process,
    *,
    resume: bool = False,
    validation: HeldOut | None = None,
    tick: Tick = no_tick,
    say: Say = no_say,
) -> Result:
    """Train an adapter, or the model's transformer itself, and leave checkpoints, a log and the weights in `out`.

    Nobody else can train into `out` meanwhile. `tick(done, total, words)` hears of every step, `say` of what happens.
    """
    with process.together(), own_run_folder(out, process):
        return _train(recipe, model, clips, out, process, resume, validation, tick, say)


def _train(
    recipe: Recipe,
    model: VideoModel,
    clips: ClipSource,
    out: Path,
    process: Process,
    resume: bool,
    validation: HeldOut | None,
    tick: Tick,
    say: Say,
) -> Result:
    checkpoint = checkpoint_to_resume(recipe, out, resume)
    first = checkpoint.step if checkpoint is not None else 0
    shape = video_shape(recipe.data, model)
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    latent_shape = model.latent_shape(grid)
    adapter, trained = what_is_trained(recipe, model, fresh=checkpoint is None)
    if checkpoint is not None:
        trained.load_state_dict(checkpoint.weights)
    process.shard(model.transformer)
    names = {parameter: name for name, parameter in trained.named_parameters()}
    parameters = list(names)
    optimisers = build_optimisers(recipe, names)
    average = {name: p.detach().clone() for p, name in names.items()} if recipe.ema else {}
    now = circumstances(process, clips)
    if checkpoint is not None:
        restore_optimisers(optimisers, names, checkpoint.optimiser)
        average = {name: split_like(checkpoint.average[name], average[name]) for name in sorted(average)}
        if process.is_first:
            remove_old(out / "checkpoints", first, recipe.keep)  # a kill may have come before it
            for note in notes_on_resuming(checkpoint, recipe, now):
                say(note)

    def validate_at(step: int) -> None:
        """Once per step, also where a kill came before the first attempt was in the log."""
        due = validation is not None and step not in log.validated
        if process.shards:  # all of them run the model, or none can; what is due is the first one's to say
            due = process.first_says(due)
        if validation is not None and due:
            with averaged(trained, average), writing(f"validation of step {step}", RESUME):
                writes = process.is_first
                found = validate(recipe, model, adapter, validation, shape, out, step, empty_text, writes)
            log.validation(step, found)
        process.wait()

    def checkpoint_at(step: int) -> None:
        if process.is_first or process.shards:
            remembered = optimiser_tensors(optimisers, names)
            state = Checkpoint(step, recipe.to_json(), trained.state_dict(), remembered, average, now)
            together = ((process.rank, process.count), process.wait) if process.shards else ()
            save_checkpoint(out / "checkpoints", state, recipe.keep, *together)
            log.say(f"checkpoint at step {step}")
        process.wait()

    skipped = Skipped()
    empty_text = clips.empty_text.to(process.device)
    log = RunLog(out, recipe, first, process.is_first, tick, say)
    saved = first
    feed = Feed(recipe, clips, latent_shape, grid, process, skipped)
    with log, feed, _asked_to_stop() as asked, _detached_after(adapter):
        if _validation_is_due(recipe, first):
            validate_at(first)  # what training starts from, or what a kill prevented
        for step in range(first, recipe.steps):
            began = time.perf_counter()
            passes = feed.step(step)
            waited = time.perf_counter() - began
            rate = learning_rate(recipe, step)
            for optimiser in optimisers:
                optimiser.zero_grad(set_to_none=True)
                for group in optimiser.param_groups:
                    group["lr"] = rate

            sums = torch.zeros(3, device=process.device)  # flow, radial, asked to stop
            for batch, draws in passes:
                with batch_in_view(recipe, adapter, batch, draws, grid):
                    with process.autocast():
                        flow, radial = losses(recipe, model, adapter, batch, draws, empty_text)
                    loss = total_loss(flow, radial, recipe.radial_weight)
                    (loss / recipe.accumulate).backward()
                sums[:2] += torch.stack([flow.detach().mean(), radial.detach().mean()]) / recipe.accumulate
            process.average_gradients(parameters)
            norm = whole(torch.nn.utils.clip_grad_norm_(parameters, recipe.optimiser.clip))
            sums[2] = float(asked.stop)
            mean_flow, mean_radial, stop = process.mean(sums).tolist()
            total = mean_flow + recipe.radial_weight * mean_radial
            _refuse_nan(step, total, float(norm), out, saved)

            for optimiser in optimisers:
                optimiser.step()
            _update_average(average, names, recipe.ema, step)
            seconds = time.perf_counter() - began
            log.step(step, total, mean_flow, mean_radial, float(norm), rate, seconds, waited, skipped)
            if (step + 1) % (recipe.every.log or recipe.steps) == 0:
                process.track({"loss": total, "flow": mean_flow, "radial": mean_radial, "lr": rate}, step)

            done = step + 1
            if stop or done == recipe.steps or (recipe.every.checkpoint and done % recipe.every.checkpoint == 0):
                checkpoint_at(done)
                saved = done
            if stop and done < recipe.steps:
                log.say(f"stopped at step {done}; go on with --resume latest")
                break
            if _validation_is_due(recipe, done):
                validate_at(done)

    finished = saved == recipe.steps
    if finished and (process.is_first or process.shards):
        with averaged(trained, average), whole_weights(trained, keep=process.is_first):
            if process.is_first:
                with writing(f"weights in {out}", RESUME):
                    _save_weights(recipe, model, adapter, out)
    process.finish()
    weights = _weights_path(model, adapter, out) if finished else None
    return Result(first, saved, log.recent_loss, weights, len(skipped), *log.timing())


def _validation_is_due(recipe: Recipe, step: int) -> bool:
    """At the start, at the end, and every so many steps between."""
    every = recipe.every.validate
    return every > 0 and (step % every == 0 or step == recipe.steps)


@contextmanager
def _detached_after(adapter: Adapter | None) -> Iterator[None]:
    """The model is left without hooks, however the run ends, so that the next can begin."""
    try:
        yield
    finally:
        if adapter is not None:
            adapter.detach()


class _Asked:
    stop = False


@contextmanager
def _asked_to_stop() -> Iterator[_Asked]:
    """Ctrl-C and SIGTERM end the run after the step at hand, with a checkpoint; a second one ends it at once."""
    asked = _Asked()

    def note(number: int, frame: object) -> None:
        if asked.stop:
            raise KeyboardInterrupt
        asked.stop = True

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever runs it there stops it their way
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- in and after it


def _refuse_nan(step: int, loss: float, norm: float, out: Path, saved: int) -> None:
    if math.isfinite(loss) and math.isfinite(norm):
        return
    got = f"loss {loss} and gradient norm {norm} at step {step}"
    kept = f"The last good checkpoint is of step {saved}" if saved else "There is no checkpoint yet"
    fix = f"{kept}, in {out}; nothing was overwritten. Try a lower lr, or precision=no, in a new run."
    raise InputError("training", "finite numbers", got, fix)


@torch.no_grad()
def _update_average(average: dict[str, Tensor], names: dict[nn.Parameter, str], decay: float, step: int) -> None:
    """The average of weights. In the first steps the decay is lower, so that the initial weights are soon forgotten."""
    decay = min(decay, (1 + step) / (10 + step))
    for parameter, name in names.items() if average else ():
        average[name].lerp_(parameter, 1 - decay)


@contextmanager
def averaged(module: nn.Module, average: dict[str, Tensor]) -> Iterator[None]:
    """The averaged weights in place of the trained ones, while the block lasts."""
    split_again(module)
    parameters = {name: parameter for name, parameter in module.named_parameters() if name in average}
    own = {name: p.data.clone() if is_split(p) else p.data for name, p in parameters.items()}
    try:
        _set_weights(parameters, average)
        yield
    finally:
        split_again(module)
        _set_weights(parameters, own)


@torch.no_grad()
def _set_weights(parameters: dict[str, nn.Parameter], tensors: dict[str, Tensor]) -> None:
    for name, parameter in parameters.items():
        if is_split(parameter):  # FSDP2 gathers from the memory it knows
            parameter.copy_(tensors[name])
        else:
            parameter.data = tensors[name]


def _weights_path(model: VideoModel, adapter: Adapter | None, out: Path) -> Path:
    if adapter is not None:
        return out / "adapter.safetensors"
    return out / ("embedded.safetensors" if isinstance(model, EmbeddedModel) else "transformer.safetensors")


def _save_weights(recipe: Recipe, model: VideoModel, adapter: Adapter | None, out: Path) -> None:
    """What was trained, as its users load it: an adapter, a whole embedded model, or a transformer alone."""
    path = _weights_path(model, adapter, out)
    if adapter is not None:
        save_adapter(adapter, path)
    elif isinstance(model, EmbeddedModel):
        before = {"before": model.card} if model.card else {}
        save_embedded(model, path, {"recipe": recipe.to_json()} | before)
    else:
        save_transformer(model.transformer, path, recipe.to_json())
