"""The demo writes everything it says, and nothing else."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.cli.demo import command_name
from curvedray.demo import LENSES
from curvedray.formats import read_cameras
from curvedray.media.image import read_image
from curvedray.media.video import read_video


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, and what the command said of it."""
    folder = tmp_path_factory.mktemp("demo")
    result = CliRunner().invoke(app, ["demo", "-o", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert "embedded model" in result.stderr
    return folder, json.loads(result.stdout)


def test_the_demo_writes_what_it_lists(made):
    folder, said = made
    assert sorted(map(Path, said["files"])) == sorted(folder.iterdir())
    assert len(said["files"]) == 6 * len(LENSES) + 5
    assert len(said["says"]) == len(LENSES)
    assert all("orbit left" in sentence for sentence in said["says"])


def test_its_video_and_camera_file_agree(made):
    """The video is wide enough for the generated frames, the exact ones and the path; its sheet shows both."""
    folder, _ = made
    for name in LENSES:
        video = read_video(folder / f"{name}.mp4").frames
        cameras = read_cameras(folder / f"{name}-cameras.json")
        assert len(video) == cameras.frames == 17
        assert video.shape[1:3] == (4 * cameras.lens.size[1], 4 * cameras.lens.size[0])
        assert read_video(folder / f"{name}-exact.mp4").frames.shape[2] > 2 * 384
        assert (read_image(folder / f"{name}.png").float().std((0, 1)) > 20).all()


def test_layouts_and_the_transfer_show_map_film_and_truth_side_by_side(made):
    folder, _ = made
    sheet = read_image(folder / "layouts.png").float()
    assert (sheet.std((0, 1)) > 20).all()
    three = read_video(folder / "transfer-exact.mp4").frames.float()
    source, map, film = three.chunk(3, 2)
    assert len(three) == 17
    assert (source - film).abs().mean() > 5  # other words: other colours
    assert (source - map).abs().mean() > 20


@pytest.mark.parametrize(
    ("shown", "name"), [("embedded.gif", "layouts-exact.gif"), ("embedded_moves.png", "moves.png")]
)
def test_the_pictures_of_the_docs_are_the_demos(made, shown, name):
    images = Path(__file__).parents[1] / "docs" / "images"
    with Image.open(made[0] / name) as ours, Image.open(images / shown) as theirs:
        assert ours.size == theirs.size


def test_its_folder_can_be_evaluated(made, tmp_path):
    """The films, and not the comparisons, by the estimator that knows their world; nothing has to be named."""
    result = CliRunner().invoke(app, ["evaluate", str(made[0]), "-o", str(tmp_path / "report"), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["scored"], report["failed"]) == (len(LENSES), 0)
    assert (report["estimator"], report["stride"]) == ("embedded", 4)
    assert {path.stem for path in (tmp_path / "report" / "videos").iterdir()} == set(LENSES)


def test_the_next_command_runs_as_printed(monkeypatch, tmp_path):
    """Regression: after `make demo` the printed command was not found, as nothing had put it on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    said = subprocess.run([*shlex.split(command_name()), "--version"], capture_output=True, text=True)
    assert said.stdout.startswith("curvedray ")
    script = tmp_path / "my env" / "curvedray"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m curvedray "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    monkeypatch.chdir(tmp_path)
    assert command_name() == "'my env/curvedray'"
    run = subprocess.run(f"{command_name()} --version", shell=True, capture_output=True, text=True, env=os.environ)
    assert run.stdout.startswith("curvedray "), run.stderr
