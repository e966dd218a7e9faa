"""Folders of images, one per clip, each with a camera file in it or beside it.

CLIP/*.png with CLIP/cameras.json (or .txt, .npz, .npy, .csv, of any camera format) or CLIP-cameras.json; captions in
captions.json by name.
"""

from pathlib import Path

from curvedray.data.pictures import image_files
from curvedray.data.records import (
    AnyRecord,
    ClipRecord,
    FaultyRecord,
    FileCameras,
    NoCameras,
    clip_id,
    posed_cameras,
    windows,
)
from curvedray.data.tables import named_captions
from curvedray.errors import InputError

CAMERAS = ("cameras.json", "cameras.txt", "cameras.npz", "cameras.npy", "cameras.csv")


def frames_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """A folder of images is a clip where a camera file belongs to it, or where any of the others has one."""
    records = image_records(folder, frames)
    known = any(isinstance(one, ClipRecord) and type(one.cameras) is not NoCameras for one in records)
    return records if known else []


def image_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """Every folder of images, whether or not anything is known of its cameras."""
    captions = named_captions(folder / "captions.json")
    records: list[AnyRecord] = []
    for place in sorted(_image_folders(folder)):
        name = clip_id(*place.relative_to(folder).parts) or folder.resolve().name
        try:
            pictures = image_files(place)
        except InputError as error:
            records.append(FaultyRecord(name, error))
            continue
        cameras = _cameras_of(place)
        cut = windows(len(pictures), frames)
        for part in cut:
            chosen = (
                FileCameras(cameras, None, tuple(part), pictures=len(pictures))
                if cameras
                else posed_cameras(place / CAMERAS[0])
            )
            own = name if len(cut) == 1 else f"{name}-{part[0]:05d}"
            shown = tuple(pictures[i] for i in part)
            records.append(ClipRecord(own, shown, chosen, captions.get(place.name, ""), source=name))
    return records


def _image_folders(folder: Path) -> set[Path]:
    """The folder itself and those one or two below that hold images."""
    places = [folder, *folder.glob("*"), *folder.glob("*/*")]
    return {place for place in places if place.is_dir() and _has_images(place)}


def _has_images(place: Path) -> bool:
    try:
        return bool(image_files(place))
    except InputError:
        return False


def _cameras_of(place: Path) -> Path | None:
    candidates = [*(place / name for name in CAMERAS), place.with_name(f"{place.name}-cameras.json")]
    return next((path for path in candidates if path.is_file()), None)
