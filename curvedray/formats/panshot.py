"""PanShot: poses (T, 3, 4) world_from_camera in a gravity-aligned world, .npy; near distances in a .jsonl; and the
requests that pair a pose file with a lens and a caption, .json.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.formats import numpy_poses, realestate
from curvedray.formats.build import gather, note, npy
from curvedray.formats.lenses import chosen_lens, given_lens, image_size
from curvedray.formats.source import Given, Node, Source
from curvedray.inputs import input_file, parsed_json

UCPE_FRAMES = 81


@dataclass(frozen=True)
class Request:
    """One clip to generate: whose path, through which lens (degrees across the width, and xi), and of what."""

    pose_path: str
    x_fov: float
    xi: float
    caption: str


def detect(source: Source) -> str | None:
    shape = source.array_shape()
    if shape is None or len(shape) != 3 or shape[1:] not in ((3, 4), (4, 4)) or not shape[0]:
        return None
    if numpy_poses.detect(source) or _is_intrinsics(source.array()):
        return None
    return f"a NumPy array of {shape[0]} poses"


def _is_intrinsics(array: np.ndarray) -> bool:
    """Whether every matrix is fx 0 cx, 0 fy cy, 0 0 1 with focal lengths that no rotation has."""
    focal = array[:, 0, 0]
    below = array[:, [1, 2, 2], [0, 0, 1]]
    return bool((below == 0).all() and (np.abs(focal) > 2).all() and (array[:, 2, 2] == 1).all())


def detect_request(source: Source) -> str | None:
    if not source.is_json:
        return None
    first = source.json.value[0] if isinstance(source.json.value, list) and source.json.value else source.json.value
    return "pose_path with x_fov" if isinstance(first, dict) and {"pose_path", "x_fov"} <= set(first) else None


def read(
    source: Source,
    *,
    near_depth: float | None = None,
    near_depths: str | Path | None = None,
    clip: str | None = None,
    zero_yaw: bool = False,
) -> Cameras:
    """Translations are divided by `near_depth`, or by the one that the file `near_depths` gives for `clip`.

    `clip` is video_id-clip_id; left out, it is the pose file's name. `zero_yaw` turns the world about y so that the
    first camera has no yaw, as UCPE does.
    """
    if near_depths is not None:
        _refuse("none beside near_depths, which has each clip's", near_depth=near_depth)
    else:
        _refuse("near_depths=, in which it is looked up, beside it", clip=clip)
    poses = source.pose_array(source.array())
    cameras = gather(
        source,
        [f"frame {i}" for i in range(len(poses))],
        poses,
        chosen_lens(source),
        "arbitrary",
        exact=True,
    )
    if zero_yaw:
        cameras = replace(cameras, world_from_camera=without_first_yaw(cameras.world_from_camera))
    if near_depths is not None:
        near_depth = _near_depth(Source.open(Path(near_depths)), clip, source.path.stem)
    if near_depth is None:
        if not source.given.unit_said:
            note(f"{source.name}: no near distance, so the unit is not known. Say near_depth= or near_depths=.")
        return cameras
    return cameras.scaled(near_depth)


def _refuse(expected: str, **said: object) -> None:
    """Refuse what would otherwise be dropped without a word; None is what was not said."""
    for name, value in said.items():
        if value is not None:
            raise InputError(f"option {name}", expected, value)


def without_first_yaw(poses: Float[Tensor, "t 4 4"]) -> Float[Tensor, "t 4 4"]:
    """The world turned about y, so that the first camera looks along the plane x = 0."""
    yaw = math.atan2(poses[0, 0, 2].item(), poses[0, 2, 2].item())
    cos, sin = math.cos(-yaw), math.sin(-yaw)
    turn = poses.new_tensor([[cos, 0, sin, 0], [0, 1, 0, 0], [-sin, 0, cos, 0], [0, 0, 0, 1]])
    return turn @ poses


def _near_depth(source: Source, clip: str | None, stem: str) -> float:
    """The near distance of `clip`, or of the clip that a pose file called <clip> or <clip>-<a>-<b> belongs to."""
    wanted = [clip] if clip else [stem, stem.rsplit("-", 2)[0]]
    table = near_distances(source.path)
    for name in wanted:
        if name in table:
            return table[name]
    return source.fail("", f"a line for the clip {wanted[-1]}", "none", "Name it with clip='video_id-clip_id'.")


def near_distances(path: Path) -> dict[str, float]:
    """PanShot's near_plane_depth-SPLIT.jsonl: near distances by `video_id-clip_id`, in the unit of the poses."""
    return _near_distances(path, input_file(path, "near distances").stat().st_mtime_ns)


@lru_cache(maxsize=4)  # a list of requests asks for every clip of a long file
def _near_distances(path: Path, changed: int) -> dict[str, float]:
    source, table = Source.open(path), {}
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.strip():
            row = Node(source, parsed_json(line, f"{source.name}, line {number}"), f"in line {number}")
            table[f"{row['video_id'].value}-{row['clip_id'].value}"] = row["near_depth"].number()
    return table


