"""Cameras found out: how far they are to be trusted, which clips to drop, and that the run goes on."""

import json
from dataclasses import dataclass, replace

import numpy as np
import originals
import pytest
import torch
from originals import FRAMES

from curvedray.cameras import Lens
from curvedray.data.folders import FolderFootage
from curvedray.evaluate.estimators.protocol import Estimate
from curvedray.evaluate.pose import confidence, find_pose_jobs, pose_videos
from curvedray.evaluate.scores import Failure
from curvedray.formats import read_cameras


@dataclass(frozen=True)
class Known:
    """Answers with a straight path; of clips called lost with none, of those called jump with one that is cut."""

    name: str = "known"
    version: str = "1"
    floor: str = ""
    every_frame: bool = True
    reprojection: float = 0.4

    def estimate(self, video, lens=None, clip=""):
        if "lost" in clip:
            return Failure("no two frames could be matched")
        poses = np.tile(np.eye(4), (len(video), 1, 1))
        poses[:, 0, 3] = np.linspace(0, 1, len(video))
        if "jump" in clip:
            poses[2:, :3, :3] = np.diag([-1.0, 1, -1])
        found = np.ones(len(video), bool)
        return Estimate(poses=poses, found=found, reprojection=self.reprojection, inliers=200.0)


def test_clips_are_kept_or_dropped_with_a_reason_and_the_kept_can_be_trained_on(tmp_path):
    for name in ("good", "lost", "jump"):
        originals.film(tmp_path / f"{name}.mp4", FRAMES)
    (tmp_path / "broken.mp4").write_bytes(b"rubbish")
    jobs, folder = find_pose_jobs(tmp_path, None, "pinhole-90")
    assert [job.clip for job in jobs] == ["broken", "good", "jump", "lost"]
    rows = {row.clip: row for row in pose_videos(jobs, folder, Known())}
    assert rows["good"].drop == ""
    assert rows["good"].confidence == 1.0
    for name, words in {"broken": "can be decoded", "jump": "a cut", "lost": "could be matched"}.items():
        assert words in rows[name].drop, name
    assert len(json.loads((folder / "poses.json").read_text())) == 4
    cameras = read_cameras(folder / "good.json")
    assert float(cameras.lens.hfov) == pytest.approx(90, abs=1e-3)
    source = FolderFootage(folder)
    assert [source.name_of(i) for i in range(len(source))] == ["good"]
    assert source[0].video.shape[0] == FRAMES


def test_what_was_found_before_is_kept(tmp_path):
    originals.film(tmp_path / "good.mp4", FRAMES)
    asked = []

    @dataclass(frozen=True)
    class Counting(Known):
        def estimate(self, video, lens=None, clip=""):
            asked.append(clip)
            return super().estimate(video, lens, clip)

    for lens in (None, None, "pinhole-90"):
        jobs, folder = find_pose_jobs(tmp_path / "good.mp4", tmp_path / "out", lens)
        (row,) = pose_videos(jobs, folder, Counting())
        assert ("assumed" in row.note) == (lens is None)
    assert asked == ["good", "good"]  # the second time nothing had changed; the third the lens had
    assert (tmp_path / "out" / "good-cameras.json").is_file()


def test_a_data_set_without_cameras_gets_them_where_its_reader_looks(tmp_path):
    originals.davis(tmp_path)
    jobs, folder = find_pose_jobs(tmp_path, None, None)
    assert [(job.clip, len(job.moving)) for job in jobs] == [("bear", FRAMES), ("blackswan", FRAMES)]
    pose_videos(jobs, folder, Known())
    assert FolderFootage(tmp_path)[0].cameras.frames == FRAMES


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
