"""ARKitScenes: a tablet's video, its depth, and the track of ARKit.

    SCENE/lowres_wide/SCENE_305.377.png                 frames, named by their time in seconds
    SCENE/lowres_wide_intrinsics/SCENE_305.377.pincam   width height fx fy cx cy
    SCENE/lowres_wide.traj                              time, axis-angle, translation: camera_from_world; metres, z up
    SCENE/lowres_depth/SCENE_305.377.png                millimetres along the axis, 16 bits; 0 is not known
    SCENE/confidence/SCENE_305.377.png                  how sure the sensor was: 0 low, 1 medium, 2 high

The track has fewer entries than the video has frames: a frame at whose time there is none has no camera, and is left
out. Distances of low confidence are not used.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.labels import split_of_name
from curvedray.data.pictures import image_files
from curvedray.data.records import AnyRecord, ClipRecord, DepthFrames, FaultyRecord, starting_near, windows
from curvedray.errors import InputError
from curvedray.formats.build import Y_DOWN_FROM_Z_UP
from curvedray.formats.source import Source
from curvedray.inputs import read_text, reading

NEAR_IN_TIME = 0.005  # seconds, as its own loader takes it
FPS = 10.0  # of the track
FRAMES, LENSES, TRACK = "lowres_wide", "lowres_wide_intrinsics", "lowres_wide.traj"
DEPTH, CONFIDENCE = "lowres_depth", "confidence"
MILLIMETRES = 0.001


@dataclass(frozen=True)
class ArkitCameras:
    """The cameras of some frames, by the times in their names."""

    scene: Path
    frames: tuple[str, ...]  # SCENE_305.377

    def read(self, width: int, height: int) -> Cameras:
        track = _track(self.scene / TRACK, file_fingerprint(self.scene / TRACK))
        poses = torch.stack([track[1][i] for i in (nearest(track[0], time_of(name)) for name in self.frames) if i >= 0])
        numbers = torch.tensor([self._lens(name) for name in self.frames], dtype=torch.float64)
        (w, h), known = numbers[0, :2].long().tolist(), numbers[:, 2:]
        # Their cx and cy count pixels from the first one's centre.
        lens = Lens(known[:, :2].clone(), known[:, 2:] + 0.5, torch.zeros(len(known)).double(), (w, h))
        return starting_near(Cameras(lens.sized(width, height), Y_DOWN_FROM_Z_UP @ poses, "metric", FPS))

    def _lens(self, name: str) -> list[float]:
        path = self.scene / LENSES / f"{name}.pincam"
        words = read_text(path, "a .pincam: width height fx fy cx cy").split()
        with reading(str(path), "six numbers: width height fx fy cx cy"):
            width, height, fx, fy, cx, cy = map(float, words)
            return [width, height, fx, fy, cx, cy]

    def files(self) -> list[Path]:
        return [self.scene / TRACK, self.scene / LENSES]


def time_of(name: str) -> float:
    with reading(name, "a frame's name that ends in its time, SCENE_305.377"):
        return float(name.rsplit("_", 1)[1])


def nearest(times: list[float], time: float) -> int:
    """Which of some times, in order, is this one; -1 where none is near."""
    place = bisect_left(times, time)
    around = [i for i in (place - 1, place) if 0 <= i < len(times)]
    best = min(around, key=lambda i: abs(times[i] - time), default=-1)
    return best if best >= 0 and abs(times[best] - time) < NEAR_IN_TIME else -1


@lru_cache(maxsize=2)
def _track(path: Path, made_of: str) -> tuple[list[float], Float[Tensor, "t 4 4"]]:
    """Times, and world_from_camera at them."""
    from scipy.spatial.transform import Rotation

    _, rows = Source.open(path).table(7)
    rows = sorted(rows)
    camera_from_world = torch.eye(4, dtype=torch.float64).repeat(len(rows), 1, 1)
    camera_from_world[:, :3, :3] = torch.from_numpy(Rotation.from_rotvec([row[1:4] for row in rows]).as_matrix())
    camera_from_world[:, :3, 3] = torch.tensor([row[4:7] for row in rows], dtype=torch.float64)
    return [row[0] for row in rows], inverse_pose(camera_from_world)


def arkit_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    found = [path for depth in ("", "*/", "*/*/") for path in folder.glob(f"{depth}{TRACK}")]
    records: list[AnyRecord] = []
    for track in sorted(found):
        scene = track.parent
        try:
            records += _clips(scene, frames, split_of_name(scene.parent))
        except InputError as error:
            records.append(FaultyRecord(scene.name, error))
    return records


def _clips(scene: Path, frames: int | None, split: str) -> list[AnyRecord]:
    times, _ = _track(scene / TRACK, file_fingerprint(scene / TRACK))
    known = [file for file in image_files(scene / FRAMES) if nearest(times, time_of(file.stem)) >= 0]
    if not known:
        raise InputError(scene.name, f"frames in {FRAMES} at the times of {TRACK}", "none")
    records: list[AnyRecord] = []
    for part in windows(len(known), frames):
        chosen = [known[i] for i in part]
        depths, sure = ([scene / folder / file.name for file in chosen] for folder in (DEPTH, CONFIDENCE))
        records.append(
            ClipRecord(
                f"{scene.name}-{part[0]:05d}",
                tuple(chosen),
                ArkitCameras(scene, tuple(file.stem for file in chosen)),
                radial=DepthFrames.found(depths, MILLIMETRES, sure),
                split=split,
                source=scene.name,
            )
        )
    return records
