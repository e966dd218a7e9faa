"""ReCamMaster / MultiCamVideo JSON: `frameN: {camXX: "[..] [..] [..] [..]"}`, Unreal's matrices, transposed, in cm.

Unreal's axes are x forward, y right, z up, for camera and world alike, so both change by the same exchange of axes;
the world then is gravity-aligned with y down, and the path seen from the first camera is the published one.
"""

import json
import re

import torch

from curvedray.cameras import Cameras
from curvedray.formats.build import gather
from curvedray.formats.lenses import chosen_lens
from curvedray.formats.source import Node, Source

CENTIMETRES = 100.0
OURS_FROM_UNREAL = torch.tensor([[0.0, 1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=torch.float64)
FRAME = re.compile(r"frame([0-9]{1,9})")


def detect(source: Source) -> str | None:
    if not source.is_json or not isinstance(source.json.value, dict):
        return None
    named = [key for key in source.json.value if FRAME.fullmatch(key)]
    return f"{len(named)} keys like {named[0]}" if named and len(named) == len(source.json.value) else None


def read(source: Source, *, camera: str | None = None) -> Cameras:
    """`camera` chooses one of the file's cameras, such as cam01; it may be left out where there is only one."""
    frames = _frames(source)
    held = frames[0].names()
    if camera is None and len(held) != 1:
        frames[0].fail("to be told which camera", f"{len(held)} of them", f"Say camera= one of {', '.join(held[:20])}.")
    chosen = [frame[camera or held[0]] for frame in frames]
    unreal = torch.stack([_matrix(node) for node in chosen])
    unreal[:, :3, 3] /= CENTIMETRES
    poses = OURS_FROM_UNREAL @ unreal @ OURS_FROM_UNREAL.mT
    return gather(source, [f"field {node.where}" for node in chosen], poses, chosen_lens(source), "metric")


def _frames(source: Source) -> list[Node]:
    numbered = {}
    for key in source.json.names():
        if not (match := FRAME.fullmatch(key)):
            source.fail(f"field {key}", "keys like frame0", key)
        numbered[int(match[1])] = source.json[key]
    if not numbered:
        source.fail("", "keys like frame0", "none")
    for expected, number in enumerate(sorted(numbered), min(numbered)):
        if number != expected:
            source.fail(f"field frame{expected}", "to find it", f"frame{number} next", "Is the file cut short?")
    return [numbered[number] for number in sorted(numbered)]


def _matrix(node: Node) -> torch.Tensor:
    """Four bracketed columns of a 4x4 matrix."""
    columns = [found.split() for found in re.findall(r"\[([^\[\]]*)\]", node.text())]
    if len(columns) != 4 or any(len(column) != 4 for column in columns):
        node.fail("four brackets of four numbers", node.value)
    numbers = [[node.source.number(f"field {node.where}", word) for word in column] for column in columns]
    return torch.tensor(numbers, dtype=torch.float64).mT.contiguous()


def write(cameras: Cameras, *, camera: str = "cam01") -> bytes:
    unreal = OURS_FROM_UNREAL.mT @ cameras.world_from_camera.double() @ OURS_FROM_UNREAL
    unreal[:, :3, 3] *= CENTIMETRES
    frames = {
        f"frame{i}": {camera: " ".join("[" + " ".join(repr(number) for number in column) + "]" for column in matrix)}
        for i, matrix in enumerate(unreal.mT.tolist())
    }
    return (json.dumps(frames, indent=4) + "\n").encode()
