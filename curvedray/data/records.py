"""One record per clip: where its pictures, cameras, caption and distances are. Reading it gives footage.

A record that could not be made is kept as a `FaultyRecord`, so that the other clips can be used.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.data.clips import Footage
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.pictures import PictureSource, read_masks, read_pictures
from curvedray.errors import InputError
from curvedray.files import plain_name
from curvedray.formats import cameras_of_video, read_cameras
from curvedray.inputs import read_json
from curvedray.media.image import read_image
from curvedray.radial.depth_files import read_frame
from curvedray.radial.map import RadialMap, read_radial_map

HELD_OUT = ("test", "val")
MISSING = "Are poses missing, or is the file another video's?"
PATHS, NUMBERS = ("video", "cameras", "radial"), ("near", "hfov", "xi")  # columns of other than plain text


@dataclass(frozen=True)
class Record:
    """A row of a metadata table: where a clip's parts are. All but `video` and `cameras` may be left out."""

    video: Path  # or a folder of its frames
    cameras: Path
    caption: str = ""
    id: str = ""  # the video's name without its ending
    format: str | None = None  # of the camera file; found out if not said
    radial: Path | None = None  # .npz or .npy of metres
    near: float | None = None  # near distance, in the unit of the poses
    unit: Unit | None = None
    hfov: float | None = None  # degrees: the lens, where the camera file has none
    xi: float = 0.0
    split: str = ""  # `train`, or nothing, is trained on; `test` and `val` are held out
    source: str = ""  # what the clip was taken from; clips of one source belong to one split
    poses: str = ""  # `first`: the camera file goes on after the video ends; else it has a camera per frame

    def read(self) -> Footage:
        """Decode the video and read its cameras; anything wrong is an InputError that names the clip."""
        try:
            plain_name(self.id, "id")
            frames = read_pictures(self.video)
            height, width = frames.shape[1:3]
            cameras = self.read_cameras(width, height)
            if self.poses == "first":
                cameras = cameras[: len(frames)]
            check_count(cameras, len(frames))
            # A near distance is in the poses' unit: only where that is metres is it also the map's.
            near = self.near if cameras.unit == "metric" else None
            radial = read_radial_map(self.radial, near) if self.radial else None
        except InputError as error:
            raise of_clip(self.id, error) from error
        return Footage(self.id, self.caption, frames, cameras, radial, self.near)

    def fingerprint(self) -> str:
        """Of the files' contents, wherever they are, and of everything that the record says of the clip itself."""
        paths = {name: getattr(self, name) for name in PATHS}
        files = {name: file_fingerprint(path) for name, path in paths.items() if path is not None}
        said = {name: value for name, value in asdict(self).items() if name not in (*PATHS, "split", "source")}
        if not self.poses:  # so that clips of before there was such a column are still the same clips
            said.pop("poses")
        return fingerprint(said | files)

    def read_cameras(self, width: int, height: int) -> Cameras:
        """The camera file's, with the lens of this record where there is one. A lens is never guessed."""
        lens = None if self.hfov is None else Lens.from_fov(self.hfov, self.xi, width, height)
        return cameras_of_video(self.cameras, width, height, format=self.format, lens=lens, unit=self.unit)


@dataclass(frozen=True)
class FaultyRecord:
    """In place of a record that could not be made: reading it says why."""

    id: str
    error: InputError
    split: str = ""
    source: str = ""
    caption: str = ""

    def read(self) -> Footage:
        raise self.error

    def fingerprint(self) -> str:
        return fingerprint(["faulty", self.id, str(self.error)])


@runtime_checkable
class CameraSource(Protocol):
    """How a data set's own files tell a clip's cameras."""

    def read(self, width: int, height: int) -> Cameras:
        """A camera per frame, the lens on pictures of this size."""
        ...

    def files(self) -> list[Path]:
        """What it reads, by which a change is noticed."""
        ...


