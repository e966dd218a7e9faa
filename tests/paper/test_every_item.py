"""Every item runs to its end, on random weights in seconds each; and from an installed wheel."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from curvedray.evaluate.estimators.embedded import WEIGHTS
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, save_embedded
from curvedray.paper.catalogue import ITEMS
from curvedray.paper.listener import Listener
from curvedray.paper.runner import runner_of, write_page
from curvedray.paper.scales import TINY
from curvedray.paper.setting import Setting
from curvedray.world.themes import WORDS

pytestmark = [pytest.mark.slow, pytest.mark.whole]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Shared, as it is for users: what two items need is made once."""
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("entry", ITEMS, ids=lambda entry: entry.name)
def test_it_runs_to_its_page(entry, store):
    torch.set_num_threads(1)
    page = runner_of(entry).run(entry, Setting(TINY, store), Listener())
    write_page(page, store / entry.name)
    record = json.loads((store / entry.name / "results.json").read_text())
    assert record["item"] == entry.name
    assert page.text.startswith(f"# {entry.title}\n")
    for name, content in page.pictures.items():
        assert name in page.text
        assert content.startswith((b"\x89PNG", b"<svg"))
    again = runner_of(entry).work(Setting(TINY, store))
    assert again.done == len([name for name in again.trainings if name != "probes"])


def test_several_seeds_give_an_interval_of_their_own(store):
    entry = next(entry for entry in ITEMS if entry.name == "teacher-width")
    page = runner_of(entry).run(entry, Setting(TINY, store, seeds=2), Listener())
    cell = page.record["cells"]["sigma 0.10"]["RotErr"]
    assert cell["seeds"] == 2
    assert cell["over_seeds"]["low"] <= cell["over_clips"]["mean"] <= cell["over_seeds"]["high"]
    assert ", seeds [" in page.text


def test_another_embedded_model_brings_its_own_blocks_and_tokens(tmp_path):
    """Regression: the blocks and tokens of the model in the package were written into experiments."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    save_embedded(EmbeddedModel(EmbeddedShape(tuple(WORDS), layers=6, patch=2)), tmp_path / "other.safetensors")
    scale = replace(TINY, model=str(tmp_path / "other.safetensors"), judges=(str(WEIGHTS),))
    setting = Setting(scale, tmp_path / "store", clips=1)
    assert (setting.depth, setting.grid.rows, setting.grid.cols) == (6, 4, 6)
    assert setting.window("last") == (4, 6)
    for name in ("supervision", "probing"):
        entry = next(entry for entry in ITEMS if entry.name == name)
        page = runner_of(entry).run(entry, setting, Listener())
        assert "6 blocks, 5 x 4 x 6 tokens, clips of `world`" in page.text
    assert "block 5" in page.text


def test_items_run_from_an_installed_wheel(tmp_path):
    """Regression: experiments lay beside the package, where nobody who installed it had them."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    made = subprocess.run(build, capture_output=True, text=True, timeout=900)
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr.strip().splitlines()[-1]}")
    (wheel,) = tmp_path.glob("curvedray-*.whl")
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=900)
    environment = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
    for words in (["list"], ["run", "method", "--scale", "embedded"], ["run", "injection", "--scale", "tiny"]):
        command = [sys.executable, "-m", "curvedray", "paper", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-2000:]
    found = subprocess.run(
        [sys.executable, "-c", "import curvedray; print(curvedray.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert str(place) in found.stdout
    assert (tmp_path / "runs" / "paper" / "tiny" / "injection" / "results.json").is_file()
