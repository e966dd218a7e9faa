"""Panoramas on disk: 360 degree videos and stills, with a caption, a track and distances where somebody has them.

A folder is read by names: `NAME-cameras.json` (or any camera file called NAME) is the track of `NAME.mp4`,
`NAME-depth.npz` (or .exr, .png, .npy) its distances, `captions.json` holds captions by name. A table, `panoramas.csv`
or `panoramas.jsonl`, says the same and more in the columns of `Panorama`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Unit
from curvedray.cameras.sphere import Projection, equirectangular_from_cube, projection_of
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.tables import Row, named_captions, number_value, table_rows, text_value
from curvedray.data.tracks import camera_problems
from curvedray.errors import InputError
from curvedray.files import plain_name
from curvedray.formats import read_cameras
from curvedray.inputs import is_folder, reading
from curvedray.media.image import image_size, read_image
from curvedray.media.stream import VideoHeader, video_frames, video_header
from curvedray.radial.convert import metres_per_unit, read_sequence

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi")
STILLS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp")
TRACKS, DEPTHS = (".json", ".txt", ".csv", ".npz", ".npy"), (".npz", ".exr", ".png", ".npy", ".pfm", "")
DEPTH, CAMERAS = "-depth", "-cameras"
TABLES = ("panoramas.csv", "panoramas.jsonl")
PATHS = ("panorama", "cameras", "depth")


@dataclass(frozen=True)
class Panorama:
    """Where a panorama's parts are, and what is known of it. All but `panorama` may be left out."""

    panorama: Path  # a video or a still
    caption: str = ""
    id: str = ""  # the file's name without its ending
    cameras: Path | None = None  # its track: world_from_panorama, a pose per frame
    format: str | None = None  # of the track
    unit: Unit | None = None  # of the track
    near: float | None = None  # the near distance, in the track's unit
    depth: Path | None = None  # distances from the camera, equirectangular
    depth_scale: str = "m"  # metres per stored unit, or one of radial.convert's names
    projection: Projection | None = None  # None: told by its shape
    split: str = ""

    @property
    def is_video(self) -> bool:
        return self.panorama.suffix.lower() in VIDEOS

    def fingerprint(self) -> str:
        """Of the files' contents and of everything else that is said of it."""
        files = {name: file_fingerprint(path) for name in PATHS if (path := getattr(self, name)) is not None}
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in PATHS}
        return fingerprint(said | files)

    def header(self) -> VideoHeader:
        """Frames, size and rate; the shape of a panorama is looked at. A still has one frame."""
        header = video_header(self.panorama) if self.is_video else VideoHeader(1, *image_size(self.panorama), 0.0)
        projection_of(str(self.panorama), header.width, header.height, self.projection)
        return header

    def frames(self, first: int, count: int) -> Iterator[UInt8[Tensor, "h w 3"]]:
        """Equirectangular frames; a still is one frame, however many are asked for."""
        pictures = video_frames(self.panorama, first, count) if self.is_video else iter([read_image(self.panorama)])
        for picture in pictures:
            height, width = picture.shape[:2]
            projection = projection_of(str(self.panorama), width, height, self.projection)
            if projection != "equirectangular":
                unrolled = equirectangular_from_cube(picture.movedim(-1, 0).float(), projection)
                picture = (unrolled + 0.5).clamp(0, 255).to(torch.uint8).movedim(0, -1)
            yield picture

    def track(self, frames: int) -> Cameras | None:
        """Its poses, as many as it has frames, in one piece."""
        if self.cameras is None:
            return None
        track = read_cameras(self.cameras, self.format, lens="pinhole-90", unit=self.unit)
        if len(track) != frames:
            fix = "Is it another panorama's track?"
            expected = f"{frames} poses, one per frame of {self.panorama.name}"
            raise InputError(str(self.cameras), expected, len(track), fix)
        _check_jumps(track, self.cameras)
        return track

    def distances(self, frames: int) -> Float[Tensor, "t h w"] | None:
        """Metres from the camera, as many frames as the panorama has; NaN where nothing is known."""
        if self.depth is None:
            return None
        metres = _distances(self.depth, file_fingerprint(self.depth), self.depth_scale)
        if len(metres) != frames or metres.shape[2] != 2 * metres.shape[1]:
            expected = f"equirectangular distances (2:1) of {frames} frames"
            got = f"{metres.shape[2]} x {metres.shape[1]} of {len(metres)}"
            raise InputError(str(self.depth), expected, got, "Distances are from the camera, not along an axis.")
        return metres


