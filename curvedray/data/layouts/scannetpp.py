"""ScanNet++: a DSLR's fisheye images and a phone's video, both in the world of a laser scan: metres, z up.

SCENE/dslr/nerfstudio/transforms.json, SCENE/dslr/resized_images/DSC00001.JPG
SCENE/iphone/pose_intrinsic_imu.json, SCENE/iphone/rgb/frame_000000.jpg (or rgb.mkv or rgb.mp4)
SCENE/iphone/depth/frame_000000.png, millimetres along the axis in 16 bits; 0 is not known
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from curvedray.cameras import Cameras, Lens
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.pictures import gap_in, image_files, usual_step
from curvedray.data.records import AnyRecord, ClipRecord, DepthFrames, FaultyRecord, FileCameras, starting_near, windows
from curvedray.errors import InputError
from curvedray.formats.build import Y_DOWN_FROM_Z_UP
from curvedray.formats.image_names import nerfstudio_images
from curvedray.inputs import read_json, reading

MILLIMETRES = 0.001
FPS = 60.0


@dataclass(frozen=True)
class PhoneCameras:
    """Poses aligned to the scan (camera-to-world, OpenCV's axes), and a pinhole per frame."""

    path: Path
    names: tuple[str, ...]  # frame_000000

    def read(self, width: int, height: int) -> Cameras:
        entries = _entries(self.path, file_fingerprint(self.path))
        poses, focal, center, size = [], [], [], (1920, 1440)
        for name in self.names:
            with reading(f"{self.path.name}, {name}", "aligned_pose (4 x 4) and intrinsic (3 x 3)"):
                entry = entries[name]
                poses.append(torch.tensor(entry["aligned_pose"], dtype=torch.float64).reshape(4, 4))
                k = torch.tensor(entry["intrinsic"], dtype=torch.float64).reshape(3, 3)
            focal.append(k.diagonal()[:2])
            center.append(k[:2, 2] + 0.5)  # from pixels counted at their centres
        lens = Lens(torch.stack(focal), torch.stack(center), torch.zeros(len(focal)).double(), size)
        return starting_near(Cameras(lens.sized(width, height), Y_DOWN_FROM_Z_UP @ torch.stack(poses), "metric", FPS))

    def files(self) -> list[Path]:
        return [self.path]


@lru_cache(maxsize=2)
def _entries(path: Path, made_of: str) -> dict[str, Any]:
    entries = read_json(path, "a JSON object of poses by frame")
    if not isinstance(entries, dict):
        raise InputError(str(path), "a JSON object of poses by frame", type(entries).__name__)
    return entries


def scannetpp_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    roots = (folder, folder / "data")
    scenes = sorted({i for root in roots for mark in ("dslr", "iphone") for i in _with(root, mark)})
    records: list[AnyRecord] = []
    for scene in scenes:
        for kind, listed in (("dslr", _dslr), ("iphone", _iphone)):
            try:
                records += listed(scene, frames)
            except InputError as error:
                records.append(FaultyRecord(f"{scene.name}-{kind}", error))
    return records


def _with(root: Path, mark: str) -> list[Path]:
    marks = {"dslr": "*/dslr/nerfstudio/transforms.json", "iphone": "*/iphone/pose_intrinsic_imu.json"}
    return [path.parents[len(Path(marks[mark]).parts) - 2] for path in root.glob(marks[mark])]


def _dslr(scene: Path, frames: int | None) -> list[AnyRecord]:
    path = scene / "dslr" / "nerfstudio" / "transforms.json"
    if not path.is_file():
        return []
    names = nerfstudio_images(path)
    images = scene / "dslr" / "resized_images"
    return [
        ClipRecord(
            f"{scene.name}-dslr-{part[0]:05d}",
            tuple(images / names[i] for i in part),
            FileCameras(path, "nerfstudio", tuple(part), "metric"),
            source=scene.name,
        )
        for part in windows(len(names), frames)
    ]


def _iphone(scene: Path, frames: int | None) -> list[AnyRecord]:
    path, images = scene / "iphone" / "pose_intrinsic_imu.json", scene / "iphone" / "rgb"
    if not path.is_file():
        return []
    if not images.is_dir():
        fix = "Take them from rgb.mkv first: ffmpeg -i rgb.mkv -start_number 0 -q:v 2 rgb/frame_%06d.jpg"
        raise InputError(f"{scene.name}-iphone", f"frames in {images}", "none", fix)
    entries = _entries(path, file_fingerprint(path))
    known = [file for file in image_files(images) if file.stem in entries]
    usual = usual_step(known)
    records: list[AnyRecord] = []
    for part in windows(len(known), frames):
        chosen = [known[i] for i in part]
        name = f"{scene.name}-iphone-{part[0]:05d}"
        if gap := gap_in(chosen, usual):
            fix = "Take the frames from rgb.mkv again, all of them or every n-th."
            records.append(FaultyRecord(name, InputError(name, f"a picture every {usual} frames", gap, fix)))
            continue
        depths = [scene / "iphone" / "depth" / f"{file.stem}.png" for file in chosen]
        records.append(
            ClipRecord(
                name,
                tuple(chosen),
                PhoneCameras(path, tuple(file.stem for file in chosen)),
                radial=DepthFrames.found(depths, MILLIMETRES),
                source=scene.name,
            )
        )
    return records
