"""The loop survives: kill -9 anywhere, full disks, broken clips and checkpoints; and many processes train as one."""

import errno
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from accelerate.tracking import GeneralTracker
from safetensors.torch import load_file
from tiny import TinyFootage, TinyModel, footage
from train_tiny import TINY, die_inside_a_checkpoint, run

from curvedray.adapter.file import load_adapter
from curvedray.data.cache import build_cache
from curvedray.data.clips import EncodedOnTheFly, VideoShape, encoded
from curvedray.errors import InputError
from curvedray.training.checkpoints import latest_checkpoint
from curvedray.training.log import forget_from, read_log
from curvedray.training.objective import losses
from curvedray.training.recipes import with_overrides
from curvedray.training.validate import clip_loss

SHAPE = VideoShape(9, 32, 48)


def weights(out):
    return load_file(out / "adapter.safetensors")


def loss_lines(out):
    return [(i["step"], i["loss"], i["gradient"]) for i in read_log(out / "log.jsonl")]


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
    signal.alarm(120)  # a child that hangs fails its test, not the whole suite
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that nobody interrupts."""
    out = tmp_path_factory.mktemp("whole")
    run(out)
    return out


# -- it survives


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_at_random_moments_it_ends_the_same(tmp_path, whole, seed):
    moments = random.Random(seed)
    for attempt in range(40):
        child = start_child(run, tmp_path, resume=attempt > 0)
        if attempt < 4:
            time.sleep(moments.uniform(0.1, 0.8))
            os.kill(child, signal.SIGKILL)
        if wait_for(child) == 0:
            break
    same_run(tmp_path, whole)


@pytest.mark.parametrize("moment", [0, 1, 3, 4, 5, 9])  # of five forced writes a checkpoint; 5 and 9 are in the second
def test_killed_inside_a_checkpoint_it_ends_the_same(tmp_path, whole, moment):
    def dies(out):
        die_inside_a_checkpoint(moment)
        run(out)

    assert wait_for(start_child(dies, tmp_path)) == -signal.SIGKILL
    run(tmp_path, resume=True)
    same_run(tmp_path, whole)
    assert not list((tmp_path / "checkpoints").glob(".step-*"))


def test_asked_to_stop_it_writes_a_checkpoint_first(tmp_path, whole):
    def asked(out):
        run(out, ["every.checkpoint=100"])

    child = start_child(asked, tmp_path)
    while not (tmp_path / "log.jsonl").exists() or not loss_lines(tmp_path):
        time.sleep(0.02)
    os.kill(child, signal.SIGTERM)
    assert wait_for(child) == 0
    step = latest_checkpoint(tmp_path / "checkpoints").step
    assert 0 < step < TINY.steps
    assert len(loss_lines(tmp_path)) == step
    run(tmp_path, resume=True)
    same_run(tmp_path, whole)


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, whole, caplog):
    run(tmp_path)
    (tmp_path / "adapter.safetensors").unlink()
    newest = tmp_path / "checkpoints" / "step-000008" / "weights.safetensors"
    data = bytearray(newest.read_bytes())
    data[-3] ^= 1  # one bit
    newest.write_bytes(data)
    run(tmp_path, resume=True)
    assert "step-000008" in caplog.text
    same_run(tmp_path, whole)
    for name in ("step-000006", "step-000008"):
        (tmp_path / "checkpoints" / name / "state.json").write_text("{}")
    with pytest.raises(InputError, match="only damaged ones"):
        run(tmp_path, resume=True)


def test_a_full_disk_is_said_and_loses_nothing(tmp_path, whole):
    run(tmp_path, ["steps=8"])
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*.*") if path.is_file()}
    (tmp_path / "checkpoints" / "step-000008" / "state.json").write_text("")  # so that the last steps are made again
    largest = max(len(data) for data in before.values())

    def on_a_full_disk(out):
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, largest // 2))
        run(out, resume=True)

    assert wait_for(start_child(on_a_full_disk, tmp_path)) == 2
    said = (tmp_path / "error.txt").read_text()
    assert "full disk" in said
    assert "step-000006" in said
    kept = tmp_path / "checkpoints" / "step-000006"
    assert all(path.read_bytes() == data for path, data in before.items() if path.parent == kept)
    assert not list((tmp_path / "checkpoints").glob(".step-*"))
    run(tmp_path, resume=True)
    same_run(tmp_path, whole)


def test_a_disk_that_fills_anywhere_is_said(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in ("loop.save_adapter", "log.whole_file", "validate.write_video"):
        with monkeypatch.context() as patch:
            patch.setattr(f"curvedray.training.{place}", full)
            with pytest.raises(InputError, match="a full disk"):
                run(tmp_path / place, ["steps=1", "every.validate=1"], validation=[footage(20)])
    with monkeypatch.context() as patch:
        patch.setattr("curvedray.data.cache.save_file", full)
        with pytest.raises(InputError, match=r"full disk.*run the same command again"):
            build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))


def test_a_broken_clip_is_skipped_counted_and_reported(tmp_path):
    result = run(tmp_path, broken=(3,))
    assert result.skipped == 1
    said = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [i["reason"] for i in said if "skipped" in i] == [
        "clip-3: expected a video that can be decoded, got rubbish"
    ]
    assert len(loss_lines(tmp_path)) == TINY.steps


def test_a_loss_that_is_not_a_number_stops_with_the_last_checkpoint_kept(tmp_path, whole, monkeypatch):
    passes = iter(range(100))

    def breaks(*args):
        flow, radial = losses(*args)
        return (flow * float("nan") if next(passes) == 5 else flow), radial

    monkeypatch.setattr("curvedray.training.loop.losses", breaks)
    with pytest.raises(InputError, match=r"finite numbers.*step 5.*checkpoint is of step 4.*lower lr"):
        run(tmp_path)
    assert not (tmp_path / "adapter.safetensors").exists()
    assert len(loss_lines(tmp_path)) == 5
    run(tmp_path, resume=True)
    same_run(tmp_path, whole)


def test_a_run_is_not_overwritten_nor_resumed_as_another(tmp_path):
    run(tmp_path, ["steps=2"])
    with pytest.raises(InputError, match="no run in it"):
        run(tmp_path, ["steps=2"])
    with pytest.raises(InputError, match=r"adapter\.breakpoints: 5 / 3"):
        run(tmp_path, ["steps=2", "adapter.breakpoints=3"], resume=True)
    assert run(tmp_path, ["steps=2", "keep=5"], resume=True).step == 2  # nothing left to do


def test_a_model_is_left_as_it_was_however_a_run_ends(tmp_path, whole):
    model = TinyModel()
    with pytest.raises(InputError, match="finite numbers"):  # this one diverges by itself
        run(tmp_path / "bad", ["lr=1e30", "warmup=0"], model=model)
    run(tmp_path / "good", model=model)
    same_run(tmp_path / "good", whole)


def test_the_recipe_lies_beside_every_checkpoint(whole):
    for state in (whole / "checkpoints").glob("*/state.json"):
        assert json.loads(state.read_text())["recipe"] == TINY.to_json()
    assert json.loads((whole / "recipe.json").read_text()) == TINY.to_json()
    assert sorted(path.name for path in (whole / "checkpoints").iterdir()) == ["step-000006", "step-000008"]


def test_a_cut_log_is_mended(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 0, "loss": 1}\n{"step": 1, "loss": 1}\n{"step": 2, "validation": 1}\n{"step": 2, "lo')
    forget_from(path, 1)
    assert path.read_text() == '{"step": 0, "loss": 1}\n'


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
    assert loss == pytest.approx(one_loss, rel=1e-6)
    assert gradient == pytest.approx(one_gradient, rel=1e-5)
    many, one = weights(out), weights(whole)
    for name in one:
        torch.testing.assert_close(many[name], one[name], rtol=1e-2, atol=2e-3)


@pytest.mark.slow
def test_two_processes_of_a_launcher(tmp_path, whole):
    """Really two: `accelerate launch --cpu --num_processes 2` once started one and said nothing."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += [str(Path(__file__).parents[1] / "train_tiny.py"), str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300)
    assert sorted(path.name for path in tmp_path.glob("finished-*")) == ["finished-0", "finished-1"]
    as_one_process(tmp_path, whole)


@pytest.mark.slow
def test_kill_9_of_a_whole_process(tmp_path, whole):
    command = [sys.executable, str(Path(__file__).parents[1] / "train_tiny.py"), str(tmp_path), "--resume"]
    moments = random.Random(7)
    for attempt in range(10):
        process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            process.wait(moments.uniform(5, 15) if attempt < 3 else 300)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() == 0:
            break
    same_run(tmp_path, whole)


# -- what it trains


@pytest.mark.parametrize("method", ["ucpe", "recammaster", "depth_concat", "plucker"])
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
