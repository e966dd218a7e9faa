"""Hugging Face datasets: rows with bytes or paths are clips, saved or as parquet."""

import datasets
import pytest
import torch
from tiny import footage

from curvedray.data.check import check_clips
from curvedray.data.folders import FolderFootage
from curvedray.formats import write_cameras
from curvedray.media.video import write_video


def rows(folder, paths):
    """Two clips, their parts as bytes and text, or as paths below the folder."""
    made = []
    for index in range(2):
        one = footage(index, radial=False)
        folder.mkdir(exist_ok=True)
        write_video(one.video, folder / f"{one.id}.mp4", fps=8)
        write_cameras(one.cameras, folder / f"{one.id}.json")
        video, cameras = folder / f"{one.id}.mp4", folder / f"{one.id}.json"
        parts = {"video": video.name, "cameras": cameras.name}
        if not paths:
            parts = {"video": video.read_bytes(), "cameras": cameras.read_text()}
        made.append(parts | {"caption": one.caption, "id": one.id, "near": 1.5, "views": 7})
    return made


@pytest.mark.parametrize(
    "kind", ["splits", *(pytest.param(i, marks=pytest.mark.slow) for i in ("saved", "parquet", "paths"))]
)
def test_a_row_is_a_clip(tmp_path, kind):
    folder = tmp_path / "set"
    table = datasets.Dataset.from_list(rows(folder if kind == "paths" else tmp_path / "parts", kind == "paths"))
    if kind == "splits":
        datasets.DatasetDict({"train": table.select([0]), "test": table.select([1])}).save_to_disk(folder)
    elif kind == "saved":
        table.save_to_disk(folder)
    else:
        (folder / "data").mkdir(parents=True)
        table.to_parquet(folder / "data" / "train-00000-of-00001.parquet")
    source = FolderFootage(folder)
    assert (source.layout, [source.name_of(i) for i in range(2)]) == ("hugging face", ["clip-0", "clip-1"])
    assert source.held_out == ([1] if kind == "splits" else [])
    for index in range(2):
        one, read = footage(index), source[index]
        assert (read.caption, read.near) == (one.caption, 1.5)
        torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera)
        assert (read.video.float() - one.video.float()).abs().mean() < 20
    assert source.fingerprint(0) != source.fingerprint(1)


def test_a_damaged_row_is_named_and_the_other_is_read(tmp_path):
    made = rows(tmp_path / "parts", paths=False)
    made[0]["video"] = made[0]["video"][:200]
    datasets.Dataset.from_list(made).save_to_disk(tmp_path / "set")
    reports = list(check_clips(FolderFootage(tmp_path / "set")))
    assert [bool(row.frames) for row in reports] == [False, True]
    datasets.Dataset.from_list([{"text": "a"}]).save_to_disk(tmp_path / "words")
    assert "columns video and cameras" in next(iter(check_clips(FolderFootage(tmp_path / "words")))).problems[0]
