"""What lies below a folder, not farther down than data sets put things.

So a whole disk, handed over by mistake, is soon looked through and refused.
"""

import os
from collections.abc import Iterator
from pathlib import Path

DEPTH = 4  # folders down to which things are looked for: DL3DV-10K/1K/SCENE/nerfstudio/transforms.json


def folders_below(folder: Path, passed_over: tuple[str, ...] = ()) -> Iterator[Path]:
    """A folder and those below it, the nearest first; without hidden ones, and those whose names begin as said."""
    level = [folder]
    for _ in range(DEPTH):
        yield from level
        level = [i for path in level for i in _folders(path, (".", *passed_over))]
    yield from level


def files_below(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """The files of some endings in those folders, sorted."""
    return sorted(file for place in folders_below(folder) for file in _entries(place, False, endings))


def _folders(path: Path, passed_over: tuple[str, ...]) -> list[Path]:
    return [i for i in _entries(path, True, ("",)) if not i.name.startswith(passed_over)]


def _entries(path: Path, folders: bool, endings: tuple[str, ...]) -> list[Path]:
    """Of a million images, none is asked what it is: the listing says so, and a question per file takes minutes."""
    try:
        with os.scandir(path) as entries:
            return [Path(i.path) for i in entries if i.name.lower().endswith(endings) and i.is_dir() == folders]
    except OSError:
        return []
