"""Train the tiny model from a command line: what the kill, resume and two-process tests run.

python train_tiny.py OUT [--resume] [--shard] [--dies=PLACE] [--dies-at=RANK:STEP] [--validate] [key=value ...]
"""

import os
import signal
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from tiny import TinyFootage, TinyModel, footage

from curvedray.adapter.config import AdapterConfig
from curvedray.data.clips import EncodedOnTheFly, HeldOut, VideoShape, encoded
from curvedray.data.sources import Data
from curvedray.errors import InputError
from curvedray.training import checkpoints
from curvedray.training.feed import Feed
from curvedray.training.log import log_records, no_say, no_tick
from curvedray.training.loop import train
from curvedray.training.process import Process
from curvedray.training.recipe import Every, Recipe, with_overrides

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


def run(
    out,
    overrides=(),
    resume=False,
    broken=(),
    validation=(),
    model=None,
    tracker=None,
    shard=False,
    say=no_say,
    tick=no_tick,
):
    torch.set_num_threads(1)
    recipe = with_overrides(TINY, overrides)
    process = Process(recipe, out, tracker, shard)
    model = model or TinyModel()
    clips = EncodedOnTheFly(TinyFootage(6, broken), model, VideoShape(9, 32, 48))
    held_out = None
    if validation:
        encoded_clips = [encoded(one, model, VideoShape(9, 32, 48)) for one in validation]
        held_out = HeldOut(encoded_clips, model.encode_text([model.defaults.negative])[0])
    return train(recipe, model, clips, out, process, resume=resume, validation=held_out, say=say, tick=tick)


def die_inside_a_checkpoint(place):
    """Arrange for kill -9 at a numbered moment: before a file is forced to the disk, or just after the rename."""
    moments = iter(range(1000))
    real = checkpoints._on_disk

    def on_disk(path):
        if next(moments) == place:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path)

    checkpoints._on_disk = on_disk


def die_at_a_step(rank, at):
    """Arrange for kill -9 of one process of several, before it takes a step."""
    real = Feed.step

    def step(self, step):
        if (self.process.rank, step) == (rank, at):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, step)

    Feed.step = step


# -- what the tests ask of a run


def weights(out):
    (file,) = [path for path in (out / "adapter.safetensors", out / "transformer.safetensors") if path.exists()]
    return load_file(file)


def step_records(path):
    """The steps of a run's log, one record each."""
    return [record for record in log_records(path) if "loss" in record]


def loss_lines(out):
    return [(i["step"], i["loss"], i["gradient"]) for i in step_records(out / "log.jsonl")]


def same_run(a, b):
    """Step for step the same losses, and the same bytes in the end."""
    assert loss_lines(a) == loss_lines(b)
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def start_child(function, *args, **kwargs):
    """Run in a forked copy of this process, which may be killed; its exit code is 0 if the function returned."""
    child = os.fork()
    if child:
        return child
    signal.alarm(600)  # a child that hangs fails its test, not the whole suite; a busy machine is slow
    code = 1
    try:
        function(*args, **kwargs)
        code = 0
    except InputError as error:
        Path(args[0], "error.txt").write_text(str(error))
        code = 2
    finally:
        os._exit(code)


def wait_for(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    out, *rest = sys.argv[1:]
    options = [i for i in rest if i.startswith("--")]
    for option in options:
        if option.startswith("--dies="):
            die_inside_a_checkpoint(int(option.partition("=")[2]))
        if option.startswith("--dies-at="):
            die_at_a_step(*map(int, option.partition("=")[2].split(":")))
    validation = [footage(9)] if "--validate" in options else []
    changes = [i for i in rest if not i.startswith("--")]
    try:
        run(Path(out), changes, "--resume" in options, validation=validation, shard="--shard" in options)
        (Path(out) / f"finished-{os.environ.get('RANK', '0')}").touch()
    except InputError as error:
        sys.exit(f"error: {error}")
