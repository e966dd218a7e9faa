"""Folders of footage that people already have: a metadata table, RealEstate10K, PanShot. One record per clip.

A metadata table is `metadata.csv` or `metadata.jsonl` with the columns of `Record`; paths in it are relative to it.
A record that is wrong is kept, and says what is wrong when its clip is read, so that the other clips can be used.
"""

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.data.clips import Footage, FootageSource
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.labels import label_beside, labelled, split_of_name
from curvedray.data.tables import Row, loose_rows, named_captions, number_value, table_rows, text_value
from curvedray.errors import InputError
from curvedray.files import plain_name, scratch_folder, whole_file
from curvedray.formats import cameras_of_video, write_cameras
from curvedray.inputs import is_folder, reading
from curvedray.media.video import read_video, write_video
from curvedray.radial.map import read_radial_map

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi")
HELD_OUT = ("test", "val")
PATHS, NUMBERS = ("video", "cameras", "radial"), ("near", "hfov", "xi")  # columns of other than plain text


@dataclass(frozen=True)
class Record:
    """Where a clip's parts are. All but `video` and `cameras` may be left out."""

    video: Path
    cameras: Path
    caption: str = ""
    id: str = ""  # the video's name without its ending
    format: str | None = None  # of the camera file; found out if not said
    radial: Path | None = None  # .npz or .npy of metres
    near: float | None = None  # near distance, in the unit of the poses
    unit: Unit | None = None
    hfov: float | None = None  # degrees: the lens, where the camera file has none
    xi: float = 0.0
    split: str = ""  # `train`, or nothing, is trained on; `test` and `val` are held out
    source: str = ""  # what the clip was taken from; clips of one source belong to one split

    def read(self) -> Footage:
        """Decode the video and read its cameras; anything wrong is an InputError that names the clip."""
        try:
            plain_name(self.id, "id")
            video = read_video(self.video)
            height, width = video.frames.shape[1:3]
            cameras = self._cameras(width, height)
            # A near distance is in the poses' unit: only where that is metres is it also the map's.
            near = self.near if cameras.unit == "metric" else None
            radial = read_radial_map(self.radial, near) if self.radial else None
        except InputError as error:
            raise InputError(f"clip {self.id}: {error.name}", error.expected, error.got, error.fix) from error
        return Footage(self.id, self.caption, video.frames, cameras, radial, self.near)

    def fingerprint(self) -> str:
        """Of the files' contents, wherever they are, and of everything that the record says of the clip itself."""
        paths = {name: getattr(self, name) for name in PATHS}
        files = {name: file_fingerprint(path) for name, path in paths.items() if path is not None}
        said = {name: value for name, value in asdict(self).items() if name not in (*PATHS, "split", "source")}
        return fingerprint(said | files)

    def _cameras(self, width: int, height: int) -> Cameras:
        """The camera file's, with the lens of this record where there is one. A lens is never guessed."""
        lens = None if self.hfov is None else Lens.from_fov(self.hfov, self.xi, width, height)
        return cameras_of_video(self.cameras, width, height, format=self.format, lens=lens, unit=self.unit)


@dataclass(frozen=True)
class FaultyRecord:
    """In place of a record that could not be made: reading it says why."""

    id: str
    error: InputError

    def read(self) -> Footage:
        raise self.error

    def fingerprint(self) -> str:
        return fingerprint(["faulty", self.id, str(self.error)])


AnyRecord = Record | FaultyRecord


