"""One training loop, read top to bottom: the same for the embedded model and for Wan, for one CPU and many GPUs.

It can be killed at any moment. Everything random follows from (seed, step, slot in the batch) and the clips from
(seed, position in the stream), so a run that goes on from a checkpoint repeats, bit for bit on a CPU, the run that was
never stopped.
"""

import math
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import save_adapter
from curvedray.cameras import TokenGrid
from curvedray.data.clips import Batch, ClipSource, Footage, Skipped, batch_of, clip_at
from curvedray.data.sources import video_shape
from curvedray.errors import InputError
from curvedray.files import writing
from curvedray.models.embedded.model import EmbeddedModel, save_embedded
from curvedray.models.interface import VideoModel
from curvedray.training.checkpoints import (
    Checkpoint,
    checkpoint_folders,
    latest_checkpoint,
    optimiser_tensors,
    restore_optimisers,
    save_checkpoint,
    save_transformer,
)
from curvedray.training.log import RESUME, RunLog
from curvedray.training.objective import Draws, batch_in_view, draw, losses, total_loss
from curvedray.training.optimiser import build_optimisers, learning_rate
from curvedray.training.process import Process
from curvedray.training.recipes import Recipe, differences
from curvedray.training.validate import validate


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    step: int
    loss: float  # the mean of the last tenth of the steps
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
    validation: Sequence[Footage] = (),
) -> Result:
    """Train an adapter, or the model's transformer itself, and leave checkpoints, a log and the weights in `out`."""
    checkpoint = _where_to_start(recipe, out, resume)
    first = checkpoint.step if checkpoint is not None else 0
    shape = video_shape(recipe.data, model)
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    latent_shape = model.latent_shape(grid)
    adapter, trained = _what_is_trained(recipe, model)
    names = {parameter: name for name, parameter in trained.named_parameters()}
    parameters = list(names)
    optimisers = build_optimisers(recipe, names)
    average = {name: p.detach().clone() for p, name in names.items()} if recipe.ema else {}
    if checkpoint is not None:
        trained.load_state_dict(checkpoint.weights)
        restore_optimisers(optimisers, names, checkpoint.optimiser)
        average = {name: tensor.to(process.device) for name, tensor in checkpoint.average.items()}

    def validate_at(step: int) -> None:
        if process.is_first and validation:
            with averaged(trained, average), writing(f"validation of step {step}", RESUME):
                log.validated(step, validate(recipe, model, adapter, validation, shape, out, step, empty_text))
        process.wait()

    def checkpoint_at(step: int) -> None:
        if process.is_first:
            remembered = optimiser_tensors(optimisers, names)
            state = Checkpoint(step, recipe.to_json(), trained.state_dict(), remembered, average)
            save_checkpoint(out / "checkpoints", state, recipe.keep)
        process.wait()

    skipped = Skipped()
    empty_text = clips.empty_text.to(process.device)
    log = RunLog(out, recipe, first, shown=process.is_first)
    saved = first
    feed = Feed(recipe, clips, latent_shape, grid, process, skipped)
    with log, feed, _asked_to_stop() as asked, _detached_after(adapter):
        if recipe.every.validate and first == 0:
            validate_at(0)  # what training starts from
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
            norm = torch.nn.utils.clip_grad_norm_(parameters, recipe.optimiser.clip)
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
                log.note(f"checkpoint at step {done}")
            if recipe.every.validate and (done == recipe.steps or done % recipe.every.validate == 0):
                validate_at(done)
            if stop:
                log.note(f"stopped at step {done}; go on with --resume latest")
                break

    finished = saved == recipe.steps
    if finished and process.is_first:
        with averaged(trained, average), writing(f"weights in {out}", RESUME):
            _save_weights(recipe, model, adapter, out)
    process.finish()
    return Result(
        saved, log.recent_loss, _weights_path(model, adapter, out) if finished else None, len(skipped), *log.timing()
    )


