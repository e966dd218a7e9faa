"""Hugging Face `datasets`: a folder written by `save_to_disk`, or parquet shards as the hub keeps them.

A row is a clip: `video` (bytes, or a path below the folder), `cameras` (a camera file's text or bytes, or a path), and
what else a metadata table may say (`caption`, `id`, `split`, `source`, `near`, `unit`, `hfov`, `xi`, `format`).
"""

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.labels import SPLITS
from curvedray.data.layouts.metadata import record_of_row
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, read_pictures
from curvedray.data.tables import number_value, text_value
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import first_line

ENDINGS = {"video": ".mp4", "cameras": ".json"}  # of parts that are stored as bytes
TEXTS = ("id", "caption", "split", "source")
CAMERA_COLUMNS = ("cameras", "format", "unit", "hfov", "xi")


@dataclass(frozen=True)
class ArrowVideo:
    """The video of a row."""

    folder: Path
    table: str  # of the tables in the folder
    row: int

    def read(self) -> UInt8[Tensor, "t h w 3"]:
        with tempfile.TemporaryDirectory() as scratch:
            return read_pictures(
                _part(_row(self.folder, self.table, self.row)["video"], "video", self.folder, Path(scratch))
            )

    def files(self) -> list[Path]:
        return _files(self.folder)


@dataclass(frozen=True)
class ArrowCameras:
    """The cameras of a row, and what it says of them."""

    folder: Path
    table: str
    row: int

    def read(self, width: int, height: int) -> Cameras:
        said = {key: value for key, value in _row(self.folder, self.table, self.row).items() if key in CAMERA_COLUMNS}
        with tempfile.TemporaryDirectory() as scratch:
            said["cameras"] = str(_part(said["cameras"], "cameras", self.folder, Path(scratch)))
            record = record_of_row(said | {"video": "video.mp4"}, f"row {self.row}", self.folder)
            return record.read_cameras(width, height)

    def files(self) -> list[Path]:
        return [*_files(self.folder), Path(f"{self.table}-{self.row}")]  # the row's place is part of what it is


def _row(folder: Path, table: str, row: int) -> dict[str, Any]:
    return _opened(folder, fingerprint([file_fingerprint(i) for i in _files(folder)]))[table][row]


def _part(value: Any, name: str, folder: Path, scratch: Path) -> Path:
    """A part as a file: where it is, or its bytes written out. The Video and Image features hold bytes and a path."""
    stored = value.get("bytes") if isinstance(value, dict) else value
    path = value.get("path") if isinstance(value, dict) else None
    if stored is None and path:
        return (folder / path).resolve()
    if isinstance(stored, str) and not stored.lstrip().startswith(("{", "[")) and "\n" not in stored:
        return (folder / stored).resolve()
    if not isinstance(stored, str | bytes):
        raise InputError(name, "bytes, text or a path", type(stored).__name__)
    ending = Path(path).suffix if path else ENDINGS[name]
    if name == "cameras" and not path:
        text = stored if isinstance(stored, str) else stored[:1].decode("latin-1")
        ending = ".json" if text.lstrip().startswith(("{", "[")) else ".txt"
    file = scratch / f"{name}{ending}"
    file.write_bytes(stored.encode() if isinstance(stored, str) else stored)
    return file


def hugging_face_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    saved = any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))
    if not saved and not _parquet(folder):
        return []
    records: list[AnyRecord] = []
    for name, table in _opened(folder, fingerprint([file_fingerprint(i) for i in _files(folder)])).items():
        split = SPLITS.get(name.split("-")[0].lower(), "")
        light = table.select_columns([i for i in (*TEXTS, "near") if i in table.column_names])
        if not {"video", "cameras"} <= set(table.column_names):
            expected = "columns video and cameras"
            error = InputError(f"{folder}, table {name}", expected, ", ".join(table.column_names))
            records.append(FaultyRecord(name, error, split))
            continue
        for index in range(len(table)):
            said = {key: value for key, value in light[index].items() if value not in (None, "")}
            try:
                near = number_value(said.pop("near"), f"{name} row {index}: near") if "near" in said else None
                texts = {key: text_value(value, f"{name} row {index}: {key}") for key, value in said.items()}
            except InputError as error:
                records.append(FaultyRecord(f"{name}-{index:06d}", error, split))
                continue
            own = texts.pop("id", f"{name}-{index:06d}")
            video, cameras = ArrowVideo(folder, name, index), ArrowCameras(folder, name, index)
            records.append(ClipRecord(own, video, cameras, near=near, **({"split": split} | texts)))
    return records


def _parquet(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.parquet"), *folder.glob("data/*.parquet")])


def _files(folder: Path) -> list[Path]:
    return [*sorted(folder.rglob("*.arrow")), *_parquet(folder)]


@lru_cache(maxsize=2)
def _opened(folder: Path, made_of: str) -> dict[str, Any]:
    """Tables by the name of their split, memory-mapped; videos stay bytes."""
    needed("datasets")
    import datasets

    try:
        if _parquet(folder):
            shards: dict[str, list[str]] = {}
            for path in _parquet(folder):
                shards.setdefault(path.stem.split("-")[0], []).append(str(path))
            found = {name: datasets.Dataset.from_parquet(paths, keep_in_memory=True) for name, paths in shards.items()}
        else:
            loaded = datasets.load_from_disk(str(folder))
            found = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"train": loaded}
        for name, table in found.items():
            for column, feature in table.features.items():
                if hasattr(feature, "decode"):
                    table = table.cast_column(column, type(feature)(decode=False))
            found[name] = table
    except Exception as error:  # pyarrow's own errors, of many kinds
        raise InputError(str(folder), "a data set of Hugging Face's datasets", first_line(error)) from error
    return found
