"""Which camera file, reference and map belong to which video: the same name, whatever the ending.

Names are other people's. A clip's name is its file's as it can be printed; `Job.file` is a file name made from it that
is safe in any folder. Hidden files, whose names start with a dot, are temporaries and are passed over.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from curvedray.errors import InputError, quoted
from curvedray.inputs import is_file, is_folder, reading

VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif")
CAMERAS = (".json", ".txt", ".npy", ".npz", ".csv")
MAPS = (".npy", ".npz")
MARKS = ("-cameras", ".cameras")  # g-cameras.json holds g's cameras; g.json may be its recipe
SAFE_NAME = re.compile(r"\w[\w .+-]*")
LONGEST_NAME = 120  # bytes; what is added to it must fit in a file system's 255


@dataclass(frozen=True)
class Job:
    """One clip to score: a video and what there is to score it against."""

    clip: str
    video: Path
    cameras: Path | None
    reference: Path | None = None
    radial: Path | None = None

    @property
    def file(self) -> str:
        """A file name of the clip's own, without an ending: its name where that is safe, else with a digest of it."""
        if SAFE_NAME.fullmatch(self.clip) and len(self.clip.encode()) <= LONGEST_NAME:
            return self.clip
        kept = re.sub(r"[^A-Za-z0-9-]+", "_", self.clip).strip("_-")[:60]
        return f"{kept or 'clip'}-{hashlib.sha256(self.clip.encode()).hexdigest()[:12]}"


def clip_name(path: Path) -> str:
    """A file's name without its ending, printable and on one line: bytes that are no text become escapes."""
    return quoted(os.fsencode(path.stem).decode("utf-8", "backslashreplace")).replace("\n", r"\n")


def match(
    videos: Sequence[Path],
    cameras: Path | None = None,
    reference: Path | None = None,
    radial: Path | None = None,
    left_out: Callable[[Path], None] = lambda video: None,
) -> list[Job]:
    """A job for every video, in order of name. A video without a camera file keeps None, and counts as failed.

    Without `cameras` each video's are in `<name>-cameras.json` beside it; a folder's videos that have none are not
    clips (sheets, comparisons) and go to `left_out`. One that has a map in `radial` needs no cameras: it is scored by
    its distances alone.
    """
    found = video_files(videos)
    maps = _maps(radial, found) if radial else {}
    paths = cameras_beside(found, videos, left_out, maps) if cameras is None else named_cameras(cameras, found)
    if cameras is None:
        found = {clip: found[clip] for clip in paths}
    references = named_files(reference, VIDEOS, "reference videos") if reference else {}
    return [
        Job(clip, path, paths.get(clip), references.get(clip), maps.get(clip)) for clip, path in sorted(found.items())
    ]


def _maps(radial: Path, videos: dict[str, Path]) -> dict[str, Path]:
    """A folder's maps by clip, or one file for all. NAME-map.npz is NAME's, as `curvedray generate` writes it."""
    if radial.is_file():
        return dict.fromkeys(videos, radial)
    files = [file for file in _listed(radial, MAPS) if not file.stem.endswith("-radii")] if radial.is_dir() else []
    marked = [file for file in files if file.stem.endswith("-map")]
    maps = _unique((i for i in files if i not in marked), "radial maps") | _unique(marked, "radial maps", ("-map",))
    if not videos.keys() & maps.keys():
        expected = f"maps in {radial} named as the videos are ({next(iter(videos))}.npz, for one)"
        raise InputError("radial maps", expected, ", ".join(sorted(maps)[:3]) or "none")
    return maps


def cameras_beside(
    videos: dict[str, Path], named: Sequence[Path], left_out: Callable[[Path], None], maps: Mapping[str, Path]
) -> dict[str, Path | None]:
    """`<name>-cameras.json` of every video that has one or a map, or that was named itself, not by its folder."""
    found: dict[str, Path | None] = {}
    for clip, video in videos.items():
        beside = video.with_name(f"{video.stem}{MARKS[0]}.json")
        if os.path.lexists(beside):
            found[clip] = beside
        elif video in named or clip in maps:
            found[clip] = None
        else:
            left_out(video)
    if not any(found.values()) and not maps.keys() & found.keys():
        first = next(iter(videos.values()))
        expected = f"a camera file beside each video ({quoted(first.stem)}{MARKS[0]}.json)"
        raise InputError("cameras", expected, "none", "Name a folder of them, or one for all, with --cameras.")
    return found


def named_cameras(cameras: Path, videos: dict[str, Path]) -> dict[str, Path]:
    """A folder's camera files by clip, or one file for every clip."""
    if is_file(cameras):
        return dict.fromkeys(videos, cameras)
    paths = camera_files(cameras)
    if not videos.keys() & paths.keys():
        expected = f"files in {cameras} named as the videos are ({next(iter(videos))}.json, for one)"
        raise InputError("cameras", expected, ", ".join(sorted(paths)[:3]) or "none")
    return paths


def video_files(inputs: Sequence[Path]) -> dict[str, Path]:
    """Videos by name, from files and folders. A .gif gives way to a video of its name, which it is a copy of."""
    files: list[Path] = []
    for path in inputs:
        if not os.path.lexists(path):
            raise InputError("videos", "files or folders that are there", path)
        files += _listed(path, VIDEOS) if path.is_dir() else [path]
    if not files:
        expected = f"files that end in {', '.join(VIDEOS)}"
        raise InputError("videos", expected, f"none in {', '.join(str(i) for i in inputs)}")
    files = list(dict.fromkeys(files))  # a folder and a file in it may both be named
    better = {file.with_suffix("") for file in files if file.suffix.lower() != ".gif"}
    return _unique((i for i in files if i.suffix.lower() != ".gif" or i.with_suffix("") not in better), "videos")


def camera_files(folder: Path) -> dict[str, Path]:
    """Camera files by name; `clip-cameras.json`, `clip.cameras.json` and `clip.json` are `clip`'s, the first first."""
    files = list(named_files(folder, CAMERAS, "camera files").values())
    marked = [path for path in files if path.stem.endswith(MARKS)]
    return _unique((i for i in files if i not in marked), "camera files") | _unique(marked, "camera files", MARKS)


def named_files(folder: Path, endings: tuple[str, ...], what: str) -> dict[str, Path]:
    if not is_folder(folder):
        raise InputError(what, "a folder", folder)
    return _unique(_listed(folder, endings), what)


def _listed(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    with reading(str(folder), "a folder that can be read"):
        names = sorted(folder.iterdir())
    return [path for path in names if path.suffix.lower() in endings and not path.name.startswith(".")]


def _unique(files: Iterable[Path], what: str, drop: tuple[str, ...] = ()) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in files:
        name = clip_name(path)
        name = next((name.removesuffix(mark) for mark in drop if name.endswith(mark)), name)
        if name in found:
            raise InputError(what, "one file per clip", f"{found[name].name} and {path.name}", "Rename or move one.")
        found[name] = path
    return found
