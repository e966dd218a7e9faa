"""Footage in tar shards, as WebDataset has it: a video, a camera file and a caption per sample.

KEY.mp4             the video (.mov, .mkv, .webm, .avi)
KEY.cameras.json    its cameras, in any format that is known by its content (.cameras.txt, .cameras.npy ...)
KEY.txt             the caption
KEY.radial.npz      a map of distances in metres, if there is one
KEY.json            what a metadata table would say of the clip: id, caption, near, unit, hfov, xi, split ...
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from curvedray.data.clips import Footage
from curvedray.data.fingerprint import fingerprint
from curvedray.data.folders import FolderFootage
from curvedray.data.layouts.metadata import record_of_row
from curvedray.data.layouts.realestate import VIDEOS
from curvedray.data.records import HELD_OUT, PATHS, AnyRecord, ClipRecord, FaultyRecord, Record
from curvedray.data.shards import CLIPS_PER_SHARD, Packed, PackReport, index_packed, pack_shards, packed_files
from curvedray.data.tars import Sample, Shards, open_shards
from curvedray.engine import HERE, Engine
from curvedray.errors import InputError
from curvedray.files import plain_name
from curvedray.inputs import parsed_json

CAMERAS, RADIAL = "cameras.", "radial."
START = 65_536  # bytes of a video that its fingerprint reads, beside its size
SAID = tuple(field.name for field in fields(Record) if field.name not in PATHS)


class ShardFootage:
    """The footage of shards, unpacked one clip at a time, as it is asked for."""

    def __init__(self, root: str):
        shards = open_shards(root)
        if shards is None:
            raise InputError(f"data {root}", "a folder of .tar shards", "none", "See docs/data.md.")
        self.root, self.shards = root, shards
        self._samples = [sample for sample in shards.samples if _video(sample)]
        if not self._samples:
            raise InputError(f"data {root}", "samples with a video (.mp4 ...)", "none that can be read")
        self._said = [self._notes(sample) for sample in self._samples]

    def _notes(self, sample: Sample) -> dict[str, Any]:
        """What is said of a clip beside its files; what is wrong with it is kept for when the clip is read."""
        noted = self.shards.notes.get("said", {}).get(sample.key)
        if isinstance(noted, dict):
            return noted
        said: Any = {}
        try:
            if "json" in sample.files:
                said = parsed_json(self.shards.read(sample, "json").decode("utf-8", "replace"), f"{sample.key}.json")
                if not isinstance(said, dict):
                    raise InputError(f"{sample.key}.json", "names and values", type(said).__name__)
        except InputError as error:
            return {"fault": str(error)}
        return {key: value for key, value in said.items() if key in SAID}

    def __len__(self) -> int:
        return len(self._samples)

    def name_of(self, index: int) -> str:
        return str(self._said[index].get("id") or self._samples[index].key.replace("/", "-"))

    @property
    def held_out(self) -> list[int]:
        return [index for index, said in enumerate(self._said) if said.get("split") in HELD_OUT]

    def __getitem__(self, index: int) -> Footage:
        sample, said = self._samples[index], self._said[index]
        name = self.name_of(index)
        if "fault" in said:
            raise InputError(f"clip {name}", "a sound KEY.json", said["fault"])
        with tempfile.TemporaryDirectory() as folder:
            return _record(self.shards, sample, said, name, Path(folder)).read()

    def fingerprint(self, index: int) -> str:
        """Of the small files' bytes, and of the video's size and beginning; the index has it, where we packed it."""
        sample = self._samples[index]
        noted = self.shards.notes.get("prints", {}).get(sample.key)
        if isinstance(noted, str):
            return noted
        parts: list[Any] = [self._said[index]]
        for ending, place in sorted(sample.files.items()):
            try:
                content = self.shards.read(sample, ending, START)
            except InputError as error:
                content = str(error).encode()
            parts.append([ending, place.size, hashlib.sha256(content).hexdigest()])
        return fingerprint(parts)


def _video(sample: Sample) -> str | None:
    return next((ending for ending in sample.files if f".{ending}" in VIDEOS), None)


def _record(shards: Shards, sample: Sample, said: dict[str, Any], name: str, folder: Path) -> Record:
    """A clip's files in a folder, as a record that reads them."""
    video = _video(sample)
    cameras = next((ending for ending in sample.files if ending.startswith(CAMERAS)), None)
    cameras = cameras or ("npy" if "npy" in sample.files else None)
    if video is None or cameras is None:
        expected = f"a camera file in its sample ({sample.key}.cameras.json)"
        raise InputError(f"clip {name}", expected, f"only {', '.join(sorted(sample.files))}")
    radial = next((ending for ending in sample.files if ending.startswith(RADIAL)), None)
    paths = {}
    for part, ending in (("video", video), ("cameras", cameras), ("radial", radial)):
        if ending is not None:
            paths[part] = f"{part}.{ending.rpartition('.')[2]}"
            (folder / paths[part]).write_bytes(shards.read(sample, ending))
    caption = said.get("caption")
    if caption is None and "txt" in sample.files:
        caption = shards.read(sample, "txt").decode("utf-8", "replace").strip()
    return record_of_row({**said, **paths, "id": name, "caption": caption}, f"clip {name}", folder)


# -- packing


def pack_footage(
    source: FolderFootage,
    folder: Path,
    per_shard: int = CLIPS_PER_SHARD,
    *,
    engine: Engine = HERE,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> PackReport:
    """A folder's clips as shards, files copied as they are; a clip that has no such files is left out and named."""
    records = source.records
    return index_packed(folder, pack_shards(records, folder, per_shard, _pack_records, engine, tick), len(records))


def _pack_records(name: str, records: Sequence[AnyRecord], folder: Path) -> Packed:
    files: list[tuple[str, bytes | Path]] = []
    notes: dict[str, dict[str, Any]] = {"said": {}, "prints": {}}
    skipped = []
    for record in records:
        try:
            key, said, own = _files_of(record)
        except InputError as error:
            skipped.append((record.id, str(error)))
            continue
        files += own
        notes["said"][key], notes["prints"][key] = said, record.fingerprint()
    places, made = packed_files(folder / name, files)
    return Packed(name, places, notes, made, tuple(skipped))


def _files_of(record: AnyRecord) -> tuple[str, dict[str, Any], list[tuple[str, bytes | Path]]]:
    """A clip's key, which its contents decide, what is said of it, and its files by their names in the shard."""
    if isinstance(record, FaultyRecord):
        raise record.error
    plain_name(record.id, "id")
    if isinstance(record, ClipRecord):
        fix = "Train on the folder as it is, or pack its cache."
        raise InputError(
            f"clip {record.id}", "one video and one camera file", "its data set's own frames or cameras", fix
        )
    for part in PATHS:
        path = getattr(record, part)
        if path is not None and not path.is_file():
            raise InputError(f"clip {record.id}: {part}", "a file, to be packed", f"{path}, which is none")
    said = {key: value for key, value in asdict(record).items() if key in SAID and value not in (None, "")}
    key = record.fingerprint()[:32]
    own: list[tuple[str, bytes | Path]] = [
        (f"{key}{record.video.suffix.lower()}", record.video),
        (f"{key}.{CAMERAS}{record.cameras.suffix.lower().lstrip('.')}", record.cameras),
        (f"{key}.json", json.dumps(said, sort_keys=True).encode()),
    ]
    if record.caption:
        own.append((f"{key}.txt", record.caption.encode()))
    if record.radial is not None:
        own.append((f"{key}.{RADIAL}{record.radial.suffix.lower().lstrip('.')}", record.radial))
    return key, said, own
