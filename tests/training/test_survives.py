"""The loop survives kill -9 anywhere, full disks, broken clips and checkpoints; nothing is lost and nothing mixed."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import TinyFootage, TinyModel, footage
from train_tiny import (
    TINY,
    die_inside_a_checkpoint,
    loss_lines,
    run,
    same_run,
    start_child,
    step_records,
    wait_for,
    weights,
)

from curvedray.adapter.file import load_adapter
from curvedray.data.cache import build_cache
from curvedray.data.clips import VideoShape
from curvedray.errors import InputError
from curvedray.locks import LOCK
from curvedray.media.video import write_video
from curvedray.training.checkpoints import Checkpoint, checkpoint_folders, latest_checkpoint, save_checkpoint
from curvedray.training.log import forget_from, log_records
from curvedray.training.objective import losses
from curvedray.training.start import check_run_folder

SHAPE = VideoShape(9, 32, 48)


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
    out, asked = tmp_path / "run", tmp_path / "asked"

    def wait_after_a_step(done, *_):  # however seldom a busy machine lets the other process look
        while done > 1 and not asked.exists():
            time.sleep(0.02)

    child = start_child(run, out, ["every.checkpoint=100"], tick=wait_after_a_step)
    while not (out / "log.jsonl").exists() or not loss_lines(out):
        time.sleep(0.02)
    os.kill(child, signal.SIGTERM)
    asked.touch()
    assert wait_for(child) == 0
    step = latest_checkpoint(out / "checkpoints").step
    assert 0 < step < TINY.steps
    assert len(loss_lines(out)) == step
    run(out, resume=True)
    same_run(out, whole)


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
        patch.setattr("safetensors.torch.save_file", full)
        with pytest.raises(InputError, match=r"full disk.*run the same command again"):
            build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


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
    assert run(tmp_path, ["steps=2", "data.cache=elsewhere"], resume=True).step == 2  # a moved cache was refused


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


# -- nothing mixed


def test_two_runs_into_one_folder_are_one_too_many(tmp_path, whole):
    def first_step_only(done, *_):
        time.sleep(600 if done > 1 else 0)

    child = start_child(run, tmp_path, tick=first_step_only)
    try:
        while not (tmp_path / "log.jsonl").exists() or not loss_lines(tmp_path):
            time.sleep(0.02)
        for resume in (False, True):
            with pytest.raises(InputError, match=rf"nobody else at work.*process {child} on .*another folder"):
                run(tmp_path, ["adapter.breakpoints=3"], resume=resume)
        with pytest.raises(InputError, match=f"process {child}"):
            check_run_folder(tmp_path)
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for(child)
    assert (tmp_path / LOCK).exists()  # the file is there, the lock died with its process
    check_run_folder(tmp_path)
    run(tmp_path, resume=True)
    same_run(tmp_path, whole)
    assert not (tmp_path / LOCK).exists()


def test_checkpoints_are_in_the_order_of_their_numbers(tmp_path):
    weights = {"w": torch.zeros(1)}
    for step in (999_998, 999_999, 1_000_000, 1_000_001):
        save_checkpoint(tmp_path, Checkpoint(step, {}, weights, weights, weights), keep=2)
    assert [path.name for path in checkpoint_folders(tmp_path)] == ["step-1000000", "step-1000001"]
    assert latest_checkpoint(tmp_path).step == 1_000_001


def test_what_a_kill_left_half_deleted_stops_no_later_checkpoint(tmp_path, whole):
    run(tmp_path, ["steps=8"])
    left = tmp_path / "checkpoints" / ".old-step-000006"
    shutil.copytree(tmp_path / "checkpoints" / "step-000006", left)
    (tmp_path / ".log-01234567-1-abcd1234.jsonl").write_text("half")
    save_checkpoint(tmp_path / "checkpoints", latest_checkpoint(tmp_path / "checkpoints"), keep=1)  # it deletes step 6
    assert not left.exists()
    left.mkdir()
    (left.parent / ".step-000009").mkdir()
    shutil.copytree(left.parent / "step-000008", left.parent / "step-000002")  # one that was to be deleted next
    run(tmp_path, ["keep=1"], resume=True)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000008"]
    assert not list(tmp_path.glob(".*"))


def test_a_validation_that_a_kill_prevented_is_made_up_for(tmp_path, monkeypatch):
    settings = ["steps=4", "every.validate=2", "every.checkpoint=2"]
    run(tmp_path / "a", settings, validation=[footage(20)])
    expected = log_records(tmp_path / "a" / "log.jsonl")
    for step in (2, 4):  # in the middle, and of a run that is otherwise complete

        def dies(out, step=step):
            def write(*_, **__):
                if f"step-{step:06d}" in str(_[1]):
                    os.kill(os.getpid(), signal.SIGKILL)
                return write_video(*_, **__)

            monkeypatch.setattr("curvedray.training.validate.write_video", write)
            run(out, settings, validation=[footage(20)])

        out = tmp_path / f"b{step}"
        out.mkdir()
        assert wait_for(start_child(dies, out)) == -signal.SIGKILL
        assert (out / "checkpoints" / f"step-{step:06d}").is_dir()
        result = run(out, settings, resume=True, validation=[footage(20)])
        found = log_records(out / "log.jsonl")
        assert [i["validation"] for i in found if "validation" in i] == [
            i["validation"] for i in expected if "validation" in i
        ]
        assert result.loss == found[-1].get("loss", result.loss) == loss_lines(tmp_path / "a")[-1][1]
        assert (out / "validation" / f"step-{step:06d}" / "clip-20.mp4").stat().st_size > 0
        assert not list(out.rglob(".*"))


def test_a_finished_run_says_its_loss_and_can_be_extended(tmp_path, whole):
    assert run(whole, resume=True).loss == pytest.approx(run_loss(whole))
    run(tmp_path / "long", ["steps=12", "decay=linear"])
    run(tmp_path / "two", ["decay=linear"])
    again = run(tmp_path / "two", ["decay=linear"], resume=True)
    assert (again.first, again.step, again.loss) == (8, 8, loss_lines(tmp_path / "two")[-1][1])
    said: list[str] = []
    result = run(tmp_path / "two", ["decay=linear", "steps=12"], resume=True, say=said.append)
    assert (result.first, result.step) == (8, 12)
    assert said[0] == "extended from 8 to 12 steps; the learning rate (linear) is now that of a run of 12 steps"
    assert [step for step, *_ in loss_lines(tmp_path / "two")] == list(range(12))
    rates = [[record["lr"] for record in step_records(tmp_path / name / "log.jsonl")][8:] for name in ("two", "long")]
    assert rates[0] == rates[1]
    with pytest.raises(InputError, match=r"at least the 12 steps of the run, got 8.*steps=12"):
        run(tmp_path / "two", ["decay=linear"], resume=True)


def run_loss(out):
    return loss_lines(out)[-1][1]


def test_a_run_of_constant_rate_that_is_extended_is_the_longer_run(tmp_path):
    run(tmp_path / "long", ["steps=6"])
    run(tmp_path / "two", ["steps=4"])
    run(tmp_path / "two", ["steps=6"], resume=True)
    same_run(tmp_path / "two", tmp_path / "long")


def test_a_run_starts_from_an_adapter(tmp_path, whole):
    start = f"start={whole / 'adapter.safetensors'}"
    result = run(tmp_path / "on", [start, "steps=1", "ema=0", "lr=1e-12", "warmup=0"])
    for name, tensor in weights(whole).items():
        torch.testing.assert_close(weights(tmp_path / "on")[name], tensor, rtol=0, atol=1e-9)
    assert load_adapter(result.weights, TinyModel().transformer).notes["recipe"]["start"] == start.partition("=")[2]
    with pytest.raises(InputError, match=r"width 24 instead of 48.*add: adapter\.width=24"):
        run(tmp_path / "other", [start, "adapter.width=48"])
    with pytest.raises(InputError, match="nothing there"):
        run(tmp_path / "none", ["start=nowhere.safetensors"])
    with pytest.raises(InputError, match="backbone starts from `model`"):
        run(tmp_path / "none", [start, "what=backbone"])


def test_what_may_change_bits_is_said_when_resuming(tmp_path):
    run(tmp_path, ["steps=2"])
    for folder in checkpoint_folders(tmp_path / "checkpoints"):
        state = json.loads((folder / "state.json").read_text())
        assert state["circumstances"]["threads"] == 1
        state["circumstances"] |= {"threads": 7, "clips": "others"}
        (folder / "state.json").write_text(json.dumps(state))
    said: list[str] = []
    run(tmp_path, ["steps=2"], resume=True, say=said.append)
    assert said[0].startswith("threads: 7 until step 2, 1 from now on")
    assert said[1].startswith("the clips changed since step 2")


def test_a_clip_named_to_escape_writes_nothing_outside(tmp_path):
    escaping = replace(footage(20), id="../../outside")
    with pytest.raises(InputError, match="a file's name"):
        run(tmp_path / "run", ["steps=1", "every.validate=1"], validation=[escaping])
    assert not list(tmp_path.rglob("outside*"))
