"""What `ns-export cameras` writes: a list of file_path and transform, a 3x4 world_from_camera with OpenGL axes, z up.

It carries no lens. The poses are in nerfstudio's normalised world, not in the capture's.
"""

import json

import torch

from curvedray.cameras import Cameras
from curvedray.formats.build import from_opengl, gather, numbered, to_opengl
from curvedray.formats.lenses import chosen_lens
from curvedray.formats.source import Source, natural


def detect(source: Source) -> str | None:
    return "a list with file_path and transform" if {"file_path", "transform"} <= set(source.first_entry()) else None


def read(source: Source) -> Cameras:
    frames = sorted(source.json.items(), key=lambda frame: natural(frame["file_path"].text()))
    where = [f"field {frame.where}.transform" for frame in frames]
    poses = from_opengl(torch.stack([frame["transform"].pose() for frame in frames]))
    return gather(source, where, poses, chosen_lens(source), "arbitrary")


def write(cameras: Cameras, *, file_path: str = "images/frame_{:05d}.png") -> bytes:
    frames = [
        {"file_path": numbered(file_path, i), "transform": pose[:3]}
        for i, pose in enumerate(to_opengl(cameras.world_from_camera.double()).tolist())
    ]
    return (json.dumps(frames, indent=4) + "\n").encode()
