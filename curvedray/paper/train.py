"""The first long step of a row: train its adapter. It goes on where it was stopped.

A step's files lie in a folder whose name follows from all that made them, and every file is written whole. So a step
whose files are there is skipped, one that was killed goes on, and one that anything changed for starts anew elsewhere.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread

import torch

from curvedray.data.clips import ClipSource
from curvedray.data.sources import open_clips
from curvedray.inputs import read_json
from curvedray.models.open import load_model
from curvedray.paper.experiment import Row
from curvedray.paper.families import clips_of_family
from curvedray.paper.listener import Listener
from curvedray.paper.needs import of_scale, require
from curvedray.paper.setting import Setting, key_of
from curvedray.paper.teachers import TaughtClips
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe, changed, value_at
from curvedray.training.start import check_targets

log = logging.getLogger(__name__)
NAMED_AT_BEGIN = ("precision", "model", "data.source", "data.labels")
SECONDS_TO_STOP = 30  # of a training that was asked to: a step and a checkpoint
_turn: AbstractContextManager[object] = nullcontext()  # of whoever may open the cache, where several trainings share it
_together: Barrier | None = None  # where those processes meet


def train_row(setting: Setting, name: str, row: Row, seed: int, hears: Listener) -> Path | None:
    """The row's adapter, trained now or before; the backbone alone needs none."""
    recipe = setting.recipe_of(row, seed)
    if recipe.adapter.method == "none":
        return None
    file = setting.trained_file(row, seed)
    if file.is_file():
        return file
    hears.say(f"{name}: training, {recipe.steps} steps" + (f", seed {seed}" if seed else ""))
    for key in (*of_scale(setting.scale), *(() if setting.scale.is_world else ("panshot",))):
        require(key, setting.places)
    if not setting.scale.is_world and row.learns_radii:
        require(row.labels, setting.places)
    return train_recipe(
        recipe, file.parent, cache_of(setting, recipe), row.teacher_at(setting.scale), row.seen_at(setting.scale), hears
    )


def cache_of(setting: Setting, recipe: Recipe) -> Path:
    """The encoded clips, shared by every row that is trained on them."""
    data, model = recipe.data, setting.training_model_key
    made_of = [data.source, data.labels, model, vars(setting.shape), data.cache_dtype]
    return setting.folder("cache", key_of(made_of))


def train_recipe(recipe: Recipe, out: Path, cache: Path, teacher: str, seen: str, hears: Listener) -> Path:
    """Train into a folder, or go on with it. A run that is asked to stop leaves a checkpoint and ends the command."""
    recipe = replace(recipe, data=replace(recipe.data, cache=str(cache)))
    here, recipe = recipe, as_begun(recipe, out)  # what is opened is where it lies today
    process = Process(recipe, out)
    model = load_model(here.model, device=process.device)
    with _turn:
        source, _ = open_clips(
            here.data,
            model,
            out,
            held_out=recipe.validation_clips,
            share=(process.rank, process.count),
            wait=process.wait,
            tick=lambda done, total: hears.tick(done, total, "clips into the cache"),
        )
    check_targets(here, source, hears.say)
    clips: ClipSource = source if seen == "all" else clips_of_family(source, seen)
    if teacher != "exact":
        clips = TaughtClips(clips, teacher)
    model.release(text=True, vae=True)  # everything is encoded, and these rows are not validated
    if train(recipe, model, clips, out, process, resume=True, tick=hears.tick, say=hears.say).weights is None:
        raise KeyboardInterrupt
    return out / "adapter.safetensors"


def as_begun(recipe: Recipe, out: Path) -> Recipe:
    """The recipe of a folder that is gone on with: its key names weights and clips by their content and leaves
    precision out, while a run that is resumed must have the names and the precision that it was begun with."""
    file = out / "recipe.json"
    if not file.is_file():
        return recipe
    begun = Recipe.from_json(read_json(file, "a run's recipe"))
    return changed(recipe, {key: value_at(begun, key) for key in NAMED_AT_BEGIN})


