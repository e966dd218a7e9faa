"""Train the tiny model from a command line: what the kill, resume and two-process tests run.

python train_tiny.py OUT [--resume] [--dies=PLACE] [key=value ...]
"""

import os
import signal
import sys
from pathlib import Path

import torch
from tiny import TinyFootage, TinyModel

from curvedray.adapter.config import AdapterConfig
from curvedray.data.clips import EncodedOnTheFly, VideoShape
from curvedray.errors import InputError
from curvedray.training import checkpoints
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipes import Data, Every, Recipe, with_overrides

TINY = Recipe(
    "tiny",
    adapter=AdapterConfig(width=24),
    data=Data(frames=9, height=32, width=48),
    steps=8,
    batch=2,
    lr=1e-2,
    warmup=2,
    text_dropout=0.2,
    radial_weight=0.1,
    ema=0.9,
    every=Every(checkpoint=2, validate=0),
)


def run(out, overrides=(), resume=False, broken=(), validation=(), model=None, tracker=None):
    torch.set_num_threads(1)
    recipe = with_overrides(TINY, overrides)
    process = Process(recipe, out, tracker)
    model = model or TinyModel()
    clips = EncodedOnTheFly(TinyFootage(6, broken), model, VideoShape(9, 32, 48))
    return train(recipe, model, clips, out, process, resume=resume, validation=validation)


def die_inside_a_checkpoint(place):
    """Arrange for kill -9 at a numbered moment: before a file is forced to the disk, or just after the rename."""
    moments = iter(range(1000))
    real = checkpoints._on_disk

    def on_disk(path):
        if next(moments) == place:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path)

    checkpoints._on_disk = on_disk


if __name__ == "__main__":
    out, *rest = sys.argv[1:]
    options = [i for i in rest if i.startswith("--")]
    for option in options:
        if option.startswith("--dies="):
            die_inside_a_checkpoint(int(option.partition("=")[2]))
    try:
        run(Path(out), [i for i in rest if not i.startswith("--")], "--resume" in options)
        (Path(out) / f"finished-{os.environ.get('RANK', '0')}").touch()
    except InputError as error:
        sys.exit(f"error: {error}")
