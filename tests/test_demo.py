"""The demo writes everything it says, and nothing else."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.demo import LENSES
from curvedray.formats import read_cameras
from curvedray.media import read_video


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, and what the command said of it."""
    folder = tmp_path_factory.mktemp("demo")
    result = CliRunner().invoke(app, ["demo", "-o", str(folder), "--frames", "3", "--json"])
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def test_the_demo_writes_what_it_lists(made):
    folder, said = made
    assert sorted(map(Path, said["files"])) == sorted(folder.iterdir())
    assert len(said["files"]) == 5 * len(LENSES)
    assert len(said["says"]) == len(LENSES)
    assert all("orbit left" in sentence for sentence in said["says"])


def test_its_video_and_camera_file_agree(made):
    folder, _ = made
    for name in LENSES:
        assert len(read_video(folder / f"{name}.mp4").frames) == read_cameras(folder / f"{name}.json").frames == 3
