"""The rooms that map jobs, on a real Ray cluster: the same files as in this process, byte for byte."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import originals
import pytest
import ray
import torch
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.evaluate.estimators.protocol import Estimate
from curvedray.evaluate.scores import Failure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    """Workers take one thread each, as this process does: the sums of two are rounded otherwise."""
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        torch.set_num_threads(1)
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 1024**2, log_to_driver=False
        )
        yield
        ray.shutdown()
        torch.set_num_threads(before)


def ran(*words: str) -> str:
    run = CliRunner().invoke(app, [str(word) for word in words])
    assert run.exit_code == 0, f"{run.output[-2000:]}\n{run.exception!r}"
    return run.stdout


ENGINES = {"here": (), "ray": ("--engine", "ray", "--workers", "2")}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_encoded_clips_are_the_same(cluster, tmp_path):
    ran("data", "example", "-o", tmp_path / "clips", "--clips", 4)
    (tmp_path / "clips" / "broken.mp4").write_bytes(b"no video")
    reports = {
        name: json.loads(ran("data", "cache", tmp_path / "clips", "-o", tmp_path / name, "--json", *words))
        for name, words in ENGINES.items()
    }
    assert reports["here"] == reports["ray"]
    assert reports["ray"]["made"] == 4
    assert contents(tmp_path / "here") == contents(tmp_path / "ray")
    again = json.loads(ran("data", "cache", tmp_path / "clips", "-o", tmp_path / "ray", "--json", *ENGINES["ray"]))
    assert again["made"] == 0


def test_labels_and_scores_are_the_same(cluster, filmed, tmp_path):
    for number in range(3):
        for ending in (".mp4", "-cameras.json"):
            os.link(filmed / f"film{ending}", tmp_path / f"clip{number}{ending}")
    (tmp_path / "torn.mp4").write_bytes((filmed / "film.mp4").read_bytes()[:500])
    videos = [tmp_path / f"{name}.mp4" for name in ("clip0", "clip1", "clip2", "torn")]
    found = {}
    for name, words in ENGINES.items():
        labels = ["radial", "label", *videos, "-o", tmp_path / f"labels-{name}", "--teacher", "embedded", "--json"]
        scores = ["evaluate", *videos, "-o", tmp_path / f"report-{name}", "--json"]
        made = json.loads(ran(*labels, *words))
        told = json.loads(ran(*scores, *words))
        for one in made:
            del one["seconds"]
        made.sort(key=lambda one: one["clip"])
        maps = {path.name: path.read_bytes() for path in (tmp_path / f"labels-{name}").glob("*.npz")}
        found[name] = made, maps, told
    assert found["here"] == found["ray"]
    made, maps, _ = found["ray"]
    assert [bool(one["failure"]) for one in made] == [False, False, False, True]
    assert len(maps) == 3


def sent_estimator():
    """COLMAP takes minutes. Of a class that no module has, so that it goes to the workers whole."""

    @dataclass(frozen=True)
    class Straight:
        name: str = "straight"
        version: str = "1"
        floor: str = ""
        every_frame: bool = True

        def estimate(self, video, lens=None, clip=""):
            if clip == "lost":
                return Failure("no two frames could be matched")
            poses = np.tile(np.eye(4), (len(video), 1, 1))
            poses[:, 0, 3] = np.arange(len(video))
            return Estimate(poses=poses, reprojection=1.5 if clip == "doubtful" else 0.4, inliers=200.0)

    return Straight()


def test_cameras_that_are_found_out_are_the_same(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("curvedray.evaluate.estimators.make_estimator", lambda name: sent_estimator())
    for name in ("doubtful", "good", "lost", "other"):
        originals.film(tmp_path / "films" / f"{name}.mp4", originals.FRAMES)
    (tmp_path / "films" / "torn.mp4").write_bytes(b"no video")
    pose = ["data", "pose", tmp_path / "films", "--json"]
    rows = {name: json.loads(ran(*pose, "-o", tmp_path / name, *words)) for name, words in ENGINES.items()}
    assert rows["here"] == rows["ray"]
    assert contents(tmp_path / "here") == contents(tmp_path / "ray")
    kept = {"good.json", "other.json", "doubtful.dropped.json", "poses.json", "metadata.csv"}
    assert contents(tmp_path / "ray").keys() == kept
    (tmp_path / "ray" / "poses.json").unlink()  # as where this process was killed and its workers went on
    assert json.loads(ran(*pose, "-o", tmp_path / "ray", *ENGINES["ray"])) == rows["here"]


def test_captions_are_the_same(cluster, tmp_path):
    ran("data", "example", "-o", tmp_path / "here", "--clips", 3)
    shutil.copytree(tmp_path / "here", tmp_path / "ray")
    made = {
        name: json.loads(ran("data", "caption", tmp_path / name, "--again", "--json", *words))
        for name, words in ENGINES.items()
    }
    assert made["here"] == made["ray"]
    assert len(made["ray"]) == 3
    assert contents(tmp_path / "here") == contents(tmp_path / "ray")


def test_shards_are_the_same(cluster, tmp_path):
    ran("data", "example", "-o", tmp_path / "clips", "--clips", 3)
    ran("data", "cache", tmp_path / "clips", "--model", "random", "-o", tmp_path / "cache")
    for kind in ("clips", "cache"):
        shard = ["data", "shard", tmp_path / kind, "--per-shard", 2, "--json"]
        told = {
            name: json.loads(ran(*shard, "-o", tmp_path / f"{kind}-{name}", *words)) for name, words in ENGINES.items()
        }
        assert told["here"] == told["ray"]
        assert told["ray"]["shards"] == 2
        assert contents(tmp_path / f"{kind}-here") == contents(tmp_path / f"{kind}-ray")


def test_films_of_a_list_are_the_same(cluster, tmp_path):
    lines = [{"prompt": "a red ball", "move": f"pan left {10 * i}deg", "name": f"film{i}"} for i in (1, 2)]
    lines.append({"prompt": "a red ball", "camera": "none.json", "name": "broken"})
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name, words in ENGINES.items():
        films = ["generate", "--requests", tmp_path / "list.jsonl", "--steps", 1, "--zoom", 1, "-o", tmp_path / name]
        run = CliRunner().invoke(app, [str(word) for word in (*films, "--json", *words)])
        told = json.loads(run.stdout)
        assert (told["filmed"], told["failed"]) == (2, 1)
    made = contents(tmp_path / "ray")
    assert contents(tmp_path / "here") == made
    assert {"film1.mp4", "film2.mp4"} <= made.keys()
