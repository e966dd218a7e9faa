"""Cameras found out: how far they are to be trusted, which clips to drop, where they lie, and that the run goes on."""

import json
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import originals
import pytest
import torch
from originals import FRAMES, HEIGHT, WIDTH
from typer.testing import CliRunner

from curvedray.cameras import Cameras, Lens
from curvedray.cli import app
from curvedray.data.check import check_clips
from curvedray.data.folders import FolderFootage
from curvedray.errors import InputError
from curvedray.evaluate import pose
from curvedray.evaluate.estimators.protocol import Estimate
from curvedray.evaluate.pose import confidence, find_pose_jobs, pose_videos, read_report
from curvedray.evaluate.scores import Failure
from curvedray.formats import read_cameras, write_cameras


@dataclass(frozen=True)
class Known:
    """Answers with a straight path; of clips called lost with none, of those called jump or leap with one that is cut.

    It notes whom it was asked of.
    """

    name: str = "known"
    version: str = "1"
    floor: str = ""
    every_frame: bool = True
    reprojection: float = 0.4
    asked: list[str] = field(default_factory=list)

    def estimate(self, video, lens=None, clip=""):
        self.asked.append(clip)
        if "lost" in clip:
            return Failure("no two frames could be matched")
        poses = np.tile(np.eye(4), (len(video), 1, 1))
        poses[:, 0, 3] = np.linspace(0, 1, len(video))
        if "jump" in clip:
            poses[2:, :3, :3] = np.diag([-1.0, 1, -1])
        if "leap" in clip:
            poses[2:, 0, 3] += 500
        found = np.ones(len(video), bool)
        return Estimate(poses=poses, found=found, reprojection=self.reprojection, inliers=200.0)


