"""What a reader or writer is told is used, refused or said back: nothing is dropped without a word."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from curvedray import Cameras, InputError, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.formats import FORMATS, cameras_of_video, read_cameras, write_cameras

FRAME = {"camera_to_world": np.eye(4).reshape(-1).tolist(), "fov": 60.0}


def simple(lens="pinhole-70", size=(832, 480), frames=3, **kwargs):
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, 0, 3] = torch.arange(frames) * 0.5
    return Cameras(named_lens(lens, *size), poses, **kwargs)


# -- writing


@pytest.mark.parametrize("unit", ["near", "metric"])
def test_the_note_of_a_file_says_how_to_get_its_cameras_again(unit, tmp_path, caplog):
    """Translations that a near distance multiplied were to be read with unit=, which does not divide them again."""
    cameras = simple(unit=unit)
    write_cameras(cameras, tmp_path / "a.npy", near_depth=2.5)
    said = {"near_depth": 2.5} | ({} if unit == "near" else {"unit": unit})
    assert f"(read it with {', '.join(f'{name}={value!r}' for name, value in said.items())})" in caplog.text
    again = read_cameras(tmp_path / "a.npy", lens="pinhole-70", **said)
    assert again.unit == unit
    torch.testing.assert_close(again.world_from_camera, cameras.world_from_camera)


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.written])
def test_cameras_that_are_being_learned_are_written(name, tmp_path):
    """Formats of NumPy's raised its own RuntimeError."""
    cameras = simple()
    lens = replace(cameras.lens, focal=cameras.lens.focal.clone().requires_grad_())
    poses = cameras.world_from_camera.clone().requires_grad_()
    write_cameras(Cameras(lens, poses), tmp_path / "learned", name)
    assert len(read_cameras(tmp_path / "learned", name, lens="pinhole-70", size=(832, 480))) == 3
    assert poses.requires_grad


# -- sizes and lenses


@pytest.mark.parametrize("name", ["megasam", "numpy-poses", "vipe", "nerfstudio-path", "nerfstudio", "curvedray"])
def test_a_lens_is_rescaled_to_another_size_of_its_shape(name, tmp_path):
    """Two of them, which tell their size by the centre alone, kept the focal length and a centre in the corner."""
    cameras, (file, options) = simple(), (tmp_path / "cameras", {})
    write_cameras(cameras, file, name)
    if name == "vipe":
        row = [*cameras.lens.focal.tolist(), *cameras.lens.center.tolist()]
        np.savez(tmp_path / "lens.npz", data=np.array([row] * 3), inds=np.arange(3))
        options = {"intrinsics": tmp_path / "lens.npz"}
    half = cameras_of_video(file, 416, 240, format=name, **options).lens
    expected = cameras.lens.sized(416, 240)
    assert half.size == (416, 240)
    torch.testing.assert_close(half.focal, expected.focal)
    torch.testing.assert_close(half.center, expected.center)


@pytest.mark.parametrize("name", ["megasam", "numpy-poses"])
def test_a_size_that_the_centre_does_not_tell_is_the_image_s_own(name, tmp_path):
    """A centre a little off the middle, or far off it, is no reason to rescale: the size given is the lens's."""
    for center in ((420.0, 237.0), (400.0, 480.0)):
        lens = Lens(torch.tensor([600.0, 600.0]), torch.tensor(center), torch.tensor(0.0), (832, 480))
        path = tmp_path / f"{center}"
        write_cameras(replace(simple(), lens=lens), path, name)
        read = read_cameras(path, size=(832, 480)).lens
        assert (read.focal.tolist(), read.center.tolist()) == ([600, 600], list(center))


def test_a_lens_overrules_vipe_s_intrinsics(tmp_path):
    """With intrinsics= said, lens= was dropped."""
    write_cameras(simple(), tmp_path / "poses.npz", "vipe")
    np.savez(tmp_path / "lens.npz", data=np.array([[300.0, 300, 416, 240]] * 3), inds=np.arange(3))
    said = {"intrinsics": tmp_path / "lens.npz", "lens": "fisheye-150"}
    lens = read_cameras(tmp_path / "poses.npz", **said).lens
    assert lens.size == (832, 480)
    assert lens.hfov.item() == pytest.approx(150, abs=1e-3)
    assert read_cameras(tmp_path / "poses.npz", size=(416, 240), **said).lens.size == (416, 240)


