"""Checkpoints that are there whole or not at all: a folder per step, with the checksum of every file.

A checkpoint is written under a hidden name and renamed when all of it is on the disk, so a process killed at any
moment leaves the one before. One that does not match its checksums is passed over when resuming. What a killed process
left under a hidden name is deleted when the run goes on.
"""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from curvedray.errors import InputError
from curvedray.files import write_tensors, writing
from curvedray.inputs import read_json, reading
from curvedray.training.sharding import split_like, whole

log = logging.getLogger(__name__)
STATE = "state.json"  # written last: the other files' checksums, the step, the recipe
STEP = re.compile("step-[0-9]{6,15}")
PARTS = ("weights", "optimiser", "average")
PART_FILE = re.compile(f"({'|'.join(PARTS)})(?:-[0-9]{{5,}}-of-[0-9]{{5,}})?[.]safetensors")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a run stands: the weights in training, what the optimisers remember, the average of weights."""

    step: int
    recipe: dict[str, Any]
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    average: dict[str, Tensor]
    circumstances: dict[str, Any] = field(default_factory=dict)  # what may change the bits, but is no part of a recipe


def save_checkpoint(
    folder: Path,
    checkpoint: Checkpoint,
    keep: int,
    share: tuple[int, int] = (0, 1),
    wait: Callable[[], None] = lambda: None,
) -> Path:
    """Write `folder/step-000500` and then forget all but the newest `keep`.

    Several processes may write it together, each its `share` of the tensors (its number, and how many there are): the
    first makes the folder and, when all have written, gives it its name. They `wait` for one another in between.
    Tensors that are split over the processes are gathered, one after another.
    """
    rank, count = share
    path = folder / f"step-{checkpoint.step:06d}"
    unfinished = folder / f".{path.name}"
    fix = f"Make room and go on with --resume latest: {_newest_before(path)}."
    try:
        with writing(f"checkpoint of step {checkpoint.step}", fix):
            if rank == 0:
                folder.mkdir(parents=True, exist_ok=True)
                _remove(unfinished)
                unfinished.mkdir()
            wait()
            sums = {}
            for name in PARTS:
                own = {}
                for index, (key, tensor) in enumerate(sorted(getattr(checkpoint, name).items())):
                    gathered = whole(tensor.detach())
                    if index % count == rank:
                        own[key] = gathered.cpu().contiguous()
                file = unfinished / _part_file(name, rank, count)
                save_file(own, file)
                sums[file.name] = _on_disk(file)
            wait()
            if rank == 0:
                others = [_part_file(name, other, count) for name in PARTS for other in range(1, count)]
                sums |= {name: _checksum(unfinished / name) for name in others}
                record = {"step": checkpoint.step, "recipe": checkpoint.recipe, "sha256": sums}
                record["circumstances"] = checkpoint.circumstances
                state = unfinished / STATE
                state.write_text(json.dumps(record, indent=1))
                _on_disk(state)
                _remove(path)  # a damaged one of the same step
                os.replace(unfinished, path)
                _on_disk(folder)
                remove_old(folder, checkpoint.step, keep)
    except InputError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return path


def _part_file(part: str, rank: int, count: int) -> str:
    """`weights.safetensors`, or of several that wrote it together `weights-00001-of-00002.safetensors`."""
    return f"{part}.safetensors" if count == 1 else f"{part}-{rank + 1:05d}-of-{count:05d}.safetensors"


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; damaged ones are named and passed over."""
    for path in reversed(checkpoint_folders(folder)):
        try:
            return load_checkpoint(path)
        except InputError as error:
            log.warning("passed over %s", error)
    return None


def load_checkpoint(path: Path) -> Checkpoint:
    with reading(f"checkpoint {path.name}", "a whole checkpoint"):
        record = read_json(path / STATE, "the record of a checkpoint")
        for name, expected in record["sha256"].items():
            got = _checksum(path / name)
            if got != expected:
                raise InputError(f"checkpoint {path.name}", f"{name} with checksum {expected[:8]}", got[:8])
        # Copied: a file's numbers may begin at any address, and matrix products round by alignment on some CPUs.
        parts: dict[str, dict[str, Tensor]] = {name: {} for name in PARTS}
        for file in record["sha256"]:
            part = parts[PART_FILE.fullmatch(file)[1]]  # type: ignore[index]
            part |= {key: tensor.clone() for key, tensor in load_file(path / file).items()}
        return Checkpoint(
            int(record["step"]), record["recipe"], **parts, circumstances=dict(record.get("circumstances", {}))
        )


def save_transformer(transformer: nn.Module, path: Path, recipe: dict[str, Any]) -> None:
    """A trained transformer as one safetensors file, whole or not at all, with its recipe in the header."""
    write_tensors(path, transformer.state_dict(), {"recipe": json.dumps(recipe)})


def checkpoint_folders(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first, whole or damaged; by number, for step-1000000 is a longer name."""
    found = [path for path in folder.glob("step-*") if path.is_dir() and STEP.fullmatch(path.name)]
    return sorted(found, key=_step_of)


def remove_unfinished(folder: Path) -> None:
    """Delete what a killed process was writing or deleting; only who holds the run's lock may."""
    for path in folder.glob(".*"):
        if path.is_dir() and STEP.fullmatch(path.name.removeprefix(".").removeprefix("old-")):
            shutil.rmtree(path)


def remove_old(folder: Path, step: int, keep: int) -> None:
    """Delete all but the newest `keep` up to a step; later ones, which are damaged where a run resumes, stay."""
    for old in [path for path in checkpoint_folders(folder) if _step_of(path) <= step][:-keep]:
        _remove(old)


def _step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _newest_before(path: Path) -> str:
    earlier = [other.name for other in checkpoint_folders(path.parent) if _step_of(other) < _step_of(path)]
    return f"the last good checkpoint is {earlier[-1]}" if earlier else "there is no earlier checkpoint"


def _remove(path: Path) -> None:
    """Delete a folder that may not be there; under a hidden name first, so that no half of it is ever taken for one."""
    if not path.name.startswith(".") and path.exists():
        hidden = path.parent / f".old-{path.name}"
        _remove(hidden)  # a process that was killed may have left it
        path = path.rename(hidden)
    if path.exists():
        shutil.rmtree(path)


def _on_disk(path: Path) -> str:
    """Force a file or folder to the disk; the checksum of a file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return _checksum(path) if path.is_file() else ""


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- what optimisers remember, by the name of the weight


def optimiser_tensors(optimisers: Sequence[torch.optim.Optimizer], names: dict[Any, str]) -> dict[str, Tensor]:
    return {
        f"{names[parameter]}:{key}": torch.as_tensor(value)
        for optimiser in optimisers
        for parameter, state in optimiser.state.items()
        for key, value in state.items()
    }


def restore_optimisers(
    optimisers: Sequence[torch.optim.Optimizer], names: dict[nn.Parameter, str], tensors: dict[str, Tensor]
) -> None:
    by_name = {name: parameter for parameter, name in names.items()}
    owner = {p: optimiser for optimiser in optimisers for group in optimiser.param_groups for p in group["params"]}
    for name, tensor in tensors.items():
        weight, _, key = name.rpartition(":")
        parameter = by_name[weight]
        # AdamW keeps its step count on the CPU, whatever the weight's device.
        owner[parameter].state[parameter][key] = tensor if tensor.ndim == 0 else split_like(tensor, parameter)
