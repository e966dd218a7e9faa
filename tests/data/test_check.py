"""The check: how a camera moves, and what is wrong with a clip."""

from dataclasses import replace

import pytest
import torch
from tiny import TinyFootage, footage

from curvedray.cameras import Cameras, Lens
from curvedray.data.check import check_clips, motion, report_on
from curvedray.data.clips import (
    VideoShape,
)

SHAPE = VideoShape(9, 32, 48)


def test_motion_is_exact_for_small_and_large_turns():
    for degrees in (1e-4, 1.0, 90.0, 179.9):
        angle = torch.tensor(degrees).double().deg2rad()
        poses = torch.eye(4).double().repeat(2, 1, 1)
        poses[1, :3, :3] = torch.tensor(
            [[angle.cos(), 0, angle.sin()], [0, 1, 0], [-angle.sin(), 0, angle.cos()]], dtype=torch.double
        )
        poses[1, 0, 3] = 0.25
        rotation, travel = motion(Cameras(Lens.from_fov(90.0), poses))
        assert rotation.item() == pytest.approx(degrees, rel=1e-6)
        assert travel.item() == 0.25


def test_the_check_says_what_is_wrong():
    assert not report_on(footage(0)).problems
    one = footage(0)
    far = one.cameras.world_from_camera.clone()
    far[:, :3, 3] *= 1e4
    bad = type(one)("x", " ", one.video, Cameras(one.cameras.lens, far[:7], "metric"), one.radial)
    said = " | ".join(report_on(bad, VideoShape(81, 480, 832)).problems)
    for words in ("no caption", "7 poses for 9 frames", "fewer than the 81", "48 x 32 pixels", "absurd scale"):
        assert words in said
    still = type(one)("x", "y", one.video[:1].expand(9, -1, -1, -1), one.cameras)
    said = " | ".join(report_on(still).problems)
    assert "still picture" in said
    assert "no near distance" in said


def test_the_check_goes_on_past_a_broken_clip():
    rows = list(check_clips(TinyFootage(3, broken=(1,))))
    assert [bool(row.problems) for row in rows] == [False, True, False]
    assert "rubbish" in rows[1].problems[0]


def test_a_track_that_jumps_is_named_with_its_frame():
    one = footage(0)
    poses = one.cameras.world_from_camera.clone()
    poses[:, :3, 3] = torch.linspace(0, 1, len(poses))[:, None]
    even = replace(one, cameras=Cameras(one.cameras.lens, poses, "metric"))
    assert not report_on(even).problems
    poses = poses.clone()
    poses[5:, 0, 3] += 40
    cut = replace(one, cameras=Cameras(one.cameras.lens, poses, "metric"))
    assert any("jumps at frame 5" in problem for problem in report_on(cut).problems)
