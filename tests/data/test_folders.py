"""Folders of footage: every layout, every column, and every mistake in them as a sentence."""

import contextlib
import errno
import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from tiny import TinyFootage, TinyModel, footage

from curvedray.cameras import Cameras, Lens
from curvedray.data.check import check_clips
from curvedray.data.clips import (
    VideoShape,
    encoded,
    in_near_distances,
)
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.media.video import write_video

SHAPE = VideoShape(9, 32, 48)


def write_parts(folder, index, camera_format="curvedray", ending=".json"):
    one = footage(index, radial=False)
    write_video(one.video, folder / f"{one.id}.mp4", fps=8)
    cameras = one.cameras
    if camera_format == "realestate10k":
        cameras = Cameras(Lens.from_fov(80.0, 0.0, 48, 32), one.cameras.world_from_camera)
    write_cameras(cameras, folder / f"{one.id}{ending}", camera_format)
    return one


@pytest.mark.parametrize("table", ["csv", "jsonl"])
def test_a_metadata_table(tmp_path, table):
    one = write_parts(tmp_path, 0)
    np.savez(tmp_path / "radii.npz", radius=footage(0).radial.radius.numpy())
    row = {"video": "clip-0.mp4", "cameras": "clip-0.json", "caption": "a hill, at dusk", "radial": "radii.npz"}
    if table == "csv":
        (tmp_path / "metadata.csv").write_text(
            'video,cameras,caption,radial\nclip-0.mp4,clip-0.json,"a hill, at dusk",radii.npz\n'
        )
    else:
        (tmp_path / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source), source.name_of(0)) == ("metadata", 1, "clip-0")
    read = source[0]
    assert read.caption == "a hill, at dusk"
    torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera)
    torch.testing.assert_close(read.cameras.lens.xi, one.cameras.lens.xi)
    torch.testing.assert_close(read.radial.radius, footage(0).radial.radius)
    assert encoded(read, TinyModel(), SHAPE).radius_known.all()


def test_a_folder_that_was_written_is_read_back(tmp_path):
    write_folder(TinyFootage(2), tmp_path)
    source = FolderFootage(tmp_path)
    assert [source.name_of(i) for i in range(2)] == ["clip-0", "clip-1"]
    for index in range(2):
        one, read = footage(index), source[index]
        assert read.caption == one.caption
        torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera)
        torch.testing.assert_close(read.radial.radius, one.radial.radius)
        assert (read.video.float() - one.video.float()).abs().mean() < 6


def test_realestate10k(tmp_path):
    (tmp_path / "videos").mkdir()
    for index in range(2):
        write_parts(tmp_path / "videos", index, "realestate10k", ".txt")
    (tmp_path / "captions.json").write_text(json.dumps({"clip-0.mp4": ["a room"], "clip-1": "a garden"}))
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source)) == ("realestate10k", 2)
    assert [source[i].caption for i in range(2)] == ["a room", "a garden"]
    assert source[0].cameras.lens.size == (48, 32)
    assert float(source[0].cameras.lens.hfov.mean()) == pytest.approx(80.0, abs=1e-3)


def test_panshot(tmp_path):
    one = write_parts(tmp_path, 0, "panshot", ".npy")
    (tmp_path / "clip-0.mp4").rename(tmp_path / "film-3.mp4")
    (tmp_path / "clip-0.npy").rename(tmp_path / "film-3.npy")
    request = {"pose_path": "film-3.npy", "x_fov": 120.0, "xi": 0.6, "caption": "a street"}
    (tmp_path / "requests.json").write_text(json.dumps([request]))
    near = {"video_id": "film", "clip_id": 3, "near_depth": 0.5}
    (tmp_path / "near_plane_depth-train.jsonl").write_text(json.dumps(near) + "\n")
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source), source.name_of(0)) == ("panshot", 1, "film-3")
    read = source[0]
    assert (read.caption, read.near) == ("a street", 0.5)
    assert float(read.cameras.lens.hfov) == pytest.approx(120.0, abs=1e-3)
    assert float(read.cameras.lens.xi) == pytest.approx(0.6)
    cameras, _ = in_near_distances(read)
    torch.testing.assert_close(cameras.world_from_camera[:, :3, 3], one.cameras.world_from_camera[:, :3, 3] / 0.5)


def test_a_lens_is_never_guessed(tmp_path):
    one = write_parts(tmp_path, 0, "tum", ".txt")
    row = {"video": "clip-0.mp4", "cameras": "clip-0.txt", "caption": "a"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row))
    with pytest.raises(InputError, match="expected a lens"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row | {"hfov": 150, "xi": 0.9}))
    read = FolderFootage(tmp_path)[0]
    assert float(read.cameras.lens.hfov) == pytest.approx(150.0, abs=1e-3)
    torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera, rtol=1e-4, atol=1e-5)


