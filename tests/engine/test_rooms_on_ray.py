"""Label, encode and evaluate on a real Ray cluster: the same files as in this process, byte for byte."""

import json
import os
from pathlib import Path

import pytest
import ray
import torch
from typer.testing import CliRunner

from curvedray.cli import app

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
