"""Captions of captures that are cut into clips: under the names that training looks for, whatever the length."""

import json

import originals
import pytest
from originals import truth
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.data.folders import FolderFootage
from curvedray.evaluate import caption


@pytest.fixture
def scene(tmp_path):
    """A capture of nine frames, and where it lies."""
    originals.nerfstudio(tmp_path / "hall", truth(9))
    originals.pictures(tmp_path / "hall" / "images", [f"frame_{t + 1:05d}.png" for t in range(9)])
    return tmp_path


def run_caption(folder, *words):
    run = CliRunner().invoke(app, ["data", "caption", str(folder), "--json", *map(str, words)])
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def test_every_clip_of_a_capture_gets_a_caption_under_the_name_it_is_trained_by(scene):
    """There was one caption per capture, under a name that none of its clips had, or the first alone."""
    made = run_caption(scene, "--frames", 3)
    source = FolderFootage(scene, frames=3)
    assert [row["clip"] for row in made] == [source.name_of(i) for i in range(3)]
    assert [record.caption for record in source.records] == [row["caption"] for row in made]
    assert run_caption(scene, "--frames", 3) == []


def test_cutting_by_another_length_keeps_the_captions(scene):
    first = run_caption(scene, "--frames", 3)[0]["caption"]
    for frames in (2, 4, None):
        records = FolderFootage(scene, frames=frames).records
        assert all(record.caption for record in records), frames
        assert records[min(1, len(records) - 1)].caption == first
    assert run_caption(scene, "--frames", 2) == []
    again = run_caption(scene, "--frames", 2, "--again")
    assert len(again) == 4
    stored = json.loads((scene / "captions.json").read_text())
    assert stored[FolderFootage(scene, frames=2).records[0].source] == again[0]["caption"]


def test_a_caption_that_somebody_gave_a_capture_stays(scene):
    name = FolderFootage(scene, frames=3).records[0].source
    (scene / "captions.json").write_text(json.dumps({name: "a hall"}))
    assert [record.caption for record in FolderFootage(scene, frames=3).records] == ["a hall"] * 3
    assert run_caption(scene, "--frames", 3) == []


@pytest.mark.parametrize(("model", "gpu"), [("estimate", False), ("some/captioner", True)])
def test_a_captioner_with_weights_asks_for_a_card(scene, monkeypatch, model, gpu):
    told = {}

    def noted(jobs, opener, engine, **rest):
        told.update(rest)
        return [caption.Captioned(job.id, "a hall") for job in jobs]

    monkeypatch.setattr(caption, "run_jobs", noted)
    run_caption(scene, "--model", model)
    assert told["gpu"] is gpu
