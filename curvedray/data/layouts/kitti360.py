"""KITTI-360: fisheye and perspective images of a car, the poses of its motion sensor, and where cameras sit on it.

    data_2d_raw/DRIVE/image_02/data_rgb/0000000000.png     fisheyes 02 and 03; image_00/data_rect, image_01/data_rect
    data_poses/DRIVE/poses.txt                             frame number and world_from_sensor, 12 numbers, metres
    calibration/calib_cam_to_pose.txt                      image_02: sensor_from_camera, 12 numbers
    calibration/image_02.yaml                              the fisheye's lens, MEI
    calibration/perspective.txt                            P_rect_00, R_rect_00: the rectified pinholes

The world's z is up, the sensor's axes are forward, right, down. A frame has no pose while the car stands: clips are cut
from runs of frames without a gap.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.cameras.other_lens_models import ucm_lens
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, starting_near, windows
from curvedray.errors import InputError
from curvedray.formats.build import Y_DOWN_FROM_Z_UP
from curvedray.formats.lens_files import read_lens
from curvedray.formats.source import Source, complete
from curvedray.inputs import read_text, reading

FPS = 10.0  # of its cameras, nearly
FISHEYES = {"image_02": "data_rgb", "image_03": "data_rgb"}
PERSPECTIVE = {"image_00": "data_rect", "image_01": "data_rect"}
WIDEST = 90.0  # degrees from a fisheye's axis over which its lens is fitted; beyond is the image circle's rim


@dataclass(frozen=True)
class Kitti360Cameras:
    """One camera of the car over some frames."""

    camera: str  # image_02
    poses: Path
    calibration: Path  # the folder
    frames: tuple[int, ...]

    def read(self, width: int, height: int) -> Cameras:
        """world_from_camera = world_from_sensor sensor_from_camera, and for a rectified one camera_from_rectified."""
        known = sensor_poses(self.poses, file_fingerprint(self.poses))
        world_from_sensor = torch.stack([known[frame] for frame in self.frames])
        world_from_camera = world_from_sensor @ _matrix(self.calibration / "calib_cam_to_pose.txt", self.camera, 3, 4)
        if self.camera in PERSPECTIVE:
            lens, rectified_from_camera = _pinhole(self.calibration, self.camera, width, height)
            world_from_camera = world_from_camera @ inverse_pose(rectified_from_camera)
        else:
            lens = _fisheye(self._lens_file(), file_fingerprint(self._lens_file())).sized(width, height)
        return starting_near(Cameras(lens, Y_DOWN_FROM_Z_UP @ world_from_camera, "metric", FPS))

    def files(self) -> list[Path]:
        lens = self._lens_file() if self.camera in FISHEYES else self.calibration / "perspective.txt"
        return [self.poses, self.calibration / "calib_cam_to_pose.txt", lens]

    def _lens_file(self) -> Path:
        return self.calibration / f"{self.camera}.yaml"


def kitti360_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    drives = sorted((folder / "data_2d_raw").glob("*"))
    records: list[AnyRecord] = []
    for drive in drives if (folder / "calibration").is_dir() else ():
        poses = folder / "data_poses" / drive.name / "poses.txt"
        for camera, kind in (FISHEYES | PERSPECTIVE).items():
            images = drive / camera / kind
            if not images.is_dir():
                continue
            name = f"{drive.name}-{camera}"
            try:
                known = sorted(sensor_poses(poses, file_fingerprint(poses)))
                for run in _runs(known):
                    for part in windows(len(run), frames):
                        chosen = tuple(run[i] for i in part)
                        cameras = Kitti360Cameras(camera, poses, folder / "calibration", chosen)
                        pictures = tuple(images / f"{frame:010d}.png" for frame in chosen)
                        records.append(ClipRecord(f"{name}-{chosen[0]:06d}", pictures, cameras, source=drive.name))
            except InputError as error:
                records.append(FaultyRecord(name, error))
    return records


def _runs(numbers: list[int]) -> list[list[int]]:
    """Numbers in stretches without a gap."""
    runs = [numbers[:1]]
    for before, after in pairwise(numbers):
        if after != before + 1:
            runs.append([])
        runs[-1].append(after)
    return [run for run in runs if run]


@lru_cache(maxsize=4)
def sensor_poses(path: Path, made_of: str) -> dict[int, Float[Tensor, "4 4"]]:
    """world_from_sensor by frame number."""
    source = Source.open(path)
    lines, rows = source.table(13)
    for line, row in zip(lines, rows, strict=True):
        if row[0] != int(row[0]):
            source.fail(f"line {line}, column 1", "a frame's number", row[0])
    matrices = complete(torch.tensor([row[1:] for row in rows], dtype=torch.float64).reshape(-1, 3, 4))
    return {int(row[0]): matrix for row, matrix in zip(rows, matrices, strict=True)}


def _matrix(path: Path, name: str, rows: int, cols: int) -> Float[Tensor, "4 4"]:
    """A line `name: numbers` of a calibration file as a transform."""
    for line in read_text(path, "a calibration file").splitlines():
        key, _, numbers = line.partition(":")
        if key.strip() == name:
            with reading(f"{path}, {name}", f"{rows * cols} numbers"):
                found = torch.tensor([float(word) for word in numbers.split()], dtype=torch.float64)
                matrix = torch.eye(4, dtype=torch.float64)
                matrix[:rows, :cols] = found.reshape(rows, cols)
                return matrix
    raise InputError(str(path), f"a line {name}:", "none")


@lru_cache(maxsize=4)
def _fisheye(path: Path, made_of: str) -> Lens:
    """The UCM lens nearest to the MEI calibration; the fit takes longer than reading a frame, so it is kept."""
    return read_lens(path, WIDEST).lens


def _pinhole(calibration: Path, camera: str, width: int, height: int) -> tuple[Lens, Float[Tensor, "4 4"]]:
    """The rectified camera's pinhole, and rectified_from_camera. KITTI counts pixels from the first one's centre."""
    path, number = calibration / "perspective.txt", camera.removeprefix("image_")
    p = _matrix(path, f"P_rect_{number}", 3, 4)
    with reading(str(path), f"a line S_rect_{number}: width height"):
        size = _matrix_size(path, number)
    lens = ucm_lens(float(p[0, 0]), float(p[1, 1]), float(p[0, 2]) + 0.5, float(p[1, 2]) + 0.5, 0.0, size)
    return lens.sized(width, height), _matrix(path, f"R_rect_{number}", 3, 3)


def _matrix_size(path: Path, number: str) -> tuple[int, int]:
    for line in read_text(path).splitlines():
        if line.startswith(f"S_rect_{number}:"):
            width, height = (round(float(word)) for word in line.split(":")[1].split())
            return width, height
    raise InputError(str(path), f"a line S_rect_{number}:", "none")
