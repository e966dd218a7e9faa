"""Which camera file, reference and map belong to which video: the same name, whatever the ending."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curvedray.errors import InputError

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif")
CAMERAS = (".json", ".txt", ".npy", ".npz", ".csv")
MAPS = (".npy", ".npz")


@dataclass(frozen=True)
class Job:
    """One clip to score: a video and what there is to score it against."""

    clip: str
    video: Path
    cameras: Path | None
    reference: Path | None = None
    radial: Path | None = None


def match(
    videos: Sequence[Path], cameras: Path, reference: Path | None = None, radial: Path | None = None
) -> list[Job]:
    """A job for every video, in order of name. A video without a camera file keeps None, and counts as failed."""
    found = video_files(videos)
    paths = dict.fromkeys(found, cameras) if cameras.is_file() else camera_files(cameras)
    if not found.keys() & paths.keys():
        expected = f"files in {cameras} named as the videos are ({next(iter(found))}.json, for one)"
        raise InputError("cameras", expected, ", ".join(sorted(paths)[:3]) or "none")
    references = named_files(reference, VIDEOS, "reference videos") if reference else {}
    maps = named_files(radial, MAPS, "radial maps") if radial else {}
    return [
        Job(clip, path, paths.get(clip), references.get(clip), maps.get(clip)) for clip, path in sorted(found.items())
    ]


def video_files(places: Sequence[Path]) -> dict[str, Path]:
    """Videos by name, from files and folders."""
    files: list[Path] = []
    for place in places:
        files += sorted(i for i in place.iterdir() if i.suffix.lower() in VIDEOS) if place.is_dir() else [place]
    if not files:
        expected = f"files that end in {', '.join(VIDEOS)}"
        raise InputError("videos", expected, f"none in {', '.join(str(i) for i in places)}")
    return _unique(files, "videos")


def camera_files(folder: Path) -> dict[str, Path]:
    """Camera files by name; `clip.cameras.json` and `clip.json` are both `clip`'s."""
    files = named_files(folder, CAMERAS, "camera files")
    return _unique(list(files.values()), "camera files", ".cameras")


def named_files(folder: Path, endings: tuple[str, ...], what: str) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError(what, "a folder", folder)
    return _unique(sorted(i for i in folder.iterdir() if i.suffix.lower() in endings), what)


def _unique(files: Sequence[Path], what: str, drop: str = "") -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in files:
        name = path.stem.removesuffix(drop)
        if name in found:
            raise InputError(what, "one file a clip", f"{found[name].name} and {path.name}", "Rename or move one.")
        found[name] = path
    return found