def _check_jumps(track: Cameras, path: Path) -> None:
    """A tracker that lost its way, or a cut."""
    if found := camera_problems(track):
        raise InputError(str(path), "a track in one piece", f"one that {found[0]}", "Cut the panorama there.")


@lru_cache(maxsize=1)
def _distances(path: Path, made_of: str, scale: str) -> Float[Tensor, "t h w"]:
    """Kept, as many clips are taken from one panorama, one after another."""
    return read_sequence(path) * metres_per_unit(scale)


# -- finding them


def find_panoramas(path: Path, projection: str | None = None) -> list[Panorama | InputError]:
    """The panoramas of a file or a folder; a row of a table that is wrong is the error that says why."""
    if not is_folder(path):
        found: list[Panorama | InputError] = [_beside(path, _captions(path.parent))]
    else:
        tables = [path / name for name in TABLES if (path / name).is_file()]
        if len(tables) > 1:
            raise InputError(str(path), "one table", f"both {' and '.join(TABLES)}", "Remove one of them.")
        found = _from_table(tables[0]) if tables else _from_names(path)
        if not found:
            raise InputError(str(path), f"panoramas that end in {', '.join((*VIDEOS, *STILLS))}", "none")
    said = [i if isinstance(i, InputError) or i.projection else replace(i, projection=projection) for i in found]  # type: ignore[arg-type]
    names = [i.id for i in said if isinstance(i, Panorama)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(str(path), "panoramas of different names", f"several called {twice[0]}", "Rename one.")
    return said


def _from_names(folder: Path) -> list[Panorama | InputError]:
    with reading(str(folder), "a folder that can be read"):
        files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in (*VIDEOS, *STILLS))
    shown = [i for i in files if not any(part.startswith(".") or part.endswith(DEPTH) for part in _parts(i, folder))]
    captions = _captions(folder)
    return [_beside(file, captions) for file in shown]


def _parts(file: Path, folder: Path) -> list[str]:
    return [*file.relative_to(folder).parts[:-1], file.stem, file.name]


def _captions(folder: Path) -> dict[str, str]:
    return named_captions(folder / "captions.json")


def _beside(file: Path, captions: dict[str, str]) -> Panorama:
    """A panorama with the track and the distances that bear its name."""
    tracks = [file.with_name(f"{file.stem}{CAMERAS}.json"), *(file.with_suffix(ending) for ending in TRACKS)]
    depths = [file.with_name(f"{file.stem}{DEPTH}{ending}") for ending in DEPTHS]
    return Panorama(
        file,
        captions.get(file.stem, ""),
        plain_name(file.stem, "panorama"),
        cameras=next((path for path in tracks if path.is_file()), None),
        depth=next((path for path in depths if path.exists()), None),
    )


def _from_table(table: Path) -> list[Panorama | InputError]:
    found: list[Panorama | InputError] = []
    for number, row in enumerate(table_rows(table), 1):
        try:
            if isinstance(row, InputError):
                raise row
            found.append(_from_row(row, f"{table.name} row {number}", table.parent))
        except InputError as error:
            found.append(error)
    return found


def _from_row(row: Row, where: str, folder: Path) -> Panorama:
    known = [field.name for field in fields(Panorama)]
    said: dict[str, Any] = {key: value for key, value in row.items() if value not in (None, "")}
    unknown = sorted(set(map(str, said)) - set(known))
    if unknown or "panorama" not in said:
        got = ", ".join(unknown) or "no column panorama"
        raise InputError(where, f"columns among {', '.join(known)}", got)
    for name in set(said) - {"near"}:
        said[name] = text_value(said[name], f"{where}: {name}")
    if "near" in said:
        said["near"] = number_value(said["near"], f"{where}: near")
        if said["near"] <= 0:
            raise InputError(f"{where}: near", "a positive number", said["near"])
    if said.get("unit") not in (None, *get_args(Unit)):
        raise InputError(f"{where}: unit", " or ".join(get_args(Unit)), said["unit"])
    if said.get("split", "") not in ("", "train", "val", "test"):
        raise InputError(f"{where}: split", "train, val or test", said["split"])
    said |= {name: folder / said[name] for name in PATHS if name in said}
    said["id"] = plain_name(said.get("id") or said["panorama"].stem, f"{where}: id")
    return Panorama(**said)


def tilt_of(track: Cameras) -> float:
    """Degrees between the world's vertical and the panorama's own, on the average of a track."""
    down = torch.nn.functional.normalize(track.world_from_camera[:, :3, 1].double().mean(0), dim=0)
    return math.degrees(math.atan2(float(down[::2].norm()), float(down[1])))
