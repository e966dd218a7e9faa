"""Folders of footage that people already have: a metadata table, RealEstate10K, PanShot. One record a clip.

A metadata table is `metadata.csv` or `metadata.jsonl` with the columns of `Record`; paths in it are relative to it.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.data.clips import Footage, FootageSource
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.formats import cameras_of_video, write_cameras
from curvedray.media.video import read_video, write_video
from curvedray.radial.map import read_radial_map

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi")


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

    def read(self) -> Footage:
        """Decode the video and read its cameras; anything wrong is an InputError that names the clip."""
        try:
            video = read_video(self.video)
            height, width = video.frames.shape[1:3]
            cameras = self._cameras(width, height)
            radial = read_radial_map(self.radial, self.near) if self.radial else None
        except InputError as error:
            raise InputError(f"clip {self.id}: {error.name}", error.expected, error.got, error.fix) from error
        return Footage(self.id, self.caption, video.frames, cameras, radial, self.near)

    def _cameras(self, width: int, height: int) -> Cameras:
        """The camera file's, with the lens of this record where there is one. A lens is never guessed."""
        lens = None if self.hfov is None else Lens.from_fov(self.hfov, self.xi, width, height)
        return cameras_of_video(self.cameras, width, height, format=self.format, lens=lens, unit=self.unit)


class FolderFootage:
    """The footage of a folder, whichever of the known layouts it has."""

    def __init__(self, folder: Path):
        if not folder.is_dir():
            raise InputError("data", "a folder", f"{folder}, which is not one")
        self.folder = folder
        for name, reader in LAYOUTS.items():
            self.records = reader(folder)
            if self.records:
                self.layout = name
                return
        expected = "metadata.csv or .jsonl, or RealEstate10K .txt files, or PanShot requests, beside videos"
        raise InputError(f"data {folder}", expected, "none of them", "See docs/data.md for each layout.")

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Footage:
        return self.records[index].read()

    def name_of(self, index: int) -> str:
        return self.records[index].id

    def describe(self) -> dict[str, object]:
        return {"kind": self.layout, "folder": self.folder.resolve().name, "ids": [i.id for i in self.records]}


