"""Camera files: what is written is read back, each convention is what its makers say, and mistakes are named."""

import json
import math
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import curvedray
from curvedray import Cameras, InputError, Lens
from curvedray.formats import FORMATS, detect_format, read_cameras, read_lens, read_requests, write_cameras
from curvedray.formats.build import frame_rate

WRITABLE = [name for name, format in FORMATS.items() if format.written]
SIZED_BY_CENTRE = ("megasam", "numpy-poses")  # where nothing else tells what size of image a lens is for
FEW = settings(max_examples=8, deadline=None)
QUARTER = math.sqrt(0.5)


# What a random path is made of; it is built inside the test, for the shape checks may draw random numbers themselves.
DRAWN = st.fixed_dictionaries(
    {
        "frames": st.integers(1, 5),
        "seed": st.integers(0, 2**31),
        "reach": st.sampled_from([0.0, 0.01, 1.0, 300.0]),
        "size": st.tuples(st.integers(16, 2000), st.integers(16, 2000)),
        "fov": st.floats(20, 120),
        "xi": st.sampled_from([0.0, 0.3, 1.0, 2.2]),
        "crop": st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
        "zooms": st.booleans(),
        "unit": st.sampled_from(["metric", "near", "arbitrary"]),
        "fps": st.sampled_from([None, 24.0, 30000 / 1001, 12.5]),
    }
)


def built(drawn, pinhole=False, centred=False):
    """A random rigid path through a random lens, which may zoom."""
    random, frames = np.random.default_rng(drawn["seed"]), drawn["frames"]
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, :3, :3] = torch.from_numpy(Rotation.from_quat(random.normal(size=(frames, 4))).as_matrix()).float()
    poses[:, :3, 3] = torch.from_numpy(random.normal(size=(frames, 3)) * drawn["reach"]).float()
    lens = Lens.from_fov(drawn["fov"], 0.0 if pinhole else drawn["xi"], *drawn["size"])
    if not centred:
        lens = lens.cropped(*drawn["crop"], *drawn["size"])
    if drawn["zooms"]:
        lens = lens.zoomed(torch.from_numpy(random.uniform(0.5, 2, frames)).float())
    return Cameras(lens, poses, drawn["unit"], drawn["fps"])


def simple(frames=3, xi=0.0, **kwargs):
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, 0, 3] = torch.arange(frames) * 0.5
    return Cameras(Lens.from_fov(90.0, xi, 64, 48), poses, **kwargs)


def path_for(folder, name):
    return folder / f"cameras{(*FORMATS[name].extensions, '')[0]}"


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def forward(cameras, frame=0):
    return cameras.world_from_camera[frame, :3, 2].tolist()


def same_lens(one, other):
    return all(torch.equal(getattr(one.frame_lens, k), getattr(other.frame_lens, k)) for k in ("focal", "center", "xi"))


# -- laws


@pytest.mark.parametrize("name", WRITABLE)
def test_what_is_written_is_read_back(name, tmp_path_factory):
    format = FORMATS[name]

    pinhole = "focal" in format.carries and "xi" not in format.carries
    without_lens = set() if "focal" in format.carries else {"zoom", "center"}

    @FEW
    @given(DRAWN)
    def law(drawn):
        drawn = drawn | {"zooms": drawn["zooms"] and "zoom" in format.carries | without_lens}
        if name in SIZED_BY_CENTRE:  # no centre so far off the middle that it is another image's
            drawn["size"] = (drawn["size"][0] + 400, drawn["size"][1] + 400)
        cameras = built(drawn, pinhole, centred="center" not in format.carries | without_lens)
        path = path_for(tmp_path_factory.mktemp("law"), name)
        write_cameras(cameras, path, name)
        assert detect_format(path).name == name
        say = {} if "focal" in format.carries else {"lens": cameras.lens}
        say |= {} if "size" in format.carries else {"size": cameras.lens.size}
        again = read_cameras(path, unit=cameras.unit, **say)
        scale = cameras.world_from_camera.abs().amax()
        assert (again.world_from_camera - cameras.world_from_camera).abs().max() <= 1e-6 * scale
        for key in ("focal", "center", "xi"):
            torch.testing.assert_close(
                getattr(again.frame_lens, key), getattr(cameras.frame_lens, key), rtol=3e-7, atol=1e-6
            )
        assert again.lens.size == cameras.lens.size
        if "fps" in format.carries and cameras.frames > 1:
            assert again.fps == cameras.fps
        if "unit" not in format.carries and name != "panshot":
            assert read_cameras(path, **say).unit == format.unit

    law()


