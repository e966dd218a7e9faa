"""Encoded clips in tar shards: a cache packed for disks and object stores that dislike a million small files.

Clips come in an order made for streams: the shards in a drawn order, and a buffer from which one clip is drawn as
another comes in. It follows from (seed, epoch) alone, so a run goes on from the middle of an epoch, at the clip.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from curvedray.data.cache import ENCODER, check_encoder, stored_clip
from curvedray.data.clips import Clip, VideoShape
from curvedray.data.fingerprint import fingerprint
from curvedray.data.tars import INDEX, Place, open_shards, read_away, tar_places, write_index, write_tar
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.inputs import parsed_json, read_tensors, tensors_from_bytes
from curvedray.models.interface import VideoModel

ENDING = "safetensors"
CLIPS_PER_SHARD = 256
BUFFER = 1024  # clips from which the next is drawn; only their numbers are held


class ShardedClips:
    """The clips of shards, read one by one from where they lie: a `ClipSource` with an order of its own."""

    empty_text: Float[Tensor, "l e"]

    def __init__(self, root: str, buffer: int = BUFFER):
        shards = open_shards(root)
        content = None if shards is None else read_away(root, ENCODER)
        if shards is None or content is None:
            fix = "Make them: curvedray data cache, then curvedray data shard."
            raise InputError(f"shards {root}", f"{INDEX} and {ENCODER} beside .tar files", "none", fix)
        self.root, self.shards, self.buffer = root, shards, buffer
        self.encoder = tensors_from_bytes(content, f"{root}/{ENCODER}", "a cache's encoder file")
        self.empty_text = self.encoder[0]["empty_text"].float()
        self._samples = [sample for sample in shards.samples if ENDING in sample.files]
        if not self._samples:
            raise InputError(f"shards {root}", "encoded clips", "none that can be read")
        self._names, self._known = shards.notes.get("names", {}), shards.notes.get("known", {})
        self.fingerprint = fingerprint([sample.key for sample in self._samples])

    @property
    def broken(self) -> list[tuple[str, str]]:
        return self.shards.broken

    def check(self, model: VideoModel, shape: VideoShape) -> None:
        """Refuse shards of another shape or of another model's encoders."""
        fix = "Encode the footage with this model, and pack it again."
        check_encoder(*self.encoder, model, shape, None, f"shards {self.root}", fix)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Clip:
        sample, name = self._samples[index], self.name_of(index)
        content = self.shards.read(sample, ENDING)
        return stored_clip(*tensors_from_bytes(content, name), name, f"Copy {sample.shard} again.")

    def name_of(self, index: int) -> str:
        key = self._samples[index].key
        return str(self._names.get(key, key))

    def share_known(self, index: int) -> float:
        """Share of a clip's tokens that have a radial target, as the index notes it."""
        return float(self._known.get(self._samples[index].key, 0.0))

    def epoch_order(self, seed: int, epoch: int) -> Sequence[int]:
        counts: dict[str, int] = {}
        for sample in self._samples:
            counts[sample.shard] = counts.get(sample.shard, 0) + 1
        return stream_order(tuple(counts.values()), self.buffer, seed, epoch)


@lru_cache(maxsize=4)
def stream_order(counts: tuple[int, ...], buffer: int, seed: int, epoch: int) -> tuple[int, ...]:
    """Every clip of an epoch once: shards in a drawn order, mixed by a buffer that one clip leaves as one comes in.

    A clip comes at most `buffer` places before its own, so a reader that goes through the shards in turn has it.
    """
    random = np.random.default_rng((seed, epoch))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    stream = [int(i) for shard in random.permutation(len(counts)) for i in range(starts[shard], starts[shard + 1])]
    held, order = stream[: max(1, buffer)], []
    for incoming, draw in zip(stream[len(held) :], random.random(max(0, len(stream) - len(held))), strict=True):
        place = int(draw * len(held))
        order.append(held[place])
        held[place] = incoming
    return (*order, *(held[int(i)] for i in random.permutation(len(held))))


@dataclass(frozen=True)
class PackReport:
    """What was packed."""

    clips: int
    shards: int
    made: int  # shards written by this call; the others were there
    skipped: tuple[tuple[str, str], ...]  # name, reason


@dataclass(frozen=True)
class Packed:
    """One shard: where its files lie, what the index notes of its samples, and what was left out."""

    name: str
    places: dict[str, Place]
    notes: dict[str, dict[str, Any]]  # what -> key of a sample -> value
    made: bool
    skipped: tuple[tuple[str, str], ...]


