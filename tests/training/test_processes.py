"""Many processes train as one: with the backbone whole or split, from one to two and back, and when one is killed."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import footage
from train_tiny import loss_lines, run, same_run, step_records, weights

from curvedray.training.log import log_records

pytestmark = pytest.mark.slow
CONSTANT = ["decay=constant", "warmup=0"]


def launched(out, *words, processes=2, check=True, **more):
    """`train_tiny.py` under torch's own launcher; what it printed."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command = [*launcher, *more.get("meeting", ["--standalone"]), str(Path(__file__).parents[1] / "train_tiny.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more.get("environment", {})}
    done = subprocess.run([*command, str(out), *words], env=environment, capture_output=True, text=True, timeout=600)
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done


def validations(out):
    return [record["validation"] for record in log_records(out / "log.jsonl") if "validation" in record]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two processes, the backbone whole in each."""
    out = tmp_path_factory.mktemp("two")
    launched(out)
    return out


def test_a_split_backbone_trains_bit_for_bit_as_a_whole_one(two, whole, tmp_path):
    launched(tmp_path, "--shard")
    same_run(tmp_path, two)
    (_, loss, gradient), (_, one_loss, one_gradient) = loss_lines(tmp_path)[0], loss_lines(whole)[0]
    assert loss == pytest.approx(one_loss, rel=1e-5)
    assert gradient == pytest.approx(one_gradient, rel=1e-4)
    latest = max((tmp_path / "checkpoints").glob("step-*"))
    assert len(list(latest.glob("weights-*-of-00002.safetensors"))) == 2
    assert set(json.loads((latest / "state.json").read_text())["sha256"]) == {
        f"{part}-0000{rank}-of-00002.safetensors" for part in ("weights", "optimiser", "average") for rank in (1, 2)
    }


def test_accelerates_own_switch_splits_too(two, tmp_path):
    launched(tmp_path, environment={"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"})
    same_run(tmp_path, two)
    assert list((tmp_path / "checkpoints").glob("step-*/weights-*-of-00002.safetensors"))


def test_checkpointed_gradients_and_bf16_split_as_whole(tmp_path):
    changes = ["gradient_checkpointing=true", "precision=bf16", "steps=3"]
    launched(tmp_path / "whole", *changes)
    launched(tmp_path / "split", *changes, "--shard")
    same_run(tmp_path / "whole", tmp_path / "split")


def test_a_split_run_validates_in_all_processes_and_writes_in_one(tmp_path):
    launched(tmp_path / "split", "--shard", "--validate", "steps=2", "every.validate=2")
    launched(tmp_path / "whole", "--validate", "steps=2", "every.validate=2", processes=1)
    assert validations(tmp_path / "split") == pytest.approx(validations(tmp_path / "whole"), rel=1e-5)
    assert len(list((tmp_path / "split" / "validation").glob("step-*/*.mp4"))) == 2


def lost_nothing_on_the_way(moved_run: Path, whole_run: Path, steps: int, alone: int, rel: float) -> None:
    """Every step once, the first ones, made alone, to the bit, and the others but for rounding."""
    moved, whole = loss_lines(moved_run), loss_lines(whole_run)
    assert [step for step, _, _ in moved] == list(range(steps))
    assert moved[:alone] == whole[:alone]
    for (_, a, _), (_, b, _) in zip(moved, whole, strict=True):
        assert a == pytest.approx(b, rel=rel)


def test_a_run_goes_from_one_process_to_two_and_back(tmp_path):
    """Losses are those of one process throughout, but for rounding."""
    run(tmp_path / "whole", [*CONSTANT, "steps=12"])
    out = tmp_path / "moved"
    run(out, [*CONSTANT, "steps=4"])
    launched(out, "--resume", "--shard", *CONSTANT, "steps=8")
    run(out, [*CONSTANT, "steps=12"], resume=True)
    lost_nothing_on_the_way(out, tmp_path / "whole", steps=12, alone=4, rel=2e-3)


@pytest.mark.parametrize("words", [[], ["--shard"]], ids=["whole", "split"])
def test_kill_9_of_one_ends_the_others_and_the_run_goes_on_bit_for_bit(two, tmp_path, words):
    killed = launched(tmp_path, *words, "--dies-at=1:5", check=False)
    assert killed.returncode != 0
    assert not list(tmp_path.glob("finished-*"))
    assert not (tmp_path / "adapter.safetensors").exists()
    assert len(step_records(tmp_path / "log.jsonl")) <= 6
    launched(tmp_path, *words, "--resume")
    same_run(tmp_path, two)
    assert not [path for path in tmp_path.rglob(".*") if path.name != ".lock"]


def test_two_nodes_meet_by_rendezvous(two, tmp_path):
    """Two launchers, as on two machines, which find each other at an address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "7"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "1", *meeting]
    command = [*launcher, str(Path(__file__).parents[1] / "train_tiny.py"), str(tmp_path), "--shard"]
    nodes = [subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) for _ in range(2)]
    assert [node.wait(timeout=600) for node in nodes] == [0, 0]
    same_run(tmp_path, two)