def read_requests(path: str | Path) -> list[Request]:
    """Every request of a PanShot request file, in order."""
    return [_request(node) for node in _nodes(Source.open(Path(path)))]


def _nodes(source: Source) -> list[Node]:
    return source.json.items() if isinstance(source.json.value, list) else [source.json]


def _request(node: Node) -> Request:
    caption = node["caption"].text() if "caption" in node else ""
    return Request(node["pose_path"].text(), node["x_fov"].number(), node["xi"].number(), caption)


def read_request(
    source: Source,
    *,
    index: int | None = None,
    root: str | Path | None = None,
    near_depth: float | None = None,
    near_depths: str | Path | None = None,
    clip: str | None = None,
    zero_yaw: bool = False,
    traj_normalization: float | None = None,
) -> Cameras:
    """Request number `index` (from 0): its pose file, found under `root` (the request's own folder), and its lens.

    The pose file may be PanShot's or RealEstate10K's; the lens is the request's either way. `traj_normalization`
    multiplies RealEstate10K's translations; UCPE keeps it in traj_normalization.txt beside those files.
    """
    nodes = _nodes(source)
    if index is None and len(nodes) > 1:
        source.fail("", "to be told which request", f"{len(nodes)} of them", f"Say index= 0 to {len(nodes) - 1}.")
    if not 0 <= (index or 0) < len(nodes):
        source.fail("", f"an index of 0 to {len(nodes) - 1}", index)
    node = nodes[index or 0]
    request = _request(node)
    size = image_size(source)
    lens = given_lens(source, size) or _request_lens(node, request, size)
    if not request.pose_path.strip() or "\0" in request.pose_path:
        node["pose_path"].fail("the path of a pose file", request.pose_path)
    folder = Path(root or source.path.parent)
    file = folder / request.pose_path
    if not file.is_file():
        fix = "Say root=FOLDER, the folder that pose_path starts from."
        node["pose_path"].fail(f"a file at {file}", "nothing there", fix)
    given = replace(source.given, lens=lens, size=size)
    said = {"near_depth": near_depth, "near_depths": near_depths, "clip": clip, "zero_yaw": zero_yaw}
    return request_cameras(file, given, **said, traj_normalization=traj_normalization)


def request_cameras(file: Path, given: Given, *, traj_normalization: float | None = None, **said: Any) -> Cameras:
    """The cameras of a request's pose file, which is PanShot's or RealEstate10K's, with the lens that is given.

    `said` is for `read`: near_depth, near_depths, clip, zero_yaw.
    """
    poses = Source.open(file, given)
    near_depth = said.get("near_depth")
    if poses.is_npy:
        _refuse("none for PanShot's poses, only for RealEstate10K's", traj_normalization=traj_normalization)
        return read(poses, **said)
    near_depths = {name: said.get(name) for name in ("near_depths", "clip")}
    _refuse("none for RealEstate10K's poses, only for PanShot's", **near_depths)
    if near_depth is not None:
        _refuse("none beside near_depth, which scales the path itself", traj_normalization=traj_normalization)
    return _realestate(poses, near_depth, traj_normalization)


def _realestate(source: Source, near_depth: float | None, times: float | None) -> Cameras:
    """RealEstate10K's poses as UCPE takes them: the first 81, relative to the first, times its traj_normalization."""
    cameras = realestate.read(source)
    count = source.given.first_frames or UCPE_FRAMES
    if count < len(cameras):
        note(f"{source.name}: the first {count} of {len(cameras)} frames, as UCPE takes them; or say first_frames=.")
    cameras = cameras[:count].relative_to_first()
    if near_depth is not None:
        return cameras.scaled(near_depth)
    if times is None:
        fix = "Say traj_normalization= (the number in traj_normalization.txt), or near_depth="
        note(f"{source.name}: UCPE multiplies translations by a number that is not in the file. {fix}.")
        return cameras
    if not (math.isfinite(times) and times > 0):
        raise InputError("option traj_normalization", "a positive number", times)
    return cameras.scaled(1 / times)


def _request_lens(node: Node, request: Request, size: tuple[int, int]) -> Lens:
    try:
        fov, xi = torch.tensor([request.x_fov, request.xi], dtype=torch.float64)
        return Lens.from_fov(fov, xi, *size)
    except InputError as error:
        node["x_fov"].fail(error.expected, error.got, error.fix)


def write(cameras: Cameras, *, near_depth: float = 1.0) -> bytes:
    """Translations are multiplied by `near_depth`, for a file whose reader will divide by it."""
    if not (math.isfinite(near_depth) and near_depth > 0):
        raise InputError("near_depth", "a positive number", near_depth)
    poses = cameras.world_from_camera[:, :3].clone()
    poses[..., 3] *= near_depth
    return npy(poses.numpy())
