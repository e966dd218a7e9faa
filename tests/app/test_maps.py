"""Maps that are dropped onto the page, blocked out, cut, and shown."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from studio_client import LENS, ORBIT, Asker

from curvedray.app.facts import Shelf
from curvedray.app.studio import Studio
from curvedray.media.video import write_video
from curvedray.radial.grey_video import grey_distances
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

TEXT = "box 1x1x2m at left 2m ahead 4m; wall 9x4m at ahead 7m"


def fetched(ask, tmp_path, answer):
    file = ask.get(answer["file"])
    (tmp_path / "fetched.npz").write_bytes(file.content)
    return read_radial_map(tmp_path / "fetched.npz")


def test_a_file_that_cannot_be_read_is_called_by_its_own_name(ask):
    """The page once said where in the studio's folder an upload lay."""
    upload = ask.upload("map", "depth.mp4", b"no video")
    grey = {"black": 1.0, "white": 9.0}
    answer = ask.post("/api/map", {"upload": upload, "meaning": "z", "grey": grey, "lens": LENS})
    assert answer.status_code == 422
    assert answer.json()["error"]["words"].startswith("depth.mp4: expected a video")
    assert answer.json()["error"]["name"] == "depth.mp4"


def test_a_blocked_out_map_is_cut_and_shown_and_can_be_dropped_again(ask, tmp_path):
    cuts = [{"box": [0, 0, 0.5, 1], "frames": [0, 3]}]
    body = {"scene": {"text": TEXT}, "path": ORBIT | {"near": 4.0}}
    whole, cut = (ask.post("/api/map", body | more).json() for more in ({}, {"cuts": cuts}))
    made = fetched(ask, tmp_path, whole)
    assert made.radius.shape == (17, 64, 96)
    assert (whole["near"], whole["valid"]) == pytest.approx((made.near, made.valid.float().mean().item()))
    left = fetched(ask, tmp_path, cut)
    assert not left.valid[:4, :, :48].any()
    assert (left.valid[4:] == made.valid[4:]).all()
    picture = Image.open(io.BytesIO(ask.get(whole["picture"].replace("FRAME", "16")).content))
    assert picture.size == (384, 256)
    assert ask.get(whole["picture"].replace("FRAME", "17")).status_code == 404
    upload = ask.upload("map", "mine.npz", ask.get(whole["file"]).content)
    again = ask.post("/api/map", {"upload": upload, "lens": LENS}).json()
    assert again["near"] == pytest.approx(whole["near"])
    assert ask.get(again["file"]).content == ask.get(whole["file"]).content


def test_a_map_is_checked_on_the_tokens_of_the_model_that_will_film_it(tmp_path):
    """It was checked on Wan's tokens of 16 x 16 pixels whoever films: a map of finer checks was said to be flat for the
    embedded model, and a size that only it takes was refused."""
    wan = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"
    ask = Asker(Studio(tmp_path / "studio", Shelf((wan,))))
    fine = (torch.arange(80)[:, None] // 8 + torch.arange(96) // 8) % 2
    body = {"lens": LENS, "height": 80}
    checks = RadialMap.from_metric((2.0 + fine).repeat(17, 1, 1), near=2.0)
    body["upload"] = ask.upload("map", "mine.npz", write_radial_map(checks, tmp_path / "mine.npz").read_bytes())
    assert ask.post("/api/map", body).json()["problems"] == []
    (flat,) = ask.post("/api/map", body | {"model": wan}).json()["problems"]
    assert "equally far" in flat
    assert ask.post("/api/map", body | {"model": "/etc"}).status_code == 422
    odd = {"scene": {"text": TEXT}, "path": ORBIT | {"width": 120, "height": 80}}
    assert ask.post("/api/map", odd).status_code == 200
    assert ask.post("/api/map", odd | {"model": wan}).status_code == 422


def test_keyframes_stand_where_they_are_in_the_scene(ask, tmp_path):
    """A first camera that is turned away sees what is there, not what stood before it."""
    keys = [{"position": [0, 0, 0], "yaw": 180}, {"position": [0, 0, -0.5], "yaw": 180}]
    scene = {"text": "wall ahead 6m"}
    body = {"scene": scene, "path": {"keys": keys, "frames": 9}}
    away = fetched(ask, tmp_path, ask.post("/api/map", body).json())
    body["path"] = {"moves": "static", "frames": 9}
    towards = fetched(ask, tmp_path, ask.post("/api/map", body).json())
    assert towards.valid[0, 32, 48]
    assert not away.valid[0, 32, 48]  # the horizon, beyond a map's reach


def test_depth_of_other_programs_needs_its_meaning_and_a_folder_is_one_map(ask, tmp_path):
    from curvedray.radial.depth_files import write_png16

    name = None
    for index in range(3):
        write_png16(np.full((64, 96), 2.0 + index, np.float32), tmp_path / f"{index:04d}.png")
        into: dict[str, str] = {} if name is None else {"into": name}
        name = ask.upload("map", f"{index:04d}.png", (tmp_path / f"{index:04d}.png").read_bytes(), **into)
    body = {"upload": name, "frames": 3}
    refused = ask.post("/api/map", body)
    assert refused.status_code == 422
    assert "z (along its axis)" in refused.json()["error"]["words"]
    answer = ask.post("/api/map", body | {"meaning": "radius", "scale": "mm", "frames": 9})
    assert answer.status_code == 200, answer.text
    made = fetched(ask, tmp_path, answer.json())
    assert made.radius[:, 0, 0].tolist() == pytest.approx([2, 2, 2, 3, 3, 3, 4, 4, 4])


@pytest.mark.parametrize("inverse", [False, True])
def test_a_grey_depth_video_is_metres_between_black_and_white(ask, tmp_path, inverse):
    ramp = torch.linspace(0, 255, 96).round().to(torch.uint8).repeat(17, 64, 1)
    write_video(ramp[..., None].repeat(1, 1, 1, 3), tmp_path / "depth.mp4", crf=0)
    name = ask.upload("map", "depth.mp4", (tmp_path / "depth.mp4").read_bytes())
    assert ask.post("/api/map", {"upload": name, "meaning": "radius"}).status_code == 422
    grey = {"black": 2.0, "white": 10.0, "inverse": inverse}
    made = fetched(ask, tmp_path, ask.post("/api/map", {"upload": name, "meaning": "radius", "grey": grey}).json())
    share = np.linspace(0, 1, 96)
    expected = 1 / (0.5 - 0.4 * share) if inverse else 2 + 8 * share
    np.testing.assert_allclose(made.radius[8, 32].numpy(), expected, rtol=0.05)


def test_a_coloured_depth_video_is_refused():
    coloured = torch.zeros(2, 8, 8, 3, dtype=torch.uint8)
    coloured[..., 0] = 200
    with pytest.raises(ValueError, match="grey"):
        grey_distances(coloured, 1.0, 5.0)


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_by_its_header(ask, tmp_path):
    """1.6 MB that claimed a few kilobytes once took 14.7 GB."""
    import zipfile

    header = b"\x93NUMPY\x01\x00"
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000, 1000, 1000), }"
    text += b" " * (117 - len(text)) + b"\n"
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("radius.npy", "w") as member,
    ):
        member.write(header + len(text).to_bytes(2, "little") + text)
        for _ in range(20):
            member.write(bytes(10**6))
    name = ask.upload("map", "bomb.npz", (tmp_path / "bomb.npz").read_bytes())
    refused = ask.post("/api/map", {"upload": name})
    assert refused.status_code == 422
    assert "at most 700 MB unpacked, got 16.0 GB" in refused.json()["error"]["words"]
