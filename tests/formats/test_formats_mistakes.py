"""Camera files as a new user gets them wrong: every mistake is one sentence that names the line or field."""

import json
import logging

import numpy as np
import pytest
import torch

from curvedray import Cameras, InputError, Lens
from curvedray.formats import FORMATS, GENERAL, detect_format, read_cameras, write_cameras
from curvedray.formats.options import check_options

ROW = "1 0 0 0 0 1 0 0 0 0 1 0"
RE10K = f"0 0.5 0.5 0.5 0.5 0 0 {ROW}"
MIRRORED = "1 0 0 0 0 1 0 0 0 0 -1 0"
TRANSFORMS = {"w": 64, "h": 48, "fl_x": 30.0, "frames": [{"transform_matrix": np.eye(4).tolist()}]}
PATH = {"camera_path": [{"camera_to_world": np.eye(4).reshape(-1).tolist(), "fov": 50}]}


def simple(frames=3, xi=0.0, **kwargs):
    return Cameras(Lens.from_fov(90.0, xi, 64, 48), torch.eye(4).repeat(frames, 1, 1), **kwargs)


@pytest.fixture
def own(tmp_path):
    """Our own JSON, to be spoilt."""
    write_cameras(simple(), tmp_path / "own.json")
    return json.loads((tmp_path / "own.json").read_text())


def refused(path, match, **options):
    with pytest.raises(InputError, match=match):
        read_cameras(path, **options)


def test_no_file_no_content_and_a_folder(tmp_path):
    refused(tmp_path / "none.txt", "nothing there")
    refused(tmp_path, "a folder with no COLMAP model")
    refused(tmp_path, "a kitti file, got a folder", format="kitti")
    (tmp_path / "empty.txt").write_text(" \n\n")
    refused(tmp_path / "empty.txt", "an empty file")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    refused(tmp_path / "noise.bin", "bytes that are not text")
    for name in ("realestate10k", "kitti", "tum", "curvedray"):
        refused(tmp_path / "noise.bin", "bytes that are not text|JSON", format=name)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (f"{ROW}\n{ROW[:-2]}\n", "line 2: expected 12 numbers, got 11"),
        (f"{ROW}\n{ROW.replace('0 1 0 0', '0 x 0 0')}\n", "line 2, column 6: expected a number, got x"),
        (f"{ROW}\n{ROW.replace('0 1 0 0', '0 nan 0 0')}\n", "line 2, column 6: expected a finite number"),
        (f"{ROW}\n2 0 0 0 0 1 0 0 0 0 1 0\n", "line 2: expected a rotation"),
        (f"{ROW}\n{MIRRORED}\n", "line 2: expected a right-handed frame"),
        (f"{MIRRORED}\n{MIRRORED}\n", "line 1: .* mirrored_world=True"),
        ("1 2 3\n4 5 6\n", "line 1 has 3 columns"),
        ("a walk in the park\n", "line 1 has 5 columns, one of them 'a'"),
        (f"https://a.b\n{RE10K}\n{RE10K} 1\n", "line 3: expected 19 numbers, got 20"),
        (f"{RE10K.replace('0.5', '0', 1)}\n", "line 1: expected a focal length above zero"),
        ("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 0\n", "line 2: expected a quaternion .* length 0"),
        ("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 2\n", "line 2: expected a quaternion .* length 2"),
        (f"4 {ROW}\n3 {ROW}\n", "line 2, column 1: expected a frame number above 4"),
        ("{\n  1\n", "line 2: expected JSON"),
        ('{"a": 1}', "JSON, an object with a"),
        ('{"frames": [1]}', "JSON, an object with frames"),
        ('[{"name": 1, "K": 2}, {}]', "JSON, a list of 2, the first of them an object with name, K"),
        ('{"camera_path": ' + "[" * 600 + "1" + "]" * 600 + "}", "camera_path"),
        ("[" * 100_000, "JSON"),
        ('{"frame0": {"cam01": "[1 0 0 0]"}}', "field frame0.cam01: expected four brackets"),
        ('{"frame0": {"a": "", "b": ""}}', "camera= one of a, b"),
        ('{"frame0": {"a": ""}, "frame2": {"a": ""}}', "field frame1: expected to find it"),
        (json.dumps({**TRANSFORMS, "fl_x": 0}), "fl_x: expected above zero"),
        (json.dumps({**TRANSFORMS, "w": "wide"}), "field w: expected a number"),
        (json.dumps({**TRANSFORMS, "camera_model": "EQUIRECTANGULAR"}), "field camera_model"),
        (json.dumps({**TRANSFORMS, "frames": [{"transform_matrix": [1, 2]}]}), r"frames\[0\].transform_matrix"),
        (json.dumps({"fl_x": 30.0, "frames": TRANSFORMS["frames"]}), "Say it with size="),
        (json.dumps({**TRANSFORMS, **PATH}), r"nerfstudio \(.*nerfstudio-path \(.*format='nerfstudio'"),
        (json.dumps({"camera_path": [{**PATH["camera_path"][0], "fov": 180}]}), r"camera_path\[0\].fov"),
        (json.dumps({**PATH, "fps": -1}), "field fps"),
        (json.dumps({**PATH, "camera_type": "equirectangular"}), "field camera_type"),
    ],
)
def test_text_that_is_wrong_somewhere(text, match, tmp_path):
    (tmp_path / "a").write_text(text)
    refused(tmp_path / "a", match)


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda d: d.update(version=2), "field version: .*Update curvedray"),
        (lambda d: d.update(lenss={}), "got lenss"),
        (lambda d: d.pop("unit"), "field unit"),
        (lambda d: d.update(unit="feet"), "field unit: expected metric or near or arbitrary, got feet"),
        (lambda d: d.update(fps=0), "field fps"),
        (lambda d: d.update(frames=[]), "field frames"),
        (lambda d: d["convention"].update(axes="x right, y up, z back"), "field convention.axes"),
        (lambda d: d["lens"].update(size=[64]), "field lens.size: expected a list of 2 numbers"),
        (lambda d: d["lens"].update(max_angle=9), "max_angle"),
        (lambda d: d["frames"][1].update(focal=[0, 1]), r"frames\[1\]: expected a focal length above zero"),
        (lambda d: d["frames"][1].update(xi=-1), r"frames\[1\]: expected xi"),
        (lambda d: d["frames"][1].update(xi=True), r"frames\[1\].xi: expected a number"),
        (lambda d: d["frames"][1].update(center=[10**400, 1]), r"frames\[1\].center\[0\]: expected a finite number"),
        (lambda d: d["frames"][2]["world_from_camera"].pop(), r"frames\[2\].*four rows"),
        (lambda d: d.update(provenance={}), "field provenance.writer"),
        (lambda d: d["convention"].update(origin="first"), "got origin"),
        (lambda d: d["frames"][2]["world_from_camera"][0].__setitem__(0, -1), r"frames\[2\].*right-handed"),
        (lambda d: d["frames"][2]["world_from_camera"][3].__setitem__(0, 1), r"frames\[2\].*last row"),
    ],
)
def test_our_own_json_that_is_wrong_somewhere(spoil, match, own, tmp_path):
    spoil(own)
    (tmp_path / "a.json").write_text(json.dumps(own))
    refused(tmp_path / "a.json", match)


