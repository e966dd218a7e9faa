"""How much of the training loop's time is forward, backward and optimiser, on the embedded adapter recipe."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from curvedray.data.sources import Data, open_clips
from curvedray.models.open import load_model
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipe import Every
from curvedray.training.recipes import recipe


@dataclass(frozen=True)
class Throughput:
    """Of the loop with its log and checkpoints, from cached latents, without validation."""

    steps: int
    batch: int
    seconds: float  # per step
    busy: float  # share of the time in forward, backward and optimiser


def training_throughput(steps: int = 40, clips: int = 16, model: str = "random") -> Throughput:
    """A short run in a temporary folder. Random weights take the time that trained ones take."""
    base = recipe("embedded")
    every = Every(log=1, checkpoint=max(1, steps // 2), validate=0)
    short = replace(base, model=model, steps=steps, data=Data(clips=clips), every=every)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        process = Process(short, out)
        opened = load_model(model, device=process.device)
        ready, _ = open_clips(short.data, opened, out, held_out=short.validation_clips)
        result = train(short, opened, ready, out, process)
    return Throughput(steps, short.batch, result.seconds / steps, result.busy)
