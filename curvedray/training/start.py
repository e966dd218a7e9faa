"""How a run begins: in a folder of its own, from nothing, from an adapter, or where it was; and what is trained."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.configs import flattened
from curvedray.data.clips import ClipSource
from curvedray.data.coverage import coverage
from curvedray.data.sources import WORLDS
from curvedray.errors import InputError
from curvedray.files import writing
from curvedray.locks import check_unlocked, lock_folder, remove_leftovers
from curvedray.models.interface import VideoModel
from curvedray.training.checkpoints import Checkpoint, checkpoint_folders, latest_checkpoint, remove_unfinished
from curvedray.training.log import Say, no_say
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe, differences

LOCKED = "Wait for that run, stop it, or choose another folder with -o."
FREE = ("every.", "keep:", "data.cache:")  # keys that do not change the weights: a cache may lie anywhere


def check_run_folder(out: Path) -> None:
    """Refuse a folder in which another run is at work, before anything is loaded for this one."""
    check_unlocked(out, f"run {out}", LOCKED)


@contextmanager
def own_run_folder(out: Path, process: Process) -> Iterator[None]:
    """The run's folder for its processes alone, cleared of what a killed run was writing."""
    if not process.is_first:
        process.wait()
        yield
        return
    with lock_folder(out, f"run {out}", LOCKED):
        with writing(str(out)):
            remove_leftovers(out)
            remove_unfinished(out / "checkpoints")
            for folder in (out / "validation").glob("step-*"):
                remove_leftovers(folder)
        process.wait()
        yield


def checkpoint_to_resume(recipe: Recipe, out: Path, resume: bool) -> Checkpoint | None:
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
    if recipe.steps < before.steps:
        fix = f"Say steps={before.steps}, or more to extend it."
        raise InputError("--resume latest", f"at least the {before.steps} steps of the run", recipe.steps, fix)
    free = (*FREE, "steps:")
    changed = [line for line in differences(before, recipe) if not line.startswith(free)]
    if changed:
        fix = "Resume with the recipe it was started with, or start a new run in another folder."
        raise InputError("--resume latest", "the recipe of the run", "; ".join(changed), fix)
    return checkpoint


def circumstances(process: Process, clips: ClipSource) -> dict[str, Any]:
    """What may change a run's numbers although it is no part of its recipe."""
    return {
        "threads": torch.get_num_threads(),
        "processes": process.count,
        "device": process.device.type,
        "torch": torch.__version__,
        "clips": clips.fingerprint,
    }


def notes_on_resuming(checkpoint: Checkpoint, recipe: Recipe, now: dict[str, Any]) -> list[str]:
    """What is not as it was when the checkpoint was written, in sentences."""
    before, notes = Recipe.from_json(checkpoint.recipe), []
    if recipe.steps > before.steps:
        schedules = [f"the learning rate ({recipe.decay})"] * (recipe.decay != "constant")
        schedules += ["the MixForcing schedule"] * (recipe.mixforcing is not None)
        note = f"extended from {before.steps} to {recipe.steps} steps"
        if schedules:
            verb = "are now those" if len(schedules) > 1 else "is now that"
            note += f"; {' and '.join(schedules)} {verb} of a run of {recipe.steps} steps"
        notes.append(note)
    then = checkpoint.circumstances
    for name in ("threads", "processes", "device", "torch"):
        if name in then and then[name] != now[name]:
            notes.append(
                f"{name}: {then[name]} until step {checkpoint.step}, {now[name]} from now on; sums are rounded "
                "differently, so the last digits will not be those of a run that was never stopped"
            )
    if then.get("clips", now["clips"]) != now["clips"]:
        notes.append(f"the clips changed since step {checkpoint.step}; training goes on with those that are there now")
    return notes


def check_targets(recipe: Recipe, clips: ClipSource, say: Say = no_say) -> None:
    """Refuse a recipe that learns distances from clips that have none, and say what share of them has.

    Trained all the same, it would be a run without supervision under the name of one with it.
    """
    learns = recipe.radial or recipe.mixforcing is not None
    found = coverage(clips) if learns and recipe.data.source not in WORLDS else None
    if found is None:
        return
    if not found.labelled:
        source = recipe.data.source
        wanted = "MixForcing" if recipe.mixforcing is not None else f"radial weight {recipe.radial_weight:g}"
        fix = (
            f"Label them: curvedray radial label {source} -o {source}-labels, then train with --labels {source}-labels"
        )
        fix += "; or train without: radial_weight=0" + (" mixforcing=null" if recipe.mixforcing is not None else "")
        raise InputError("clips", f"some with maps of distances, for {wanted}", f"none of {found.clips}", f"{fix}.")
    if not found.is_whole or found.tokens is not None:
        say(str(found))


def new_adapter(recipe: Recipe, transformer: nn.Module) -> Adapter:
    """The recipe's adapter as it is before training, not attached."""
    adapter = Adapter(transformer, recipe.adapter, seed=recipe.seed)
    if not any(True for _ in adapter.parameters()):
        raise InputError("adapter.method", "one with something to train", recipe.adapter.method)
    return adapter


def what_is_trained(recipe: Recipe, model: VideoModel, fresh: bool) -> tuple[Adapter | None, nn.Module]:
    """The adapter, attached, or the transformer; in float32, all else frozen. A `fresh` run reads `recipe.start`."""
    transformer = model.transformer
    transformer.requires_grad_(False)
    if recipe.gradient_checkpointing:
        transformer.enable_gradient_checkpointing()  # type: ignore[operator]
    if recipe.what == "backbone":
        transformer.float().requires_grad_(True).train()
        return None, transformer
    adapter = new_adapter(recipe, transformer)
    if recipe.start and fresh:
        adapter.load_state_dict(_starting_weights(recipe, transformer))
    adapter.attach(transformer)
    # Gradients pass through the frozen blocks; in training mode diffusers also honours gradient checkpointing.
    transformer.train(recipe.gradient_checkpointing)
    adapter.accepts_radial_maps = recipe.mixforcing is not None
    adapter.notes = {"recipe": recipe.to_json()}
    return adapter, adapter.float().train()


def _starting_weights(recipe: Recipe, transformer: nn.Module) -> dict[str, Any]:
    """The weights of the adapter that a run starts from, which must be of the recipe's kind."""
    given = load_adapter(recipe.start, transformer)
    theirs, ours = flattened(given.config.to_json()), flattened(recipe.adapter.to_json())
    unlike = [key for key in theirs if json.dumps(theirs[key]) != json.dumps(ours[key])]
    if unlike:
        changes = " ".join(f"adapter.{key}={json.dumps(theirs[key]).replace(' ', '')}" for key in unlike)
        got = ", ".join(f"{key} {theirs[key]} instead of {ours[key]}" for key in unlike)
        raise InputError(f"--from {recipe.start}", "the recipe's adapter", got, f"To train that one, add: {changes}")
    return dict(given.state_dict())
