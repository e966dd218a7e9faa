"""What every reader can be told, the cameras of a video, and our own JSON as a value."""

import inspect
import json
import os
import zipfile

import numpy as np
import pytest
import torch

from curvedray import Cameras, InputError, Lens
from curvedray.formats import (
    FORMATS,
    cameras_from_json,
    cameras_of_video,
    cameras_to_json,
    read_cameras,
    write_cameras,
)
from curvedray.formats.handlers import HANDLERS

ROW = "1 0 0 {} 0 1 0 0 0 0 1 0"


def simple(frames=3, size=(64, 48), fov=90.0, xi=0.0):
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, 0, 3] = torch.arange(frames) * 0.5
    return Cameras(Lens.from_fov(fov, xi, *size), poses)


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_a_format_states_the_options_that_its_reader_and_writer_take(format):
    handler = HANDLERS[format.name]
    assert format.written == (handler.write is not None)
    for function, stated in ((handler.read, format.options), (handler.write, format.write_options)):
        if function is not None:
            known = inspect.signature(function).parameters.values()
            assert [p.name for p in known if p.kind is p.KEYWORD_ONLY] == [option.name for option in stated]


@pytest.mark.parametrize("size", [(1280, 720), (640, 360), (480, 480), (832, 480)])
def test_realestate10k_takes_any_video_for_its_own(size, tmp_path):
    """Its intrinsics are shares of width and height: a 16:9 video is as good as any."""
    write_cameras(simple(size=size), tmp_path / "a.txt", "realestate10k")
    cameras = cameras_of_video(tmp_path / "a.txt", *size)
    assert cameras.lens.size == size
    torch.testing.assert_close(cameras.lens.hfov.item(), 90.0)


def test_a_lens_is_rescaled_to_a_video_of_its_shape_and_refused_for_another(tmp_path):
    write_cameras(simple(size=(832, 480)), tmp_path / "a.json")
    assert cameras_of_video(tmp_path / "a.json", 416, 240).lens.focal.tolist() == [208, 208]
    with pytest.raises(InputError, match="shaped like 480 x 480"):
        cameras_of_video(tmp_path / "a.json", 480, 480)
    fisheye = cameras_of_video(tmp_path / "a.json", 480, 480, lens="fisheye-150")  # overruled, so no shape to keep
    torch.testing.assert_close(fisheye.lens.hfov.item(), 150.0)


def test_the_lens_of_a_video_is_never_guessed(tmp_path):
    (tmp_path / "a.txt").write_text(ROW.format(0) + "\n")
    with pytest.raises(InputError, match="expected a lens"):
        cameras_of_video(tmp_path / "a.txt", 64, 48)
    assert cameras_of_video(tmp_path / "a.txt", 64, 48, lens="pinhole-60").lens.size == (64, 48)


def test_positions_far_away_are_shifted_before_they_are_rounded(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("".join(ROW.format(4.5e6 + 0.1 * i) + "\n" for i in range(5)))
    read_cameras(tmp_path / "a.txt", lens="pinhole-90")
    assert "relative=True" in caplog.text
    caplog.clear()
    path = read_cameras(tmp_path / "a.txt", lens="pinhole-90", relative=True).world_from_camera[:, 0, 3]
    torch.testing.assert_close(path, torch.arange(5) * 0.1, rtol=0, atol=1e-7)
    assert not caplog.text


def test_only_the_first_frames_are_read(tmp_path):
    write_cameras(simple(frames=5), tmp_path / "a.json")
    assert read_cameras(tmp_path / "a.json", first_frames=2).world_from_camera[:, 0, 3].tolist() == [0, 0.5]
    with pytest.raises(InputError, match="1 to 5"):
        read_cameras(tmp_path / "a.json", first_frames=6)


def test_our_own_json_as_a_value_is_the_file(tmp_path):
    cameras = simple(xi=0.7)
    write_cameras(cameras, tmp_path / "a.json")
    record = cameras_to_json(cameras)
    assert record == json.loads((tmp_path / "a.json").read_text())
    again = cameras_from_json(json.loads(json.dumps(record)))
    assert torch.equal(again.world_from_camera, cameras.world_from_camera)
    with pytest.raises(InputError, match="recipe, field unit"):
        cameras_from_json({**record, "unit": 3}, "recipe")


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="a pipe or a device"):
            read_cameras(path)


def test_a_pipe_in_a_colmap_model_is_refused_at_once(tmp_path):
    write_cameras(simple(), tmp_path / "model", "colmap", text=True)
    (tmp_path / "model" / "points3D.txt").unlink()
    os.mkfifo(tmp_path / "model" / "points3D.txt")
    with pytest.raises(InputError, match="a pipe or a device"):
        read_cameras(tmp_path / "model")


def test_an_archive_that_unpacks_to_gigabytes_is_refused_by_its_headers(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name, shape in (("data", (10**8, 4, 4)), ("inds", (3,))):
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InputError, match=r"at most 64 MB unpacked, got 6.4 GB"):
        read_cameras(tmp_path / "a.npz", "vipe")
