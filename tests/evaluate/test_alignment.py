"""Pixels at known distances give back the path they were rendered along, and no motion gives none."""

import numpy as np
import pytest
import torch

from curvedray.cameras import Lens
from curvedray.evaluate.alignment import aligned_path
from curvedray.evaluate.metrics.pose import pose_errors
from curvedray.moves.trajectory import trajectory
from curvedray.world.raycast import render
from curvedray.world.world import scene


def path_of(move: str, lens: Lens) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The path along which a court was rendered, the one that is found, and the share of differences that is left."""
    cameras = trajectory(move, lens, 5, unit="metric")
    seen = render(scene(2, "val").scene, cameras)
    found = aligned_path(seen.frames, lens, seen.radius, seen.valid)
    return cameras.relative_to_first().world_from_camera.double().numpy(), found.poses, found.left


@pytest.mark.parametrize("lens", [Lens.from_fov(80, 0.0, 96, 64), Lens.from_fov(160, 1.0, 96, 64)], ids=["80", "160"])
@pytest.mark.parametrize(
    "move", ["pan right 8deg", "roll cw 10deg and dolly in 0.4m", "truck left 0.4m and tilt up 4deg"]
)
def test_a_rendered_path_is_found(move, lens):
    true, found, left = path_of(move, lens)
    assert pose_errors(true, found).degrees_per_frame < 0.6
    assert np.linalg.norm(true[:, :3, 3] - found[:, :3, 3], axis=-1).max() < 0.1
    assert left.max() < 0.8  # what is left is what the renderer's edges and shadows change


def test_where_nothing_moves_nothing_is_found():
    true, found, _ = path_of("static", Lens.from_fov(100, 0.5, 96, 64))
    np.testing.assert_allclose(found, true, atol=1e-6)


def test_another_unit_of_distances_is_another_unit_of_the_path():
    lens = Lens.from_fov(90, 0.0, 96, 64)
    cameras = trajectory("dolly in 0.3m", lens, 2, unit="metric")
    seen = render(scene(2, "val").scene, cameras)
    metres, halves = (aligned_path(seen.frames, lens, seen.radius * scale, seen.valid).poses for scale in (1.0, 2.0))
    np.testing.assert_allclose(halves[:, :3, 3], 2 * metres[:, :3, 3], atol=2e-3)
    np.testing.assert_allclose(halves[:, :3, :3], metres[:, :3, :3], atol=1e-3)


def test_too_little_in_view_is_no_motion():
    lens = Lens.from_fov(90, 0.0, 96, 64)
    video = torch.randint(0, 255, (2, 64, 96, 3), dtype=torch.uint8)
    found = aligned_path(video, lens, torch.ones(2, 64, 96), torch.zeros(2, 64, 96, dtype=torch.bool))
    np.testing.assert_array_equal(found.poses, np.tile(np.eye(4), (2, 1, 1)))
    assert not found.found


def test_the_black_around_a_circle_does_not_hold_the_camera_still():
    """Blurred into the picture, it did: 1.5 degrees off where the pan was of 3 degrees per frame."""
    true, found, _ = path_of("pan right 8deg", Lens.from_fov(180, 1.0, 96, 64, max_angle=85))
    assert pose_errors(true, found).degrees_per_frame < 0.6
