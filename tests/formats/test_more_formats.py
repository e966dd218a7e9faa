"""The camera files of other tools, each convention worked by hand: x right, y down, z forward must come out."""

import json
import math

import numpy as np
import pytest
import torch

from curvedray import Cameras, InputError, Lens
from curvedray.formats import detect_format, read_cameras, read_lens, write_cameras

QUARTER = math.sqrt(0.5)
LOOKS_ALONG_X = [
    [0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0],
    [-1.0, 0.0, 0.0],
]  # world_from_camera: right is -z, down y, forward x


def written(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def check(cameras, place, frame=0):
    """Forward along x, right along -z, standing at `place`; and a point three ahead lands in the image's middle."""
    pose = cameras.world_from_camera[frame]
    torch.testing.assert_close(pose[:3, 2], torch.tensor([1.0, 0, 0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(pose[:3, 0], torch.tensor([0.0, 0, -1]), atol=1e-6, rtol=0)
    torch.testing.assert_close(pose[:3, 3], torch.tensor(place), atol=1e-6, rtol=1e-6)
    point = torch.tensor([place[0] + 3, place[1], place[2], 1.0])
    lens = cameras.frame_lens[frame]
    pixel, seen = lens.project((torch.linalg.inv(pose) @ point)[:3])
    torch.testing.assert_close(pixel, lens.center, atol=1e-3, rtol=0)
    assert seen


def pose(place):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = LOOKS_ALONG_X, place
    return matrix


# -- which order a quaternion has


def quarter(order, header=""):
    turn = {"w": QUARTER, "x": 0.0, "y": QUARTER, "z": 0.0}
    row = " ".join(repr(turn[letter]) for letter in order)
    return f"{header}0.0 5 6 7 {row}\n0.1 5 6 7 {row}\n"


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_a_quaternion_is_read_in_the_order_that_was_said(order, tmp_path):
    path = written(tmp_path, "a.txt", quarter(order))
    check(read_cameras(path, quaternion=order, lens="pinhole-90"), [5.0, 6, 7])


@pytest.mark.parametrize("names", ["qw qx qy qz", "q_x q_y q_z q_w", "QW QX QY QZ"])
def test_a_header_states_the_order(names, tmp_path):
    order = "".join(name[-1].lower() for name in names.split())
    path = written(tmp_path, "a.txt", quarter(order, f"# time tx ty tz {names}\n"))
    check(read_cameras(path, lens="pinhole-90"), [5.0, 6, 7])
    table = quarter(order, f"time tx ty tz {names}\n").replace(" ", ",")
    check(read_cameras(written(tmp_path, "a.csv", table), lens="pinhole-90"), [5.0, 6, 7])


def test_a_path_that_starts_at_1_0_0_0_is_not_guessed(tmp_path):
    path = written(tmp_path, "pred_traj.txt", "0 0 0 0 1 0 0 0\n1 0 0 1 0.999 0.0447 0 0\n")
    with pytest.raises(InputError, match=r"line 1: expected to be told the quaternion's order.*quaternion='wxyz'"):
        read_cameras(path, lens="pinhole-90")
    first = read_cameras(path, lens="pinhole-90", quaternion="wxyz").world_from_camera[0]
    assert torch.equal(first, torch.eye(4))
    with pytest.raises(InputError, match="wxyz or xyzw"):
        read_cameras(path, quaternion="wzyx")


def test_quaternions_that_are_nearly_all_half_turns_are_noted(tmp_path, caplog):
    path = written(tmp_path, "a.txt", "0 0 0 0 0.98 0.199 0 0\n1 0 0 1 0.98 0.199 0 0\n")
    read_cameras(path, lens="pinhole-90")
    assert "quaternion='wxyz'" in caplog.text


EUROC = "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []"
SENSOR = """sensor_type: camera
T_BS:
  cols: 4
  rows: 4
  data: [0.0, 0.0, 1.0, 0.5,
         0.0, 1.0, 0.0, 0.0,
         -1.0, 0.0, 0.0, 0.0,
         0.0, 0.0, 0.0, 1.0]
resolution: [752, 480]
intrinsics: [458.0, 457.0, 367.0, 248.0] #fu, fv, cu, cv
distortion_model: radial-tangential
distortion_coefficients: [0.0, 0.0, 0.0, 0.0]
"""


def test_euroc_is_the_body_with_the_real_part_first(tmp_path, caplog):
    rest = ", 0, 0, 0, 0, 0, 0, 0, 0, 0"
    names = ", v_RS_R_x [m s^-1], a, b, c, d, e, f, g, h"
    for more, header in (("", EUROC), (rest, EUROC + names)):
        rows = [f"{10**18 + i * 50_000_000}, 5, 6, 7, {QUARTER}, 0, {QUARTER}, 0{more}" for i in range(3)]
        path = written(tmp_path, "data.csv", "\n".join([header, *rows]))
        assert detect_format(path).name == "asl"
        cameras = read_cameras(path, lens="pinhole-90")
        check(cameras, [5.0, 6, 7])
        assert (cameras.fps, cameras.unit) == (20.0, "metric")
    assert "not of a camera" in caplog.text


def test_a_sensor_file_brings_the_camera_and_its_lens(tmp_path):
    rows = [f"{i * 50_000_000}, 5, 6, 7, 1, 0, 0, 0" for i in range(2)]
    path = written(tmp_path, "data.csv", "\n".join([EUROC, *rows]))
    cameras = read_cameras(path, sensor=written(tmp_path, "sensor.yaml", SENSOR))
    check(cameras, [5.5, 6, 7])
    assert cameras.lens.size == (752, 480)
    assert cameras.lens.center.tolist() == [367.5, 248.5]  # from the first pixel's corner, not from its centre
    with pytest.raises(InputError, match="field resolution: expected a list of 2 numbers"):
        read_cameras(path, sensor=written(tmp_path, "b.yaml", SENSOR.replace("resolution", "resolutoin")))


# -- JSON


def test_gaussian_splatting_is_world_from_camera_in_order_of_image_names(tmp_path):
    def entry(name, place):
        return {
            "id": 0,
            "img_name": name,
            "width": 64,
            "height": 48,
            "position": place,
            "rotation": LOOKS_ALONG_X,
            "fy": 31,
            "fx": 30,
        }

    cameras = read_cameras(written(tmp_path, "cameras.json", [entry("f_10", [5, 6, 7]), entry("f_9", [1, 2, 3])]))
    check(cameras, [1.0, 2, 3], 0)
    check(cameras, [5.0, 6, 7], 1)
    assert cameras.lens.focal.tolist() == [30, 31]
    assert cameras.lens.center.tolist() == [32, 24]


def test_motionctrl_and_ac3d_are_camera_from_world(tmp_path):
    camera_from_world = np.linalg.inv(pose([5, 6, 7]))[:3]
    cameras = read_cameras(written(tmp_path, "a.json", [camera_from_world.reshape(-1).tolist()] * 2), lens="pinhole-90")
    check(cameras, [5.0, 6, 7])
    lens = [[30.0, 0, 33], [0, 31, 24], [0, 0, 1]]
    document = {"imH": 48, "imW": 64, "intrinsics": [lens] * 2, "w2c": [camera_from_world.tolist()] * 2}
    cameras = read_cameras(written(tmp_path, "b.json", document))
    check(cameras, [5.0, 6, 7])
    assert (cameras.lens.focal.tolist(), cameras.lens.center.tolist()) == ([30, 31], [33, 24])
    document["intrinsics"][1] = [[30.0, 4, 33], [0, 31, 24], [0, 0, 1]]
    with pytest.raises(InputError, match=r"intrinsics\[1\]: expected a matrix fx 0 cx"):
        read_cameras(written(tmp_path, "c.json", document))


def test_zooming_in_is_a_falling_z_in_motionctrl(tmp_path):
    """Its own `I` (in) example moves t_z from -0.2 to -1.5: the camera goes forward."""
    rows = [[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, z] for z in (-0.2, -1.5)]
    path = read_cameras(written(tmp_path, "a.json", rows), lens="pinhole-90").world_from_camera[:, 2, 3]
    torch.testing.assert_close(path, torch.tensor([0.2, 1.5]))


def test_nerfstudios_exported_list_is_opengl_with_z_up(tmp_path):
    level = [[1.0, 0, 0, 3], [0, 0, -1, 4], [0, 1, 0, 5]]  # looks along y, z is up, stands 5 high
    entries = [{"file_path": "a_2.png", "transform": level}]
    cameras = read_cameras(written(tmp_path, "transforms_train.json", entries), lens="pinhole-90")
    assert torch.equal(cameras.world_from_camera[0, :3, :3], torch.eye(3))
    assert cameras.world_from_camera[0, :3, 3].tolist() == [3, -5, 4]


def test_instant_ngps_fisheye_is_one(tmp_path):
    frame = {"transform_matrix": np.eye(4).tolist()}
    document = {"w": 640, "h": 480, "fl_x": 400.0, "fl_y": 400.0, "cx": 320, "cy": 240, "frames": [frame]}
    flat = read_cameras(written(tmp_path, "a.json", document)).lens.hfov.item()
    fisheye = read_cameras(written(tmp_path, "b.json", document | {"is_fisheye": True})).lens.hfov.item()
    assert flat == pytest.approx(2 * math.degrees(math.atan(320 / 400)), abs=1e-3)
    assert fisheye == pytest.approx(2 * math.degrees(320 / 400), abs=0.5)  # equidistant: the radius is f theta
    with pytest.raises(InputError, match="field is_fisheye"):
        read_cameras(written(tmp_path, "c.json", document | {"is_fisheye": True, "camera_model": "PINHOLE"}))


def test_a_fisheye_path_is_equidistant(tmp_path):
    frame = {"camera_to_world": np.eye(4).reshape(-1).tolist(), "fov": 50.0, "aspect": 1.0}
    document = {"camera_type": "fisheye", "render_width": 500, "render_height": 500, "camera_path": [frame]}
    lens = read_cameras(written(tmp_path, "a.json", document)).lens
    assert lens.vfov.item() == pytest.approx(math.degrees(2 * math.tan(math.radians(25))), abs=0.5)


def test_a_fit_at_its_bound_is_marked(tmp_path, caplog):
    """Pincushion distortion bends the other way than any fisheye: the nearest is the pinhole, and not near."""
    document = {"w": 640, "h": 480, "fl_x": 400.0, "k1": 0.4, "frames": [{"transform_matrix": np.eye(4).tolist()}]}
    read_cameras(written(tmp_path, "a.json", document))
    assert "stopped at its bound" in caplog.text


# -- arrays


def test_llff_columns_are_down_right_back(tmp_path):
    down, right, back = (0, 1, 0), (0, 0, -1), (-1, 0, 0)
    matrix = np.stack([down, right, back, (5, 6, 7), (48, 64, 30)], -1)
    np.save(tmp_path / "poses_bounds.npy", np.concatenate([matrix.reshape(-1), [0.5, 9]])[None])
    cameras = read_cameras(tmp_path / "poses_bounds.npy")
    check(cameras, [5.0, 6, 7])
    assert (cameras.lens.size, cameras.lens.focal.tolist()) == ((64, 48), [30, 30])


def test_megasam_reads_poses_without_unpacking_its_images(tmp_path):
    lens = np.array([[30.0, 0, 32], [0, 30, 24], [0, 0, 1]])
    images = np.zeros((2, 48, 64, 3), np.uint8)
    np.savez(tmp_path / "a.npz", images=images, depths=images[..., 0], intrinsic=lens, cam_c2w=pose([5, 6, 7])[None])
    cameras = read_cameras(tmp_path / "a.npz")
    check(cameras, [5.0, 6, 7])
    assert cameras.lens.size == (64, 48)


def test_poses_with_intrinsics_beside_them(tmp_path, caplog):
    np.save(tmp_path / "poses.npy", pose([5, 6, 7])[None])
    np.save(tmp_path / "intrinsics.npy", np.array([30.0, 31, 32, 24]))
    for path in (tmp_path, tmp_path / "poses.npy"):
        cameras = read_cameras(path)
        check(cameras, [5.0, 6, 7])
        assert cameras.lens.focal.tolist() == [30, 31]
    assert "pose='camera_from_world'" in caplog.text
    np.save(tmp_path / "poses.npy", np.linalg.inv(pose([5, 6, 7]))[None])
    check(read_cameras(tmp_path, pose="camera_from_world"), [5.0, 6, 7])


# -- angles


def test_trajectorycrafter_circles_a_point_in_front(tmp_path):
    path = written(tmp_path, "loop.txt", "0 0 0\n0 30 60 90\n0 0\n")
    assert detect_format(path).name == "trajectorycrafter"
    cameras = read_cameras(path, frames=7).relative_to_first()
    ahead = torch.tensor([0.0, 0, 1])  # the point, one unit in front of the first camera
    for matrix in cameras.world_from_camera:
        seen = matrix[:3, :3].T @ (ahead - matrix[:3, 3])
        torch.testing.assert_close(seen, ahead, atol=1e-6, rtol=0)
    turned = cameras.world_from_camera[-1, :3, :3]
    assert math.degrees(math.acos((turned.trace().item() - 1) / 2)) == pytest.approx(90, abs=1e-3)
    closer = read_cameras(written(tmp_path, "in.txt", "0 0\n0 0\n0 0.25\n"), frames=2).relative_to_first()
    torch.testing.assert_close(closer.world_from_camera[1, :3, 3], torch.tensor([0.0, 0, 0.25]))
    assert cameras.lens.size == (1024, 576)


# -- what is no camera file, and what is found in it


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.eye(3) * [[500], [500], [1]], r"array \(3, 3\)"),
        (np.tile(np.diag([500.0, 500, 1, 1]), (5, 1, 1)), r"array \(5, 4, 4\)"),
        (np.zeros((4, 17)), r"array \(4, 17\)"),
    ],
)
def test_arrays_that_are_not_poses_are_not_taken_for_them(array, found, tmp_path):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=f"NumPy: {found}"):
        detect_format(tmp_path / "a.npy")
    np.savez(tmp_path / "b.npz", depth=np.zeros((2, 3)), name=np.array("x"))
    with pytest.raises(InputError, match=r"NumPy: depth \(2, 3\) float64, name"):
        detect_format(tmp_path / "b.npz")


