"""Hugging Face `datasets`: a folder written by `save_to_disk`, or parquet shards as the hub keeps them.

A row is a clip: `video` (bytes, or a path below the folder), `cameras` (a camera file's text or bytes, or a path), and
what else a metadata table may say (`caption`, `id`, `split`, `source`, `near`, `unit`, `hfov`, `xi`, `format`).
Rows are read from where they lie: saved ones through memory maps, parquet a few pages at a time. Nothing is copied.
"""

import tempfile
from collections.abc import Iterator, Sequence
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
from curvedray.data.pictures import read_pictures
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord
from curvedray.data.tables import number_value, text_value
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import first_line, reading

ENDINGS = {"video": ".mp4", "cameras": ".json"}  # of parts that are stored as bytes
LIGHT = ("id", "caption", "split", "source", "near")  # what a record holds of its row
PAGE = 2**20  # bytes of a column that are read at once
PARQUET = ".parquet"
CAMERA_COLUMNS = ("cameras", "format", "unit", "hfov", "xi")


@dataclass(frozen=True)
class ArrowVideo:
    """The video of a row."""

    folder: Path
    table: str  # of the tables in the folder: its split, or a parquet file's path
    row: int

    def read(self) -> UInt8[Tensor, "t h w 3"]:
        with tempfile.TemporaryDirectory() as scratch:
            return read_pictures(
                _part(_row(self.folder, self.table, self.row, ("video",))["video"], "video", self.folder, Path(scratch))
            )

    def files(self) -> list[Path]:
        return _files(self.folder, self.table)


@dataclass(frozen=True)
class ArrowCameras:
    """The cameras of a row, and what it says of them."""

    folder: Path
    table: str
    row: int

    def read(self, width: int, height: int) -> Cameras:
        said = _row(self.folder, self.table, self.row, CAMERA_COLUMNS)
        with tempfile.TemporaryDirectory() as scratch:
            said["cameras"] = str(_part(said["cameras"], "cameras", self.folder, Path(scratch)))
            record = record_of_row(said | {"video": "video.mp4"}, f"row {self.row}", self.folder)
            return record.read_cameras(width, height)

    def files(self) -> list[Path]:
        place = Path(f"{self.table}-{self.row}")  # of the row, which is part of what it is
        return [*_files(self.folder, self.table), place]


def _row(folder: Path, table: str, row: int, columns: Sequence[str]) -> dict[str, Any]:
    """Some columns of a row, those of them that there are."""
    made_of = fingerprint([file_fingerprint(i) for i in _files(folder, table)])
    if table.endswith(PARQUET):
        return _parquet_rows(folder / table, made_of, tuple(columns)).row(row)
    whole = _saved(folder, made_of)[table]
    return dict(whole.select_columns([i for i in columns if i in whole.column_names])[row])


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
    """A record per row; of a parquet file that cannot be read, one that names it."""
    saved = any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))
    parquet = _parquet(folder)
    if not saved and not parquet:
        return []
    needed("datasets")  # which brings pyarrow
    records: list[AnyRecord] = []
    count: dict[str, int] = {}  # rows by the name of their split, over its files
    if parquet:
        for path in parquet:
            table, name = path.relative_to(folder).as_posix(), path.stem.split("-")[0]
            try:
                columns, rows = _light_parquet(path)
            except InputError as error:
                records.append(FaultyRecord(path.name, error, _split(name)))
                continue
            records += _records_of(folder, table, name, columns, rows, count.get(name, 0))
            count[name] = count.get(name, 0) + len(rows)
        return records
    for name, whole in _saved(folder, fingerprint([file_fingerprint(i) for i in _files(folder, "")])).items():
        light = whole.select_columns([i for i in LIGHT if i in whole.column_names])
        rows = [light[i] for i in range(len(light))] or [{}] * len(whole)
        records += _records_of(folder, name, name, whole.column_names, rows, 0)
    return records


