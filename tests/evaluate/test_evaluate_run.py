"""Scoring a folder: matching, resuming, counting failures, and a report that stands on its own."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from curvedray import Cameras, Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.estimators.oracle import Oracle
from curvedray.evaluate.estimators.protocol import Estimate, UpAndLens
from curvedray.evaluate.html_page import write_report
from curvedray.evaluate.matching import match
from curvedray.evaluate.report import Report, compare, frames_text, interval_text, number_text
from curvedray.evaluate.run import score_folder
from curvedray.evaluate.statistics import Interval
from curvedray.formats import write_cameras
from curvedray.media.video import write_video

WIDTH, HEIGHT, FRAMES = 48, 32, 9


def path(turn: float = 20.0, move: float = 1.0, frames: int = FRAMES) -> torch.Tensor:
    poses = np.tile(np.eye(4), (frames, 1, 1))
    s = np.linspace(0, 1, frames)
    poses[:, :3, :3] = Rotation.from_euler("y", turn * s[:, None], degrees=True).as_matrix()
    poses[:, 0, 3], poses[:, 2, 3] = move * s, move * s**2
    return torch.from_numpy(poses)


@pytest.fixture
def folder(tmp_path):
    """Three clips: a fisheye and a pinhole with cameras, and a video nobody asked for."""
    for name in ("videos", "cameras"):
        (tmp_path / name).mkdir()
    frames = torch.arange(FRAMES, dtype=torch.uint8)[:, None, None, None] * 20
    for name in ("bent", "flat", "stray"):
        write_video(frames.expand(FRAMES, HEIGHT, WIDTH, 3).contiguous(), tmp_path / "videos" / f"{name}.mp4")
    write_cameras(Cameras(Lens.from_fov(150.0, 0.8, 96, 64), path()), tmp_path / "cameras" / "bent.cameras.json")
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path()), tmp_path / "cameras" / "flat.json")
    return tmp_path


def oracle(turn: float = 20.0) -> Oracle:
    """Right about the pinhole, and as wrong about the fisheye as one likes; one per frame, or one per scored frame."""
    return Oracle({"bent": path(turn)[::4], "flat": path()})


def scored(folder, estimator=None, stride=4, **options):
    seen = []
    jobs = match([folder / "videos"], folder / "cameras")
    results = score_folder(
        jobs,
        estimator or oracle(),
        stride,
        folder / "report",
        lambda r, resumed: seen.append((r.clip, resumed)),
        **options,
    )
    return results, seen


def test_scores_are_against_the_request_and_failures_are_counted(folder):
    results, _ = scored(folder, oracle(turn=50.0))
    by_clip = {result.clip: result for result in results}
    assert list(by_clip) == ["bent", "flat", "stray"]
    angle = {score.metric: score.value for score in by_clip["bent"].scores}["Rotation"]
    assert angle == pytest.approx((0 + 15 + 30) / 3, rel=1e-4)  # 30 degrees too far at the end; frames 0, 4, 8
    assert all(score.value == pytest.approx(0, abs=1e-5) for score in by_clip["flat"].scores if score.better == "lower")
    assert "camera file" in by_clip["stray"].failure
    assert (by_clip["bent"].stratum, by_clip["flat"].stratum) == ("non-pinhole", "pinhole")
    assert by_clip["bent"].lens == "150 degrees, xi 0.8"


def test_a_second_run_resumes_and_a_change_is_scored_again(folder):
    first, seen = scored(folder)
    assert [resumed for _, resumed in seen] == [False, False, False]
    again, seen = scored(folder)
    assert [resumed for _, resumed in seen] == [True, True, True]
    assert again == first
    assert [resumed for _, resumed in scored(folder, oracle(turn=21.0))[1]] == [False, False, False]
    scored(folder)
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path(5.0)), folder / "cameras" / "flat.json")
    assert dict(scored(folder)[1]) == {"bent": True, "flat": False, "stray": True}


def test_one_pose_a_latent_frame_is_enough(folder):
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path()[::4]), folder / "cameras" / "flat.json")
    flat = scored(folder)[0][1]
    assert not flat.failure
    assert len(flat.requested) == 3
    assert "multiple of 4" in scored(folder, stride=2)[0][1].failure
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path(frames=7)), folder / "cameras" / "flat.json")
    assert "9 poses" in scored(folder)[0][1].failure
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 64, 64), path()), folder / "cameras" / "flat.json")
    assert "shaped like 48 x 32" in scored(folder)[0][1].failure


def test_a_realestate10k_file_fits_a_video_of_any_shape(folder):
    """Its intrinsics are shares of width and height, and the video's size is known."""
    (folder / "cameras" / "flat.json").unlink()
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path()), folder / "cameras" / "flat.txt", "realestate10k")
    flat = scored(folder)[0][1]
    assert not flat.failure
    assert "80" in flat.lens


