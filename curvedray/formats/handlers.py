"""The code of each format: what gives it away, its reader and its writer."""

from collections.abc import Callable
from dataclasses import dataclass

from curvedray.cameras import Cameras
from curvedray.formats import (
    ac3d,
    asl,
    colmap,
    curvedray_json,
    gaussian,
    kitti,
    llff,
    megasam,
    motionctrl,
    nerfstudio,
    nerfstudio_list,
    numpy_poses,
    panshot,
    realestate,
    recammaster,
    trajectorycrafter,
    tum,
    vipe,
)
from curvedray.formats.source import Source


@dataclass(frozen=True)
class Handler:
    """How files of one format are known, read and written."""

    detect: Callable[[Source], str | None]
    read: Callable[..., Cameras]
    write: Callable[..., bytes | dict[str, bytes]] | None  # None: only read; a dict is a folder's files


# By the names of registry.py, in its order.
HANDLERS = {
    "curvedray": Handler(curvedray_json.detect, curvedray_json.read, curvedray_json.write),
    "realestate10k": Handler(realestate.detect, realestate.read, realestate.write),
    "panshot": Handler(panshot.detect, panshot.read, panshot.write),
    "panshot-request": Handler(panshot.detect_request, panshot.read_request, None),
    "recammaster": Handler(recammaster.detect, recammaster.read, recammaster.write),
    "nerfstudio": Handler(nerfstudio.detect, nerfstudio.read, nerfstudio.write),
    "nerfstudio-path": Handler(nerfstudio.detect_path, nerfstudio.read_path, nerfstudio.write_path),
    "colmap": Handler(colmap.detect, colmap.read, colmap.write),
    "kitti": Handler(kitti.detect, kitti.read, kitti.write),
    "kitti360": Handler(kitti.detect_360, kitti.read_360, kitti.write_360),
    "tum": Handler(tum.detect, tum.read, tum.write),
    "vipe": Handler(vipe.detect, vipe.read, vipe.write),
    "gaussian-splatting": Handler(gaussian.detect, gaussian.read, gaussian.write),
    "motionctrl": Handler(motionctrl.detect, motionctrl.read, motionctrl.write),
    "asl": Handler(asl.detect, asl.read, asl.write),
    "ac3d": Handler(ac3d.detect, ac3d.read, ac3d.write),
    "llff": Handler(llff.detect, llff.read, llff.write),
    "megasam": Handler(megasam.detect, megasam.read, megasam.write),
    "nerfstudio-list": Handler(nerfstudio_list.detect, nerfstudio_list.read, nerfstudio_list.write),
    "numpy-poses": Handler(numpy_poses.detect, numpy_poses.read, numpy_poses.write),
    "trajectorycrafter": Handler(trajectorycrafter.detect, trajectorycrafter.read, None),
}
