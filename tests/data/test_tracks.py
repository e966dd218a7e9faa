"""Paths that can be a camera's, and those that cannot: what is another video's, cut or lost is not trained on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import TinyFootage, TinyModel, footage

from curvedray.cameras import Cameras, Lens
from curvedray.data.cache import build_cache
from curvedray.data.check import check_clips
from curvedray.data.clips import VideoShape, encoded
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.data.tracks import camera_problems, jump_problems
from curvedray.errors import InputError
from curvedray.formats import read_cameras, write_cameras
from curvedray.media.image import write_png

SHAPE = VideoShape(9, 32, 48)
STEPS = {
    "even": [1.0] * 16,
    "stands": [0.0] * 16,
    "stands, then trucks": [0.0] * 10 + [1.0] * 6,
    "eased": list(np.diff(np.linspace(0, 1, 17) ** 3)),
    "every second frame twice": [0.0, 1.0] * 8,
    "noise of a camera that stands": list(1e-3 + 1e-4 * np.sin(np.arange(16.0))),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_a_camera_can_do_is_no_jump(name):
    assert not list(jump_problems(torch.tensor(STEPS[name])))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("lost", ["a jump", "one pose far away"])
def test_a_jump_is_found_in_every_kind_of_path(name, lost):
    steps = torch.tensor(STEPS[name])
    steps[7] = 500.0
    if lost == "one pose far away":
        steps[8] = 500.0
    (said,) = jump_problems(steps)
    assert "jumps at frame 8" in said or "jumps at frame 9" in said


def jumped(cameras: Cameras) -> Cameras:
    poses = cameras.world_from_camera.clone()
    poses[4:, 0, 3] += 500
    return replace(cameras, world_from_camera=poses)


def test_a_clip_that_jumps_or_is_cut_is_not_encoded():
    model, one = TinyModel(), footage(0)
    encoded(one, model, SHAPE)
    turned = one.cameras.world_from_camera.clone()
    turned[4:, :3, :3] = turned[4:, :3, :3] @ torch.diag(torch.tensor([-1.0, 1.0, -1.0]))
    for cameras, words in (
        (jumped(one.cameras), "jumps at frame 4"),
        (replace(one.cameras, world_from_camera=turned), "turns 1"),
    ):
        with pytest.raises(InputError, match=words):
            encoded(replace(one, cameras=cameras), model, SHAPE)


def test_what_lies_beyond_the_frames_that_are_used_does_not_count():
    model, one = TinyModel(), footage(0)
    encoded(replace(one, cameras=jumped(one.cameras)), model, VideoShape(1, 32, 48))
    assert camera_problems(jumped(one.cameras))


def test_poses_of_another_video_and_jumps_are_named_skipped_and_counted(tmp_path):
    """Of five clips two are sound; the cache goes on past the others and says which they are."""
    write_folder(TinyFootage(5), tmp_path / "clips")
    files = sorted((tmp_path / "clips").glob("*.json"))
    for file, change in zip(files[:3], ("jump", "twice as many", "one less"), strict=True):
        cameras = read_cameras(file)
        poses = cameras.world_from_camera
        poses = {
            "jump": jumped(cameras).world_from_camera,
            "twice as many": poses.repeat(2, 1, 1),
            "one less": poses[1:],
        }[change]
        write_cameras(Cameras(cameras.lens, poses, cameras.unit), file, "curvedray")
    source = FolderFootage(tmp_path / "clips")
    report = build_cache(source, TinyModel(), SHAPE, tmp_path / "cache")
    assert (report.clips, len(report.skipped)) == (2, 3)
    said = dict(report.skipped)
    assert "jumps at frame" in said[files[0].stem]
    assert all("another video's" in said[file.stem] for file in files[1:3])
    assert [bool(row.problems) for row in check_clips(source)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("poses", [5, 12])
def test_pictures_and_poses_that_do_not_pair_are_named(tmp_path, poses):
    for index in range(9):
        write_png(torch.zeros(8, 12, 3, dtype=torch.uint8), tmp_path / "a" / f"{index}.png")
    lens = Lens.from_fov(90.0, 0.0, 12, 8)
    write_cameras(
        Cameras(lens, torch.eye(4).repeat(poses, 1, 1), "metric"), tmp_path / "a" / "cameras.json", "curvedray"
    )
    for frames in (None, 4):
        with pytest.raises(InputError, match=r"9, one per picture, got \d+"):
            FolderFootage(tmp_path, frames=frames)[0]
