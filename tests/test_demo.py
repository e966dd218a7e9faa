"""The demo writes everything it says, and nothing else."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvedray.cli import app
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
    assert len(said["files"]) == 6 * len(LENSES) + 1
    assert len(said["says"]) == len(LENSES)
    assert all("orbit left" in sentence for sentence in said["says"])


def test_its_video_and_camera_file_agree(made):
    """The video is wide enough for the generated frames, the exact ones and the path; its sheet shows both."""
    folder, _ = made
    for name in LENSES:
        video = read_video(folder / f"{name}.mp4").frames
        assert len(video) == read_cameras(folder / f"{name}-film-cameras.json").frames == 17
        assert video.shape[2] > 2 * 384
        assert (read_image(folder / f"{name}.png").float().std((0, 1)) > 20).all()


def test_its_folder_can_be_evaluated(made, tmp_path):
    """The films, and not the comparisons, by the estimator that knows their world; nothing has to be named."""
    result = CliRunner().invoke(app, ["evaluate", str(made[0]), "-o", str(tmp_path / "report"), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["scored"], report["failed"]) == (len(LENSES), 0)
    assert (report["estimator"], report["stride"]) == ("embedded", 4)
    assert {path.stem for path in (tmp_path / "report" / "videos").iterdir()} == {f"{name}-film" for name in LENSES}
