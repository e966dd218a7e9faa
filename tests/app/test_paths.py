"""Paths as the page gets them are the package's own, to the digit."""

import json

import numpy as np
import pytest
import torch
from studio_client import LENS, ORBIT

from curvedray.cameras.named_lenses import named_lens
from curvedray.formats import read_cameras
from curvedray.moves.trajectory import trajectory


def poses_of(answer) -> np.ndarray:
    return np.array(answer["poses"]).reshape(-1, 4, 4)


def test_moves_become_the_cameras_that_trajectory_makes(ask):
    answer = ask.post("/api/path", ORBIT).json()
    lens = named_lens("fisheye-150", 96, 64)
    made = trajectory("orbit left 40deg", lens, 17, unit="metric", near=3.0, fps=8.0)
    np.testing.assert_allclose(poses_of(answer), made.world_from_camera.numpy(), atol=1e-6)
    expected = [*lens.focal.tolist(), *lens.center.tolist(), lens.xi.item()]
    np.testing.assert_allclose(answer["lenses"], [expected] * 17, rtol=1e-6)
    assert answer["moves"] == "orbit left 40deg radius 1"
    assert answer["lens_name"] == "fisheye-150"
    assert answer["seconds"] == 2


def test_everyday_words_are_said_back_every_time(ask):
    for _ in range(2):
        answer = ask.post("/api/path", {"moves": "circle around the subject slowly"}).json()
        assert answer["notes"] == [f"understood as: {answer['moves']}"]
        assert answer["moves"].startswith("orbit left")


def test_the_text_survives_the_round_trip(ask):
    text = "orbit left 40deg radius 1.2, then dolly in 0.5 smooth and pan right 10deg, then handheld 1deg"
    once = ask.post("/api/path", {"moves": text}).json()
    again = ask.post("/api/path", {"moves": once["moves"]}).json()
    assert again["moves"] == once["moves"]
    assert again["poses"] == once["poses"]


def test_a_lens_by_numbers_has_a_name_that_makes_it(ask):
    answer = ask.post("/api/path", {"moves": "static", "lens": {"hfov": 123.4567, "xi": 0.7}}).json()
    lens = named_lens(answer["lens_name"], 96, 64)
    np.testing.assert_allclose(answer["lenses"][0][:2], lens.focal.tolist(), rtol=1e-6)
    assert answer["hfov"][0] == pytest.approx(123.457, abs=1e-3)


def test_pan_and_zoom_shift_and_stretch_the_image(ask):
    plain = ask.post("/api/path", {"moves": "static", "lens": LENS}).json()["lenses"][0]
    lens = LENS | {"pan": [0.25, -0.5], "zoom": 2.0}
    answer = ask.post("/api/path", {"moves": "static", "lens": lens}).json()
    fx, fy, cx, cy, xi = answer["lenses"][0]
    assert (fx, fy, xi) == pytest.approx((2 * plain[0], 2 * plain[1], plain[4]))
    assert (cx, cy) == pytest.approx((plain[2] + 24, plain[3] - 32))
    assert answer["lens_name"] is None


@pytest.mark.parametrize("moves", ["orbit left 40deg", "dolly in 1.2m and zoom in 2x", "crane up 0.5"])
def test_a_move_opened_as_keyframes_is_the_same_path(ask, moves):
    path = {"moves": moves, "lens": {"hfov": 90, "xi": 0.4}}
    keys = ask.post("/api/keys", {"path": path, "count": 17}).json()["keys"]
    whole, again = (ask.post("/api/path", body).json() for body in (path, {"keys": keys}))
    np.testing.assert_allclose(again["poses"], whole["poses"], atol=1e-4)
    np.testing.assert_allclose(again["lenses"], whole["lenses"], rtol=1e-4)
    assert [key["frame"] for key in again["keys"]] == pytest.approx(list(range(17)))


def test_keyframes_are_absolute_and_turn_as_they_say(ask):
    keys = [
        {"position": [1, -0.5, 2], "yaw": 90, "seconds": 1},
        {"position": [1, 0, 2], "yaw": 90, "pitch": 30, "seconds": 3},
        {"position": [2, 0, 2], "yaw": 90, "pitch": 30, "roll": 20},
    ]
    answer = ask.post("/api/path", {"keys": keys, "frames": 9}).json()
    first, middle, last = (poses_of(answer)[i] for i in (0, 2, 8))
    np.testing.assert_allclose(first[:3, 3], [1, -0.5, 2], atol=1e-6)
    np.testing.assert_allclose(first[:3, 2], [1, 0, 0], atol=1e-6)  # yaw right: it looks along x
    np.testing.assert_allclose(middle[:3, 2], [np.cos(np.pi / 6), -0.5, 0], atol=1e-6)  # pitch up: y is down
    np.testing.assert_allclose(answer["angles"][8], [90, 30, 20], atol=1e-4)
    np.testing.assert_allclose(last[:3, 3], [2, 0, 2], atol=1e-6)


def test_a_path_says_what_it_looks_like_in_near_distances(ask):
    answer = ask.post("/api/describe", ORBIT).json()
    assert answer["move"] == "orbit left 40deg radius 1"
    assert answer["unit"] == "near"