def test_errors_name_the_clip_and_the_column(tmp_path):
    write_parts(tmp_path, 0)
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-0.mp4", "camera": "clip-0.json"}')
    with pytest.raises(InputError, match=r"row 1.*columns among"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-0.mp4", "cameras": "clip-0.json", "near": "two"}')
    with pytest.raises(InputError, match="near: expected a number"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-9.mp4", "cameras": "clip-0.json"}')
    with pytest.raises(InputError, match="clip clip-9"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").unlink()
    with pytest.raises(InputError, match="none of them"):
        FolderFootage(tmp_path)


# -- mistakes in tables


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("csv", "video,cameras,caption\n", "at least one row"),  # it once fell back to another layout
        ("csv", "video,cameras,caption\nclip-0.mp4,clip-0.json,a hill, at dusk\n", "quotes around text"),
        ("csv", "video,cameras,near\nclip-0.mp4,clip-0.json,-1\n", "near: expected a positive number"),
        ("csv", "video,cameras,near\nclip-0.mp4,clip-0.json,inf\n", "near: expected a finite number"),
        (
            "jsonl",
            '{"video": "clip-0.mp4", "cameras": "clip-0.json", "caption": 7}',
            "caption: expected text, got int",
        ),
        ("jsonl", '{"video": "clip-0.mp4", "cameras": "clip-0.json", "id": ["a"]}', "id: expected text"),
        ("jsonl", '{"video": "clip-0.mp4", "cameras": "clip-0.json", "id": "../../x"}', "id: expected a file's name"),
        ("jsonl", '{"video": "clip-0.mp4", "cameras": "clip-0.json", "id": "/etc/x"}', "id: expected a file's name"),
        ("jsonl", '{"video": {}, "cameras": "clip-0.json"}', "video: expected text"),
        ("jsonl", '{"video": "clip-0.mp4", "cameras": "clip-0.json", "hfov": true}', "hfov: expected a number"),
        ("jsonl", "[1, 2]", "a JSON object"),
        ("jsonl", "[" * 100_000, "thousands of levels"),
        ("jsonl", '{"near": ' + "9" * 5000 + "}", "too long to read"),
    ],
)
def test_a_mistake_in_a_table_is_one_sentence(tmp_path, name, content, message):
    write_parts(tmp_path, 0)
    (tmp_path / f"metadata.{name}").write_text(content)
    with pytest.raises(InputError, match=message):
        FolderFootage(tmp_path)[0]


def test_one_bad_row_does_not_stop_the_others(tmp_path):
    write_parts(tmp_path, 0)
    good = {"video": "clip-0.mp4", "cameras": "clip-0.json", "caption": "a"}
    rows = [good | {"id": "../x"}, good, good | {"caption": 3, "id": "three"}, 5]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    reports = list(check_clips(FolderFootage(tmp_path)))
    assert [bool(report.frames) for report in reports] == [False, True, False, False]
    (tmp_path / "metadata.csv").write_text("video,cameras\n")
    with pytest.raises(InputError, match="one table"):
        FolderFootage(tmp_path)


def test_an_id_never_leaves_its_folder(tmp_path):
    class Escaping(TinyFootage):
        def __getitem__(self, index):
            return replace(super().__getitem__(index), id="../outside")

    with pytest.raises(InputError, match="a file's name"):
        write_folder(Escaping(1), tmp_path / "inside")
    assert not list(tmp_path.rglob("outside*"))


TABLE = (
    'video,cameras,caption,id,near,hfov,xi,unit\nclip-0.mp4,clip-0.json,"a, b",one,1.5,90,0.5,metric\n',
    '{"video": "clip-0.mp4", "cameras": "clip-0.json", "caption": "a", "near": 1.5, "id": "one", "xi": 0.5}\n',
)


def mutated(text, random):
    """A table in which something was deleted, doubled, swapped or replaced by what does not belong there."""
    odd = [
        "",
        "\0",
        "\x1b[31m",
        '"',
        ",",
        "\n",
        "{",
        "[" * 2000,
        "9" * 5000,
        "NaN",
        "1e999",
        "null",
        "true",
        "٣",
        "../",
        "é",
        "\ud800",
    ]
    for _ in range(random.randint(1, 4)):
        a, b = sorted(random.randrange(len(text) + 1) for _ in range(2))
        text = random.choice([text[:a] + text[b:], text[:b] + text[a:], text[:a] + random.choice(odd) + text[b:]])
        text = text or " "
    return text


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_no_mutated_table_is_a_traceback(tmp_path, kind):
    write_parts(tmp_path, 0)
    random, path = Random(0), tmp_path / f"metadata.{kind}"
    for _ in range(150):
        path.write_bytes(mutated(TABLE[kind == "jsonl"], random).encode("utf-8", "surrogatepass"))
        with contextlib.suppress(InputError):
            source = FolderFootage(tmp_path)
            for index in range(len(source)):
                source.fingerprint(index)
                with contextlib.suppress(InputError):
                    source[index]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    class Stopped(TinyFootage):
        def __getitem__(self, index):
            if index == 1:
                raise KeyboardInterrupt
            return super().__getitem__(index)

    with pytest.raises(KeyboardInterrupt):
        write_folder(Stopped(2), tmp_path / "clips")
    assert list(tmp_path.iterdir()) == []

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("curvedray.data.folders.np.savez_compressed", full)
    with pytest.raises(InputError, match="a full disk"):
        write_folder(TinyFootage(1), tmp_path / "clips")
    assert list(tmp_path.iterdir()) == []
