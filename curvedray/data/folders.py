"""Folders of footage that people already have, in the layouts of `layouts/`: one record per clip.

A record that is wrong is kept, and says what is wrong when its clip is read, so that the other clips can be used.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from curvedray.data.clips import Footage, FootageSource
from curvedray.data.labels import label_beside, labelled
from curvedray.data.layouts import LAYOUTS
from curvedray.data.layouts.metadata import write_table
from curvedray.data.records import HELD_OUT, AnyRecord, FaultyRecord, Record
from curvedray.data.splits import read_splits
from curvedray.data.tables import named_captions
from curvedray.errors import InputError
from curvedray.files import plain_name, scratch_folder, whole_file
from curvedray.formats import write_cameras
from curvedray.inputs import is_folder, reading
from curvedray.media.video import write_video


class FolderFootage:
    """The footage of a folder, whichever of the known layouts it has.

    A clip's map of distances is the one its record names, `<clip>.npz` beside its video, or, of all layouts and before
    those, `<clip>.npz` in the folder `labels`.
    """

    def __init__(self, folder: Path, labels: Path | None = None, frames: int | None = None):
        """`frames` is how long clips are to be: a longer capture is cut into clips of that length."""
        if not is_folder(folder):
            raise InputError("data", "a folder", f"{folder}, which is not one")
        self.folder = folder
        self._fingerprints: dict[int, str] = {}
        for layout in LAYOUTS:
            with reading(f"data {folder}", "a folder that can be read", "Is its disk still there?"):
                records = layout.records(folder, frames)
            if records:
                self.layout = layout.name
                self.records = _with_labels(_with_notes(records, folder), labels)
                return
        expected = f"footage in a known layout ({', '.join(layout.name for layout in LAYOUTS)})"
        got, fix = "none of them", "See docs/datasets.md for each layout."
        if next(folder.glob("*.tar"), None) is not None:
            got, fix = "packed shards (.tar)", "Do this with the folder they were packed from, then pack it again."
        raise InputError(f"data {folder}", expected, got, fix)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Footage:
        return self.records[index].read()

    def name_of(self, index: int) -> str:
        return self.records[index].id

    @property
    def held_out(self) -> list[int]:
        """The clips that the folder's own split keeps from training."""
        return [i for i, record in enumerate(self.records) if record.split in HELD_OUT]

    def fingerprint(self, index: int) -> str:
        """Taken once: a clip that changes while it is in use is another clip from the next start on."""
        if index not in self._fingerprints:
            self._fingerprints[index] = self.records[index].fingerprint()
        return self._fingerprints[index]


def write_folder(
    source: FootageSource, folder: Path, tick: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Footage as a folder with a metadata table: videos, camera files, radial maps. All of it, or nothing."""
    rows = []
    with scratch_folder(folder) as scratch:
        for index in range(len(source)):
            one = source[index]
            plain_name(one.id, "id")
            row = {"video": f"{one.id}.mp4", "cameras": f"{one.id}.json", "caption": one.caption}
            write_video(one.video, scratch / row["video"], one.cameras.fps or 16.0, crf=8)
            write_cameras(one.cameras, scratch / row["cameras"])
            if one.radial is not None:
                row["radial"] = f"{one.id}.npz"
                with whole_file(scratch / row["radial"]) as temporary:
                    np.savez_compressed(temporary, radius=one.radial.radius.numpy(), valid=one.radial.valid.numpy())
            rows.append(row)
            tick(index + 1, len(source))
        write_table(rows, scratch / "metadata.csv")
        folder.mkdir(exist_ok=True)
        for path in sorted(scratch.iterdir(), key=lambda path: path.name == "metadata.csv"):  # the table comes last
            os.replace(path, folder / path.name)


def _with_notes(records: list[AnyRecord], folder: Path) -> list[AnyRecord]:
    """Records with the captions and splits that were added beside a data set: captions.json and splits.json.

    What was added takes the place of the data set's own. A capture's caption is that of its clips which have none, so
    that captions stay when it is cut into clips of another length.
    """
    captions, splits = named_captions(folder / "captions.json"), read_splits(folder)
    if not captions and not splits:
        return records
    found: list[AnyRecord] = []
    for record in records:
        caption = captions.get(record.id, record.caption or captions.get(record.source, ""))
        found.append(replace(record, caption=caption, split=splits.get(record.source or record.id, record.split)))
    return found


def _with_labels(records: list[AnyRecord], labels: Path | None) -> list[AnyRecord]:
    """Records with the maps that were found for them; a folder of labels that has none of the clips' is refused."""
    sound = [record for record in records if not isinstance(record, FaultyRecord)]
    maps = {} if labels is None else labelled(labels, {name for i in sound for name in _names(i)})
    found: list[AnyRecord] = []
    for record in records:
        if not isinstance(record, FaultyRecord):
            other = next((maps[name] for name in _names(record) if name in maps), None)
            beside = None
            if isinstance(record, Record) and not record.radial:
                beside = label_beside(record.video, record.cameras)
            record = replace(record, radial=other or record.radial or beside)  # type: ignore[arg-type]
        found.append(record)
    return found


def _names(record: AnyRecord) -> tuple[str, ...]:
    """What a clip's label may be called."""
    return (record.id, record.video.stem) if isinstance(record, Record) else (record.id,)
