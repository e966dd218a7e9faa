"""The demo writes everything it says, and nothing else."""

import json
import subprocess
import sys

from curvedray.demo import LENSES, demo
from curvedray.formats import read_cameras
from curvedray.media import read_video


def test_the_demo_writes_what_it_lists(tmp_path):
    made = demo(tmp_path, frames=5, size=(96, 64))
    assert sorted(made.files) == sorted(tmp_path.iterdir())
    assert len(made.says) == len(LENSES)
    assert all("orbit left" in sentence for sentence in made.says)


def test_its_video_and_camera_file_agree(tmp_path):
    demo(tmp_path, frames=5, size=(96, 64))
    for name in LENSES:
        assert len(read_video(tmp_path / f"{name}.mp4").frames) == read_cameras(tmp_path / f"{name}.json").frames == 5


def test_the_command_speaks_json(tmp_path):
    command = [sys.executable, "-m", "curvedray", "demo", "-o", str(tmp_path), "--frames", "2", "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(out.stdout)["files"]) == 5 * len(LENSES)