def test_a_file_without_a_lens_is_given_one(folder):
    (folder / "cameras" / "flat.json").unlink()
    write_cameras(Cameras(Lens.from_fov(90.0, 0.0, 96, 64), path()), folder / "cameras" / "flat.txt", "kitti")
    jobs = match([folder / "videos" / "flat.mp4"], folder / "cameras")
    result = score_folder(jobs, oracle(), 4, folder / "report", format="kitti", lens="fisheye-150")[0]
    assert not result.failure
    assert (result.stratum, result.lens) == ("non-pinhole", "150 degrees, xi 1")


@pytest.mark.parametrize("size", [(48, 32), (64, 36), (46, 26)])
def test_realestate_cameras_fit_a_video_of_any_shape(folder, size):
    """Their lens is in shares of the image, so it has no shape of its own: 16:9 was refused."""
    video = torch.zeros(FRAMES, size[1], size[0], 3, dtype=torch.uint8)
    write_video(video, folder / "videos" / "flat.mp4")
    (folder / "cameras" / "flat.json").unlink()
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, *size), path()), folder / "cameras" / "flat.txt", "realestate10k")
    jobs = match([folder / "videos" / "flat.mp4"], folder / "cameras")
    result = score_folder(jobs, oracle(), 4, folder / "report")[0]
    assert not result.failure
    assert result.lens == "80 degrees, xi 0"


def test_a_broken_video_is_a_failure_not_a_stop(folder):
    (folder / "videos" / "bent.mp4").write_bytes(b"not a video")
    results, _ = scored(folder)
    assert results[0].failure
    assert not results[1].failure


def test_matching_refuses_what_is_ambiguous(folder):
    (folder / "cameras" / "flat.txt").write_text("0")
    with pytest.raises(InputError, match="one file per clip"):
        match([folder / "videos"], folder / "cameras")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="named as the videos"):
        match([folder / "videos"], folder / "empty")
    with pytest.raises(InputError, match="videos"):
        match([folder / "cameras"], folder / "cameras")
    one = match([folder / "videos" / "stray.mp4"], folder / "cameras" / "flat.json")
    assert one[0].cameras == folder / "cameras" / "flat.json"


class Views:
    """An estimator of lens and horizon that sees darker frames as pitched."""

    name, version, floor, every_frame = "views", "1", "none", False

    def __init__(self):
        self.calls = 0

    def estimate(self, video, lens=None, clip=""):
        self.calls += 1
        pitch = np.radians(10.0 if self.calls % 2 else 0.0)
        up = np.tile([0.0, -np.cos(pitch), np.sin(pitch)], (len(video), 1))
        return Estimate(view=UpAndLens(up, Radial(28.6, 28.6, 24.0, 16.0, -0.1 * self.calls, 0.0, (WIDTH, HEIGHT))))


def test_lens_and_horizon_are_scored_against_the_reference_clip(folder):
    jobs = match([folder / "videos" / "flat.mp4"], folder / "cameras", reference=folder / "videos")
    result = score_folder(jobs, Views(), 4, folder / "report")[0]
    values = {score.metric: score.value for score in result.scores}
    assert values["Pitch"] == pytest.approx(10)
    assert values["k1"] == pytest.approx(0.1)
    assert values["PSNR"] == 100
    assert values["SSIM"] == pytest.approx(1)
    assert values["Ray"] > 0


class Distances:
    """An estimator of distances that are right but for their scale."""

    name, version, floor, every_frame = "distances", "1", "none", False

    def estimate(self, video, lens=None, clip=""):
        return Estimate(radial=np.full(video.shape[:3], 6.0))


