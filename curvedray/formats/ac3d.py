"""AC3D's camera_info.json: imH, imW, `intrinsics` (a 3x3 in pixels per frame), `w2c` (a 3x4 camera_from_world)."""

import json

import torch

from curvedray.cameras import Cameras, inverse_pose
from curvedray.formats.build import gather
from curvedray.formats.lenses import gather_lens, given_lens, intrinsics, lens_numbers, matrix_of
from curvedray.formats.source import Source


def detect(source: Source) -> str | None:
    found = source.is_json and all(key in source.json for key in ("w2c", "intrinsics", "imW", "imH"))
    return "w2c, intrinsics, imW and imH" if found else None


def read(source: Source) -> Cameras:
    top = source.json
    frames, lenses = top["w2c"].items(), top["intrinsics"].items()
    if len(lenses) != len(frames):
        source.fail("field intrinsics", f"{len(frames)} of them, one per pose", len(lenses))
    where = [f"field {frame.where}" for frame in frames]
    poses = inverse_pose(torch.stack([frame.pose() for frame in frames]))
    size = top.size("imW", "imH")
    lens = given_lens(source, size)
    if lens is None:
        numbers = [intrinsics(source, f"field {node.where}", node.rows(3, 3)) for node in lenses]
        lens = gather_lens(source, where, numbers, size)
    return gather(source, where, poses, lens, "arbitrary")


def write(cameras: Cameras) -> bytes:
    width, height = cameras.lens.size
    document = {
        "imH": height,
        "imW": width,
        "intrinsics": [matrix_of(row) for row in lens_numbers(cameras).double().tolist()],
        "w2c": inverse_pose(cameras.world_from_camera.double())[:, :3].tolist(),
    }
    return (json.dumps(document) + "\n").encode()