class Feed:
    """This process's clips and draws by step; the next step's are made ready while this one trains."""

    def __init__(
        self,
        recipe: Recipe,
        clips: ClipSource,
        latent_shape: tuple[int, ...],
        grid: TokenGrid,
        process: Process,
        skipped: Skipped,
    ):
        self.recipe, self.clips, self.latent_shape, self.grid = recipe, clips, latent_shape, grid
        self.process, self.skipped = process, skipped
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clips")
        self._next: tuple[int, Future[list[tuple[Batch, Draws]]]] | None = None

    def step(self, step: int) -> list[tuple[Batch, Draws]]:
        """One batch, and what chance decides about it, for each pass of a step."""
        if self._next is None or self._next[0] != step:
            self._next = step, self._pool.submit(self._read, step)
        passes = self._next[1].result()
        if step + 1 < self.recipe.steps:
            self._next = step + 1, self._pool.submit(self._read, step + 1)
        return [(batch.to(self.process.device), draws.to(self.process.device)) for batch, draws in passes]

    def _read(self, step: int) -> list[tuple[Batch, Draws]]:
        passes = []
        for part in range(self.recipe.accumulate):
            slots = self.process.slots(part)
            first = step * self.recipe.batch
            clips = [clip_at(self.clips, first + slot, self.recipe.seed, self.skipped) for slot in slots]
            passes.append((batch_of(clips), draw(self.recipe, step, slots, self.latent_shape, self.grid)))
        return passes

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


# -- before the loop


def _what_is_trained(recipe: Recipe, model: VideoModel) -> tuple[Adapter | None, nn.Module]:
    """The adapter, attached, or the transformer; in float32, all else frozen."""
    transformer = model.transformer
    transformer.requires_grad_(False)
    if recipe.gradient_checkpointing:
        transformer.enable_gradient_checkpointing()  # type: ignore[operator]
    if recipe.what == "backbone":
        transformer.float().requires_grad_(True).train()
        return None, transformer
    adapter = Adapter(transformer, recipe.adapter, seed=recipe.seed).attach(transformer)
    if not any(True for _ in adapter.parameters()):
        raise InputError("adapter.method", "one with something to train", recipe.adapter.method)
    # Gradients pass through the frozen blocks; in training mode diffusers also honours gradient checkpointing.
    transformer.train(recipe.gradient_checkpointing)
    adapter.accepts_radial_maps = recipe.mixforcing is not None
    adapter.notes = {"recipe": recipe.to_json()}
    return adapter, adapter.float().train()


def _where_to_start(recipe: Recipe, out: Path, resume: bool) -> Checkpoint | None:
    """The newest whole checkpoint of a run to go on with; None where it begins. A run is never overwritten."""
    folder = out / "checkpoints"
    if not resume:
        if checkpoint_folders(folder):
            fix = "Go on with --resume latest, or choose another folder with -o."
            raise InputError(f"folder {out}", "no run in it", "one that has checkpoints", fix)
        return None
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        if checkpoint_folders(folder):
            fix = "Start a new run in another folder with -o."
            raise InputError("--resume latest", f"a whole checkpoint in {out}", "only damaged ones", fix)
        return None  # it was stopped before its first
    before = Recipe.from_json(checkpoint.recipe)
    free = ("every.", "keep:")  # what does not change the weights
    changed = [line for line in differences(before, recipe) if not line.startswith(free)]
    if changed:
        fix = "Resume with the recipe it was started with, or start a new run in another folder."
        raise InputError("--resume latest", "the recipe of the run", "; ".join(changed), fix)
    return checkpoint


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
    """The average of weights; young, it forgets faster, so that it does not remember the start."""
    decay = min(decay, (1 + step) / (10 + step))
    for parameter, name in names.items() if average else ():
        average[name].lerp_(parameter, 1 - decay)


@contextmanager
def averaged(module: nn.Module, average: dict[str, Tensor]) -> Iterator[None]:
    """The averaged weights in place of the trained ones, while the block lasts."""
    own = {name: parameter.data for name, parameter in module.named_parameters()}
    try:
        for name, parameter in module.named_parameters():
            parameter.data = average.get(name, own[name])
        yield
    finally:
        for name, parameter in module.named_parameters():
            parameter.data = own[name]


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