class FolderFootage:
    """The footage of a folder, whichever of the known layouts it has.

    A clip's map of distances is the one its record names, `<clip>.npz` beside its video, or, of all layouts and before
    those, `<clip>.npz` in the folder `labels`.
    """

    def __init__(self, folder: Path, labels: Path | None = None):
        if not is_folder(folder):
            raise InputError("data", "a folder", f"{folder}, which is not one")
        self.folder = folder
        self._fingerprints: dict[int, str] = {}
        for name, reader in LAYOUTS.items():
            records = reader(folder)
            if records:
                self.layout = name
                self.records = _with_labels(records, labels)
                return
        expected = "metadata.csv or .jsonl, or RealEstate10K .txt files, or PanShot requests, beside videos"
        raise InputError(f"data {folder}", expected, "none of them", "See docs/data.md for each layout.")

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Footage:
        return self.records[index].read()

    def name_of(self, index: int) -> str:
        return self.records[index].id

    @property
    def held_out(self) -> list[int]:
        """The clips that the folder's own split keeps from training."""
        return [i for i, record in enumerate(self.records) if isinstance(record, Record) and record.split in HELD_OUT]

    def fingerprint(self, index: int) -> str:
        """Taken once: a clip that changes while it is in use is another clip from the next start on."""
        if index not in self._fingerprints:
            self._fingerprints[index] = self.records[index].fingerprint()
        return self._fingerprints[index]


