"""`curvedray train` and `curvedray data`, as a user calls them."""

import json
import os
from pathlib import Path

import pytest
from tiny_wan import tiny_folder
from typer.testing import CliRunner

from curvedray.adapter.file import load_adapter
from curvedray.cli import app
from curvedray.models.wan import Wan


def command(*words, cwd):
    """`curvedray` as a user calls it, in this process: its exit code and what it prints to standard output."""
    before = Path.cwd()
    os.chdir(cwd)
    try:
        return CliRunner().invoke(app, [str(word) for word in words])
    finally:
        os.chdir(before)


SMALL = ["model=random", "data.clips=3", "batch=2", "steps=2", "every.validate=0", "every.checkpoint=1"]


def test_the_command_trains_resumes_and_says_so(tmp_path):
    done = command("train", "quick", *SMALL, "-o", "run", "--json", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["step"], result["weights"]) == (2, "run/adapter.safetensors")
    again = command("train", "quick", *SMALL, "-o", "run", "--resume", "latest", "--json", cwd=tmp_path)
    assert json.loads(again.stdout.splitlines()[-1])["step"] == 2
    refused = command("train", "quick", *SMALL, "-o", "run", cwd=tmp_path)
    assert "no run in it" in str(refused.exception)


def test_a_wan_of_the_real_layout_trains_as_the_paper_does(tmp_path):
    """VAE, text encoder, bfloat16, gradient checkpointing, accumulation and a half-precision cache, all tiny."""
    tiny_folder(tmp_path / "wan")
    shape = ["data.frames=9", "data.height=32", "data.width=48", "data.source=world", "data.clips=2"]
    short = ["batch=2", "accumulate=2", "steps=2", "every.validate=0", "mixforcing.kind=block", "adapter.width=24"]
    done = command("train", "wan_1b", f"model={tmp_path / 'wan'}", *shape, *short, "-o", "run", "--json", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run" / "adapter.safetensors").is_file()
    adapter = load_adapter(tmp_path / "run" / "adapter.safetensors", Wan.load(tmp_path / "wan").transformer)
    assert adapter.accepts_radial_maps


def test_a_backbone_is_trained_then_an_adapter_for_it_on_a_folder(tmp_path):
    backbone = [i for i in SMALL if not i.startswith("data")] + ["data.clips=2", "-o", "one", "--json"]
    done = command("train", "embedded_backbone", *backbone, cwd=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1])["weights"] == "one/embedded.safetensors", done.output
    assert command("data", "example", "-o", "clips", "--clips", 4, cwd=tmp_path).exit_code == 0
    changes = ["batch=2", "steps=2", "every.validate=2", "model=one/embedded.safetensors", "data.cache=off"]
    done = command("train", "quick", *changes, "--data", "clips", "-o", "two", "--json", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    held_out = (tmp_path / "clips" / "metadata.csv").read_text().splitlines()[-1].split(".mp4")[0]
    videos = [path.stem for path in (tmp_path / "two" / "validation" / "step-000002").iterdir()]
    assert videos == [held_out]  # the last of the folder, which the three others are trained without


def test_a_dry_run_estimates_and_leaves_nothing(tmp_path):
    done = command("train", "embedded_k3", "model=random", "--dry-run", "--json", cwd=tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["recipe"]["adapter"]["breakpoints"] == 3
    assert found["estimate"]["trained"] > 10_000
    assert found["estimate"]["timed"]
    assert found["estimate"]["hours"] == pytest.approx(found["estimate"]["seconds"] * found["recipe"]["steps"] / 3600)
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_recipes_and_refuses_mistakes(tmp_path):
    assert "wan_1b_mixforcing_block" in command("train", "--list", cwd=tmp_path).stdout.split()
    for words, said in [
        (["train"], "a name"),
        (["train", "quik"], "Did you mean quick"),
        (["train", "quick", "--resume", "best"], "latest"),
        (["train", "quick", "--tracker", "paper"], "accelerate knows"),
        (["train", "quick", "--data", "nowhere", "model=random"], "nowhere"),
        (["data", "check", "nowhere"], "nowhere"),
        (["data", "check", "world", "--size", "big"], "FRAMESxHEIGHTxWIDTH"),
    ]:
        assert said in str(command(*words, cwd=tmp_path).exception)


def test_the_data_commands(tmp_path):
    checked = command("data", "check", "world", "--clips", 2, "--json", cwd=tmp_path)
    assert [row["problems"] for row in json.loads(checked.stdout.splitlines()[-1])] == [[], []]
    for made in (1, 0):
        words = ("data", "cache", "world", "--clips", 2, "--model", "random", "-o", "cache", "--json")
        cached = json.loads(command(*words, cwd=tmp_path).stdout.splitlines()[-1])
        assert (cached["clips"], cached["made"]) == (2, made)