def train_side_by_side(
    setting: Setting,
    wanted: Sequence[tuple[str, Row, int]],
    processes: int,
    one_more: Callable[[], None] = lambda: None,
) -> dict[tuple[str, int], Path | None]:
    """Rows by name and seed, each trained on one core in a process of its own: on a CPU several small trainings side
    by side take less time than the same trainings in turn, each on all cores. What is said goes to the log.
    `one_more` is called once before and once after each, one call at a time, while trainings go on.
    """
    distinct: dict[str, tuple[str, Row, int]] = {}
    for one in wanted:
        distinct.setdefault(setting.training_key(*one[1:]), one)  # two processes must not train the same
    untrained = [one for one in distinct.values() if not setting.trained_file(*one[1:]).is_file()]
    caches = {cache_of(setting, setting.recipe_of(row, seed)): (row, seed) for _, row, seed in untrained}
    own = get_context("spawn")
    shared = (own.Lock(), own.Barrier(processes))
    pool = ProcessPoolExecutor(processes, own, initializer=_on_one_core, initargs=shared)
    beside = ThreadPoolExecutor(1)  # so that what is called meanwhile, however long it takes, leaves no core idle
    try:
        for row, seed in caches.values():
            raise_reason([pool.submit(_make_share, setting, row, seed, rank, processes) for rank in range(processes)])
        left = iter(untrained)
        running = {pool.submit(_train_logged, setting, *one) for one in islice(left, processes)}
        called = [beside.submit(one_more)]
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for training in done:
                training.result()
            # A pool takes up calls before it has hands for them, and those it cannot cancel: it is given no more.
            running |= {pool.submit(_train_logged, setting, *one) for one in islice(left, len(done))}
            called += [beside.submit(one_more) for _ in done]
        for call in called:
            call.result()
    finally:
        beside.shutdown(cancel_futures=True)
        pool.shutdown(cancel_futures=True)
    return {(name, seed): train_row(setting, name, row, seed, Listener()) for name, row, seed in wanted}


def raise_reason(shares: Sequence[Future[None]]) -> None:
    """Wait for all shares of a cache; where one failed, raise why, and not that the others waited for it in vain."""
    wait(shares)
    failed = [error for share in shares if (error := share.exception()) is not None]
    for error in sorted(failed, key=lambda error: isinstance(error, BrokenBarrierError)):
        raise error


def _on_one_core(turn: AbstractContextManager[object], together: Barrier) -> None:
    global _turn, _together
    _turn, _together = turn, together
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    Thread(target=_stop_with_parent, daemon=True).start()


def _stop_with_parent() -> None:
    """A worker whose parent was killed leaves a checkpoint and ends, instead of training on unseen."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    while True:  # the first asks a training to stop; the next ends a worker that has none
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SECONDS_TO_STOP)


def _make_share(setting: Setting, row: Row, seed: int, rank: int, count: int) -> None:
    """One process's share of the encoded clips that rows are trained on."""
    meet = _together
    assert meet is not None

    def wait_for_all() -> None:
        meet.wait()

    recipe = setting.recipe_of(row, seed)
    data = replace(recipe.data, cache=str(cache_of(setting, recipe)))
    log.info("clips into the cache: share %d of %d", rank + 1, count)
    try:
        open_clips(data, load_model(recipe.model), setting.store, share=(rank, count), wait=wait_for_all)
    except BaseException:
        meet.abort()  # the others would wait for it
        raise


def _train_logged(setting: Setting, name: str, row: Row, seed: int) -> None:
    def say(words: str) -> None:
        log.info("%s: %s", name, words.removeprefix(f"{name}: "))

    parent = parent_process()
    if parent is not None and parent.is_alive():
        train_row(setting, name, row, seed, Listener(say))
