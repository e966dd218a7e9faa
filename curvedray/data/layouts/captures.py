"""Captures of places, cut into clips: nerfstudio's transforms.json (DL3DV has them) and COLMAP's models and images."""

from pathlib import Path

from curvedray.data.labels import split_of_name
from curvedray.data.layouts.below import folders_below
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, FileCameras, clip_id, windows
from curvedray.errors import InputError
from curvedray.formats.image_names import colmap_images, nerfstudio_images

SMALLER = ("", "_2", "_4", "_8", "_16")  # images_4 holds every image at a quarter of its size
PASSED_OVER = ("nerfstudio", "gaussian_splat", "sparse", "colmap", "dslr", "0")  # folders that name no scene


def nerfstudio_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """Every transforms.json below: its images where it says, or the smaller ones beside them (images_4)."""
    records: list[AnyRecord] = []
    for path in _below(folder, "transforms.json"):
        scene = scene_id(folder, path.parent)
        try:
            names = nerfstudio_images(path)
            records += capture_clips(scene, path, "nerfstudio", names, path.parent, frames, folder)
        except InputError as error:
            records.append(FaultyRecord(scene, error))
    return records


def colmap_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """Every COLMAP model below (sparse/0), whose images are in `images` beside it."""
    records: list[AnyRecord] = []
    models = {path.parent for kind in ("bin", "txt") for path in _below(folder, f"images.{kind}")}
    for model in sorted(models):
        home = next((i for i in (model, *model.parents) if _images_of(i)), None)
        scene = scene_id(folder, home or model)
        try:
            if home is None or not (home == folder or folder in home.parents):
                raise InputError(scene, "a folder `images` beside the model", "none")
            names = [f"images/{name}" for name in colmap_images(model)]
            records += capture_clips(scene, model, "colmap", names, home, frames, folder)
        except InputError as error:
            records.append(FaultyRecord(scene, error))
    return records


def capture_clips(
    scene: str, cameras: Path, format: str, names: list[str], base: Path, frames: int | None, folder: Path
) -> list[AnyRecord]:
    """A capture's images in the order of its cameras, cut into clips; each clip keeps its own part of the cameras."""
    pictures = [found_image(base, name) for name in names]
    cut = windows(len(pictures), frames)
    inside = cameras.relative_to(folder).parents if folder in cameras.parents else ()  # above it names mean nothing
    split = next((i for i in map(split_of_name, inside) if i), "")
    return [
        ClipRecord(
            scene if len(cut) == 1 else f"{scene}-{part[0]:05d}",
            tuple(pictures[i] for i in part),
            FileCameras(cameras, format, tuple(part)),
            split=split,
            source=scene,
        )
        for part in cut
    ]


def found_image(base: Path, name: str) -> Path:
    """Where an image lies: as named, or in the folder of smaller ones beside its own; as named, if it is missing."""
    path = base / name
    candidates = [path.parent.with_name(path.parent.name + smaller) / path.name for smaller in SMALLER]
    with_endings = [i for i in candidates if i.is_file()]
    return with_endings[0] if with_endings else path


def scene_id(folder: Path, place: Path) -> str:
    """A scene's name: the folders down to it that name something."""
    parts = [part for part in place.relative_to(folder).parts if part not in PASSED_OVER]
    return clip_id(*parts) or folder.resolve().name


def _images_of(home: Path) -> bool:
    return any((home / f"images{smaller}").is_dir() for smaller in SMALLER)


def _below(folder: Path, name: str) -> list[Path]:
    """Files of a name, not farther down than a scene lies: a scene's images need not be listed for it."""
    return sorted(path for place in folders_below(folder, ("images",)) if (path := place / name).is_file())