@pytest.mark.parametrize("columns", [8, 12, 13, 17, 19])
def test_a_number_of_columns_is_no_evidence(columns, tmp_path):
    path = written(tmp_path, "a.txt", (" ".join(["3.5"] * columns) + "\n") * 4)
    with pytest.raises(InputError, match=f"{columns} columns"):
        detect_format(path)


# -- requests of UCPE, COLMAP's sizes, lenses that fits left


def test_a_request_with_realestate10k_poses_gives_ucpes_cameras(tmp_path, caplog):
    poses = torch.eye(4).repeat(90, 1, 1)
    poses[:, 0, 3] = 4 + torch.arange(90) * 0.5
    write_cameras(Cameras(Lens.from_fov(90.0), poses), tmp_path / "data" / "a.txt", "realestate10k")
    path = written(tmp_path, "r.json", {"pose_path": "a.txt", "x_fov": 100.0, "xi": 0.0})
    with pytest.raises(InputError, match=r"pose_path: .*Say root="):
        read_cameras(path)
    cameras = read_cameras(path, root=tmp_path / "data", size=(832, 480), traj_normalization=2.0)
    assert (len(cameras), cameras.unit) == (81, "near")
    torch.testing.assert_close(cameras.world_from_camera[:, 0, 3], torch.arange(81) * 1.0)
    assert "the first 81 of 90 frames" in caplog.text
    assert len(read_cameras(path, root=tmp_path / "data", first_frames=9)) == 9
    assert "traj_normalization=" in caplog.text