def write_folder(
    source: FootageSource, folder: Path, tick: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Footage as a folder with a metadata table: videos, camera files, radial maps. All of it, or nothing."""
    rows = []
    with scratch_folder(folder) as scratch:
        for index in range(len(source)):
            one = source[index]
            plain_name(one.id, "id")
            row = {"video": f"{one.id}.mp4", "cameras": f"{one.id}.json", "caption": one.caption}
            write_video(one.video, scratch / row["video"], one.cameras.fps or 16.0, crf=8)
            write_cameras(one.cameras, scratch / row["cameras"])
            if one.radial is not None:
                row["radial"] = f"{one.id}.npz"
                with whole_file(scratch / row["radial"]) as temporary:
                    np.savez_compressed(temporary, radius=one.radial.radius.numpy(), valid=one.radial.valid.numpy())
            rows.append(row)
            tick(index + 1, len(source))
        write_table(rows, scratch / "metadata.csv")
        folder.mkdir(exist_ok=True)
        for path in sorted(scratch.iterdir(), key=lambda path: path.name == "metadata.csv"):  # the table comes last
            os.replace(path, folder / path.name)


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """A metadata table, whole or not at all; a column for everything that any row says."""
    columns = [field.name for field in fields(Record) if any(field.name in row for row in rows)]
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)
    return path


def metadata_records(folder: Path) -> list[AnyRecord]:
    """`metadata.csv` or `metadata.jsonl`: a row per clip, its columns the fields of `Record`."""
    found = [path for path in (folder / "metadata.jsonl", folder / "metadata.csv") if path.is_file()]
    if len(found) > 1:
        raise InputError(f"data {folder}", "one table", "both metadata.jsonl and metadata.csv", "Remove one of them.")
    return [
        _record_or_fault(row, f"{path.name} row {number}", folder)
        for path in found
        for number, row in enumerate(table_rows(path), 1)
    ]


def realestate_records(folder: Path) -> list[AnyRecord]:
    """A `.txt` of RealEstate10K and a video of the same name, anywhere below; captions in `captions.json` by name."""
    videos = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEOS}
    captions = named_captions(folder / "captions.json")
    return [
        Record(videos[path.stem], path, captions.get(path.stem, ""), path.stem, "realestate10k")
        for path in sorted(folder.rglob("*.txt"))
        if path.stem in videos
    ]


def panshot_records(folder: Path) -> list[AnyRecord]:
    """PanShot: requests (.json or .jsonl with x_fov, xi, caption, pose_path), poses, near_plane_depth-*.jsonl, videos.

    A request's video is its `video_path`, or the video that bears the name of its poses, which are PanShot's .npy or
    RealEstate10K's text. Poses keep their own unit, and near depths are in it. The split is that of the file names:
    requests or near depths that end in -test or -val are held out.
    """
    requests = [path for path in sorted(folder.rglob("*.json*")) if not path.name.startswith("near_plane_depth")]
    found = [(row, split_of_name(path)) for path in requests for row in loose_rows(path)]
    rows = [(row, split) for row, split in found if {"pose_path", "x_fov"} <= set(row)]
    near: dict[str, float] = {}
    splits: dict[str, str] = {}
    for path in sorted(folder.rglob("near_plane_depth-*.jsonl")) if rows else ():
        depths = _near_depths(path)
        near |= depths
        splits |= dict.fromkeys(depths, split_of_name(path))
    videos = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEOS}
    records: list[AnyRecord] = []
    for number, (row, split) in enumerate(rows, 1):
        where = f"request {number}"
        try:
            poses = folder / text_value(row["pose_path"], f"{where}: pose_path")
            video = folder / text_value(row["video_path"], f"{where}: video_path") if "video_path" in row else None
            own = poses.stem if poses.stem in near else poses.stem.rsplit("-", 2)[0]  # parts of a clip share its depth
            record = Record(
                video or videos.get(poses.stem) or poses.with_suffix(".mp4"),  # a missing one is reported as missing
                poses,
                text_value(row.get("caption", ""), f"{where}: caption"),
                poses.stem,
                "panshot" if poses.suffix.lower() == ".npy" else "realestate10k",
                near=near.get(own),
                hfov=number_value(row["x_fov"], f"{where}: x_fov"),
                xi=number_value(row.get("xi", 0.0), f"{where}: xi"),
                split=split or splits.get(own, ""),
            )
        except InputError as error:
            records.append(FaultyRecord(where, error))
        else:
            records.append(record)
    return records


LAYOUTS: dict[str, Callable[[Path], list[AnyRecord]]] = {
    "metadata": metadata_records,
    "panshot": panshot_records,
    "realestate10k": realestate_records,
}


def _with_labels(records: list[AnyRecord], labels: Path | None) -> list[AnyRecord]:
    """Records with the maps that were found for them; a folder of labels that has none of the clips' is refused."""
    sound = [record for record in records if isinstance(record, Record)]
    maps = {} if labels is None else labelled(labels, {name for i in sound for name in (i.id, i.video.stem)})
    found: list[AnyRecord] = []
    for record in records:
        if isinstance(record, Record):
            other = maps.get(record.id) or maps.get(record.video.stem)
            beside = None if record.radial else label_beside(record.video, record.cameras)
            record = replace(record, radial=other or record.radial or beside)
        found.append(record)
    return found


def _record_or_fault(row: Row | InputError, where: str, folder: Path) -> AnyRecord:
    if isinstance(row, InputError):
        return FaultyRecord(where, row)
    try:
        return record_of_row(row, where, folder)
    except InputError as error:
        return FaultyRecord(where, error)


def record_of_row(row: Row, where: str, folder: Path) -> Record:
    """A row of a metadata table, checked; its paths start at `folder`."""
    known = {field.name for field in fields(Record)}
    row = {key: value for key, value in row.items() if value is not None and value != ""}
    unknown = sorted(set(row) - known)
    if unknown:
        raise InputError(where, f"columns among {', '.join(sorted(known))}", ", ".join(unknown))
    for name in ("video", "cameras"):
        if name not in row:
            raise InputError(where, f"a column {name}", "none, or an empty one")
    for name in NUMBERS:
        if name in row:
            row[name] = number_value(row[name], f"{where}: {name}")
    for name in set(row) - set(NUMBERS):
        row[name] = text_value(row[name], f"{where}: {name}")
    if row.get("near", 1.0) <= 0:
        raise InputError(f"{where}: near", "a positive number", row["near"])
    if row.get("split", "") not in ("", "train", *HELD_OUT):
        raise InputError(f"{where}: split", "train, val or test", row["split"])
    if row.get("unit") not in (None, *get_args(Unit)):
        raise InputError(f"{where}: unit", " or ".join(get_args(Unit)), row["unit"])
    for name in PATHS:
        if name in row:
            row[name] = folder / row[name]
    row.setdefault("id", row["video"].stem)
    plain_name(row["id"], f"{where}: id")
    return Record(**row)


def _near_depths(path: Path) -> dict[str, float]:
    """Near depths by `video_id-clip_id`."""
    depths = {}
    for number, row in enumerate(table_rows(path), 1):
        if isinstance(row, InputError):
            raise row
        with reading(f"{path.name} row {number}", "video_id, clip_id and near_depth"):
            key = f"{row['video_id']}-{row['clip_id']}"
            depths[key] = number_value(row["near_depth"], f"{path.name} row {number}: near_depth")
    return depths
