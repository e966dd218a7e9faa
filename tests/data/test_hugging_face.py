"""Hugging Face datasets: rows with bytes or paths are clips, saved or as parquet."""

import datasets
import pyarrow
import pyarrow.parquet
import pytest
import torch
from tiny import TinyModel, footage

from curvedray.data.cache import build_cache
from curvedray.data.check import check_clips
from curvedray.data.clips import VideoShape
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


def test_parquet_is_read_from_where_it_lies_and_a_bad_file_is_passed_over(tmp_path, monkeypatch):
    """Regression: all of it was copied into Hugging Face's cache, and one bad file refused the whole set, unnamed."""
    monkeypatch.setattr("datasets.Dataset.from_parquet", None)
    made = rows(tmp_path / "parts", paths=False)
    (tmp_path / "set").mkdir()
    for number in range(2):
        few = [made[number] | {"id": f"{number}-{i}", "caption": f"row {i}"} for i in range(5)]
        table = pyarrow.Table.from_pylist(few)
        pyarrow.parquet.write_table(table, tmp_path / "set" / f"train-{number}.parquet", row_group_size=3)
    source = FolderFootage(tmp_path / "set")
    assert [source.name_of(i) for i in range(10)] == [f"{a}-{i}" for a in range(2) for i in range(5)]
    for index in (4, 0, 1, 9, 3, 2):  # on, back, and over from group to group and file to file
        assert source[index].caption == f"row {index % 5}"
        assert (source[index].video.float() - footage(index // 5).video.float()).abs().mean() < 20
    assert len({source.fingerprint(i) for i in range(10)}) == 10
    before = source.fingerprint(9)
    bad = tmp_path / "set" / "train-0.parquet"
    bad.write_bytes(bad.read_bytes()[:-100])
    source = FolderFootage(tmp_path / "set")
    assert [source.name_of(i) for i in range(6)] == ["train-0.parquet", *(f"1-{i}" for i in range(5))]
    assert source.fingerprint(5) == before  # another file's damage is not its own
    report = build_cache(source, TinyModel(), VideoShape(9, 32, 48), tmp_path / "cache")
    assert report.clips == 5
    ((name, reason),) = report.skipped
    assert (name, str(bad) in reason) == ("train-0.parquet", True)


def test_damage_inside_a_parquet_file_is_the_damage_of_its_rows(tmp_path):
    made = rows(tmp_path / "parts", paths=False)
    (tmp_path / "set").mkdir()
    file = tmp_path / "set" / "train.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(made), file, row_group_size=1, compression="none")
    video = pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(0)
    content = bytearray(file.read_bytes())
    start = video.dictionary_page_offset or video.data_page_offset
    content[start : start + 16] = b"\xff" * 16  # a page's header
    file.write_bytes(bytes(content))
    first, second = check_clips(FolderFootage(tmp_path / "set"))
    assert "train.parquet row 0" in first.problems[0]
    assert second.frames