def test_colmap_images_that_differ_by_a_few_pixels_take_one_size(tmp_path):
    written(tmp_path, "cameras.txt", "1 PINHOLE 640 480 500 500 320 240\n2 PINHOLE 643 481 500 500 321.5 240.5\n")
    written(tmp_path, "images.txt", "1 1 0 0 0 0 0 0 1 a.png\n\n2 1 0 0 0 0 0 0 2 b.png\n\n")
    written(tmp_path, "points3D.txt", "")
    with pytest.raises(InputError, match=r"640 x 480, 643 x 481.*size=\(643, 481\)"):
        read_cameras(tmp_path)
    lens = read_cameras(tmp_path, size=(640, 480)).lens
    torch.testing.assert_close(lens.center, torch.tensor([[320.0, 240.0]] * 2))
    assert read_cameras(tmp_path, lens="pinhole-60").lens.size == (640, 480)


def test_a_lens_that_overrules_is_not_fitted(tmp_path, caplog):
    written(tmp_path, "cameras.txt", "1 OPENCV 640 480 500 500 320 240 -90 4000 3 3\n")
    written(tmp_path, "images.txt", "1 1 0 0 0 0 0 0 1 a.png\n\n")
    written(tmp_path, "points3D.txt", "")
    assert read_cameras(tmp_path, lens="pinhole-60").lens.hfov.item() == pytest.approx(60, abs=1e-3)
    assert "fitted" not in caplog.text