@dataclass(frozen=True)
class DepthFrames:
    """A picture of distances per frame, along the camera's axis, as depth sensors write them.

    A frame may have none: nothing is known in it. `confidence` are pictures of how sure the sensor was, 0 the least.
    """

    frames: tuple[Path | None, ...]
    metres_per_unit: float
    confidence: tuple[Path | None, ...] = ()

    @classmethod
    def found(
        cls, frames: Sequence[Path], metres_per_unit: float, confidence: Sequence[Path] = ()
    ) -> "DepthFrames | None":
        """Of the pictures that are there; None where none of the depths is."""
        depths, sure = ([file if file.is_file() else None for file in files] for files in (frames, confidence))
        return cls(tuple(depths), metres_per_unit, tuple(sure)) if any(depths) else None

    def read(self, lens: Lens) -> RadialMap:
        """Along the rays of the pictures' own pixels, which may be larger than the video's."""
        stored = {file: read_frame(file) for file in self.frames if file is not None}
        first = next(iter(stored.values()))
        sure = self.confidence or (None,) * len(self.frames)
        pictures = []
        for file, beside in zip(self.frames, sure, strict=True):
            depth = np.full_like(first, np.nan) if file is None else stored[file]
            trusted = np.ones_like(depth, dtype=bool) if beside is None else read_image(beside)[..., 0].numpy() > 0
            for name, picture in ((file, depth), (beside, trusted)):
                if picture.shape != first.shape:
                    got = f"{picture.shape[1]} x {picture.shape[0]}"
                    raise InputError(str(name), f"{first.shape[1]} x {first.shape[0]} pixels, as the first has", got)
            pictures.append(np.where(trusted, depth, np.float32(np.nan)))
        return RadialMap.from_depth(torch.from_numpy(np.stack(pictures)) * self.metres_per_unit, lens)


@dataclass(frozen=True)
class ClipRecord:
    """A clip of a data set that has a layout of its own."""

    id: str
    pictures: Path | tuple[Path, ...] | PictureSource  # a video, or its frames in order
    cameras: CameraSource
    caption: str = ""
    radial: Path | DepthFrames | None = None
    moving: tuple[Path, ...] = ()  # masks of what moves, a picture per frame
    near: float | None = None
    split: str = ""
    source: str = ""

    def read(self) -> Footage:
        try:
            plain_name(self.id, "id")
            pictures = self.pictures
            frames = pictures.read() if isinstance(pictures, PictureSource) else read_pictures(pictures)
            height, width = frames.shape[1:3]
            cameras = self.cameras.read(width, height)
            check_count(cameras, len(frames))
            lens = cameras.lens
            radial = self.radial.read(lens) if isinstance(self.radial, DepthFrames) else None
            if isinstance(self.radial, Path):
                radial = read_radial_map(self.radial, self.near if cameras.unit == "metric" else None)
            moving = read_masks(self.moving, width, height) if self.moving else None
        except InputError as error:
            raise of_clip(self.id, error) from error
        return Footage(self.id, self.caption, frames, cameras, radial, self.near, moving)

    def fingerprint(self) -> str:
        pictures = [self.pictures] if isinstance(self.pictures, Path) else []
        pictures += self.pictures if isinstance(self.pictures, tuple) else []
        pictures += self.pictures.files() if isinstance(self.pictures, PictureSource) else []
        own = self.radial
        depths = (*own.frames, *own.confidence) if isinstance(own, DepthFrames) else (own,)
        files = [*pictures, *self.cameras.files(), *filter(None, depths), *self.moving]
        plain = {name: value for name, value in vars(self.cameras).items() if not _has_paths(value)}
        said = [type(self.cameras).__name__, plain, self.caption, self.near]
        return fingerprint([self.id, said, [file_fingerprint(path) for path in files]])


def _has_paths(value: object) -> bool:
    """Where a file lies is not what a clip is made of."""
    return isinstance(value, Path) or (isinstance(value, tuple) and any(isinstance(i, Path) for i in value))


AnyRecord = Record | ClipRecord | FaultyRecord


def check_count(cameras: Cameras, frames: int) -> None:
    """Refuse cameras that can be no video's of so many frames."""
    if len(cameras) != frames:
        raise InputError("cameras", f"{frames}, one per frame", len(cameras), "Are they another video's?")