@FEW
@given(drawn=DRAWN, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_our_own_json_keeps_every_bit_and_obeys_its_schema(drawn, dtype, tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "a.json"
    cameras = built(drawn).to(dtype)
    write_cameras(cameras, path, provenance={"move": "orbit"})
    again = read_cameras(path, dtype=dtype)
    assert torch.equal(again.world_from_camera, cameras.world_from_camera)
    assert same_lens(again, cameras)
    assert (again.unit, again.fps, again.lens.max_angle) == (cameras.unit, cameras.fps, cameras.lens.max_angle)
    schema = json.loads((Path(curvedray.__file__).parent / "formats" / "cameras.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_text()), schema)
    before = path.read_bytes()
    write_cameras(again, path, provenance={"move": "orbit"})
    assert path.read_bytes() == before


def test_rough_rotations_of_our_own_are_not_mended(tmp_path):
    rough = simple()
    rough.world_from_camera[1, 0, 1] = 8e-4
    write_cameras(rough, tmp_path / "a.json")
    assert torch.equal(read_cameras(tmp_path / "a.json").world_from_camera, rough.world_from_camera)


def test_rotations_of_three_digits_are_made_exact_and_it_is_said(tmp_path, caplog):
    path = written(tmp_path, "a.txt", "0.866 -0.500 0 1 0.500 0.866 0 2 0 0 1 3\n")
    rotation = read_cameras(path, lens="pinhole-90", dtype=torch.float64).world_from_camera[0, :3, :3]
    assert (rotation @ rotation.mT - torch.eye(3)).abs().max() < 1e-12
    assert "made exact" in caplog.text
    caplog.clear()
    path = written(tmp_path, "b.txt", "0.8660254 -0.5 0 1 0.5 0.8660254 0 2 0 0 1 3\n")
    assert read_cameras(path, lens="pinhole-90", dtype=torch.float64).world_from_camera[0, 0, 0] == 0.8660254
    assert "made exact" not in caplog.text


@given(fps=st.sampled_from([24.0, 25.0, 30000 / 1001, 24000 / 1001, 12.5]), frames=st.integers(2, 400))
def test_a_frame_rate_survives_whole_microseconds(fps, frames):
    assert frame_rate([round(i * 1e6 / fps) / 1e6 for i in range(frames)], 1.5e-6) == fps
    assert frame_rate([0.0] * frames, 1.5e-6) is None


# -- each convention, worked by hand: x right, y down, z forward is what must come out


def test_realestate10k_is_camera_from_world_with_normalised_intrinsics(tmp_path):
    # The rows of the rotation are the camera's axes in the world: right -z, down y, forward x. It stands at x = -3.
    row = "0 0.5 0.8 0.5 0.4 0 0 0 0 -1 0 0 1 0 0 1 0 0 3"
    for head in ("https://a.b/c\n", "\n", ""):
        cameras = read_cameras(written(tmp_path, "a.txt", f"{head}{row}\n"), size=(200, 100))
        assert forward(cameras) == [1, 0, 0]
        assert cameras.world_from_camera[0, :3, 3].tolist() == [-3, 0, 0]
        assert cameras.lens.focal.tolist() == [100, 80]
        assert cameras.lens.center.tolist() == [100, 40]
    # A 1600 x 900 video covers 200 x 200 at 355.6 x 200 and is cropped at its centre: pixels stay square.
    square = read_cameras(
        written(tmp_path, "b.txt", "0 0.45 0.8 0.5 0.5 0 0 1 0 0 0 0 1 0 0 0 0 1 0\n"),
        size=(200, 200),
        source_size=(1600, 900),
    )
    torch.testing.assert_close(square.lens.focal, torch.tensor([160.0, 160.0]))
    torch.testing.assert_close(square.lens.center, torch.tensor([100.0, 100.0]))


def test_recammaster_is_unreals_axes_in_centimetres(tmp_path):
    # Unreal's rows: forward, right, up, position. The second camera has turned right: its forward is Unreal's y.
    frames = {
        "frame0": {"cam01": "[1 0 0 0] [0 1 0 0] [0 0 1 0] [100 200 300 1] ", "cam02": "[1 0 0 0]"},
        "frame1": {"cam01": "[0 1 0 0] [-1 0 0 0] [0 0 1 0] [100 200 300 1] "},
    }
    cameras = read_cameras(written(tmp_path, "a.json", json.dumps(frames)), camera="cam01", lens="pinhole-60")
    assert torch.equal(cameras.world_from_camera[0, :3, :3], torch.eye(3))
    assert cameras.world_from_camera[0, :3, 3].tolist() == [2, -3, 1]  # right, down, forward, in metres
    assert forward(cameras, 1) == [1, 0, 0]
    assert cameras.unit == "metric"


def test_recammaster_relative_path_is_the_published_recipe(tmp_path):
    """Transpose, columns 1 2 0 3, negate column 1, divide by 100; then relative to the first."""
    random = np.random.default_rng(0)
    unreal = np.tile(np.eye(4), (4, 1, 1))
    unreal[:, :3, :3], unreal[:, :3, 3] = (
        Rotation.random(4, random_state=random).as_matrix(),
        random.normal(size=(4, 3)),
    )
    text = {
        f"frame{i}": {"c": " ".join(f"[{' '.join(map(repr, r))}]" for r in m.T.tolist())} for i, m in enumerate(unreal)
    }
    ours = read_cameras(written(tmp_path, "a.json", json.dumps(text)), lens="pinhole-90", dtype=torch.float64)
    recipe = unreal[:, :, [1, 2, 0, 3]].copy()
    recipe[:, :, 1] *= -1
    recipe[:, :3, 3] /= 100
    relative = torch.from_numpy(np.linalg.inv(recipe[:1]) @ recipe)
    torch.testing.assert_close(ours.relative_to_first().world_from_camera, relative)


LEVEL_OPENGL = [[1, 0, 0, 3], [0, 0, -1, 4], [0, 1, 0, 5], [0, 0, 0, 1]]  # looks along y, z is up, stands 5 high


def test_nerfstudio_transforms_are_opengl_with_z_up(tmp_path, caplog):
    down = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]  # OpenGL looks along -z: straight down
    document = {"w": 64, "h": 48, "fl_x": 30, "fl_y": 31, "cx": 32, "cy": 24, "camera_model": "OPENCV"}
    document["frames"] = [
        {"file_path": "f_10.png", "transform_matrix": down, "fl_x": 40},
        {"file_path": "f_2.png", "transform_matrix": LEVEL_OPENGL},
    ]
    cameras = read_cameras(written(tmp_path, "transforms.json", json.dumps(document)))
    assert "order of their file names" in caplog.text
    assert torch.equal(cameras.world_from_camera[0, :3, :3], torch.eye(3))
    assert cameras.world_from_camera[0, :3, 3].tolist() == [3, -5, 4]
    assert forward(cameras, 1) == [0, 1, 0]
    assert cameras.lens.focal.tolist() == [[30, 31], [40, 31]]


def test_a_nerfstudio_fisheye_is_fitted_and_its_error_said(tmp_path, caplog):
    document = {"w": 640, "h": 480, "fl_x": 200, "fl_y": 200, "cx": 320, "cy": 240, "camera_model": "OPENCV_FISHEYE"}
    document |= {"k1": 0.02, "k2": -0.003, "frames": [{"transform_matrix": LEVEL_OPENGL}]}
    cameras = read_cameras(written(tmp_path, "a.json", json.dumps(document)))
    assert cameras.lens.xi > 0.3
    assert "pixels rms" in caplog.text
    angle = torch.linspace(0, 1.2, 7)
    pixels, _ = cameras.lens.project(torch.stack([angle.sin(), 0 * angle, angle.cos()], -1))
    kannala_brandt = 200 * angle * (1 + 0.02 * angle**2 - 0.003 * angle**4) + 320
    assert (pixels[:, 0] - kannala_brandt).abs().max() < 5


def test_a_nerfstudio_path_has_a_vertical_field_of_view(tmp_path):
    frame = {"camera_to_world": [number for row in LEVEL_OPENGL for number in row], "fov": 90, "aspect": 2}
    document = {"render_width": 200, "render_height": 100, "fps": 24, "camera_path": [frame]}
    cameras = read_cameras(written(tmp_path, "path.json", json.dumps(document)))
    assert torch.equal(cameras.world_from_camera[0, :3, :3], torch.eye(3))
    torch.testing.assert_close(cameras.lens.focal, torch.tensor([50.0, 50.0]))
    torch.testing.assert_close(cameras.lens.vfov.item(), 90.0)
    assert cameras.fps == 24


def test_colmap_is_camera_from_world_with_the_real_part_first(tmp_path):
    # The world turns by 90 degrees about y into the camera: world z is camera x, so the camera looks along -x.
    written(tmp_path, "cameras.txt", "1 PINHOLE 640 480 500 510 320 240\n2 EUCM 640 480 250 255 320 240 0.5 1\n")
    images = f"1 {QUARTER} 0 {QUARTER} 0 0 0 2 2 b_10.png\n\n2 1 0 0 0 0 0 0 1 b_9.png\n\n"
    written(tmp_path, "images.txt", images)
    written(tmp_path, "points3D.txt", "")
    assert detect_format(tmp_path / "cameras.txt") == detect_format(tmp_path)
    cameras = read_cameras(tmp_path)
    torch.testing.assert_close(torch.tensor(forward(cameras, 1)), torch.tensor([-1.0, 0, 0]))
    torch.testing.assert_close(cameras.world_from_camera[1, :3, 3], torch.tensor([2.0, 0, 0]))
    assert cameras.lens.focal.tolist() == [[500, 510], [500, 510]]
    assert cameras.lens.xi.tolist() == [0, 1]


def test_colmap_says_how_to_get_pycolmap(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    with pytest.raises(InputError, match=r"pip install 'curvedray\[sfm\]'"):
        write_cameras(simple(), tmp_path / "model", "colmap")
    assert not list(tmp_path.iterdir())


def test_kitti_and_kitti360_are_world_from_camera(tmp_path, caplog):
    row = "0 0 1 5 0 1 0 6 -1 0 0 7"  # forward is x
    kitti = read_cameras(written(tmp_path, "a.txt", f"{row}\n"), lens="pinhole-90")
    kitti360 = read_cameras(written(tmp_path, "b.txt", f"3 {row}\n7 {row}\n"), lens="pinhole-90")
    whole = read_cameras(written(tmp_path, "c.txt", f"3 {row} 0 0 0 1\n"), lens="pinhole-90")
    assert "the gaps are not kept" in caplog.text
    for cameras in (kitti, kitti360, whole):
        assert forward(cameras) == [1, 0, 0]
        assert cameras.world_from_camera[0, :3, 3].tolist() == [5, 6, 7]


def test_tum_has_the_real_part_last(tmp_path):
    path = written(tmp_path, "a.txt", f"# a comment\n0.000 1 2 3 0 {QUARTER} 0 {QUARTER}\n0.100 1 2 3 0 0 0 1\n")
    cameras = read_cameras(path, lens="fisheye-150", size=(100, 100))
    torch.testing.assert_close(torch.tensor(forward(cameras)), torch.tensor([1.0, 0, 0]))
    assert cameras.world_from_camera[0, :3, 3].tolist() == [1, 2, 3]
    assert cameras.fps == 10
    assert cameras.lens.size == (100, 100)


def test_panshot_is_divided_by_its_near_distance_and_may_lose_its_yaw(tmp_path):
    poses = np.float32([[[0, 0, 1, 4], [0, 1, 0, 2], [-1, 0, 0, 6]]])  # looks along x
    np.save(tmp_path / "vid-7-a-b.npy", poses)
    near = written(tmp_path, "near.jsonl", '{"video_id": "x", "clip_id": 7, "near_depth": 9}\n'
                   '{"video_id": "vid", "clip_id": 7, "near_depth": 2.0}\n')  # fmt: skip
    cameras = read_cameras(tmp_path / "vid-7-a-b.npy", near_depths=near, lens="pinhole-90")
    assert (cameras.unit, forward(cameras)) == ("near", [1, 0, 0])
    assert cameras.world_from_camera[0, :3, 3].tolist() == [2, 1, 3]
    turned = read_cameras(tmp_path / "vid-7-a-b.npy", near_depth=2.0, zero_yaw=True, lens="pinhole-90")
    torch.testing.assert_close(turned.world_from_camera[0, :3, :3], torch.eye(3))
    torch.testing.assert_close(turned.world_from_camera[0, :3, 3], torch.tensor([-3.0, 1, 2]))
    with pytest.raises(InputError, match="a line for the clip nobody"):
        read_cameras(tmp_path / "vid-7-a-b.npy", near_depths=near, clip="nobody", lens="pinhole-90")


def test_a_panshot_request_pairs_a_pose_file_with_a_lens(tmp_path):
    write_cameras(simple(), tmp_path / "a.npy")
    write_cameras(simple(), tmp_path / "b.txt", "realestate10k")
    requests = [
        {"pose_path": "a.npy", "x_fov": 140.0, "xi": 0.8, "caption": "a cat"},
        {"pose_path": "b.txt", "x_fov": 100.0, "xi": 0.0, "caption": "a dog"},
        {"pose_path": "b.txt", "x_fov": 200.0, "xi": 0.0, "caption": "too wide"},
    ]
    path = written(tmp_path, "requests.json", json.dumps(requests))
    assert [request.caption for request in read_requests(path)] == ["a cat", "a dog", "too wide"]
    first = read_cameras(path, index=0, near_depth=0.5, size=(64, 48))
    torch.testing.assert_close(first.lens.hfov.item(), 140.0)
    assert first.unit == "near"
    second = read_cameras(path, index=1, size=(64, 48))
    torch.testing.assert_close(second.lens.hfov.item(), 100.0)
    assert second.frames == 3
    with pytest.raises(InputError, match=r"\[2\].x_fov.* below 180"):
        read_cameras(path, index=2, size=(64, 48))
    with pytest.raises(InputError, match="index= 0 to 2"):
        read_cameras(path)


def test_vipe_finds_its_lens_beside_the_poses(tmp_path):
    for folder in ("pose", "intrinsics"):
        (tmp_path / folder).mkdir()
    write_cameras(simple(), tmp_path / "pose" / "clip.npz")
    lens = np.float32([[30, 30, 32, 24, 0.5]] * 3)
    np.savez(tmp_path / "intrinsics" / "clip.npz", data=lens, inds=np.arange(3))
    cameras = read_cameras(tmp_path / "pose" / "clip.npz")
    assert cameras.lens.size == (64, 48)
    assert (cameras.lens.xi.item(), cameras.lens.focal.tolist(), cameras.unit) == (0.5, [30, 30], "metric")


MEI = """%YAML:1.0
---
model_type: MEI
image_width: 1400
image_height: 1400
mirror_parameters:
   xi: 2.2
distortion_parameters:
   k1: {k1}
   k2: 0.0
   p1: 0.0
   p2: 0.0
projection_parameters:
   gamma1: 1336.0
   gamma2: 1335.0
   u0: 716.5
   v0: 705.5
"""


def test_a_kitti360_lens_is_exact_without_distortion_and_fitted_with_it(tmp_path):
    exact = read_lens(written(tmp_path, "image_02.yaml", MEI.format(k1=0.0)))
    assert (exact.rms_pixels, exact.lens.xi.item()) == (0, 2.2)
    assert exact.lens.center.tolist() == [717, 706]  # OpenCV's pixels are counted from the first one's centre
    fitted = read_lens(written(tmp_path, "image_03.yaml", MEI.format(k1=0.05)), max_angle=80)
    assert 0 < fitted.rms_pixels < 2
    with pytest.raises(InputError, match="read_lens"):
        read_cameras(tmp_path / "image_02.yaml")
    for broken, field in (
        (MEI.replace("gamma1: 1336.0", "gamma1: 0"), "gamma1"),
        (MEI.replace("   xi: 2.2\n", ""), "xi"),
    ):
        with pytest.raises(InputError, match=field):
            read_lens(written(tmp_path, "broken.yaml", broken.format(k1=0)))