def index_packed(folder: Path, packed: Sequence[Packed], clips: int) -> PackReport:
    """The index of shards that were packed, of `clips` in all; shards of a list that has changed since go."""
    skipped = tuple(one for shard in packed for one in shard.skipped)
    packed = [shard for shard in packed if shard.places]
    for stale in {path.name for path in folder.glob("*.tar")} - {shard.name for shard in packed}:
        (folder / stale).unlink()
    notes: dict[str, dict[str, Any]] = {}
    for shard in packed:
        for what, values in shard.notes.items():
            notes.setdefault(what, {}).update(values)
    write_index(folder, [(shard.name, shard.places) for shard in packed], notes)
    return PackReport(clips - len(skipped), len(packed), sum(shard.made for shard in packed), skipped)


def pack_shards(
    items: Sequence[Any],
    folder: Path,
    per_shard: int,
    pack_one: Callable[[str, Sequence[Any], Path], Packed],
    engine: Engine,
    tick: Callable[[int, int], None],
) -> list[Packed]:
    """`items` in shards of `per_shard`, each by `pack_one(name, items, folder)`, which is a function of a module."""
    jobs = [(f"{i // per_shard:06d}.tar", items[i : i + per_shard]) for i in range(0, len(items), per_shard)]
    (folder / INDEX).unlink(missing_ok=True)  # an old one must not tell of new shards, should this be stopped
    done = count(1)
    tick(0, len(jobs))
    opener = partial(_packer, pack_one, folder)
    packed = run_jobs(jobs, opener, engine, done=lambda *_: tick(next(done), len(jobs)))
    skipped = [one for shard in packed for one in shard.skipped]
    if not any(shard.places for shard in packed):
        raise InputError("clips", "some that can be packed", f"none of {len(items)}; the first: {skipped[0][1]}")
    return packed


def _packer(
    pack_one: Callable[[str, Sequence[Any], Path], Packed], folder: Path
) -> Callable[[tuple[str, Sequence[Any]]], Packed]:
    return lambda job: pack_one(*job, folder)


def pack_cache(
    cache: Path,
    folder: Path,
    per_shard: int = CLIPS_PER_SHARD,
    *,
    engine: Engine = HERE,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> PackReport:
    """A cache's clips as shards of `per_shard` in `folder`, with an index; shards that are there are kept.

    Clips lie in the order of their fingerprints, which is no order of anything else.
    """
    if not (cache / ENCODER).is_file():
        raise InputError(f"cache {cache}", f"a folder with {ENCODER}", "none", "Make it: curvedray data cache.")
    files = sorted(path for path in cache.glob(f"*.{ENDING}") if path.name != ENCODER)
    if not files:
        raise InputError(f"cache {cache}", "encoded clips", "none", "Make them: curvedray data cache.")
    packed = pack_shards(files, folder, per_shard, _pack_encoded, engine, tick)
    with whole_file(folder / ENCODER) as temporary:
        temporary.write_bytes((cache / ENCODER).read_bytes())
    return index_packed(folder, packed, len(files))


def _pack_encoded(name: str, files: Sequence[Path], folder: Path) -> Packed:
    """One shard, written unless it is there with these very clips; a clip that cannot be read is left out."""
    names, known, sound, skipped = {}, {}, [], []
    for path in files:
        try:
            read, header = read_tensors(path, "a clip of a cache", only=("radius_known",))
            key = path.stem
            names[key] = str(parsed_json(header["clip"], str(path))["id"])
            known[key] = round(float(read["radius_known"].float().mean()), 4)
            sound.append(path)
        except (InputError, KeyError) as error:
            skipped.append((path.name, str(error)))
    places, made = packed_files(folder / name, [(path.name, path) for path in sound])
    return Packed(name, places, {"names": names, "known": known}, made, tuple(skipped))


def packed_files(path: Path, files: Sequence[tuple[str, bytes | Path]]) -> tuple[dict[str, Place], bool]:
    """A shard of these files, and whether it was written: one with files of these names and sizes is kept.

    Of no files none is written. A name has to change where contents do: it is, or stands beside, a fingerprint.
    """
    if not files:
        return {}, False
    sizes = {name: len(one) if isinstance(one, bytes) else one.stat().st_size for name, one in files}
    places: dict[str, Place] = {}
    torn = "missing"
    if path.is_file():
        with path.open("rb") as file:
            places, torn = tar_places(file)
    if not torn and {name: place.size for name, place in places.items()} == sizes:
        return places, False
    return write_tar(path, files), True
