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
    assert json.loads(again.stdout.splitlines()[-1]) | {"first": 0, "seconds": 0, "busy": 0} == result | {
        "seconds": 0,
        "busy": 0,
    }
    said = command("train", "quick", *SMALL, "-o", "run", "--resume", "latest", cwd=tmp_path).stderr
    assert "already finished at step 2: run/adapter.safetensors, loss" in said
    assert "extend it with --resume latest steps=4" in said
    longer = command("train", "quick", *SMALL, "steps=4", "-o", "run", "--resume", "latest", "--json", cwd=tmp_path)
    assert json.loads(longer.stdout.splitlines()[-1])["step"] == 4
    start = ["--from", "run/adapter.safetensors", "-o", "on", "--json"]
    assert command("train", "quick", *SMALL, *start, cwd=tmp_path).exit_code == 0
    assert json.loads((tmp_path / "on" / "recipe.json").read_text())["start"] == "run/adapter.safetensors"
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
        (["train", "quick", "--data", "nowhere", "model=not-there-either"], "nowhere"),  # before a model is loaded
        (["data", "check", "nowhere"], "nowhere"),
        (["data", "check", "world", "--size", "big"], "WIDTHxHEIGHT"),
        (["data", "check", "world", "--size", "17x64x96"], "The number of frames goes in --frames"),
        (["data", "check", "world", "--frames", "0"], "--frames"),
        (["data", "cache", "world", "--frames", "16", "-o", "cache"], "frames"),
        (["train", "quick", "--from", "nowhere.safetensors", *SMALL], "nothing there"),
    ]:
        assert said in str(command(*words, cwd=tmp_path).exception)


def test_the_data_commands(tmp_path):
    checked = command("data", "check", "world", "--clips", 2, "--json", cwd=tmp_path)
    assert [row["problems"] for row in json.loads(checked.stdout.splitlines()[-1])] == [[], []]
    for made in (2, 0):
        words = ("data", "cache", "world", "--clips", 2, "--model", "random", "-o", "cache", "--json")
        cached = json.loads(command(*words, cwd=tmp_path).stdout.splitlines()[-1])
        assert (cached["clips"], cached["made"]) == (2, made)


def test_the_list_says_what_each_recipe_is(tmp_path):
    said = command("train", "--list", cwd=tmp_path).stdout.splitlines()
    names = json.loads(command("train", "--list", "--json", cwd=tmp_path).stdout)
    assert len(said) == len(names)
    assert all(len(line) <= 110 and len(line.split()) > 2 for line in said)
    assert next(line for line in said if line.startswith("wan_1b_k3 ")).endswith(
        "3 breakpoints; a tenth of the steps, no radial loss"
    )


def test_the_check_can_be_read_at_80_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    command("data", "example", "-o", "clips", "--clips", 2, cwd=tmp_path)
    table = tmp_path / "clips" / "metadata.csv"
    table.write_text(table.read_text() + "nowhere-of-a-name-that-goes-on-and-on.mp4,nowhere.json,no such clip,\n")
    checked = command("data", "check", "clips", "--size", "832x480", "--frames", 81, cwd=tmp_path)
    assert checked.exit_code == 1
    lines = checked.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "0 of 3 clips have no problem"
    said = " ".join(checked.stdout.split())
    for words in ("17 frames, fewer than the 81", "96 x 64 pixels, fewer", "distances known on", "nothing there"):
        assert words in said


def test_training_frees_the_encoders_and_validates_without_them(tmp_path, monkeypatch):
    tiny_folder(tmp_path / "wan")
    loaded, load = [], Wan.load

    def remembered(*args, **kwargs):
        loaded.append(load(*args, **kwargs))
        return loaded[-1]

    monkeypatch.setattr(Wan, "load", remembered)
    shape = ["data.frames=9", "data.height=32", "data.width=48", "data.source=world", "data.clips=2"]
    short = ["batch=1", "steps=1", "every.validate=1", "validation_clips=1", "adapter.width=24"]
    for validate, vae in ((1, True), (0, False)):
        words = ["train", "wan_1b", f"model={tmp_path / 'wan'}", *shape, *short, f"every.validate={validate}"]
        done = command(*words, "-o", f"run{validate}", "--json", cwd=tmp_path)
        assert done.exit_code == 0, done.output
        assert loaded[-1].pipeline.text_encoder is None
        assert (loaded[-1].pipeline.vae is not None) == vae
    assert len(list((tmp_path / "run1" / "validation").rglob("*.mp4"))) == 2  # before the first step, and after it
