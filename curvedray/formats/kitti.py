"""KITTI text: a 3x4 world_from_camera per row, 12 numbers, in metres. KITTI-360 puts the frame's number before them.

KITTI-360's `cam0_to_world.txt` writes 16 numbers after the frame's number; its `poses.txt` are those of the car's
motion sensor, not of a camera.
"""

from collections.abc import Iterable

import torch

from curvedray.cameras import Cameras
from curvedray.formats.build import any_rotation, gather, note
from curvedray.formats.lenses import chosen_lens
from curvedray.formats.source import Source, complete


def detect(source: Source) -> str | None:
    found = source.columns() == 12 and any_rotation([_rotation(row) for row in source.sample(12)])
    return "rows of 12 numbers with a rotation" if found else None


def detect_360(source: Source) -> str | None:
    columns = source.columns()
    rows = source.sample(columns) if columns in (13, 17) else []
    poses = [row[1:] for row in rows if row[0] == int(row[0]) and row[13:] in ([], [0, 0, 0, 1])]
    found = any_rotation([_rotation(row) for row in poses])
    return f"rows of a frame number and {columns - 1} numbers with a rotation" if found else None


def _rotation(row: list[float]) -> list[list[float]]:
    return [row[0:3], row[4:7], row[8:11]]


def read(source: Source) -> Cameras:
    lines, rows = source.table(12)
    return _cameras(source, lines, rows)


def read_360(source: Source) -> Cameras:
    lines, rows = source.table(13, 17)
    for line, before, after in zip(lines[1:], rows, rows[1:], strict=False):
        if after[0] <= before[0]:
            source.fail(f"line {line}, column 1", f"a frame number above {before[0]:g}", f"{after[0]:g}")
    if rows[-1][0] - rows[0][0] != len(rows) - 1:
        note(f"{source.name}: {len(rows)} frames of {rows[0][0]:g} to {rows[-1][0]:g}; the gaps are not kept.")
    return _cameras(source, lines, [row[1:] for row in rows])


def _cameras(source: Source, lines: list[int], rows: list[list[float]]) -> Cameras:
    poses = complete(torch.tensor(rows, dtype=torch.float64).reshape(len(rows), -1, 4))
    return gather(source, [f"line {line}" for line in lines], poses, chosen_lens(source), "metric")


def write(cameras: Cameras) -> bytes:
    return _text(_row(pose) for pose in cameras.world_from_camera.double().tolist())


def write_360(cameras: Cameras) -> bytes:
    return _text(f"{i} {_row(pose)}" for i, pose in enumerate(cameras.world_from_camera.double().tolist()))


def _row(pose: list[list[float]]) -> str:
    return " ".join(repr(number) for row in pose[:3] for number in row)


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
