"""3D Gaussian Splatting's cameras.json: a list of position, rotation (of world_from_camera), fx, fy, width, height.

Its code calls the matrix W2C, but what it writes is world_from_camera. Test cameras come before training cameras, so
frames are taken in the order of their image names.
"""

import json

import torch

from curvedray.cameras import Cameras
from curvedray.formats.build import gather, note, numbered
from curvedray.formats.lenses import gather_lens, given_lens, lens_numbers
from curvedray.formats.source import Node, Source, natural


def detect(source: Source) -> str | None:
    first = source.first_entry()
    return "a list with position and rotation" if {"position", "rotation", "fx", "fy"} <= set(first) else None


def read(source: Source) -> Cameras:
    frames = source.json.items()
    if all("img_name" in frame for frame in frames):
        ordered = sorted(frames, key=lambda frame: natural(str(frame["img_name"].value)))
        if ordered != frames:
            note(f"{source.name}: the frames are taken in the order of their image names, not of the file.")
        frames = ordered
    where = [f"field {frame.where}" for frame in frames]
    poses = torch.stack([_pose(frame) for frame in frames])
    sizes = [frame.size("width", "height") for frame in frames]
    numbers = [
        [frame["fx"].number(), frame["fy"].number(), width / 2, height / 2, 0.0]
        for frame, (width, height) in zip(frames, sizes, strict=True)
    ]
    lens = given_lens(source, sizes[0]) or gather_lens(source, where, numbers, sizes)
    return gather(source, where, poses, lens, "arbitrary")


def _pose(frame: Node) -> torch.Tensor:
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, :3] = torch.tensor(frame["rotation"].rows(3, 3), dtype=torch.float64)
    pose[:3, 3] = torch.tensor(frame["position"].numbers(3), dtype=torch.float64)
    return pose


def write(cameras: Cameras, *, image_name: str = "frame_{:05d}") -> bytes:
    width, height = cameras.lens.size
    frames = [
        {
            "id": i,
            "img_name": numbered(image_name, i),
            "width": width,
            "height": height,
            "position": [row[3] for row in pose[:3]],
            "rotation": [row[:3] for row in pose[:3]],
            "fy": lens[1],
            "fx": lens[0],
        }
        for i, (pose, lens) in enumerate(
            zip(cameras.world_from_camera.double().tolist(), lens_numbers(cameras).double().tolist(), strict=True)
        )
    ]
    return (json.dumps(frames) + "\n").encode()