def test_clips_are_kept_or_dropped_with_a_reason_and_the_kept_can_be_trained_on(tmp_path):
    for name in ("good", "lost", "jump", "leap"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    (tmp_path / "broken.mp4").write_bytes(b"rubbish")
    jobs, folder = find_pose_jobs(tmp_path, None, "pinhole-90")
    assert [job.clip for job in jobs] == ["broken", "good", "jump", "leap", "lost"]
    rows = {row.clip: row for row in pose_videos(jobs, folder, Known())}
    assert rows["good"].drop == ""
    assert rows["good"].confidence == 1.0
    reasons = {"broken": "can be decoded", "jump": "a cut", "leap": "jumps at frame 2", "lost": "could be matched"}
    for name, words in reasons.items():
        assert words in rows[name].drop, name
        assert not (folder / f"{name}.json").exists()
    assert len(json.loads((folder / "poses.json").read_text())) == 5
    cameras = read_cameras(folder / "good.json")
    assert float(cameras.lens.hfov) == pytest.approx(90, abs=1e-3)
    source = FolderFootage(folder)
    assert [source.name_of(i) for i in range(len(source))] == ["good"]
    assert source[0].video.shape[0] == FRAMES


def test_what_was_found_before_is_kept(tmp_path):
    originals.film(tmp_path / "good.mp4", FRAMES)
    known = Known()
    for lens in (None, None, "pinhole-90"):
        jobs, folder = find_pose_jobs(tmp_path / "good.mp4", tmp_path / "out", lens)
        (row,) = pose_videos(jobs, folder, known)
        assert ("assumed" in row.note) == (lens is None)
    assert known.asked == ["good", "good"]  # the second time nothing had changed; the third the lens had
    assert (tmp_path / "out" / "good-cameras.json").is_file()


def posed(path, estimator=None, output=None):
    jobs, folder = find_pose_jobs(path, output, None)
    return {row.clip: row for row in pose_videos(jobs, folder, estimator or Known())}


def test_a_table_of_somebody_else_is_left_alone(tmp_path, caplog):
    """`data pose own/v0.mp4` replaced the user's metadata.csv by its own."""
    originals.film(tmp_path / "v0.mp4", FRAMES)
    table = tmp_path / "metadata.csv"
    for mine in ("video,cameras,caption\nv0.mp4,mine.json,mine\n", "video,cameras,id\nv0.mp4,mine.json,v0\n", "torn"):
        table.write_text(mine)
        posed(tmp_path / "v0.mp4")
        assert table.read_text() == mine
        assert "left alone" in caplog.text
        assert "v0-cameras.json" in caplog.text
        caplog.clear()
    table.rename(tmp_path / "metadata.jsonl")
    posed(tmp_path / "v0.mp4")
    assert not table.exists()


def test_clips_that_were_posed_into_a_folder_before_stay_in_its_table_and_report(tmp_path):
    """The second video of a folder took the first out of both."""
    for name in ("v0", "v1", "lost"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
        posed(tmp_path / f"{name}.mp4")
    assert sorted(read_report(tmp_path)) == ["lost", "v0", "v1"]
    source = FolderFootage(tmp_path)
    assert [source[i].id for i in range(len(source))] == ["v0", "v1"]
    posed(tmp_path / "v0.mp4", Known(version="2", reprojection=1.5))
    assert [record.id for record in FolderFootage(tmp_path).records] == ["v1"]
    posed(tmp_path / "v1.mp4", Known(version="2", reprojection=1.5))
    assert not (tmp_path / "metadata.csv").exists()  # a table without a row could not be read


def test_files_of_others_are_not_replaced(tmp_path):
    """The cameras that a video was filmed with lie beside it under the name that its posed ones take."""
    originals.film(tmp_path / "v0.mp4", FRAMES)
    own = Cameras(Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT), torch.eye(4).repeat(FRAMES, 1, 1))
    write_cameras(own, tmp_path / "v0-cameras.json")
    before = (tmp_path / "v0-cameras.json").read_bytes()
    assert "of another origin" in posed(tmp_path / "v0.mp4")["v0"].drop
    assert (tmp_path / "v0-cameras.json").read_bytes() == before
    (tmp_path / "v0-cameras.json").unlink()
    assert posed(tmp_path / "v0.mp4")["v0"].drop == ""
    (tmp_path / "poses.json").write_text('{"frames": []}')
    with pytest.raises(InputError, match="a report of"):
        posed(tmp_path / "v0.mp4")


def test_two_videos_of_the_same_contents_have_a_camera_file_each(tmp_path):
    """What was found before was looked up by contents alone, and told with the other's name."""
    for name in ("one", "two"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    first = posed(tmp_path)
    assert [row.cameras for row in first.values()] == ["one.json", "two.json"]
    assert posed(tmp_path) == first


@pytest.mark.parametrize("lost_report", [False, True])
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, lost_report):
    """The report was written at the end only, so that all clips were posed again."""

    class Killed(BaseException):
        pass

    @dataclass(frozen=True)
    class Killing(Known):
        def estimate(self, video, lens=None, clip=""):
            if clip == "c":
                assert sorted(read_report(tmp_path / "cameras")) == ["a", "b-lost"]
                raise Killed
            return super().estimate(video, lens, clip)

    for name in ("a", "b-lost", "c", "d"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    with pytest.raises(Killed):
        posed(tmp_path, Killing())
    if lost_report:  # as where workers on other machines go on for a while
        (tmp_path / "cameras" / "poses.json").unlink()
    known = Known()
    rows = posed(tmp_path, known)
    assert known.asked == (["b-lost", "c", "d"] if lost_report else ["c", "d"])
    assert {row.clip: asdict(row) for row in rows.values()} == {
        row["clip"]: row for row in json.loads((tmp_path / "cameras" / "poses.json").read_text())
    }
    assert [record.id for record in FolderFootage(tmp_path / "cameras").records] == ["a", "c", "d"]


def test_what_a_camera_file_tells_of_itself_is_the_report(tmp_path):
    for name in ("good", "jump"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    first = posed(tmp_path, Known(reprojection=0.7))
    (tmp_path / "cameras" / "poses.json").unlink()
    known = Known(reprojection=0.7)
    assert posed(tmp_path, known) == first
    assert known.asked == []


def test_a_data_set_without_cameras_gets_them_where_its_reader_looks(tmp_path):
    originals.davis(tmp_path)
    jobs, folder = find_pose_jobs(tmp_path, None, None)
    assert [(job.clip, len(job.moving)) for job in jobs] == [("bear", FRAMES), ("blackswan", FRAMES)]
    pose_videos(jobs, folder, Known())
    assert FolderFootage(tmp_path)[0].cameras.frames == FRAMES


def test_a_finished_data_set_is_told_from_its_report(tmp_path, monkeypatch):
    """The second run refused the folder: a folder of images was expected, and none found."""
    originals.davis(tmp_path)
    known = Known()
    monkeypatch.setattr("curvedray.evaluate.estimators.make_estimator", lambda name: known)
    runs = [CliRunner().invoke(app, ["data", "pose", str(tmp_path)]) for _ in range(2)]
    assert [run.exit_code for run in runs] == [0, 0]
    assert known.asked == ["bear", "blackswan"]
    assert "2 of 2 clips to keep" in runs[1].output
    assert ["everything was posed before" in run.output for run in runs] == [False, True]


def test_clips_with_cameras_of_their_own_are_not_posed(tmp_path, monkeypatch):
    originals.pictures(tmp_path / "walk", [f"{t}.png" for t in range(FRAMES)])
    own = Cameras(Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT), torch.eye(4).repeat(FRAMES, 1, 1))
    write_cameras(own, tmp_path / "walk" / "cameras.json")
    monkeypatch.setattr("curvedray.evaluate.estimators.make_estimator", lambda name: Known())
    run = CliRunner().invoke(app, ["data", "pose", str(tmp_path)])
    assert run.exit_code == 0
    assert "nothing to find out" in run.output
    assert CliRunner().invoke(app, ["data", "pose", str(tmp_path), "--json"]).output.strip() == "[]"


@pytest.mark.parametrize("kind", ["davis", "miradata", "frames"])
def test_a_clip_to_drop_is_not_trained_on_until_somebody_says_so(tmp_path, kind):
    """The report said to drop it, and its cameras lay where the data set's reader takes them."""
    if kind == "frames":
        originals.pictures(tmp_path / "walk", [f"{t}.png" for t in range(FRAMES)])
    else:
        getattr(originals, kind)(tmp_path)
    rows = posed(tmp_path, Known(reprojection=1.4))
    assert all("confidence" in row.drop for row in rows.values())
    with pytest.raises(InputError, match=r"below 0\.5\. Rename it to .*\.json to train on the clip") as told:
        FolderFootage(tmp_path)[0]
    assert "dropped.json" in str(told.value)
    known = Known(reprojection=1.4)
    assert posed(tmp_path, known) == rows
    (dropped, *_) = sorted(tmp_path.rglob("*.dropped.json"))
    dropped.rename(dropped.with_name(dropped.name.replace(".dropped", "")))
    assert FolderFootage(tmp_path)[0].cameras.frames == FRAMES
    assert posed(tmp_path, known) == rows
    assert known.asked == []
    posed(tmp_path, Known(version="2"))
    assert sorted(tmp_path.rglob("*.dropped.json")) == []
    assert FolderFootage(tmp_path)[0].cameras.frames == FRAMES


@pytest.mark.parametrize("kind", ["some have cameras", "none has", "one folder"])
def test_folders_of_images_get_cameras_where_their_reader_looks(tmp_path, kind):
    """They were written elsewhere; a folder in which none had cameras, and one clip alone, could not be used at all."""
    names = ["."] if kind == "one folder" else ["a", "deep/b"]
    for name in names:
        originals.pictures(tmp_path / name, [f"{t}.png" for t in range(FRAMES)])
    if kind == "some have cameras":
        own = Cameras(Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT), torch.eye(4).repeat(FRAMES, 1, 1))
        write_cameras(own, tmp_path / "a" / "cameras.json")
    known = Known()
    rows = posed(tmp_path, known)
    assert len(rows) == (2 if kind == "none has" else 1)
    for name in names:
        assert (tmp_path / name / "cameras.json").is_file()
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source)) == ("frames", len(names))
    assert [source[i].cameras.frames for i in range(len(source))] == [FRAMES] * len(names)
    assert not any("cameras" in problem for row in check_clips(source) for problem in row.problems)
    assert posed(tmp_path, known) == rows
    assert len(known.asked) == len(rows)