def _records_of(
    folder: Path, table: str, name: str, columns: Sequence[str], rows: Sequence[dict[str, Any]], first: int
) -> Iterator[AnyRecord]:
    """The rows of a table of the split `name`, of whose rows `first` came before."""
    split = _split(name)
    if not {"video", "cameras"} <= set(columns):
        error = InputError(f"{folder}, table {table}", "columns video and cameras", ", ".join(columns))
        yield FaultyRecord(Path(table).name, error, split)
        return
    for index, row in enumerate(rows):
        said = {key: value for key, value in row.items() if value not in (None, "")}
        own = f"{name}-{first + index:06d}"
        try:
            near = number_value(said.pop("near"), f"{table} row {index}: near") if "near" in said else None
            texts: dict[str, Any] = {
                key: text_value(value, f"{table} row {index}: {key}") for key, value in said.items()
            }
        except InputError as error:
            yield FaultyRecord(own, error, split)
            continue
        own = texts.pop("id", own)
        if "split" in texts:
            said_split = texts["split"]
            texts["split"] = SPLITS.get(said_split.lower(), "")
            if not texts["split"]:  # whether it may be trained on is not guessed
                known = InputError(f"{table} row {index}: split", " or ".join(SPLITS), said_split)
                yield FaultyRecord(own, known, split)
                continue
        video, cameras = ArrowVideo(folder, table, index), ArrowCameras(folder, table, index)
        yield ClipRecord(own, video, cameras, near=near, **({"split": split} | texts))


def _split(name: str) -> str:
    return SPLITS.get(name.split("-")[0].lower(), "")


def _parquet(folder: Path) -> list[Path]:
    return sorted([*folder.glob(f"*{PARQUET}"), *folder.glob(f"data/*{PARQUET}")])


def _files(folder: Path, table: str) -> list[Path]:
    """What a table's rows are in."""
    return [folder / table] if table.endswith(PARQUET) else sorted(folder.rglob("*.arrow"))


# -- parquet


def _parquet_file(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    with reading(str(path), "a parquet file", "Copy it again."):
        return ParquetFile(path, buffer_size=PAGE, pre_buffer=False)


def _light_parquet(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """A file's columns, and what its rows say of themselves; no video is read."""
    with _parquet_file(path) as file, reading(str(path), "a parquet file", "Copy it again."):
        columns = list(file.schema_arrow.names)
        light = [name for name in LIGHT if name in columns]
        return columns, file.read(light).to_pylist() if light else [{}] * file.metadata.num_rows


class ParquetRows:
    """Some columns of a parquet file, row by row. The next row is near; for one before it, its group is begun again."""

    def __init__(self, path: Path, columns: Sequence[str]):
        self.path, self.file = path, _parquet_file(path)
        self.columns = [name for name in columns if name in self.file.schema_arrow.names]
        self.group, self.next = -1, 0
        self.batches: Iterator[Any] = iter(())

    def row(self, row: int) -> dict[str, Any]:
        with reading(f"{self.path} row {row}", "a row that can be read", "Copy the file again."):
            group = 0
            while row >= (rows := self.file.metadata.row_group(group).num_rows):
                group, row = group + 1, row - rows
            if group != self.group or row < self.next:
                self.batches = self.file.iter_batches(1, [group], self.columns, use_threads=False)
                self.group, self.next = group, 0
            try:
                for found in self.batches:
                    self.next += 1
                    if self.next > row:
                        return dict(found.to_pylist()[0])
                raise EOFError("the file ends before it")
            except Exception:
                self.group = -1  # whatever broke is not gone on with
                raise


@lru_cache(maxsize=8)
def _parquet_rows(path: Path, made_of: str, columns: tuple[str, ...]) -> ParquetRows:
    return ParquetRows(path, columns)


# -- saved by datasets


@lru_cache(maxsize=2)
def _saved(folder: Path, made_of: str) -> dict[str, Any]:
    """Tables by the name of their split, memory-mapped; videos stay bytes."""
    needed("datasets")
    import datasets

    try:
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
