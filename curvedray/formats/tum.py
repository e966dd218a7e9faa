"""TUM text: `seconds tx ty tz qx qy qz qw` per row, world_from_camera, the quaternion's real part last.

Some tools write the real part first (MonST3R's pred_traj.txt): a header that names the columns decides, or the caller.
"""

import math

import torch

from curvedray.cameras import Cameras
from curvedray.formats.build import frame_rate, gather
from curvedray.formats.lenses import chosen_lens
from curvedray.formats.quaternion import check_quaternion, is_unit, quaternion_order, quaternions, rotations
from curvedray.formats.source import Source

COLUMNS = 8


def detect(source: Source) -> str | None:
    if source.columns() != COLUMNS or any(name.lower().startswith("p_") for name in source.column_names):
        return None
    found = any(is_unit(row[4:]) for row in source.sample(COLUMNS))
    return f"rows of {COLUMNS} numbers with a unit quaternion" if found else None


def read(source: Source, *, quaternion: str | None = None) -> Cameras:
    """`quaternion` is wxyz (real part first) or xyzw (last), where the file's header does not say it."""
    lines, rows = source.table(COLUMNS)
    where = [f"line {line}" for line in lines]
    for place, row in zip(where, rows, strict=True):
        check_quaternion(source, place, row[4:])
    turns = [row[4:] for row in rows]
    poses = torch.eye(4, dtype=torch.float64).repeat(len(rows), 1, 1)
    poses[:, :3, :3] = rotations(turns, quaternion_order(source, quaternion, lines, turns))
    poses[:, :3, 3] = torch.tensor([row[1:4] for row in rows], dtype=torch.float64)
    times = [row[0] for row in rows]
    numbered = times == [float(i) for i in range(len(rows))]  # frame numbers, as we write an unknown rate
    fps = None if numbered else frame_rate(times, _precision(source, times))
    return gather(source, where, poses, chosen_lens(source), "metric", fps)


def _precision(source: Source, times: list[float]) -> float:
    """Seconds by which a time may be off: one of its last decimal, as written, or of its last bit."""
    decimals = max(len(words[0].partition(".")[2]) for _, words in source.rows())
    return max(10.0**-decimals, 4 * math.ulp(max(map(abs, times))), 1e-9)


def write(cameras: Cameras) -> bytes:
    poses = cameras.world_from_camera.double()
    step = 1.0 if cameras.fps is None else 1 / cameras.fps
    turns = quaternions(poses[:, :3, :3], "xyzw")
    rows = [
        " ".join([f"{i * step:.9f}", *(repr(number) for number in (*place, *turn))])
        for i, (place, turn) in enumerate(zip(poses[:, :3, 3].tolist(), turns, strict=True))
    ]
    return ("\n".join(["# seconds tx ty tz qx qy qz qw", *rows]) + "\n").encode()