def path_file(folder, **top):
    file = folder / "path.json"
    file.write_text(json.dumps({"render_width": 1920, "render_height": 1080, "camera_path": [FRAME]} | top))
    return file


def test_a_camera_path_for_another_shape_is_refused(tmp_path):
    """A size that was given took the place of the file's, and a wide path filmed a tall video."""
    file = path_file(tmp_path)
    assert cameras_of_video(file, 960, 540).lens.vfov.item() == pytest.approx(60, abs=1e-3)
    with pytest.raises(InputError, match="shaped like 480 x 832, got one for 1920 x 1080"):
        cameras_of_video(file, 480, 832)
    assert cameras_of_video(file, 480, 832, lens="wide-110").lens.size == (480, 832)
    without = path_file(tmp_path, render_width=None)
    with pytest.raises(InputError, match="render_width"):
        cameras_of_video(without, 480, 832)
    without.write_text(json.dumps({"camera_path": [FRAME]}))
    assert cameras_of_video(without, 480, 832).lens.size == (480, 832)


def test_a_lens_overrules_a_fisheye_that_cannot_be_fitted(tmp_path):
    """The fit came first, so that lens= did not help, and its error named an option that no reader takes."""
    file = path_file(tmp_path, camera_type="fisheye", camera_path=[FRAME | {"fov": 170.0}])
    with pytest.raises(InputError, match=r"got one that sees too far behind itself. Overrule it with lens=.$"):
        read_cameras(file)
    assert read_cameras(file, lens="fisheye-150").lens.hfov.item() == pytest.approx(150, abs=1e-3)


# -- PanShot's options


@pytest.fixture
def requests(tmp_path):
    """Two requests, of PanShot's poses and of RealEstate10K's, and the near distances of clips."""
    write_cameras(simple(), tmp_path / "a.npy", "panshot")
    write_cameras(simple(), tmp_path / "b.txt", "realestate10k")
    lines = [{"pose_path": name, "x_fov": 100.0, "xi": 0.0} for name in ("a.npy", "b.txt")]
    (tmp_path / "requests.json").write_text(json.dumps(lines))
    (tmp_path / "near.jsonl").write_text('{"video_id": "v", "clip_id": 1, "near_depth": 2.0}')
    return tmp_path / "requests.json"


@pytest.mark.parametrize(
    ("index", "said", "match"),
    [
        (0, {"near_depths": "near.jsonl", "clip": "v-1", "near_depth": 2.0}, "near_depth: expected none beside"),
        (0, {"clip": "v-1"}, "clip: expected near_depths="),
        (0, {"traj_normalization": 2.0}, "traj_normalization: expected none for PanShot's poses"),
        (1, {"near_depths": "near.jsonl"}, "near_depths: expected none for RealEstate10K's poses"),
        (1, {"clip": "v-1"}, "clip: expected none for RealEstate10K's poses"),
        (1, {"near_depth": 2.0, "traj_normalization": 2.0}, "traj_normalization: expected none beside near_depth"),
    ],
)
def test_options_that_a_request_s_poses_do_not_take_are_refused(requests, index, said, match):
    """They were dropped, and the path came out at another scale than the one that was asked for."""
    if "near_depths" in said:
        said = said | {"near_depths": requests.parent / said["near_depths"]}
    with pytest.raises(InputError, match=f"option {match}"):
        read_cameras(requests, index=index, size=(832, 480), **said)
    if index == 0 and "traj_normalization" not in said:
        with pytest.raises(InputError, match=f"option {match}"):
            read_cameras(requests.parent / "a.npy", lens="pinhole-70", **said)


def test_options_that_are_not_said_are_no_options(requests):
    """None, as a table's empty cell gives it, and zero_yaw=False."""
    silent = dict.fromkeys(("near_depth", "near_depths", "clip", "traj_normalization")) | {"zero_yaw": False}
    for index in (0, 1):
        assert len(read_cameras(requests, index=index, size=(832, 480), **silent)) == 3