def test_distances_are_scored_against_the_supplied_map(folder):
    (folder / "maps").mkdir()
    np.save(folder / "maps" / "flat.npy", np.full((FRAMES, HEIGHT, WIDTH), 2.0))
    jobs = match([folder / "videos" / "flat.mp4"], folder / "cameras", radial=folder / "maps")
    values = {s.metric: s.value for s in score_folder(jobs, Distances(), 4, folder / "report")[0].scores}
    assert values["AbsRel (pixel)"] == pytest.approx(0)
    assert values["delta_1 (token)"] == 1
    np.savez(folder / "maps" / "flat.npz", depth=np.ones(3))
    (folder / "maps" / "flat.npy").unlink()
    jobs = match([folder / "videos" / "flat.mp4"], folder / "cameras", radial=folder / "maps")
    assert "radius" in score_folder(jobs, Distances(), 4, folder / "report")[0].failure


# -- the report


class Fetched(HTMLParser):
    """Everything a browser would fetch for a page."""

    def __init__(self):
        super().__init__()
        self.places = []

    def handle_starttag(self, tag, attributes):
        self.places += [value for name, value in attributes if name in ("src", "href", "srcset", "poster")]


ORDER = ["stray", "bent", "flat"]  # failed, worse, better


def test_the_page_stands_on_its_own_and_shows_the_worst_first(folder):
    results, _ = scored(folder, oracle(turn=50.0))
    report = Report(results, "oracle", "1", "none", 4)
    write_report(report, folder / "report", {job.clip: job for job in match([folder / "videos"], folder / "cameras")})
    page = (folder / "report" / "index.html").read_text()
    fetched = Fetched()
    fetched.feed(page)
    assert fetched.places
    inside = [place for place in fetched.places if place.startswith("data:image/jpeg;base64,")]
    assert [place for place in fetched.places if place not in inside] == [f"videos/{name}.mp4" for name in ORDER]
    assert all((folder / "report" / "videos" / f"{name}.mp4").is_file() for name in ORDER)
    assert "://" not in page
    assert "url(" not in page
    order = re.findall(r"<h3>(\w+)</h3>", page)
    assert order == ORDER
    assert page.count("<svg") == 2 * 3
    assert "clips failed" in page


