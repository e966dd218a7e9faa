"""Tar shards in WebDataset's form, on a disk or anywhere that fsspec reaches, with an index of where every file lies.

A sample is the files whose names agree up to the first dot: `000042.mp4`, `000042.txt`. `index.json` is an index that
WebDataset's own indexed reader knows, and beside that holds every file's place, so that a clip is read by its range of
bytes and nothing is unpacked. A shard that is gone, cut short or no tar is named and passed over.
"""

import io
import json
import logging
import tarfile
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.files import whole_file
from curvedray.inputs import LARGEST_TEXT, first_line, parsed_json, reading

log = logging.getLogger(__name__)
INDEX = "index.json"
KIND = "wids-shard-index-v1"  # by which WebDataset knows an index
FORMAT = 1  # of our own part of it
MOST_OPEN = 8  # shards whose files stay open: as many as a shuffled stream visits at once
MOST_FILES = 10_000_000
AWAY = ("://", "::")  # what tells an address from a path
# By which fsspec reaches addresses, as pip knows them.
PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp requests", "https": "aiohttp requests"}


@dataclass(frozen=True)
class Place:
    """Where a file lies in its shard."""

    offset: int
    size: int


@dataclass(frozen=True)
class Sample:
    """Files of one name: its ending -> its place."""

    key: str
    shard: str
    files: Mapping[str, Place]


@dataclass
class Shards:
    """Tars of one folder, opened: every sample's place, and what had to be passed over."""

    root: str  # a folder, or an address
    samples: list[Sample]
    notes: Mapping[str, Any] = field(default_factory=dict)  # what the writer noted beside the places
    broken: list[tuple[str, str]] = field(default_factory=list)  # shard, reason
    _files: OrderedDict[str, Any] = field(default_factory=OrderedDict, repr=False)
    _place: tuple[Any, str] | None = field(default=None, repr=False)  # held: a zip closes with its file system

    def read(self, sample: Sample, ending: str, most: int | None = None) -> bytes:
        """One file of a sample, or its first bytes, `most` of them."""
        place, name = sample.files.get(ending), f"{sample.shard}: {sample.key}.{ending}"
        if place is None:
            raise InputError(name, "a file of this sample", f"only {', '.join(sorted(sample.files))}")
        with reading(name, "a file that can be read", "Copy the shard again."):
            file = self._opened(sample.shard)
            file.seek(place.offset)
            wanted = place.size if most is None else min(most, place.size)
            content = bytes(file.read(wanted))
        if len(content) != wanted:
            raise InputError(name, f"{wanted} bytes", f"{len(content)}", "Copy the shard again.")
        return content

    def _opened(self, shard: str) -> Any:
        if shard not in self._files:
            self._place = self._place or file_system(self.root)
            fs, root = self._place
            self._files[shard] = fs.open(f"{root}/{shard}", "rb")
            while len(self._files) > MOST_OPEN:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(shard)
        return self._files[shard]

    def __getstate__(self) -> dict[str, Any]:
        """Open files stay behind where this is sent to a worker."""
        return {**self.__dict__, "_files": OrderedDict(), "_place": None}


def file_system(root: str) -> tuple[Any, str]:
    """fsspec's file system of a folder or address, and the path in it."""
    needed("fsspec")
    from fsspec.core import url_to_fs

    try:
        with reading(root, "a folder, or an address that fsspec knows"):
            fs, path = url_to_fs(root)
            return fs, str(path).rstrip("/")
    except ImportError as error:
        package = next((PACKAGES[kind] for kind in PACKAGES if f"{kind}://" in root), None)
        fix = f"Run: pip install {package}" if package else "Install what it asks for, or copy the data to a disk."
        raise InputError(root, "an address whose package is installed", first_line(error), fix) from error


def is_address(source: str) -> bool:
    return any(mark in source for mark in AWAY)


def read_away(root: str, name: str, limit: int = LARGEST_TEXT) -> bytes | None:
    """A small file beside shards; None where there is none."""
    fs, path = file_system(root)
    with reading(f"{root}/{name}", "a file that can be read"):
        if not fs.isfile(f"{path}/{name}"):
            return None
        if fs.size(f"{path}/{name}") > limit:
            raise InputError(f"{root}/{name}", f"at most {limit} bytes", fs.size(f"{path}/{name}"))
        return bytes(fs.cat_file(f"{path}/{name}"))


def open_shards(root: str) -> Shards | None:
    """The shards of a folder or address, by their index, or else by looking into every tar; None where there are none.

    Shards that cannot be read, or that the index promises and are not there or not whole, are warned of and passed
    over. A set of which nothing can be read is refused.
    """
    fs, path = file_system(root)
    content = read_away(root, INDEX)
    index = None if content is None else parsed_json(content.decode("utf-8", "replace"), f"{root}/{INDEX}")
    if isinstance(index, dict) and index.get("__kind__") == KIND and "curvedray" in index:
        shards = _indexed(root, index)
    else:
        with reading(root, "a folder of .tar shards"):
            tars = sorted(str(i).rsplit("/", 1)[-1] for i in fs.glob(f"{path}/*.tar"))
        if not tars:
            return None
        shards = Shards(root, [])
        for name in tars:
            found: dict[str, Place] = {}
            try:
                with reading(name, "a tar"), fs.open(f"{path}/{name}", "rb") as file:
                    found, torn = tar_places(file)
            except InputError as error:  # a link to nothing, a file that is somebody else's
                torn = error.got
            shards.samples += samples_of(name, found)
            if torn:
                shards.broken.append((name, torn))
    for name, reason in shards.broken:
        log.warning("shard %s: passed over, or in part: %s", name, reason)
    if shards.broken and not shards.samples:
        got = f"none of {len(shards.broken)}; {': '.join(shards.broken[0])}"
        raise InputError(f"shards {root}", "a shard that can be read", got, "Copy the shards again.")
    return shards


