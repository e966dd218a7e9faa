"""RealCam-Vid: videos with camera_from_world poses and intrinsics divided by width and height.

Its own metadata is a NumPy file of pickled Python objects, which is never opened here; written once as
RealCam-Vid_*.jsonl (docs/datasets.md has the lines), it is read. Positions are kept as stored, in a unit of their own.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.data.labels import split_of_name
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, starting_near
from curvedray.data.tables import Row, table_rows, text_value
from curvedray.errors import InputError
from curvedray.inputs import reading

NAME = "RealCam-Vid"
CONVERT = "Write it as lines of JSON first: docs/datasets.md, RealCam-Vid, has the few lines that do."


@dataclass(frozen=True)
class RowCameras:
    """Poses and a lens as numbers of a table's row."""

    camera_from_world: tuple[tuple[tuple[float, ...], ...], ...]
    intrinsics: tuple[float, ...]  # fx fy cx cy, as shares of width and height

    def read(self, width: int, height: int) -> Cameras:
        poses = inverse_pose(torch.tensor(self.camera_from_world, dtype=torch.float64))
        fx, fy, cx, cy = self.intrinsics
        numbers = torch.tensor([[fx * width, fy * height], [cx * width, cy * height]], dtype=torch.float64)
        lens = Lens(numbers[0], numbers[1], torch.tensor(0.0, dtype=torch.float64), (width, height))
        return starting_near(Cameras(lens, poses, "arbitrary"))

    def files(self) -> list[Path]:
        return []


def realcam_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    tables = sorted(folder.glob(f"{NAME}_*.jsonl"))
    pickled = sorted(folder.glob(f"{NAME}_*.npz"))
    if pickled and not tables:
        raise InputError(str(pickled[0]), "lines of JSON", "pickled Python objects, which are never opened", CONVERT)
    records: list[AnyRecord] = []
    for table in tables:
        split = split_of_name(table)
        for number, row in enumerate(table_rows(table), 1):
            where = f"{table.name} row {number}"
            try:
                if isinstance(row, InputError):
                    raise row
                records.append(_record(row, where, folder, split))
            except InputError as error:
                records.append(FaultyRecord(where, error, split))
    return records


def _record(row: Row, where: str, folder: Path, split: str) -> ClipRecord:
    video = folder / text_value(row.get("video_path"), f"{where}: video_path")
    with reading(where, "camera_extrinsics (F 4 4) and camera_intrinsics (4 numbers)"):
        poses = tuple(tuple(tuple(map(float, line)) for line in pose) for pose in row["camera_extrinsics"])
        lens = tuple(map(float, row["camera_intrinsics"]))
        if len(lens) != 4 or any(len(pose) != 4 or any(len(line) != 4 for line in pose) for pose in poses):
            raise ValueError("other shapes")
    caption = row.get("long_caption") or row.get("short_caption") or ""
    source = str(row.get("dataset_source", ""))
    name = "-".join(part for part in (source, video.stem) if part)
    return ClipRecord(name, video, RowCameras(poses, lens), caption, split=split, source=video.stem)
