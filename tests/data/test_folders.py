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
from curvedray.data.sources import Data, open_clips, open_held_out
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.media.video import write_video
from curvedray.radial.map import RadialMap, near_distance, write_radial_map

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


def panshot_folder(tmp_path, near_of=("train", "train", "test")):
    """Three clips, the last one's poses RealEstate10K's text; near depths in a file per split."""
    requests = []
    for index, split in enumerate(near_of):
        text = index == 2
        write_parts(tmp_path, index, "realestate10k" if text else "panshot", ".txt" if text else ".npy")
        poses = f"clip-{index}{'.txt' if text else '.npy'}"
        requests.append({"pose_path": poses, "x_fov": 100.0, "xi": 0.2, "caption": f"street {index}"})
        with (tmp_path / f"near_plane_depth-{split}.jsonl").open("a") as file:
            file.write(json.dumps({"video_id": "clip", "clip_id": index, "near_depth": 0.5}) + "\n")
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    return tmp_path


def test_panshots_poses_may_be_realestates_text_and_its_split_is_kept(tmp_path):
    source = FolderFootage(panshot_folder(tmp_path))
    assert [record.format for record in source.records] == ["panshot", "panshot", "realestate10k"]
    read = source[2]
    assert read.cameras.unit == "arbitrary"  # nobody says metres
    assert float(read.cameras.lens.hfov) == pytest.approx(100.0, abs=1e-3)  # the request's lens, not the text's
    torch.testing.assert_close(
        read.cameras.relative_to_first().world_from_camera,
        footage(2).cameras.relative_to_first().world_from_camera,
        atol=1e-5,
        rtol=1e-4,
    )
    assert source.held_out == [2]
    clips, _ = open_clips(Data(str(tmp_path), frames=9, height=32, width=48, cache="off"), TinyModel(), tmp_path)
    assert [clips.name_of(i) for i in range(len(clips))] == ["clip-0", "clip-1"]
    held = open_held_out(Data(str(tmp_path), frames=9, height=32, width=48, cache="off"), TinyModel(), tmp_path, 2)
    assert [clip.id for clip in held.clips] == ["clip-2"]


def test_panshots_near_depth_is_its_poses_and_not_a_metric_maps(tmp_path):
    panshot_folder(tmp_path)
    labels = tmp_path / "labels"
    write_radial_map(RadialMap.from_metric(footage(0).radial.radius), labels / "clip-0.npz")
    source = FolderFootage(tmp_path, labels)
    read = source[0]
    assert (read.near, read.radial.near) == (0.5, pytest.approx(near_distance(read.radial.radius, read.radial.valid)))
    cameras, radial = in_near_distances(read)
    moved = footage(0).cameras.world_from_camera[:, :3, 3] / 0.5
    torch.testing.assert_close(cameras.world_from_camera[:, :3, 3], moved)
    assert radial.near == read.radial.near
    with pytest.raises(InputError, match="unknown scale"):
        in_near_distances(replace(read, near=None))


@pytest.mark.parametrize("place", ["beside", "labels"])
@pytest.mark.parametrize("layout", ["metadata", "realestate10k", "panshot"])
def test_labels_are_found_for_every_layout(tmp_path, layout, place):
    folder = tmp_path / "clips"
    folder.mkdir()
    if layout == "panshot":
        panshot_folder(folder)
    else:
        for index in range(2):
            ending = {"metadata": ".json", "realestate10k": ".txt"}[layout]
            write_parts(folder, index, {"metadata": "curvedray"}.get(layout, layout), ending)
        if layout == "metadata":
            rows = [f"clip-{i}.mp4,clip-{i}.json,a hill\n" for i in range(2)]
            (folder / "metadata.csv").write_text("video,cameras,caption\n" + "".join(rows))
    before = FolderFootage(folder)
    prints = [before.fingerprint(i) for i in range(2)]
    labels = folder if place == "beside" else tmp_path / "labels"
    write_radial_map(footage(0).radial, labels / "clip-0.npz")
    source = FolderFootage(folder, None if place == "beside" else labels)
    assert source.layout == layout
    assert [record.radial is not None for record in source.records[:2]] == [True, False]
    assert source.fingerprint(0) != prints[0]  # encoded again
    assert source.fingerprint(1) == prints[1]
    torch.testing.assert_close(source[0].radial.radius, footage(0).radial.radius)


def test_a_camera_file_of_the_clips_name_is_no_label_and_labels_of_others_are_refused(tmp_path):
    write_parts(tmp_path, 0)
    np.savez(tmp_path / "clip-0.npz", poses=np.eye(4))
    (tmp_path / "metadata.csv").write_text("video,cameras\nclip-0.mp4,clip-0.json\n")
    assert FolderFootage(tmp_path).records[0].radial is None
    write_radial_map(footage(0).radial, tmp_path / "labels" / "another.npz")
    with pytest.raises(InputError, match=r"clip-0\.npz.*radial label"):
        FolderFootage(tmp_path, tmp_path / "labels")
    with pytest.raises(InputError, match="a folder of maps"):
        FolderFootage(tmp_path, tmp_path / "nowhere")


def test_a_tables_split_holds_clips_out(tmp_path):
    rows = []
    for index, split in enumerate(("train", "", "val")):
        write_parts(tmp_path, index)
        rows.append(f"clip-{index}.mp4,clip-{index}.json,{split}\n")
    (tmp_path / "metadata.csv").write_text("video,cameras,split\n" + "".join(rows))
    assert FolderFootage(tmp_path).held_out == [2]
    (tmp_path / "metadata.csv").write_text("video,cameras,split\nclip-0.mp4,clip-0.json,both\n")
    with pytest.raises(InputError, match="split: expected train, val or test"):
        FolderFootage(tmp_path)[0]


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
    random, path, opened, read = Random(0), tmp_path / f"metadata.{kind}", 0, 0
    for _ in range(150):
        path.write_bytes(mutated(TABLE[kind == "jsonl"], random).encode("utf-8", "surrogatepass"))
        with contextlib.suppress(InputError):
            source = FolderFootage(tmp_path)
            opened += 1
            for index in range(len(source)):
                source.fingerprint(index)
                with contextlib.suppress(InputError):
                    source[index]
                    read += 1
    assert 0 < opened < 150  # both ways were taken
    assert read > 0


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
