"""TUM text: `seconds tx ty tz qx qy qz qw` a row, world_from_camera, the quaternion's real part last."""

import math

import torch
from scipy.spatial.transform import Rotation

from curvedray.cameras import Cameras
from curvedray.formats.build import chosen_lens, frame_rate, gather
from curvedray.formats.source import Source

COLUMNS = 8


def detect(source: Source) -> str | None:
    return f"rows of {COLUMNS} numbers" if source.columns() == COLUMNS else None


def read(source: Source) -> Cameras:
    lines, rows = source.table(COLUMNS)
    where = [f"line {line}" for line in lines]
    for place, row in zip(where, rows, strict=True):
        check_quaternion(source, place, row[4:])
    poses = torch.eye(4, dtype=torch.float64).repeat(len(rows), 1, 1)
    poses[:, :3, :3] = torch.from_numpy(Rotation.from_quat([row[4:] for row in rows]).as_matrix())
    poses[:, :3, 3] = torch.tensor([row[1:4] for row in rows], dtype=torch.float64)
    times = [row[0] for row in rows]
    numbered = times == [float(i) for i in range(len(rows))]  # frame numbers, as we write an unknown rate
    fps = None if numbered else frame_rate(times, _precision(source, times))
    return gather(source, where, poses, chosen_lens(source), "metric", fps)


def _precision(source: Source, times: list[float]) -> float:
    """Seconds by which a time may be off: one of its last decimal, as written, or of its last bit."""
    decimals = max(len(words[0].partition(".")[2]) for _, words in source.rows())
    return max(10.0**-decimals, 4 * math.ulp(max(map(abs, times))), 1e-9)


def check_quaternion(source: Source, place: str, quaternion: list[float]) -> None:
    """Of unit length, to the few digits that text files keep."""
    length = math.hypot(*quaternion)
    if not abs(length - 1) < 1e-2:
        source.fail(place, "a quaternion qx qy qz qw of length 1", f"length {length:.4g}")


def write(cameras: Cameras) -> bytes:
    poses = cameras.world_from_camera.double()
    quaternions = Rotation.from_matrix(poses[:, :3, :3].numpy()).as_quat().tolist()
    step = 1.0 if cameras.fps is None else 1 / cameras.fps
    rows = [
        " ".join([f"{i * step:.9f}", *(repr(number) for number in (*place, *quaternion))])
        for i, (place, quaternion) in enumerate(zip(poses[:, :3, 3].tolist(), quaternions, strict=True))
    ]
    return ("\n".join(["# seconds tx ty tz qx qy qz qw", *rows]) + "\n").encode()
