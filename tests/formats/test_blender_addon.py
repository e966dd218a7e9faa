"""The Blender add-on's maths, with Blender absent: axes, lenses there and back, and a file that curvedray reads."""

import json
import math

import numpy as np
import pytest
import torch

from curvedray import Cameras, Lens
from curvedray.formats import blender_addon as addon
from curvedray.formats import cameras_from_json, read_cameras, write_cameras


def test_blenders_axes_are_nerfstudios(tmp_path):
    """A level camera that looks along y in Blender's world, five high, looks forward in ours, five up."""
    level = [[1, 0, 0, 3], [0, 0, -1, 4], [0, 1, 0, 5], [0, 0, 0, 1]]
    ours = addon.pose_from_blender(level)
    np.testing.assert_array_equal(ours[:3, :3], np.eye(3))
    assert ours[:3, 3].tolist() == [3, -5, 4]
    np.testing.assert_array_equal(addon.pose_to_blender(ours), level)
    scaled = np.array(level, dtype=float)
    scaled[:3, :3] *= 2.5  # a camera may be drawn larger; it sees the same
    np.testing.assert_allclose(addon.pose_from_blender(scaled), ours)


@pytest.mark.parametrize(("fov", "xi"), [(90.0, 0.0), (110.0, 0.4), (150.0, 0.95), (180.0, 1.3)])
def test_the_angle_formula_is_the_lens(fov, xi):
    lens = Lens.from_fov(fov, xi, 832, 480)
    radius = np.linspace(0, 410, 9)
    pixels = torch.stack([torch.from_numpy(radius).float() + 416, torch.full((9,), 240.0)], -1)
    rays, _ = lens.unproject(pixels)
    angles = torch.atan2(rays[:, 0], rays[:, 2]).numpy()
    np.testing.assert_allclose(addon.ucm_angle(radius, lens.focal[0].item(), xi), angles, atol=1e-5)


@pytest.mark.parametrize(("fov", "xi"), [(110.0, 0.4), (150.0, 0.95), (180.0, 1.3)])
def test_a_fisheye_goes_into_blender_and_comes_back(fov, xi):
    lens = Lens.from_fov(fov, xi, 832, 480)
    focal = lens.focal[0].item()
    terms, field = addon.polynomial_of_ucm(focal, xi, (832, 480))
    settings = {f"fisheye_polynomial_k{i}": term for i, term in enumerate(terms)} | {"fisheye_fov": field}
    again, bend, error = addon.fisheye_lens("FISHEYE_LENS_POLYNOMIAL", settings, (832, 480), addon.SENSOR)
    assert error < 0.5
    assert Lens.from_fov(fov, xi).hfov.item() == pytest.approx(
        math.degrees(2 * addon.ucm_angle(np.array([416.0]), again, bend).item()), abs=0.5
    )


def test_blenders_own_fisheyes_are_fitted():
    equisolid = {"fisheye_lens": 10.5, "fisheye_fov": math.pi}
    focal, xi, error = addon.fisheye_lens("FISHEYE_EQUISOLID", equisolid, (1000, 1000), 36.0)
    assert error < 1.5  # UCM and equisolid part towards 90 degrees
    assert xi > 0.5
    near_axis = 10.5 / 36 * 1000  # pixels per radian
    assert focal / (1 + xi) == pytest.approx(near_axis, rel=0.03)
    equidistant = {"fisheye_fov": math.pi}
    assert addon.fisheye_lens("FISHEYE_EQUIDISTANT", equidistant, (1000, 1000), 36.0)[2] < 1.5
    with pytest.raises(ValueError, match="square"):
        addon.fisheye_lens("FISHEYE_EQUIDISTANT", equidistant, (1000, 500), 36.0)
    with pytest.raises(ValueError, match="EQUIRECTANGULAR"):
        addon.blender_angle("EQUIRECTANGULAR", {})


def test_a_perspective_camera_follows_the_side_that_blender_fits():
    assert addon.pinhole_focal(18.0, (36.0, 24.0), "AUTO", (832, 480)) == 416
    assert addon.pinhole_focal(18.0, (36.0, 24.0), "AUTO", (480, 832)) == 416
    assert addon.pinhole_focal(12.0, (36.0, 24.0), "VERTICAL", (832, 480)) == 240


def test_what_it_writes_is_a_curvedray_file(tmp_path):
    poses = [addon.pose_from_blender(np.eye(4)), np.eye(4)]
    stored = addon.document(poses, [(416.0, 416.0, 416.0, 240.0, 0.7)] * 2, (832, 480), "metric", 24.0, "Blender")
    (tmp_path / "a.json").write_text(json.dumps(stored))
    cameras = read_cameras(tmp_path / "a.json")
    assert (len(cameras), cameras.unit, cameras.fps) == (2, "metric", 24.0)
    write_cameras(cameras, tmp_path / "b.json")
    again = json.loads((tmp_path / "b.json").read_text())
    assert again["convention"] == addon.CONVENTION  # what the add-on looks for on its way in
    assert cameras_from_json(stored).lens.xi.item() == pytest.approx(0.7)
    assert isinstance(cameras, Cameras)
