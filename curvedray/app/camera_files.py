"""An uploaded camera file, of any format that the package reads, as a path in the scene's frame.

Readers can be told to look at other files, and a request file of PanShot names one itself: here those must have been
uploaded together with it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curvedray.app.lenses import lens_of
from curvedray.app.requests import PathAsked
from curvedray.app.uploads import Uploads
from curvedray.cameras import Cameras
from curvedray.cameras.angles import yaw_pitch_roll
from curvedray.errors import InputError
from curvedray.files import plain_name
from curvedray.formats import FORMATS, GENERAL, detect_format, read_cameras, read_requests
from curvedray.inputs import is_file
from curvedray.moves.actions import Rig
from curvedray.moves.trajectory import fitted_to

SAID_ELSEWHERE = ("lens", "size", "relative")  # of all readers' options: the path itself says them
UNKNOWN_SCALE = (
    "the file's scale is not known: its farthest camera was put one near distance away; set the scale to change it"
)


def found_format(asked: PathAsked, uploads: Uploads) -> tuple[Path, str, str]:
    """The file or folder to read, its format, and why it is taken for that."""
    files = uploads.files(asked.upload or "", "cameras")
    folder = files[0].parent
    if asked.format is not None:
        if asked.format not in FORMATS:
            raise InputError("format", f"one of {', '.join(FORMATS)}", asked.format)
        whole = len(files) > 1 and FORMATS[asked.format].reads_folders
        return folder if whole else files[0], asked.format, "as you say"
    if len(files) > 1:
        try:
            return folder, *detect_format(folder)
        except InputError:  # files that lie beside the one that counts, which came first
            pass
    return files[0], *detect_format(files[0])


def read_file(asked: PathAsked, uploads: Uploads) -> tuple[Cameras, str, str]:
    """The file's own cameras, its format, and why it is taken for that."""
    path, format, reason = found_format(asked, uploads)
    folder = path if path.is_dir() else path.parent
    if format == "panshot-request":
        for request in read_requests(path):
            _check_inside(folder, request.pose_path)
    told: dict[str, Any] = _options(asked.options, format, folder)
    if asked.lens is not None:
        told["lens"] = lens_of(asked.lens, asked.width, asked.height)
    return read_cameras(path, format, **told), format, reason


def _options(given: dict[str, Any], format: str, folder: Path) -> dict[str, Any]:
    """A reader's own options; those that name files name uploaded ones."""
    general = {option.name: option for option in GENERAL if option.name not in SAID_ELSEWHERE}
    known = general | {option.name: option for option in FORMATS[format].options}
    told: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise InputError(f"option {name}", f"one that {format} takes ({', '.join(known)})", name)
        if Path in known[name].kinds and isinstance(value, str):
            told[name] = str(folder / plain_name(value, f"option {name}"))
            if not is_file(told[name]):
                raise InputError(f"option {name}", "a file that was uploaded with this one", value)
        else:
            told[name] = int(value) if known[name].kinds == (int,) and isinstance(value, float) else value
    return told


def _check_inside(folder: Path, name: str) -> None:
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise InputError("pose_path", "a file that was uploaded with the request", name)


def read_path(asked: PathAsked, uploads: Uploads) -> tuple[Cameras, list[str]]:
    """A camera file's path, from its first camera on, in metres, in as many frames as asked; and what that changed."""
    found, _, _ = read_file(asked, uploads)
    cameras, notes = fitted_to(found, asked.frames, asked.width, asked.height)
    cameras = _from_here(cameras, keep_horizon=asked.horizon)
    scale, said = _metres_per_unit(cameras, asked)
    poses = cameras.world_from_camera.clone()
    poses[:, :3, 3] *= scale
    return replace(cameras, world_from_camera=poses, unit="metric", fps=asked.fps), notes + said


def _from_here(cameras: Cameras, keep_horizon: bool) -> Cameras:
    """From the first camera on: level it is, or, with its file's horizon kept, only facing ahead."""
    if not keep_horizon:
        return cameras.relative_to_first()
    poses = cameras.world_from_camera.double()
    yaw = yaw_pitch_roll(poses[0, :3, :3].numpy())[0]
    turn = torch.from_numpy(Rig.change(np.zeros(1), yaw=np.array([-yaw])).poses()[0])
    placed = poses.clone()
    placed[:, :3, 3] -= poses[0, :3, 3]
    return replace(cameras, world_from_camera=(turn @ placed).to(cameras.world_from_camera.dtype))


def _metres_per_unit(cameras: Cameras, asked: PathAsked) -> tuple[float, list[str]]:
    if asked.scale is not None:
        return asked.scale, [f"scaled: {asked.scale:g} metres per unit of the file"]
    if cameras.unit == "metric":
        return 1.0, []
    if cameras.unit == "near":
        return asked.near, []
    places = cameras.world_from_camera[:, :3, 3].double()
    longest = (places - places[0]).norm(dim=-1).max().item()
    if longest == 0:
        return 1.0, []
    note = (
        "the file's scale is not known: its farthest camera was put one near distance away; set the scale to change it"
    )
    return asked.near / longest, [note]
