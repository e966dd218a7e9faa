"""RealEstate10K: a text file of cameras per video, and captions by name."""

import re
from pathlib import Path

from curvedray.data.labels import SPLITS
from curvedray.data.layouts.below import files_below
from curvedray.data.records import AnyRecord, Record
from curvedray.data.tables import named_captions

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi")


def realestate_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """A `.txt` of RealEstate10K and a video of the same name, anywhere below.

    Captions are in `captions.json` by name, or in `captions/train.json` and `captions/test.json`. Clips whose text lies
    in a folder called test or val (`pose_files/test`, `test_poses`) are held out.
    """
    below = files_below(folder, (".txt", *VIDEOS))
    videos = {path.stem: path for path in below if path.suffix.lower() in VIDEOS}
    if not videos:
        return []
    captions = named_captions(folder / "captions.json")
    for path in sorted((folder / "captions").glob("*.json")):
        captions |= named_captions(path)
    return [
        Record(videos[path.stem], path, captions.get(path.stem, ""), path.stem, "realestate10k", split=_split(path))
        for path in below
        if path.suffix == ".txt" and path.stem in videos
    ]


def _split(path: Path) -> str:
    """The split that the folder's name says."""
    words = re.split(r"[-_]", path.parent.name.lower())
    return next((SPLITS[word] for word in words if word in SPLITS), "")