@pytest.mark.parametrize("format", ["curvedray", "nerfstudio", "tum", "colmap", "numpy-poses", "kitti"])
def test_what_is_exported_comes_back_as_the_same_path(ask, format, tmp_path):
    import io
    import zipfile

    path = {"moves": "orbit left 40deg and pedestal up 0.2", "lens": {"hfov": 70, "xi": 0}}
    file = ask.post("/api/export", {"path": path, "format": format})
    assert file.status_code == 200, file.text
    assert "attachment" in file.headers["content-disposition"]
    if file.headers["content-type"] == "application/zip":
        archive, name = zipfile.ZipFile(io.BytesIO(file.content)), None
        for member in archive.namelist():
            into: dict[str, str] = {"into": name} if name else {}
            name = ask.upload("cameras", member.split("/")[-1], archive.read(member), **into)
    else:
        name = ask.upload("cameras", file.headers["content-disposition"].split('"')[1], file.content)
    body = {"upload": name, "lens": {"hfov": 70, "xi": 0}, "scale": 1.0}
    answer = ask.post("/api/import", body).json()
    assert answer["format"] == format
    assert answer["file_frames"] == 17
    expected = ask.post("/api/path", path).json()
    np.testing.assert_allclose(answer["poses"], expected["poses"], atol=2e-5)
    np.testing.assert_allclose(answer["lenses"], expected["lenses"], rtol=1e-5)


def test_what_a_file_does_not_carry_is_said(ask):
    file = ask.post("/api/export", {"path": ORBIT, "format": "tum"})
    assert "lens" in " ".join(json.loads(file.headers["studio-notes"]))
    refused = ask.post("/api/export", {"path": ORBIT, "format": "nerfstudio"})
    assert refused.status_code == 422
    assert "pinhole" in refused.json()["error"]["words"]


def test_a_file_of_unknown_scale_is_fitted_and_said_and_its_horizon_can_be_kept(ask, tmp_path):
    lens = named_lens("pinhole-70", 96, 64)
    tilted = trajectory("dolly in 4", lens, 9, unit="arbitrary", pitch=-30, yaw=50)
    from curvedray.formats import write_cameras

    write_cameras(tilted, tmp_path / "c.json")
    assert read_cameras(tmp_path / "c.json").unit == "arbitrary"
    name = ask.upload("cameras", "c.json", (tmp_path / "c.json").read_bytes())
    answer = ask.post("/api/import", {"upload": name, "frames": 9, "near": 2.0}).json()
    assert any("scale is not known" in note for note in answer["notes"])
    np.testing.assert_allclose(poses_of(answer)[-1][:3, 3], [0, 0, 2], atol=1e-5)
    kept = ask.post("/api/import", {"upload": name, "frames": 9, "near": 2.0, "horizon": True}).json()
    np.testing.assert_allclose(kept["angles"], [[0, -30, 0]] * 9, atol=1e-3)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"moves": "fly like a bird"}, 422),
        ({"moves": "static", "lens": {"name": "no-such-lens"}}, 422),
        ({"moves": "static", "lens": {"hfov": 200, "xi": 0}}, 422),
        ({"moves": "static", "keys": [{"position": [0, 0, 0]}]}, 400),
        ({"moves": "static", "surprise": 1}, 400),
        ({"moves": "static", "frames": 10**9}, 400),
        ({"moves": "static", "frames": "17"}, 400),
        ({"keys": []}, 400),
        ({"keys": [{"position": [0, 0]}]}, 400),
        ({}, 400),
        ({"upload": "20260101-000000-abcdef"}, 404),
        ({"upload": "../../etc/passwd"}, 400),
    ],
)
def test_what_cannot_be_made_is_one_sentence(ask, body, status):
    answer = ask.post("/api/path", body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["words"]


def test_numbers_of_an_answer_are_rounded_to_what_float32_holds(ask):
    answer = ask.post("/api/path", ORBIT).json()
    made = torch.tensor(answer["poses"], dtype=torch.float32)
    body = {"keys": [{"position": [0, 0, 0]}]}
    assert torch.isfinite(made).all()
    assert ask.post("/api/path", body).json()["poses"][3] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]


def test_a_file_that_names_another_finds_it_among_the_uploaded_ones_alone(ask, tmp_path):
    """A request of PanShot names a pose file, and some readers take options that do."""
    poses = np.tile(np.eye(4), (17, 1, 1))
    np.save(tmp_path / "poses.npy", poses)
    request = {"pose_path": str(tmp_path / "poses.npy"), "x_fov": 90.0, "xi": 0.5, "caption": "x"}
    outside = ask.upload("cameras", "request.json", json.dumps([request]).encode())
    refused = ask.post("/api/import", {"upload": outside})
    assert refused.status_code == 422
    assert "uploaded with the request" in refused.json()["error"]["words"]
    inside = ask.upload("cameras", "request.json", json.dumps([request | {"pose_path": "poses.npy"}]).encode())
    ask.upload("cameras", "poses.npy", (tmp_path / "poses.npy").read_bytes(), into=inside)
    answer = ask.post("/api/import", {"upload": inside})
    assert answer.status_code == 200, answer.text
    assert answer.json()["format"] == "panshot-request"
    odd = {"upload": inside, "options": {"near_depths": "/etc/passwd"}}
    assert ask.post("/api/import", odd).status_code == 422
