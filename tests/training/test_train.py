"""What the loop trains, and that many processes train as one."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate.tracking import GeneralTracker
from safetensors.torch import load_file
from tiny import TinyFootage, TinyModel, footage
from train_tiny import TINY, die_inside_a_checkpoint, loss_lines, run, start_child, wait_for, weights

from curvedray.adapter.file import load_adapter
from curvedray.data.clips import EncodedOnTheFly, VideoShape, encoded
from curvedray.errors import InputError
from curvedray.training.recipe import with_overrides
from curvedray.training.validate import clip_loss

SHAPE = VideoShape(9, 32, 48)


# -- many train as one


def test_accumulation_changes_nothing(tmp_path, whole):
    run(tmp_path, ["accumulate=2"])
    for (_, a, _), (_, b, _) in zip(loss_lines(tmp_path), loss_lines(whole), strict=True):
        assert a == pytest.approx(b, rel=1e-4)


def test_two_processes_train_as_one(tmp_path, whole):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def one_of_two(out, rank):
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": "true"}
        fresh_accelerate()
        run(out)

    children = [start_child(one_of_two, tmp_path, rank) for rank in "01"]
    assert [wait_for(child) for child in children] == [0, 0]
    as_one_process(tmp_path, whole)


def fresh_accelerate():
    """Forget what accelerate found out about the process this one was forked from."""
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def as_one_process(out, whole):
    """The first step's losses and gradients are those of one process; rounding alone parts the rest."""
    (_, loss, gradient), (_, one_loss, one_gradient) = loss_lines(out)[0], loss_lines(whole)[0]
    assert loss == pytest.approx(one_loss, rel=1e-5)
    assert gradient == pytest.approx(one_gradient, rel=1e-4)
    many, one = weights(out), weights(whole)
    for name in one:
        # Attention does not see what all keys share: that bias's gradient is rounding, which Adam makes a step of.
        if not name.endswith("k_proj.bias"):
            torch.testing.assert_close(many[name], one[name], rtol=1e-2, atol=2e-3)


@pytest.mark.slow
def test_two_processes_of_a_launcher(tmp_path, whole):
    """Really two: `accelerate launch --cpu --num_processes 2` once started one and said nothing."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += [str(Path(__file__).parents[1] / "train_tiny.py"), str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=900)
    assert sorted(path.name for path in tmp_path.glob("finished-*")) == ["finished-0", "finished-1"]
    as_one_process(tmp_path, whole)


# -- what it trains


@pytest.mark.parametrize("method", ["ucpe", "recammaster", "depth_concat", "copy_concat", "plucker"])
def test_every_kind_of_adapter_trains(tmp_path, method):
    result = run(tmp_path, [f"adapter.method={method}", "steps=2", "every.checkpoint=0"])
    assert load_adapter(result.weights, TinyModel().transformer).config.method == method


def test_mixforcing_is_noted_in_the_adapter(tmp_path):
    result = run(tmp_path, ["mixforcing.kind=block", "steps=2"])
    adapter = load_adapter(result.weights, TinyModel().transformer)
    assert adapter.accepts_radial_maps
    assert adapter.notes["recipe"]["mixforcing"]["kind"] == "block"


class Notebook(GeneralTracker):
    """A tracker as accelerate wants one, that remembers what it is told."""

    name, requires_logging_directory, main_process_only = "notebook", False, True

    def __init__(self):
        super().__init__()
        self.config, self.rows, self.closed = {}, [], False

    @property
    def tracker(self):
        return self.rows

    def store_init_configuration(self, values):
        self.config = values

    def log(self, values, step, **kwargs):
        self.rows.append((step, values))

    def finish(self):
        self.closed = True


def test_a_tracker_hears_the_recipe_and_every_logged_step(tmp_path):
    notebook = Notebook()
    run(tmp_path, ["steps=3", "every.log=1"], tracker=notebook)
    assert notebook.config["adapter.method"] == "crepe"
    assert [step for step, _ in notebook.rows] == [0, 1, 2]
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["loss"] for _, row in notebook.rows] == [row["loss"] for row in logged if "loss" in row]
    assert notebook.closed


def test_training_lowers_the_loss_of_a_clip(tmp_path):
    overrides = ["steps=30", "lr=2e-2", "every.checkpoint=0", "radial_weight=0"]
    recipe, result = with_overrides(TINY, overrides), run(tmp_path, overrides)
    model = TinyModel()
    clip, empty = encoded(footage(0), model, SHAPE), model.encode_text([""])[0]
    before = clip_loss(recipe, model, None, clip, SHAPE, empty)
    adapter = load_adapter(result.weights, model.transformer).attach(model.transformer)
    assert clip_loss(recipe, model, adapter, clip, SHAPE, empty) < 0.97 * before


def test_the_backbone_itself_trains_with_muon_and_resumes(tmp_path):
    overrides = [
        "what=backbone",
        "optimiser.kind=muon",
        "steps=30",
        "lr=1e-2",
        "radial_weight=0",
        "every.checkpoint=10",
    ]
    run(tmp_path / "a", overrides)
    found = [loss for _, loss, _ in loss_lines(tmp_path / "a")]
    assert sum(found[-4:]) < 0.8 * sum(found[:4])

    def dies(out):
        die_inside_a_checkpoint(11)
        run(out, overrides)

    (tmp_path / "b").mkdir()
    assert wait_for(start_child(dies, tmp_path / "b")) == -signal.SIGKILL
    run(tmp_path / "b", overrides, resume=True)
    assert loss_lines(tmp_path / "a") == loss_lines(tmp_path / "b")
    a, b = (load_file(tmp_path / i / "transformer.safetensors") for i in "ab")
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_validation_leaves_a_loss_and_a_video(tmp_path):
    run(tmp_path, ["steps=2", "every.validate=2"], validation=[footage(20)])
    assert (tmp_path / "validation" / "step-000002" / "clip-20.mp4").stat().st_size > 0
    said = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [i["step"] for i in said if "validation" in i] == [0, 2]


def test_a_batch_that_does_not_divide_is_refused(tmp_path):
    with pytest.raises(InputError, match="accumulate divides"):
        run(tmp_path, ["batch=3", "accumulate=2"])
    with pytest.raises(InputError, match="something to train"):
        run(tmp_path, ["adapter.method=none"])


def test_clips_none_of_which_can_be_read_stop_the_run(tmp_path):
    clips = EncodedOnTheFly(TinyFootage(3, broken=range(3)), TinyModel(), SHAPE)
    assert len(clips) == 3
    with pytest.raises(InputError, match="some that can be read"):
        run(tmp_path, broken=range(6))


def test_a_launcher_that_started_too_few_is_noticed(tmp_path, monkeypatch):
    """What `accelerate launch --cpu --num_processes 2` sets for the one process that it starts."""
    for name, value in (("ACCELERATE_MIXED_PRECISION", "no"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=r"launcher.*torch\.distributed\.run --nproc-per-node 2 -m curvedray"):
        run(tmp_path)
