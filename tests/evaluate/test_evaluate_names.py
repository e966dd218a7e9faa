"""What lies in real folders: links to nothing, folders named as videos, odd names, temporaries, damaged results."""

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from curvedray import Cameras, Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.oracle import Oracle
from curvedray.evaluate.html_page import to_html, write_report
from curvedray.evaluate.matching import Job, camera_files, match, video_files
from curvedray.evaluate.report import Report, to_markdown
from curvedray.evaluate.results import ClipResult, check_content, saved_result, write_result
from curvedray.evaluate.run import score_clip, score_folder
from curvedray.evaluate.scores import Score
from curvedray.formats import write_cameras
from curvedray.media.video import write_video

WIDTH, HEIGHT, FRAMES = 48, 32, 9


def path() -> torch.Tensor:
    poses = torch.eye(4).repeat(FRAMES, 1, 1)
    poses[:, 0, 3] = torch.linspace(0, 1, FRAMES)
    return poses


def film(file):
    write_video(torch.arange(FRAMES, dtype=torch.uint8)[:, None, None, None].expand(FRAMES, HEIGHT, WIDTH, 3) * 9, file)
    return file


def request(file):
    write_cameras(Cameras(Lens.from_fov(80.0, 0.0, WIDTH, HEIGHT), path()), file)
    return file


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """One video and its cameras, whose bytes the tests copy under other names."""
    folder = tmp_path_factory.mktemp("clip")
    return film(folder / "a.mp4").read_bytes(), request(folder / "a.json").read_bytes()


@pytest.fixture
def folder(tmp_path, clip):
    (tmp_path / "good.mp4").write_bytes(clip[0])
    (tmp_path / "good-cameras.json").write_bytes(clip[1])
    return tmp_path


class Exact:
    """Answers with the requested path, whatever the clip is called."""

    name, version, floor, every_frame = "exact", "1", "none", True

    def estimate(self, video, lens=None, clip=""):
        return Oracle({clip: path()}).estimate(video, lens, clip)


def outcomes(folder, **options):
    jobs = match([folder], **options)
    return {result.clip: result for result in score_folder(jobs, Exact(), 4, folder / "report")}


# -- one bad entry is one failed clip


def test_a_link_to_nothing_a_folder_and_a_pipe_fail_alone(folder, clip):
    (folder / "link.mp4").symlink_to(folder / "nowhere.mp4")
    (folder / "dir.mp4").mkdir()
    os.mkfifo(folder / "pipe.mp4")
    (folder / "camera-link.mp4").write_bytes(clip[0])
    for name in ("link", "dir", "pipe"):
        (folder / f"{name}-cameras.json").write_bytes(clip[1])
    (folder / "camera-link-cameras.json").symlink_to(folder / "nowhere.json")
    found = outcomes(folder)
    assert {name: bool(result.failure) for name, result in found.items()} == {
        "good": False, "link": True, "dir": True, "pipe": True, "camera-link": True,
    }  # fmt: skip
    assert "a link to nothing" in found["link"].failure
    assert "a folder" in found["dir"].failure
    assert "a pipe" in found["pipe"].failure


ODD = [b"\xff\xfe.mp4", b"n" * 251 + b".mp4", b"red \x1b[31m [b] <script>.mp4", b"a\nb.mp4", b"50% #1 & co?.mp4"]


@pytest.mark.parametrize("name", ODD)
def test_any_name_is_scored_and_printed_harmlessly(folder, clip, name):
    with open(os.path.join(os.fsencode(folder), name), "wb") as file:
        file.write(clip[0])
    request(folder / "one.json")
    jobs = match([folder], cameras=folder / "one.json")
    results = score_folder(jobs, Exact(), 4, folder / "report")
    assert not [result.failure for result in results if result.failure]
    report = Report(results, "exact", "1", "none", 4)
    write_report(report, folder / "report", {job.clip: job for job in jobs})
    page = (folder / "report" / "index.html").read_text()
    failed = to_markdown(replace(report, results=[replace(one, failure=f"why {one.clip}") for one in results]))
    for text in (page, failed):
        assert "\x1b" not in text
        assert "<script>" not in text.replace(r"\<script\>", "")
    assert all(" " not in i for i in _sources(page))
    assert len(list((folder / "report" / "videos").iterdir())) == 2


def _sources(page):
    import re

    return [i for i in re.findall(r'src="([^"]*)"', page) if not i.startswith("data:")]