def test_names_cannot_break_the_page(folder):
    (folder / "videos" / "flat.mp4").rename(folder / "videos" / "<script>.mp4")
    results, _ = scored(folder)
    write_report(Report(results, "<b>", "1", "none", 4), folder / "report")
    page = (folder / "report" / "index.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_json_markdown_and_latex_say_the_same(folder):
    results, _ = scored(folder, oracle(turn=50.0))
    write_report(Report(results, "oracle", "v", "none", 4), folder / "report")
    content = json.loads((folder / "report" / "scores.json").read_text())
    assert (content["scored"], content["failed"], content["stride"]) == (2, 1, 4)
    assert content["definitions"]["RotErr"]
    mean = next(cell for cell in content["table"] if cell["metric"] == "Rotation" and cell["group"] == "all")
    assert mean["clips"] == 2
    assert mean["interval"]["mean"] == pytest.approx(7.5, rel=1e-4)
    markdown = (folder / "report" / "table.md").read_text()
    latex = (folder / "report" / "table.tex").read_text()
    assert "| Rotation ↓ | deg/frame | 7.50 [" in markdown
    assert r"Rotation $\downarrow$" in latex
    assert "7.50 [" in latex
    assert all("2 clips scored, 1 failed" in text for text in (markdown, latex))
    assert "- stray: " in markdown


def test_near_static_clips_are_in_the_mean_and_a_second_mean_leaves_them_out(folder):
    """Also where the first clip is the near-static one: the two rows stand together."""
    write_cameras(Cameras(Lens.from_fov(150.0, 0.8, 96, 64), path(move=0.0)), folder / "cameras" / "bent.cameras.json")
    results, _ = scored(folder, Oracle({"bent": path(), "flat": path(turn=25.0)}))
    report = Report(results, "oracle", "v", "none", 4)
    assert [result.clip for result in report.near_static] == ["bent"]
    write_report(report, folder / "report")
    table = [cell for cell in report.cells() if cell.group == "all"]
    metrics = [cell.metric for cell in table]
    assert metrics[metrics.index("TransErr") :][:4] == ["TransErr", "TransErr (moving)", "CamMC", "CamMC (moving)"]
    of_clip = {r.clip: {s.metric: s.value for s in r.scores}["CamMC"] for r in report.scored}
    cells = {cell.metric: cell for cell in table}
    assert cells["CamMC"].clips == 2
    assert cells["CamMC"].interval.mean == pytest.approx(sum(of_clip.values()) / 2)
    assert cells["CamMC (moving)"].clips == 1
    assert cells["CamMC (moving)"].interval.mean == pytest.approx(of_clip["flat"])
    markdown = (folder / "report" / "table.md").read_text()
    assert "2 clips scored, 1 failed, 1 near-static" in markdown
    assert re.search(r"\| CamMC ↓ \| - \| [\d.]+ \[[\d., ]+\] \(2\) \|", markdown)
    assert "Near-static clips left out." in markdown
    moving = {d.metric: d.clips for d in compare(report, folder / "report")}
    assert (moving["CamMC"], moving["CamMC (moving)"]) == (2, 1)


def test_two_reports_are_compared_clip_by_clip(folder):
    results, _ = scored(folder, oracle(turn=50.0))
    write_report(Report(results, "oracle", "v", "none", 4), folder / "worse")
    better = Report(scored(folder)[0], "oracle", "v", "none", 4)
    rotation = next(d for d in compare(better, folder / "worse") if d.metric == "Rotation")
    assert rotation.clips == 2
    assert rotation.interval.mean == pytest.approx(-7.5, rel=1e-4)
    with pytest.raises(InputError, match="stride"):
        compare(Report(results, "oracle", "v", "none", 1), folder / "worse")
    with pytest.raises(InputError, match=r"scores\.json"):
        compare(better, folder / "cameras")


def test_numbers_read_well():
    assert [frames_text(x) for x in (1, 2, 4, 11, 21)] == [
        "every frame", "every 2nd frame", "every 4th frame", "every 11th frame", "every 21st frame",
    ]  # fmt: skip
    assert [number_text(x) for x in (0, 14.748, 0.01234, 1234.5, 0.0000123, -2.5)] == [
        "0", "14.7", "0.0123", "1234", "0.0000", "-2.50",
    ]  # fmt: skip
    assert interval_text(Interval(1.0, 0.5, 1.5)) == "1.00 [0.500, 1.50]"
    assert interval_text(Interval(1.0, float("nan"), float("nan"))) == "1.00"


# -- the command


def test_the_command_scores_a_folder(folder):
    from curvedray.cli import app

    (folder / "found").mkdir()
    for name in ("bent", "flat"):
        write_cameras(Cameras(Lens.from_fov(80.0, 0.0, 96, 64), path()[::4]), folder / "found" / f"{name}.json")
    command = ["evaluate", str(folder / "videos"), "--cameras", str(folder / "cameras"), "--stride", "4"]
    command += ["--estimator", "oracle", "--recovered", str(folder / "found"), "-o", str(folder / "report"), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert (content["scored"], content["failed"]) == (2, 1)
    assert {file.name for file in (folder / "report").iterdir()} == {
        "clips", "index.html", "scores.json", "table.md", "table.tex", "videos",
    }  # fmt: skip


def test_the_plots_have_a_scale(folder):
    """Zero on both axes is where the path starts, and 0.5 is half of its largest distance from there."""
    from curvedray.evaluate.figures import figures

    result = next(result for result in scored(folder)[0] if result.clip == "flat")
    above, side, errors = figures(result, 4)
    for figure in (above, side):
        assert "Unit: the path's largest distance" in figure.caption
        across = {label.text: label.x for label in figure.labels if label.anchor == "middle"}
        upward = {label.text: label.y - 4 for label in figure.labels if label.anchor == "end"}
        assert np.allclose([across["0"], upward["0"]], figure.dot, atol=0.1)
        end = next(line.points[-1] for line in figure.lines if line.dashed)
        (name, where), axis = list(across.items())[-1], 0 if figure is above else 2
        measured = (end[0] - across["0"]) / (where - across["0"]) * float(name)
        assert measured == pytest.approx(result.requested[-1][axis][3], abs=0.01)
    assert [label.text for label in errors.labels if label.anchor == "middle"] == ["0", "4", "8"]  # frames of the video