def write_folder(
    source: FootageSource, folder: Path, tick: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Footage as a folder with a metadata table: videos, camera files, radial maps. The table comes last."""
    rows = []
    for index in range(len(source)):
        one = source[index]
        row = {"video": f"{one.id}.mp4", "cameras": f"{one.id}.json", "caption": one.caption}
        write_video(one.video, folder / row["video"], one.cameras.fps or 16.0, crf=8)
        write_cameras(one.cameras, folder / row["cameras"])
        if one.radial is not None:
            row["radial"] = f"{one.id}.npz"
            with whole_file(folder / row["radial"]) as temporary:
                np.savez_compressed(temporary, radius=one.radial.radius.numpy(), valid=one.radial.valid.numpy())
        rows.append(row)
        tick(index + 1, len(source))
    with whole_file(folder / "metadata.csv") as temporary, temporary.open("w", newline="") as file:
        table = csv.DictWriter(file, ["video", "cameras", "caption", "radial"])
        table.writeheader()
        table.writerows(rows)


def metadata_records(folder: Path) -> list[Record]:
    """`metadata.csv` or `metadata.jsonl`: a row per clip, its columns the fields of `Record`."""
    for path in (folder / "metadata.jsonl", folder / "metadata.csv"):
        if path.is_file():
            return [_record(row, f"{path.name} row {i + 1}", folder) for i, row in enumerate(_rows(path))]
    return []


def realestate_records(folder: Path) -> list[Record]:
    """A `.txt` of RealEstate10K and a video of the same name, anywhere below; captions in `captions.json` by name."""
    videos = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEOS}
    captions = _captions(folder)
    return [
        Record(videos[path.stem], path, captions.get(path.stem, ""), path.stem, "realestate10k")
        for path in sorted(folder.rglob("*.txt"))
        if path.stem in videos
    ]


def panshot_records(folder: Path) -> list[Record]:
    """PanShot: requests (.json or .jsonl with x_fov, xi, caption, pose_path), poses, near_plane_depth-*.jsonl, videos.

    A request's video is its `video_path`, or the video that bears the name of its poses.
    """
    requests = [path for path in sorted(folder.rglob("*.json*")) if not path.name.startswith("near_plane_depth")]
    rows = [row for path in requests for row in _rows(path, strict=False) if {"pose_path", "x_fov"} <= set(row)]
    near = {
        key: depth for path in folder.rglob("near_plane_depth-*.jsonl") for key, depth in _near_depths(path).items()
    }
    videos = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEOS}
    records = []
    for row in rows:
        poses = folder / str(row["pose_path"])
        video = folder / str(row["video_path"]) if "video_path" in row else videos.get(poses.stem)
        records.append(
            Record(
                video or poses.with_suffix(".mp4"),  # one that is missing is reported as missing
                poses,
                str(row.get("caption", "")),
                poses.stem,
                "panshot",
                near=near.get(poses.stem, near.get(poses.stem.rsplit("-", 2)[0])),  # clips of a clip share its depth
                hfov=float(row["x_fov"]),
                xi=float(row.get("xi", 0.0)),
                unit="metric",
            )
        )
    return records


LAYOUTS: dict[str, Callable[[Path], list[Record]]] = {
    "metadata": metadata_records,
    "panshot": panshot_records,
    "realestate10k": realestate_records,
}


def _record(row: dict[str, Any], where: str, folder: Path) -> Record:
    known = {field.name for field in fields(Record)}
    row = {key: value for key, value in row.items() if value not in (None, "")}
    unknown = sorted(set(row) - known)
    if unknown:
        raise InputError(where, f"columns among {', '.join(sorted(known))}", ", ".join(unknown))
    for name in ("video", "cameras"):
        if name not in row:
            raise InputError(where, f"a column {name}", "none, or an empty one")
    if row.get("unit") not in (None, *get_args(Unit)):
        raise InputError(f"{where}: unit", " or ".join(get_args(Unit)), row["unit"])
    for name in ("video", "cameras", "radial"):
        if name in row:
            row[name] = folder / str(row[name])
    for name in ("near", "hfov", "xi"):
        if name in row:
            row[name] = _number(row[name], f"{where}: {name}")
    return Record(**{"id": row["video"].stem, **row})


def _number(value: object, where: str) -> float:
    try:
        return float(str(value))
    except ValueError as error:
        raise InputError(where, "a number", repr(value)) from error


def _rows(path: Path, strict: bool = True) -> list[dict[str, Any]]:
    """The rows of a csv, jsonl or json list (or single object). Files that are not ours pass where not strict."""
    try:
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        text = path.read_text(encoding="utf-8")
        parsed = json.loads(text) if path.suffix == ".json" else [json.loads(i) for i in text.splitlines() if i.strip()]
    except (ValueError, csv.Error) as error:
        if strict:
            raise InputError(str(path), "a table of one clip a row", error) from error
        return []
    rows = parsed if isinstance(parsed, list) else [parsed]
    return [row for row in rows if isinstance(row, dict)]


def _captions(folder: Path) -> dict[str, str]:
    """Captions by a video's name, with or without its ending; a list of captions gives its first."""
    path = folder / "captions.json"
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(str(path), "a JSON object of captions by name", error) from error
    if not isinstance(stored, dict):
        raise InputError(str(path), "a JSON object of captions by name", type(stored).__name__)
    return {
        Path(key).stem: str(value[0] if isinstance(value, list) and value else value) for key, value in stored.items()
    }


def _near_depths(path: Path) -> dict[str, float]:
    """Near depths by `video_id-clip_id`."""
    try:
        return {f"{row['video_id']}-{row['clip_id']}": float(row["near_depth"]) for row in _rows(path)}
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            str(path), "rows with video_id, clip_id and near_depth", f"{type(error).__name__} {error}"
        ) from error