BACKBONE = ["what=backbone", "steps=6", "lr=1e-3", *CONSTANT]


@pytest.fixture(scope="module")
def trained_backbone(tmp_path_factory):
    """Two processes that train the backbone, split: weights, gradients, optimiser and average; and validate it."""
    out = tmp_path_factory.mktemp("backbone")
    launched(out, "--shard", "--validate", *BACKBONE, "every.validate=3")
    return out


def test_a_backbone_that_is_trained_is_split_and_trains_as_in_one_process(trained_backbone, tmp_path):
    """Losses, validation by the average, and the weights: those of one process but for rounding."""
    run(tmp_path, [*BACKBONE, "every.validate=3"], validation=[footage(9)])
    for (_, a, _), (_, b, _) in zip(loss_lines(trained_backbone), loss_lines(tmp_path), strict=True):
        assert a == pytest.approx(b, rel=2e-3)
    assert validations(trained_backbone) == pytest.approx(validations(tmp_path), rel=2e-3)
    assert len(validations(tmp_path)) == 3
    split, alone = weights(trained_backbone), weights(tmp_path)
    assert {name: tensor.shape for name, tensor in split.items()} == {n: tensor.shape for n, tensor in alone.items()}
    for name, tensor in alone.items():
        torch.testing.assert_close(split[name], tensor, atol=1e-3, rtol=1e-2)
    latest = max((trained_backbone / "checkpoints").glob("step-*"))
    halves = [load_file(file) for file in sorted(latest.glob("weights-*-of-00002.safetensors"))]
    assert not halves[0].keys() & halves[1].keys()
    assert {name: tensor.shape for half in halves for name, tensor in half.items()} == {
        name: tensor.shape for name, tensor in alone.items()
    }


def test_a_split_backbone_killed_in_training_goes_on_bit_for_bit(trained_backbone, tmp_path):
    words = ["--shard", "--validate", *BACKBONE, "every.validate=3"]
    assert launched(tmp_path, *words, "--dies-at=1:5", check=False).returncode != 0
    assert not (tmp_path / "transformer.safetensors").exists()
    launched(tmp_path, *words, "--resume")
    same_run(tmp_path, trained_backbone)
    assert validations(tmp_path) == validations(trained_backbone)


def test_a_trained_backbone_goes_from_one_process_to_two_and_back(tmp_path):
    """By Muon, which needs whole matrices, and with two passes per step."""
    muon = ["what=backbone", "optimiser.kind=muon", "lr=1e-3", "batch=4", "accumulate=2", *CONSTANT]
    run(tmp_path / "whole", [*muon, "steps=6"])
    out = tmp_path / "moved"
    run(out, [*muon, "steps=2"])
    launched(out, "--resume", "--shard", *muon, "steps=4")
    run(out, [*muon, "steps=6"], resume=True)
    lost_nothing_on_the_way(out, tmp_path / "whole", steps=6, alone=2, rel=5e-3)


def test_weights_of_every_process_count_are_one_file(two, whole):
    assert weights(two).keys() == weights(whole).keys()
    assert all(torch.isfinite(tensor).all() for tensor in weights(two).values())