def test_folders_of_images_posed_elsewhere_are_listed_in_a_table(tmp_path):
    for name in ("a", "b-lost"):
        originals.pictures(tmp_path / "frames" / name, [f"{t}.png" for t in range(FRAMES)])
    posed(tmp_path / "frames", output=tmp_path / "out")
    source = FolderFootage(tmp_path / "out")
    assert [source[i].id for i in range(len(source))] == ["a"]
    assert not (tmp_path / "frames" / "a" / "cameras.json").exists()


@pytest.mark.parametrize(("name", "gpu"), [("colmap", False), ("vipe", True)])
def test_an_estimator_that_needs_a_card_asks_for_one(tmp_path, monkeypatch, name, gpu):
    originals.film(tmp_path / "good.mp4", FRAMES)
    told = {}

    def noted(jobs, opener, engine, **rest):
        told.update(rest)
        return [opener()(job) for job in jobs]

    monkeypatch.setattr(pose, "run_jobs", noted)
    posed(tmp_path, Known(name=name))
    assert told["gpu"] is gpu


def test_confidence_falls_with_what_leaves_doubt():
    sure = Estimate(found=np.ones(10, bool), reprojection=0.3, inliers=300.0)
    assert confidence(sure) == 1.0
    half = replace(sure, found=np.arange(10) < 5)
    assert confidence(half) == 0.5
    assert 0 < confidence(replace(sure, reprojection=1.0)) < 1
    assert confidence(replace(sure, reprojection=1.6)) == 0.0
    assert confidence(replace(sure, inliers=30.0)) == 0.5
    assert confidence(Estimate()) == 1.0  # an estimator that says nothing of it