def test_ids_that_become_file_names_are_safe(tmp_path):
    for clip in ("..", "../../x", "/etc/x", "a/b", ".hidden", "", "x" * 300, "con\x00", "-o"):
        file = Job(clip, tmp_path, None).file
        assert "/" not in file
        assert "\x00" not in file
        assert not file.startswith((".", "-"))
        assert 0 < len(file) <= 120
    assert Job("clip-1 (a)", tmp_path, None).file != Job("clip-1 [a]", tmp_path, None).file
    assert Job("Größe 2", tmp_path, None).file == "Größe 2"


def test_hidden_temporaries_are_never_scored(folder, clip):
    (folder / ".good-abc.mp4").write_bytes(clip[0])
    (folder / ".good-abc-cameras.json").write_bytes(clip[1])
    assert list(outcomes(folder)) == ["good"]
    assert ".good-abc" not in camera_files(folder)


# -- cameras beside the video


def test_cameras_are_found_beside_each_video(folder, clip):
    (folder / "sheet.mp4").write_bytes(clip[0])  # no cameras: not a clip
    left: list[Path] = []
    jobs = match([folder], left_out=left.append)
    assert [(job.clip, job.cameras.name) for job in jobs] == [("good", "good-cameras.json")]
    assert [video.name for video in left] == ["sheet.mp4"]
    named = match([folder / "good.mp4", folder / "sheet.mp4"])
    assert [job.cameras is None for job in named] == [False, True]
    with pytest.raises(InputError, match=r"sheet-cameras\.json.*--cameras"):
        match([folder / "sheet.mp4"])
    with pytest.raises(InputError, match="that are there"):
        match([folder / "nothing"])


def test_a_file_marked_as_cameras_is_preferred_to_a_recipe(folder, clip):
    (folder / "good.json").write_text("{}")  # the video's recipe
    assert camera_files(folder)["good"].name == "good-cameras.json"


def test_a_gif_gives_way_to_the_video_it_copies(folder):
    (folder / "good.gif").write_bytes(b"GIF89a")
    (folder / "alone.gif").write_bytes(b"GIF89a")
    assert sorted(i.name for i in video_files([folder]).values()) == ["alone.gif", "good.mp4"]


# -- results that were saved before


def test_a_damaged_result_is_scored_again(folder):
    first = outcomes(folder)["good"]
    file = folder / "report" / "clips" / "good.json"
    whole = file.read_text()
    assert saved_result(file, "good", first.key) == first
    record = json.loads(whole)
    damaged = [
        "", whole[:100], "[]", "null", '"x"', "\xff",
        json.dumps(record | {"scores": 3}), json.dumps(record | {"clip": "other"}), json.dumps(record | {"new": 1}),
        whole.replace('"RotErr"', '"\\\\input{/etc/passwd}"'), whole.replace('"RotErr"', '"<b>|\\\\n"'),
        json.dumps(record | {"requested": [[1.0]]}), json.dumps(record | {"scores": [{"clip": "good"}]}),
        json.dumps(record | {"thumbnails": ['x" onerror="alert(1)']}), whole.replace('"seconds": ', '"seconds": 1e999'),
        json.dumps(record | {"thumbnails": [base64.b64encode(b"<svg onload=alert(1)>").decode()]}),
    ]  # fmt: skip
    for text in damaged:
        file.write_text(text)
        assert saved_result(file, "good", first.key) is None, text[:60]
        assert outcomes(folder)["good"].scores == first.scores
        assert saved_result(file, "good", first.key) is not None


def test_a_handed_on_result_cannot_put_script_into_the_page(folder):
    bad = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    scores = [Score(bad, bad, 1.0, bad, "lower")]
    result = ClipResult(bad, scores, lens=bad, note=bad, suspect=bad, thumbnails=[bad])
    page = to_html(Report([result, replace(result, clip="b", failure=bad)], bad, bad, bad, 4, bad), {bad: bad})
    assert "<script" not in page
    assert "<img src=x" not in page
    with pytest.raises(InputError, match="plain words"):
        check_content(result)
    with pytest.raises(InputError, match="base64"):
        check_content(replace(result, scores=[]))


def test_numbers_that_json_does_not_have_are_null(folder):
    results = list(outcomes(folder).values())
    write_report(Report(results, "exact", "1", "none", 4), folder / "report")

    def refuse(word):
        raise AssertionError(word)

    content = json.loads((folder / "report" / "scores.json").read_text(), parse_constant=refuse)
    assert content["table"][0]["interval"]["low"] is None  # one clip


