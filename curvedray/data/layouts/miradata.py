"""MiraData: long clips with layered captions, listed in its own csv. It has no cameras: `curvedray data pose` does.

miradata_*.csv with file_path and dense_caption (or short_caption) for each clip; clips at file_path below the folder.
"""

from pathlib import Path

from curvedray.data.pictures import VideoPart
from curvedray.data.records import (
    AnyRecord,
    CameraSource,
    ClipRecord,
    FaultyRecord,
    FileCameras,
    posed_cameras,
    windows,
)
from curvedray.data.tables import table_rows, text_value
from curvedray.errors import InputError
from curvedray.media.stream import video_header

CAPTIONS = ("dense_caption", "short_caption", "main_object_caption", "background_caption")


def miradata_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """Clips that were downloaded; the rest of its hundreds of thousands of rows is passed over."""
    records: list[AnyRecord] = []
    for table in sorted(folder.glob("miradata*.csv")):
        for number, row in enumerate(table_rows(table), 1):
            where = f"{table.name} row {number}"
            try:
                if isinstance(row, InputError):
                    raise row
                if "file_path" not in row:
                    raise InputError(where, "a column file_path", ", ".join(map(str, row)))
                video = folder / text_value(row["file_path"], f"{where}: file_path")
                if not video.is_file():
                    continue
                caption = next((row[name] for name in CAPTIONS if row.get(name)), "")
                source = str(row.get("video_id") or row.get("video_url") or video.stem)
                for name, pictures, cameras in _parts(video, folder / "cameras", frames):
                    records.append(ClipRecord(name, pictures, cameras, caption, source=source))
            except InputError as error:
                records.append(FaultyRecord(where, error))
    return records


def _parts(video: Path, cameras: Path, frames: int | None) -> list[tuple[str, Path | VideoPart, CameraSource]]:
    """A video whole, or cut into clips of so many frames: a minute of it is more than is held at once.

    Each clip has cameras of its own, unless those of the whole video were found out.
    """
    whole = cameras / f"{video.stem}.json"
    cut = windows(video_header(video).frames, frames) if frames is not None else []
    if len(cut) < 2:
        return [(video.stem, video, posed_cameras(whole))]
    parts: list[tuple[str, Path | VideoPart, CameraSource]] = []
    for part in cut:
        name = f"{video.stem}-{part[0]:05d}"
        own = posed_cameras(cameras / f"{name}.json")
        known = FileCameras(whole, "curvedray", tuple(part)) if whole.is_file() else own
        parts.append((name, VideoPart(video, part[0], len(part)), known))
    return parts