@pytest.mark.parametrize(
    "name", ["realestate10k", "nerfstudio", "nerfstudio-path", "gaussian-splatting", "ac3d", "llff"]
)
def test_what_a_fit_left_of_xi_does_not_bend_a_lens(name, tmp_path):
    lens = Lens.from_fov(90.0, torch.tensor(1e-14, dtype=torch.float64), 64, 48)
    poses = torch.eye(4, dtype=torch.float64).repeat(2, 1, 1)
    write_cameras(Cameras(lens, poses), tmp_path / "a", name)
    assert read_cameras(tmp_path / "a", size=(64, 48)).lens.hfov.item() == pytest.approx(90, abs=1e-3)
    with pytest.raises(InputError, match="a pinhole lens"):
        write_cameras(Cameras(Lens.from_fov(90.0, 1e-3, 64, 48), torch.eye(4)[None]), tmp_path / "b", name)


# -- lenses alone


def test_unik3ds_lenses(tmp_path):
    mei = read_lens(written(tmp_path, "a.json", {"name": "MEI", "params": [300, 301, 320, 240, 0, 0, 0, 0, 1.2]}))
    assert (mei.lens.xi.item(), mei.lens.size, mei.lens.focal.tolist()) == (1.2, (640, 480), [300, 301])
    flat = read_lens(written(tmp_path, "b.json", {"name": "Pinhole", "params": [300, 301, 320, 240]}), size=(700, 500))
    assert (flat.lens.xi.item(), flat.lens.size) == (0, (700, 500))
    fisheye = {"name": "Fisheye624", "params": [200, 200, 320, 240, 0.02, -0.003, *[0] * 10]}
    lens = read_lens(written(tmp_path, "c.json", fisheye)).lens
    angle = torch.tensor(1.0, dtype=torch.float64)
    pixel, _ = lens.project(torch.stack([angle.sin(), angle * 0, angle.cos()]))
    assert pixel[0].item() == pytest.approx(200 * (1 + 0.02 - 0.003) + 320, abs=5)
    for name, params, match in (("Spherical", [1.0] * 8, "field name"), ("OPENCV", [1.0] * 16, "and no thin prism")):
        with pytest.raises(InputError, match=match):
            read_lens(written(tmp_path, "d.json", {"name": name, "params": params}))
