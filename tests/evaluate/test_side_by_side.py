"""Distances judged without cameras, sizes brought together, and methods side by side."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate
from curvedray.evaluate.matching import match
from curvedray.evaluate.metrics.geometry import adherence_scores, at_size, pooled, pooled_to
from curvedray.evaluate.report import Report
from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.run import score_folder
from curvedray.evaluate.scores import Failure, Score
from curvedray.evaluate.side_by_side import table
from curvedray.media.video import write_video
from curvedray.radial.map import RadialMap, write_radial_map

SIZE = (40, 56)  # sides that 16 does not divide


class Seer:
    """Sees the map itself, times what the video's brightness says, at twice its size."""

    name, version, floor, every_frame = "seer", "1", "none", False

    def estimate(self, video, lens=None, clip=""):
        if video.mean() < 5:
            return Failure("too dark", clip)
        ramp = np.linspace(1, 3, 2 * SIZE[1])[None, None].repeat(len(video), 0).repeat(2 * SIZE[0], 1)
        wrong = (video[:, 0, 0, 0] / 100.0)[:, None, None]
        return Estimate(radial=ramp * (1 + wrong * np.linspace(0, 1, 2 * SIZE[0])[None, :, None]))


@pytest.fixture
def methods(tmp_path):
    """Two methods on two clips, of which the second method's second is black."""
    for method, lights in (("ours", (10, 20)), ("theirs", (90, 0))):
        for clip, light in zip("ab", lights, strict=True):
            frames = torch.full((5, 32, 48, 3), light, dtype=torch.uint8)
            write_video(frames, tmp_path / method / f"{clip}.mp4", crf=4)
    ramp = torch.linspace(1, 3, SIZE[1]).expand(5, *SIZE)
    for clip in "ab":
        write_radial_map(RadialMap.from_metric(ramp), tmp_path / "maps" / f"{clip}.npz")
    return tmp_path


def test_a_map_is_enough_to_score_a_video_that_has_no_cameras(methods):
    jobs = match([methods / "ours"], radial=methods / "maps")
    assert [(job.clip, job.cameras) for job in jobs] == [("a", None), ("b", None)]
    good, worse = score_folder(jobs, Seer(), 1, methods / "report")
    found = {score.metric: score.value for score in good.scores}
    assert {"SILog (pixel)", "SILog (token)", "delta_1 (pixel)", "SSI-L1"} <= found.keys()
    assert 0 < found["SILog (pixel)"] < {s.metric: s.value for s in worse.scores}["SILog (pixel)"]
    with pytest.raises(InputError, match="named as the videos"):
        match([methods / "ours"], radial=methods / "ours")


def test_sizes_are_brought_together_by_means_over_valid_pixels():
    """A map twice as large as the other agrees with it exactly; tokens of sides that do not divide are means too."""
    base = 1 + torch.rand(3, *SIZE, dtype=torch.float64).numpy()
    twice = base.repeat(2, 1).repeat(2, 2)
    np.testing.assert_allclose(at_size(twice, *SIZE), base)
    np.testing.assert_allclose(at_size(base, 80, 112), twice)
    for score in adherence_scores("a", base, 2 * twice, 1):  # twice as far everywhere: only a scale
        if score.metric.startswith(("SILog", "AbsRel", "SSI", "Scale", "Drift")):
            assert score.value == pytest.approx(0, abs=1e-12), score.metric
    assert pooled(base).shape == (3, 2, 4)
    flat = np.full((1, 40, 56), 3.0)
    flat[:, :20] = np.nan
    assert np.isnan(pooled_to(flat, 2, 2)[0, 0]).all()
    np.testing.assert_allclose(pooled_to(flat, 2, 2)[0, 1], 3.0)
    whole = 1 + torch.rand(2, 32, 48, dtype=torch.float64).numpy()
    np.testing.assert_allclose(pooled(whole), whole.reshape(2, 2, 16, 3, 16).mean((2, 4)))
    with pytest.raises(InputError, match="Crop the map"):
        adherence_scores("a", base, np.ones((3, 64, 32)), 1)


def test_methods_are_scored_side_by_side_over_the_clips_they_share(methods, monkeypatch):
    monkeypatch.setattr("curvedray.evaluate.estimators.make_estimator", lambda *_, **__: Seer())
    folders = [str(methods / name) for name in ("ours", "theirs")]
    words = ["evaluate", *folders, "--radial", str(methods / "maps"), "--estimator", "unik3d", "--side-by-side"]
    out = methods / "report"
    done = CliRunner().invoke(app, [*words, "-o", str(out)])
    assert done.exit_code == 0, done.output
    written = (out / "table.md").read_text()
    assert "| metric | unit | ours | theirs |" in written
    assert "the 1 clips that every method" in written
    assert "theirs 1" in written  # failed
    assert "A distance counts where both maps have one" in written
    page = (out / "index.html").read_text()
    assert page.count("data:image/jpeg") >= 4
    assert "too dark" in page
    assert set(json.loads((out / "scores.json").read_text())) == {"ours", "theirs"}
    assert (out / "ours" / "index.html").is_file()
    found = CliRunner().invoke(app, [*words, "-o", str(out), "--json"])
    tables = json.loads(found.stdout)
    assert {cell["clips"] for own in tables.values() for cell in own} == {1}  # it was of every clip a method has
    assert {name: one["table"] for name, one in json.loads((out / "scores.json").read_text()).items()} == tables
    for bad, said in ((folders[:1], "two folders"), ([folders[0], folders[0]], "different names")):
        done = CliRunner().invoke(app, ["evaluate", *bad, *words[3:], "-o", str(out)])
        assert said in str(done.exception)


def test_the_mean_of_all_clips_is_not_that_of_one_lens_group():
    """Where both kinds of lens were filmed, each metric showed the mean of its last group, the bent lenses."""

    def report(shift):
        values = {"pinhole": 1.0 + shift, "non-pinhole": 3.0 + shift}
        results = [
            ClipResult(f"{lens} {i}", [Score(f"{lens} {i}", "RotErr", value, "rad", "lower")], stratum=lens)
            for lens, value in values.items()
            for i in range(2)
        ]
        return Report(results, "seer", "1", "none", 1)

    (row,) = table({"ours": report(0), "theirs": report(10)})
    assert [text.partition(" ")[0] for text in row["means"]] == ["2.00", "12.0"]
    assert all(text.endswith("(4)") for text in row["means"])
