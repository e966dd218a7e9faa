"""MotionCtrl's JSON: a list of 12 numbers per frame, a 3x4 camera_from_world with OpenCV axes, as RealEstate10K's."""

import json

import torch

from curvedray.cameras import Cameras, inverse_pose
from curvedray.formats.build import any_rotation, gather
from curvedray.formats.lenses import chosen_lens
from curvedray.formats.source import Source


def detect(source: Source) -> str | None:
    rows = source.json.value if source.is_json else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and len(row) == 12 for row in rows):
        return None
    if not all(isinstance(number, int | float) for row in rows[:20] for number in row):
        return None
    return "a list of 12 numbers per frame" if any_rotation([_matrix(row) for row in rows[:20]]) else None


def _matrix(row: list[float]) -> list[list[float]]:
    return [row[0:3], row[4:7], row[8:11]]


def read(source: Source) -> Cameras:
    frames = source.json.items()
    poses = inverse_pose(torch.stack([frame.pose() for frame in frames]))
    return gather(source, [f"field {frame.where}" for frame in frames], poses, chosen_lens(source), "arbitrary")


def write(cameras: Cameras) -> bytes:
    rows = inverse_pose(cameras.world_from_camera.double())[:, :3].reshape(-1, 12).tolist()
    return (json.dumps(rows, indent=4) + "\n").encode()