def _indexed(root: str, index: dict[str, Any]) -> Shards:
    fs, path = file_system(root)
    with reading(f"{root}/{INDEX}", "an index of shards", "Write it again: curvedray data shard."):
        own = index["curvedray"]
        if own["format"] != FORMAT:
            raise InputError(f"{root}/{INDEX}", f"an index of format {FORMAT}", own["format"])
        shards = Shards(root, [], own.get("notes", {}))
        for entry in index["shardlist"]:
            name, size = str(entry["url"]), int(entry["filesize"])
            if "/" in name or name.startswith("."):
                raise InputError(f"{root}/{INDEX}", "names of shards beside it", name)
            places = {str(file): Place(int(a), int(b)) for file, a, b in own["files"][name]}
            samples = samples_of(name, places)
            lost = f"and {len(samples)} samples with it" if len(samples) != 1 else "and a sample with it"
            if not fs.isfile(f"{path}/{name}"):
                shards.broken.append((name, f"it is not there, {lost}"))
            elif (got := fs.size(f"{path}/{name}")) != size:
                shards.broken.append((name, f"{got} bytes instead of {size}, {lost}"))
            else:
                shards.samples += samples
    return shards


def tar_places(file: Any) -> tuple[dict[str, Place], str]:
    """Where the files of an open tar lie, up to where it is torn, and how it is torn.

    Of a torn tar the sample of the last file that is named is left out: what it lacks may have come after the tear.
    """
    places: dict[str, Place] = {}
    torn = last = ""
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                last = member.name
                if len(places) >= MOST_FILES:
                    return places, f"more than {MOST_FILES} files"
                if member.isfile():
                    places[member.name] = Place(member.offset_data, member.size)
            # Whatever follows a sound file and is no file, tarfile takes for the end; a whole tar ends in zeros.
            file.seek(tar.offset)
            if bytes(file.read(tarfile.BLOCKSIZE)) != bytes(tarfile.BLOCKSIZE):
                torn = "cut short, or damaged"
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        torn = first_line(error)
    length = file.seek(0, io.SEEK_END)
    if not torn and any(place.offset + place.size > length for place in places.values()):
        torn = "cut short"
    if torn:
        cut = key_of(last)[0]
        places = {name: place for name, place in places.items() if key_of(name)[0] != cut}
        torn = f"{torn}; {len(samples_of('', places))} samples before that are whole"
    return places, torn


def key_of(name: str) -> tuple[str, str]:
    """The sample that a file belongs to, and its ending there; none of a file that belongs to no sample."""
    folder, _, base = name.rpartition("/")
    key, dot, ending = base.partition(".")
    return (f"{folder}/{key}" if folder else key, ending.lower()) if key and dot else ("", "")


def samples_of(shard: str, places: Mapping[str, Place]) -> list[Sample]:
    """Files grouped by their names up to the first dot, in the order in which they lie."""
    groups: dict[str, dict[str, Place]] = {}
    for name, place in places.items():
        key, ending = key_of(name)
        if key:
            groups.setdefault(key, {})[ending] = place
    return [Sample(key, shard, files) for key, files in groups.items()]


def write_tar(path: Path, files: Iterable[tuple[str, bytes | Path]]) -> dict[str, Place]:
    """A tar of these files, whole or not at all; the same files make the same bytes."""
    with whole_file(path) as temporary:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as tar:
            for name, content in files:
                entry = tarfile.TarInfo(name)
                if isinstance(content, Path):
                    entry.size = content.stat().st_size
                    with content.open("rb") as file:
                        tar.addfile(entry, file)
                else:
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
        with temporary.open("rb") as file:
            places, torn = tar_places(file)
        assert not torn, torn
    return places


def write_index(folder: Path, shards: Sequence[tuple[str, dict[str, Place]]], notes: Mapping[str, Any]) -> Path:
    """`index.json` of shards that were written; the last file to be, so that shards without it are unfinished."""
    listed = [
        {"url": name, "nsamples": len(samples_of(name, places)), "filesize": (folder / name).stat().st_size}
        for name, places in shards
    ]
    files = {name: [[file, place.offset, place.size] for file, place in places.items()] for name, places in shards}
    own = {"format": FORMAT, "notes": dict(notes), "files": files}
    with whole_file(folder / INDEX) as temporary:
        record = {"__kind__": KIND, "wids_version": 1, "shardlist": listed, "curvedray": own}
        temporary.write_text(json.dumps(record), encoding="utf-8")
    return folder / INDEX
