"""The two long steps of a row: train its adapter, film the test clips. Each goes on where it was stopped.

A step's files lie in a folder whose name follows from all that made them, and every file is written whole. So a step
whose files are there is skipped, one that was killed goes on, and one that anything changed for starts anew elsewhere.

    b clip   n token   t y x latent frame, row, column
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.data.clips import ClipSource
from curvedray.data.sources import open_clips
from curvedray.files import whole_file
from curvedray.generation.generate import generate_batch
from curvedray.media.video import write_video
from curvedray.models.interface import VideoModel
from curvedray.models.open import load_model
from curvedray.paper.clips import ALMOST_LOSSLESS, TestClip, TestClips
from curvedray.paper.experiment import Row
from curvedray.paper.families import ClipsOfFamily
from curvedray.paper.needs import of_scale, require
from curvedray.paper.setting import Setting, key_of, weights_key
from curvedray.paper.teachers import TaughtClips, taught
from curvedray.radial.interval import TEACHER_SIGMA, RadialInterval
from curvedray.training.log import Say, Tick, no_say, no_tick
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe
from curvedray.training.start import check_targets

FILMING = 1  # raised when what is filmed changes, so that old videos are not taken for new ones
RADII = "-radii.npz"


@dataclass(frozen=True)
class Listener:
    """Who hears of progress: `say` of every stage, `tick(done, total, words)` within the long ones."""

    say: Say = no_say
    tick: Tick = no_tick


def train_row(setting: Setting, name: str, row: Row, seed: int, hears: Listener) -> Path | None:
    """The row's adapter, trained now or before; the backbone alone needs none."""
    recipe = setting.recipe_of(row, seed)
    if recipe.adapter.method == "none":
        return None
    out = setting.folder("trained", f"{recipe.adapter.method}-{setting.training_key(row, seed)}")
    if (out / "adapter.safetensors").is_file():
        return out / "adapter.safetensors"
    hears.say(f"{name}: training, {recipe.steps} steps" + (f", seed {seed}" if seed else ""))
    for key in (*of_scale(setting.scale), *(() if setting.scale.is_world else ("panshot",))):
        require(key, setting.places)
    if not setting.scale.is_world and row.learns_radii:
        require(row.labels, setting.places)
    return train_recipe(recipe, out, cache_of(setting, recipe), row.teacher, row.seen_at(setting.scale), hears)


def cache_of(setting: Setting, recipe: Recipe) -> Path:
    """The encoded clips, shared by every row that is trained on them."""
    made_of = [recipe.data.source, recipe.data.labels, setting.model_key, vars(setting.shape), recipe.data.cache_dtype]
    return setting.folder("cache", key_of(made_of))


def train_recipe(recipe: Recipe, out: Path, cache: Path, teacher: str, seen: str, hears: Listener) -> Path:
    """Train into a folder, or go on with it. A run that is asked to stop leaves a checkpoint and ends the command."""
    recipe = replace(recipe, data=replace(recipe.data, cache=str(cache)))
    process = Process(recipe, out)
    model = load_model(recipe.model, device=process.device)
    source, _ = open_clips(
        recipe.data,
        model,
        out,
        held_out=recipe.validation_clips,
        share=(process.rank, process.count),
        wait=process.wait,
        tick=lambda done, total: hears.tick(done, total, "clips into the cache"),
    )
    check_targets(recipe, source, hears.say)
    clips: ClipSource = source if seen == "all" else ClipsOfFamily(source, seen)
    if teacher != "exact":
        clips = TaughtClips(clips, teacher)
    model.release(text=True, vae=True)  # everything is encoded, and these rows are not validated
    if train(recipe, model, clips, out, process, resume=True, tick=hears.tick, say=hears.say).weights is None:
        raise KeyboardInterrupt
    return out / "adapter.safetensors"


def film_row(setting: Setting, name: str, row: Row, weights: Path | None, tests: TestClips, hears: Listener) -> Path:
    """The folder of a row's videos, one per test clip, with noise that all rows share; what is there is kept.

    CLIP-radii.npz has the log radii that the middle curved block predicted in the last step, and their widths.
    """
    if row.videos:
        require(row.videos, setting.places)
        return Path(setting.places[row.videos])
    settings = setting.filming | dict(row.filming)
    made_of = [FILMING, weights_key(weights), setting.model_key, tests.key, settings, row.map, row.sigma]
    folder = setting.folder("videos", key_of(made_of))
    todo = [(i, clip) for i, clip in enumerate(tests.clips) if not (folder / f"{clip.id}.mp4").is_file()]
    if not todo:
        return folder
    hears.say(f"{name}: filming {len(todo)} clips")
    for key in of_scale(setting.scale):
        require(key, setting.places)
    model = setting.open_model()
    adapter = None
    if weights is not None:
        adapter = load_adapter(weights, model.transformer).eval().requires_grad_(False)
        adapter.to(model.device).attach(model.transformer)
    size = setting.scale.together
    for first in range(0, len(todo), size):
        hears.tick(first, len(todo), "filming")
        film_some(setting, row, model, adapter, todo[first : first + size], tests, folder)
    return folder


def film_some(
    setting: Setting,
    row: Row,
    model: VideoModel,
    adapter: Adapter | None,
    some: Sequence[tuple[int, TestClip]],
    tests: TestClips,
    folder: Path,
) -> None:
    """A batch of clips at once; each video is written last, so that one that is there has its radii beside it."""
    seeds, clips = zip(*some, strict=True)
    radii: list[dict[int, RadialInterval]] = []
    videos = generate_batch(
        model,
        [clip.caption for clip in clips],
        [tests.cameras(clip) for clip in clips],
        list(seeds),
        adapter=adapter,
        radial=maps_for(setting, row, clips, tests) if row.map else None,
        near=[clip.near for clip in clips],
        radii=radii,
        **(setting.filming | dict(row.filming)),
    )
    block = None if adapter is None else middle_of(adapter.supervised_blocks)
    for index, clip in enumerate(clips):
        if block is not None:
            predicted = radii[-1][block]
            write_radii(predicted.mu[index], predicted.sigma[index], setting, folder / f"{clip.id}{RADII}")
        write_video(videos[index], folder / f"{clip.id}.mp4", model.defaults.fps, crf=ALMOST_LOSSLESS)


def maps_for(
    setting: Setting, row: Row, clips: Sequence[TestClip], tests: TestClips
) -> tuple[RadialInterval, Bool[Tensor, "b n"]]:
    """The maps of some clips on the model's tokens, as the row's teacher gives them."""
    sigma = TEACHER_SIGMA if row.sigma is None else row.sigma
    centres, masks = [], []
    for clip in clips:
        interval, known = tests.map(clip).on(setting.grid, sigma)
        centre, known = taught(interval.mu, known, row.map, clip.id)
        centres.append(centre)
        masks.append(known)
    mu = torch.stack(centres)
    return RadialInterval(mu, torch.full_like(mu, sigma)), torch.stack(masks)


def middle_of(blocks: Sequence[int]) -> int | None:
    """The block whose predictions stand for a model's: the paper's layer 15 of 10 to 19."""
    return blocks[len(blocks) // 2] if blocks else None


def write_radii(mu: Tensor, sigma: Tensor, setting: Setting, path: Path) -> None:
    """Log radii and half widths in near distances, (t, y, x)."""
    shape = (setting.grid.frames, setting.grid.rows, setting.grid.cols)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, mu=mu.float().reshape(shape).numpy(), sigma=sigma.float().reshape(shape).numpy())
