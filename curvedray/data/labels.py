"""What belongs to clips by name: maps of distances, as `curvedray radial label` writes them, and splits."""

import re
import zipfile
from pathlib import Path

from curvedray.errors import InputError
from curvedray.inputs import reading

MAPS = (".npz", ".npy")
SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def labelled(folder: Path, names: set[str]) -> dict[str, Path]:
    """The maps of a folder by clip; one that has none of these clips is a mistake, and refused."""
    if not folder.is_dir():
        raise InputError("labels", "a folder of maps, <clip>.npz", f"{folder}, which is not one")
    with reading(str(folder), "a folder of maps"):
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() in MAPS)
    found = {file.stem: file for file in reversed(files) if file.stem in names}  # .npz before .npy
    if names and not found:
        expected = f"maps named as the clips are ({min(names)}.npz, for one)"
        got = f"{len(files)} others, such as {files[0].name}" if files else "none"
        fix = f"Make them: curvedray radial label CLIPS -o {folder}"
        raise InputError(f"labels {folder}", expected, got, fix)
    return found


def label_beside(video: Path, cameras: Path) -> Path | None:
    """`<clip>.npz` beside a video, if it is a map: its camera file may bear the same name."""
    try:
        file = video.with_suffix(".npz")
        if file == cameras or not file.is_file():
            return None
        with zipfile.ZipFile(file) as archive:
            return file if "radius.npy" in archive.namelist() else None
    except zipfile.BadZipFile:
        return file  # damaged: whoever reads it says so
    except (OSError, ValueError):  # a name that no file can have
        return None


def split_of_name(path: Path) -> str:
    """`requests-test.json` is of the split `test`; nothing where a name says none."""
    last = re.split(r"[-_.]", path.stem.lower())[-1]
    return SPLITS.get(last, "")