# -- estimators that break, and strides


class Broken(Exact):
    def estimate(self, video, lens=None, clip=""):
        raise RuntimeError("CUDA error: out of memory\nmore")


def test_an_estimator_that_breaks_is_a_reason(folder):
    job = match([folder])[0]
    assert score_clip(job, Broken(), 4).failure == "exact stopped: CUDA error: out of memory"


@pytest.mark.parametrize("stride", [9, 10, 100])
def test_a_stride_past_the_clip_is_refused(folder, stride):
    assert "less than the clip's 9 frames" in score_clip(match([folder])[0], Exact(), stride).failure
    assert not score_clip(match([folder])[0], Exact(), 8).failure


def test_a_recovered_file_that_cannot_be_read_fails_alone(folder, clip):
    (folder / "found").mkdir()
    (folder / "found" / "good.json").write_bytes(clip[1])
    (folder / "found" / "bad.json").write_text("{")
    oracle = Oracle.from_folder(folder / "found")
    video = np.zeros((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    assert "bad.json" in oracle.estimate(video, None, "bad").reason
    assert oracle.estimate(video, None, "good").poses.shape == (FRAMES, 4, 4)
    assert "are named other (there are some for good)" in oracle.estimate(video, None, "other").reason


class Doubtful(Exact):
    def estimate(self, video, lens=None, clip=""):
        return replace(super().estimate(video, lens, clip), reprojection=0.91, inliers=40.0, suspect="0.91 px")


def test_a_suspicious_clip_is_scored_and_marked_everywhere(folder, clip):
    (folder / "fine.mp4").write_bytes(clip[0])
    (folder / "fine-cameras.json").write_bytes(clip[1])
    fine, good = match([folder])
    results = [score_clip(fine, Exact(), 4), score_clip(good, Doubtful(), 4)]
    report = Report(results, "exact", "1", "none", 4)
    assert {s.metric: s.value for s in results[1].scores}["Reprojection"] == 0.91
    assert [one.clip for one in report.worst_first()] == ["good", "fine"]
    assert "1 of the scored suspicious" in to_markdown(report)
    assert "- good: 0.91 px" in to_markdown(report)
    assert "suspicious: 0.91 px" in to_html(report)


def test_a_saved_result_comes_back_whole(tmp_path):
    result = ClipResult("a", [Score("a", "m", 0.5, "-", "neither")], suspect="s", key="k")
    write_result(result, tmp_path / "a.json")
    assert saved_result(tmp_path / "a.json", "a", "k") == result
    assert saved_result(tmp_path / "a.json", "a", "other") is None


# -- the command


@pytest.mark.whole
def test_a_generated_video_is_evaluated_as_it_is(filmed, tmp_path):
    from curvedray.cli import app

    (tmp_path / "dangling.mp4").symlink_to("nowhere")  # fails alone, and does not choose another estimator
    videos = [str(filmed / "film.mp4"), str(tmp_path / "dangling.mp4")]
    result = CliRunner().invoke(app, ["evaluate", *videos, "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert (content["scored"], content["failed"]) == (1, 1)
    assert (content["estimator"], content["stride"]) == ("embedded", 4)
    assert "cameras recovered by embedded" in result.stderr
    assert '<video class="film" src="videos/film.mp4"' in (tmp_path / "index.html").read_text()


def test_the_command_needs_no_cameras_option(folder):
    from curvedray.cli import app

    (folder / "found").mkdir()
    request(folder / "found" / "good.json")
    (folder / "\x1b[31m[b].mp4").symlink_to("nowhere")
    command = ["evaluate", str(folder), "--estimator", "oracle", "--recovered", str(folder / "found"), "--stride", "4"]
    result = CliRunner().invoke(app, [*command, str(folder / "\x1b[31m[b].mp4"), "-o", str(folder / "report")])
    assert result.exit_code == 0, result.output
    assert "1 clips scored, 1 failed" in " ".join(result.output.split())
    assert "\x1b[31m[b]" not in result.output
    taken = CliRunner().invoke(app, [*command, "-o", str(folder / "good.mp4")])
    assert "good.mp4" in str(taken.exception)  # a file where the report's folder should be: said at once
    refused = CliRunner().invoke(app, ["evaluate", str(folder), "--recovered", str(folder / "found")])
    assert "oracle or vipe" in str(refused.exception)