@pytest.mark.slow
def test_colmap_passes_over_what_moves():
    """A rendered room in front of which a large textured poster slides along: masked, the cameras are found."""
    from textured_room import render, texture

    from curvedray.evaluate.estimators.colmap import Colmap

    lens = Lens.from_fov(80.0, 0.0, 240, 160)
    poses = torch.eye(4).double().repeat(8, 1, 1)
    poses[:, 0, 3] = torch.linspace(0, 1.2, 8)
    video = np.asarray(render(lens, poses)).copy()
    poster = (texture(torch.Generator().manual_seed(5), 100)[0] * 255).to(torch.uint8).movedim(0, -1).numpy()
    moving = np.zeros(video.shape[:3], bool)
    for t in range(8):
        left = 100 - 12 * t + t * t
        video[t, 30:130, left : left + 100] = poster
        moving[t, 28:132, left - 2 : left + 102] = True
    answer = replace(Colmap(motion="full"), moving=moving).estimate(video, lens)
    assert isinstance(answer, Estimate), answer
    assert answer.poses is not None
    relative = np.linalg.inv(answer.poses[0]) @ answer.poses
    assert np.rad2deg(np.arccos(np.clip((np.trace(relative[:, :3, :3], axis1=1, axis2=2) - 1) / 2, -1, 1))).max() < 1
    ahead = relative[1:, :3, 3] / np.linalg.norm(relative[1:, :3, 3], axis=-1, keepdims=True)
    assert (ahead[:, 0] > 0.99).all()


def test_a_clip_that_an_estimator_breaks_on_does_not_stop_the_others(tmp_path):
    @dataclass(frozen=True)
    class Breaks(Known):
        def estimate(self, video, lens=None, clip=""):
            if "lost" in clip:
                raise RuntimeError("out of memory")
            return super().estimate(video, lens, clip)

    for name in ("lost", "walk"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    posed = {one.clip: one for one in pose_videos(*find_pose_jobs(tmp_path, None, "pinhole-90"), Breaks())}
    assert "known stopped: out of memory" in posed["lost"].drop
    assert posed["walk"].cameras
