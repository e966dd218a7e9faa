"""MiraData: long clips with layered captions, listed in its own csv. It has no cameras: `curvedray data pose` does.

miradata_*.csv with file_path and dense_caption (or short_caption) for each clip; clips at file_path below the folder.
"""

from pathlib import Path

from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, posed_cameras
from curvedray.data.tables import table_rows, text_value
from curvedray.errors import InputError

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
                cameras = posed_cameras(folder / "cameras" / f"{video.stem}.json")
                source = str(row.get("video_id") or row.get("video_url") or video.stem)
                records.append(ClipRecord(video.stem, video, cameras, caption, source=source))
            except InputError as error:
                records.append(FaultyRecord(where, error))
    return records