def test_arrays_that_are_wrong_somewhere(tmp_path):
    good = np.tile(np.eye(4, dtype=np.float32)[:3], (2, 1, 1))
    spoilt = {
        "Is the file complete": None,
        r"NumPy: array \(3, 4\) float32": good[0],
        r"NumPy: array \(1,\) object": np.array([{"a": 1}], dtype=object),
        r"NumPy: array .* complex64": good.astype(np.complex64),
        "frame 0: expected finite numbers": good * np.nan,
        "frame 0: expected a rotation": good * 2,
    }
    for match, array in spoilt.items():
        np.save(tmp_path / "a.npy", good if array is None else array, allow_pickle=True)
        if array is None:
            (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-5])
        refused(tmp_path / "a.npy", match)
    np.savez(tmp_path / "a.npz", data=np.tile(np.eye(4), (2, 1, 1)), inds=np.arange(3))
    refused(tmp_path / "a.npz", "one whole number per row")
    np.savez(tmp_path / "b.npz", poses=good)
    refused(tmp_path / "b.npz", "array 'data': expected to find it", format="vipe")
    (tmp_path / "c.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-30])
    refused(tmp_path / "c.npz", "a damaged file of arrays")


def test_a_mirrored_world_can_be_said_and_keeps_the_relative_path(tmp_path):
    turn = "0.6 0 0.8 1 0 1 0 0 0.8 0 -0.6 2"  # mirrored too
    (tmp_path / "a.txt").write_text(f"{MIRRORED}\n{turn}\n")
    cameras = read_cameras(tmp_path / "a.txt", mirrored_world=True, lens="pinhole-90")
    left = torch.tensor([[[0.6, 0, 0.8, 1], [0, 1, 0, 0], [-0.8, 0, 0.6, -2], [0, 0, 0, 1]]])
    torch.testing.assert_close(cameras.relative_to_first().world_from_camera[1:], left)
    (tmp_path / "b.txt").write_text(f"{ROW}\n")
    refused(tmp_path / "b.txt", "Leave mirrored_world out", mirrored_world=True)


def test_every_reader_refuses_a_file_of_another_format(tmp_path):
    for name, format in FORMATS.items():
        if format.written and name != "colmap":
            write_cameras(simple(frames=4), tmp_path / name, name)
    for name in FORMATS:
        for other in tmp_path.iterdir():
            if other.name != name and (name, other.name) != ("tum", "asl"):  # whose header tells tum the order
                refused(other, "expected", format=name)


def test_options_and_names_that_do_not_exist(tmp_path):
    (tmp_path / "a.txt").write_text(f"{ROW}\n")
    refused(tmp_path / "a.txt", "one of curvedray, realestate10k", format="kiti")
    refused(tmp_path / "a.txt", r"one that kitti takes \(lens, size.*\)", near_depth=3)
    refused(tmp_path / "a.txt", "whole pixels", size=(0, 3))
    refused(tmp_path / "a.txt", "lens", lens="fishy-9")
    refused(tmp_path / "a.txt", "unit", unit="feet")
    with pytest.raises(InputError, match="option lens: expected Lens or str, got 7"):
        check_options("every format", GENERAL, {"lens": 7})
    wrong = [
        ("curvedray", {"caption": "x"}, "option caption"),
        ("curvedray", {"provenance": {"a": 1}}, "provenance"),
        ("realestate10k", {"url": "two words"}, "one address"),
        ("panshot", {"near_depth": 0}, "near_depth: expected a positive number"),
        ("panshot", {"near_depth": "far"}, "option near_depth: expected float or int, got 'far'"),
        ("nerfstudio", {"file_path": "{nothing}"}, "a template"),
    ]
    for name, options, match in wrong:
        with pytest.raises(InputError, match=match):
            write_cameras(simple(), tmp_path / "b", name, **options)
    assert not (tmp_path / "b").exists()


def test_a_lens_taken_for_granted_is_said(tmp_path, caplog):
    (tmp_path / "a.txt").write_text(f"{ROW}\n")
    with caplog.at_level(logging.WARNING):
        cameras = read_cameras(tmp_path / "a.txt")
    assert "carries no lens: taken as pinhole-90 at 832 x 480" in caplog.text
    assert cameras.lens.size == (832, 480)


@pytest.mark.parametrize("name", ["realestate10k", "nerfstudio", "nerfstudio-path"])
def test_a_bent_lens_is_refused_where_it_would_be_read_back_straight(name, tmp_path):
    with pytest.raises(InputError, match="a pinhole lens"):
        write_cameras(simple(xi=0.8), tmp_path / "a.txt", name)
    assert not list(tmp_path.iterdir())


def test_what_a_format_leaves_out_is_said(tmp_path, caplog):
    write_cameras(simple(xi=0.8, unit="near", fps=24.0), tmp_path / "a.txt", "kitti")
    for said in ("lens=", "unit='near'", "fps=24"):
        assert said in caplog.text
    caplog.clear()
    write_cameras(simple(xi=0.8, unit="near", fps=24.0), tmp_path / "a.json")
    assert not caplog.text


def test_writing_that_cannot_be_done_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match=r"realestate10k, kitti, kitti360, tum.*which does not decide it"):
        write_cameras(simple(), tmp_path / "a.txt")
    with pytest.raises(InputError, match="a lens centred on the image"):
        write_cameras(
            Cameras(Lens.from_fov(90.0).cropped(5, 0, 832, 480), torch.eye(4)[None]),
            tmp_path / "a.json",
            "nerfstudio-path",
        )
    with pytest.raises(InputError, match="only read"):
        write_cameras(simple(), tmp_path / "a.json", "panshot-request")
    with pytest.raises(InputError, match="one trajectory"):
        write_cameras(Cameras(Lens.from_fov(90.0), torch.eye(4).repeat(2, 3, 1, 1)), tmp_path / "a.json")
    with pytest.raises(InputError, match="a folder"):
        write_cameras(simple(), tmp_path, "kitti")
    assert not list(tmp_path.iterdir())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="new or empty"):
        write_cameras(simple(), tmp_path / "model", "colmap")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["mine.txt"]


def test_detection_says_why(tmp_path):
    (tmp_path / "a.txt").write_text(f"{ROW}\n")
    assert detect_format(tmp_path / "a.txt") == ("kitti", "rows of 12 numbers with a rotation")
