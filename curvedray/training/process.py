"""This process among the others that train: its device, its share of a batch, sums over all of them.

One process alone needs no launcher; several are started by torch's, over gloo on CPUs and NCCL on GPUs.
Gradients are averaged by hand, in one reduction per step: what is trained is small, and a wrapper around the model
would have to know about hooks, accumulation and weights that a method does not use.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.configs import flattened
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import first_line
from curvedray.training.recipe import Recipe
from curvedray.training.sharding import is_split, shard_backbone

# What gloo and NCCL say when the process at the other end is gone.
GONE = re.compile("[Cc]onnection (closed|reset|refused)|Broken pipe|gloo|NCCL|[Nn]ccl|Timed out waiting")


class Process:
    """What accelerate knows about this process, behind the few calls that the loop needs."""

    def __init__(self, recipe: Recipe, out: Path, tracker: Any = None, shard: bool = False):
        """`tracker` is the name of one that accelerate knows, or a GeneralTracker of your own.

        `shard` splits the backbone over the processes; `accelerate launch --use_fsdp` asks for the same.
        """
        needed("accelerate")
        from accelerate import Accelerator
        from accelerate.utils import InitProcessGroupKwargs

        try:
            self.accelerator = Accelerator(
                cpu=not torch.cuda.is_available(),
                log_with=tracker,
                project_dir=str(out) if tracker else None,
                # While one process encodes clips or makes validation videos, the others wait as long as it takes.
                kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(days=1))],
            )
        except ValueError as error:
            raise InputError("--tracker", "one that accelerate knows", tracker, str(error)) from error
        if tracker and not self.accelerator.log_with:
            fix = f"Install it (pip install {tracker}), or train without: the run's log.jsonl has the same numbers."
            raise InputError("--tracker", "one that is installed", tracker, fix)
        self.tracked, self.precision = tracker is not None, recipe.precision
        if tracker:
            self.accelerator.init_trackers("curvedray", config=_tracker_config(recipe))
        self.device: torch.device = self.accelerator.device
        self.rank: int = self.accelerator.process_index
        self.count: int = self.accelerator.num_processes
        self.is_first: bool = self.accelerator.is_main_process
        _check_launcher(self.count)
        passes = self.count * recipe.accumulate
        if recipe.batch % passes:
            got = f"{recipe.batch} for {self.count} processes of {recipe.accumulate} passes"
            raise InputError("batch", "a number that processes x accumulate divides", got)
        self.clips_per_pass = recipe.batch // passes
        asked = shard or os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"
        self.shards = asked and self.count > 1  # one process has all of it anyway

    def slots(self, part: int) -> range:
        """This process's slots of the step's batch, in one of its passes."""
        first = (part * self.count + self.rank) * self.clips_per_pass
        return range(first, first + self.clips_per_pass)

    def autocast(self) -> AbstractContextManager[Any]:
        """Our own, not accelerate's, whose precision is fixed for as long as Python runs."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def shard(self, transformer: nn.Module) -> None:
        """Split the backbone, where that was asked for."""
        if self.shards:
            shard_backbone(transformer, self.device, self.count)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What breaks because another process is gone is said so; the launcher ends the rest."""
        try:
            yield
        except RuntimeError as error:
            if self.count == 1 or not GONE.search(str(error)):
                raise
            fix = "Start the run again with --resume latest; the last checkpoint is whole."
            raise InputError(
                "processes", f"all {self.count} at work", f"one that is gone ({first_line(error)})", fix
            ) from error

    def wait(self) -> None:
        self.accelerator.wait_for_everyone()

    def mean(self, numbers: Float[Tensor, " numbers"]) -> Float[Tensor, " numbers"]:
        """The mean over all processes."""
        return self.accelerator.reduce(numbers, "mean") if self.count > 1 else numbers

    def first_says(self, yes: bool) -> bool:
        """What the first process says, in all of them."""
        said = torch.tensor([float(yes and self.is_first)], device=self.device)
        return bool(self.mean(said)[0] > 0)

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Every process gets the mean gradient; a weight that was not used has a gradient of zero.

        Of a weight that is split each has its share of the mean already: FSDP2 averages in backward.
        """
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None and not is_split(p)]
        if self.count == 1 or not gradients:
            return
        flat = self.accelerator.reduce(torch.cat([i.flatten() for i in gradients]), "mean")
        for gradient, part in zip(gradients, flat.split([i.numel() for i in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def track(self, numbers: dict[str, float], step: int) -> None:
        if self.tracked:
            self.accelerator.log(numbers, step=step)

    def finish(self) -> None:
        if self.tracked:
            self.accelerator.end_training()


def _check_launcher(count: int) -> None:
    """Refuse to train alone where a launcher was asked for several: `accelerate launch --cpu` starts one, silently.

    For more than one process it names their meeting point; without their number, it did not start them.
    """
    env = os.environ
    if count == 1 and "ACCELERATE_MIXED_PRECISION" in env and "MASTER_ADDR" in env and "WORLD_SIZE" not in env:
        got = "one: on CPUs `accelerate launch` starts no more"
        fix = "Use torch's: python -m torch.distributed.run --nproc-per-node 2 -m curvedray train ..."
        raise InputError("launcher", "as many processes as it was asked for", got, fix)


def _tracker_config(recipe: Recipe) -> dict[str, Any]:
    """Trackers take numbers and words only."""
    flat = flattened(recipe.to_json())
    return {key: value if isinstance(value, int | float | str) else str(value) for key, value in flat.items()}