def of_clip(name: str, error: InputError) -> InputError:
    """The same mistake, with the clip's name."""
    return InputError(f"clip {name}: {error.name}", error.expected, error.got, error.fix)


@dataclass(frozen=True)
class FileCameras:
    """Some of a camera file's cameras, in order; the file may hold a capture of which the clip is a part."""

    path: Path
    format: str | None = None
    chosen: tuple[int, ...] = ()  # which of the file's; none: all of them
    unit: Unit | None = None
    pictures: int = 0  # that the file's cameras are of, one each; 0: it may have cameras of others

    def read(self, width: int, height: int) -> Cameras:
        whole = _file_cameras(self.path, file_fingerprint(self.path), self.format, (width, height), self.unit)
        if self.pictures and self.pictures != len(whole):
            raise InputError(f"cameras of {self.path.name}", f"{self.pictures}, one per picture", len(whole), MISSING)
        if self.chosen and max(self.chosen) >= len(whole):
            raise InputError("cameras", f"{max(self.chosen) + 1} or more in {self.path.name}", len(whole), MISSING)
        return starting_near(whole[list(self.chosen)] if self.chosen else whole)

    def files(self) -> list[Path]:
        return [self.path]


@dataclass(frozen=True)
class NoCameras:
    """A clip whose cameras nobody has found out yet."""

    looked_for: Path

    def read(self, width: int, height: int) -> Cameras:
        fix = "Find them out: curvedray data pose FOLDER"
        raise InputError("cameras", f"a camera file, {self.looked_for}", "none", fix)

    def files(self) -> list[Path]:
        return [self.looked_for]


DROPPED = ".dropped.json"


@dataclass(frozen=True)
class DroppedCameras(NoCameras):
    """Cameras that were found out and are too doubtful to train on: they lie under a name that no reader takes."""

    def read(self, width: int, height: int) -> Cameras:
        file = dropped_file(self.looked_for)
        said = read_json(file, "a camera file").get("provenance", {}).get("drop", "dropped")
        fix = f"Rename it to {self.looked_for.name} to train on the clip all the same."
        raise InputError("cameras", "cameras to trust", f"{file}: {said}", fix)

    def files(self) -> list[Path]:
        return [self.looked_for, dropped_file(self.looked_for)]


def dropped_file(file: Path) -> Path:
    """Where `curvedray data pose` writes the cameras of a clip that had better not be trained on."""
    return file.with_name(f"{file.stem}{DROPPED}")


def posed_cameras(file: Path) -> CameraSource:
    """The cameras that `curvedray data pose` wrote for a clip, if it did and trusts them."""
    if file.is_file():
        return FileCameras(file, "curvedray")
    return DroppedCameras(file) if dropped_file(file).is_file() else NoCameras(file)


@lru_cache(maxsize=4)
def _file_cameras(path: Path, made_of: str, format: str | None, size: tuple[int, int], unit: Unit | None) -> Cameras:
    """Kept, as the clips of one capture are read one after another. In double precision: worlds may be large."""
    return read_cameras(path, format, size=size, unit=unit, lens_needed=True, dtype=torch.float64)


def starting_near(cameras: Cameras) -> Cameras:
    """The same path and the same vertical, moved so that it starts at the origin, in single precision."""
    poses = cameras.world_from_camera.double().clone()
    poses[:, :3, 3] -= poses[0, :3, 3].clone()
    return Cameras(cameras.lens.to(torch.float32), poses.float(), cameras.unit, cameras.fps)


def windows(count: int, frames: int | None) -> list[range]:
    """A capture of `count` frames cut into clips of `frames`, one after another; what is left over is dropped.

    A capture that is shorter, or of which nobody said how long clips are, is one clip.
    """
    if frames is None or count < frames:
        return [range(count)]
    return [range(start, start + frames) for start in range(0, count - frames + 1, frames)]


def clip_id(*names: Any) -> str:
    """A clip's name from those of its folders."""
    return "-".join(str(name).replace("/", "-") for name in names if str(name) not in ("", "."))
