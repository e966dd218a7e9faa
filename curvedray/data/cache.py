"""Latents, text and radial targets computed once: a folder with one file per clip, named by what the clip is made of.

A clip whose video, cameras, caption or anything else changes has another fingerprint, so it is encoded again, and it
alone. Files are written whole and read through memory maps: making a cache again goes on where it stopped, and memory
holds one clip. `encoder.safetensors` says for which shape and by which encoders; a cache of others is refused.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.data.clips import (
    Clip,
    ClipSource,
    EncodedOnTheFly,
    FootageSource,
    FootageSubset,
    SomeClips,
    VideoShape,
    encoded,
)
from curvedray.data.fingerprint import fingerprint
from curvedray.data.tars import Shards
from curvedray.engine import HERE, Engine, model_opener, run_jobs
from curvedray.errors import InputError
from curvedray.files import write_tensors
from curvedray.inputs import parsed_json, read_header, read_tensors, reading
from curvedray.locks import lock_folder, remove_leftovers
from curvedray.models.interface import VideoModel

CacheDtype = Literal["float32", "float16"]
LAYOUT = 2  # of the files; a change of it makes old caches another thing
ENCODER = "encoder.safetensors"


@dataclass(frozen=True)
class CacheReport:
    """What a cache holds of a source, and what had to be left out."""

    clips: int
    skipped: tuple[tuple[str, str], ...]  # name, reason: of clips, and of shards that could not be read
    bytes: int  # of all files in the folder
    made: int  # clips encoded by this call; the others were there
    unused: int  # files of clips that are not, or no longer, in the source

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def build_cache(
    source: FootageSource,
    model: VideoModel,
    shape: VideoShape,
    folder: Path,
    *,
    dtype: CacheDtype = "float32",
    share: tuple[int, int] = (0, 1),
    tick: Callable[[int, int], None] = lambda done, total: None,
    engine: Engine = HERE,
    open_model: Callable[[], VideoModel] | None = None,
) -> CacheReport:
    """Encode every clip of a source once. Clips that cannot be read are left out and named in the report.

    Several processes may share the work: `share` is this one's number and how many there are, and the report is of
    its own clips. Of two strangers who build one cache at once the second is refused. On an engine of several workers
    each opens a model by `open_model`; without it, `model` is sent.
    """
    if not len(source):
        raise InputError("clips", "at least one", "none")
    rank, count = share
    jobs = range(rank, len(source), count)
    finished = 0

    def done(number: int, made: _Encoded) -> None:
        nonlocal finished
        finished += 1
        tick(min(finished * count, len(source)), len(source))

    def lost(index: int, reason: str) -> _Encoded:
        return _Encoded(source.name_of(index), None, reason)

    with _being_built(folder, rank, count):
        _check_encoder(folder, model, shape, dtype, write=rank == 0)
        tick(0, len(source))
        opener = partial(open_encoder, model_opener(model, open_model, engine), source, shape, folder, dtype)
        found = run_jobs(jobs, opener, engine, done=done, lost=lost, gpu=True)
        # Hidden ones are being written, by another share: they are gone before they can be measured.
        files = [path for path in folder.glob("[!.]*.safetensors") if path.name != ENCODER]
        size = sum(path.stat().st_size for path in files)
    used = {clip.path for clip in found if clip.path is not None}
    skipped = tuple((clip.name, clip.reason) for clip in found if clip.path is None)
    if rank == 0:  # shards are nobody's share
        skipped += broken_shards(source)
    made = sum(clip.made for clip in found)
    known = used if count == 1 else {clip_file(folder, source.fingerprint(i)) for i in range(len(source))}
    return CacheReport(len(used), skipped, size, made, len(set(files) - known))


@dataclass(frozen=True)
class _Encoded:
    """What became of one clip: its file, or the reason it has none."""

    name: str
    path: Path | None
    reason: str = ""
    made: bool = False


def open_encoder(
    open_model: Callable[[], VideoModel], source: FootageSource, shape: VideoShape, folder: Path, dtype: CacheDtype
) -> Callable[[int], _Encoded]:
    """What a worker does with every clip's number, its model opened."""
    return partial(_encode_once, model=open_model(), source=source, shape=shape, folder=folder, dtype=dtype)


def _encode_once(
    index: int, model: VideoModel, source: FootageSource, shape: VideoShape, folder: Path, dtype: CacheDtype
) -> _Encoded:
    """A clip's file, made if it is not there."""
    path, name = clip_file(folder, source.fingerprint(index)), source.name_of(index)
    if _is_whole(path):
        return _Encoded(name, path)
    try:
        clip = encoded(source[index], model, shape)
    except InputError as error:
        return _Encoded(name, None, str(error))
    _write_clip(clip, path, getattr(torch, dtype))
    return _Encoded(name, path, made=True)


@runtime_checkable
class InShards(Protocol):
    """Clips or footage that lie in tar shards."""

    shards: Shards


def broken_shards(source: FootageSource | ClipSource) -> tuple[tuple[str, str], ...]:
    """Shards that a source had to pass over, by name and reason; also of one that has some clips of another."""
    if isinstance(source, FootageSubset | EncodedOnTheFly):
        return broken_shards(source.source)
    if isinstance(source, SomeClips):
        return broken_shards(source.clips)
    if isinstance(source, CachedClips):
        return source.broken
    return tuple(source.shards.broken) if isinstance(source, InShards) else ()


def clip_file(folder: Path, made_of: str) -> Path:
    return folder / f"{made_of[:32]}.safetensors"


def remove_unused(folder: Path, source: FootageSource) -> int:
    """Delete the files of clips that are not in a source, such as those of captions since changed; how many."""
    with _being_built(folder):
        known = {clip_file(folder, source.fingerprint(i)) for i in range(len(source))} | {folder / ENCODER}
        unused = [path for path in folder.glob("*.safetensors") if path not in known]
        for path in unused:
            path.unlink()
    return len(unused)


@contextmanager
def _being_built(folder: Path, rank: int = 0, count: int = 1) -> Iterator[None]:
    """The first of a run's processes holds the folder for all of them. One that is alone clears what killed ones left;
    to the first of several those may be files that another share is writing, and `whole_file` clears this machine's.
    """
    if rank:
        folder.mkdir(parents=True, exist_ok=True)
        yield
        return
    fix = "Wait until it has finished, or choose another folder."
    with lock_folder(folder, f"cache {folder}", fix):
        if count == 1:
            remove_leftovers(folder)
        yield


def _check_encoder(folder: Path, model: VideoModel, shape: VideoShape, dtype: str, write: bool) -> None:
    """Refuse a cache of another shape, precision or encoder; note them in one that is new."""
    fix = "Choose another folder, or delete this one to make it again."
    if next(folder.glob("shard-*.safetensors"), None):
        raise InputError(f"cache {folder}", "a cache of this version", "one of an earlier version, in shards", fix)
    path = folder / ENCODER
    if path.exists():
        stored = read_tensors(path, "a cache's encoder file")
        check_encoder(*stored, model, shape, dtype, f"cache {folder}", fix)
    elif write:
        key = json.dumps({"layout": LAYOUT, "shape": asdict(shape), "dtype": dtype}, sort_keys=True)
        with torch.no_grad():
            empty = model.encode_text([""])[0].to(getattr(torch, dtype))
        write_tensors(path, {"probe": _probe(model), "empty_text": empty}, {"cache": key})


def check_encoder(
    stored: dict[str, Tensor],
    header: dict[str, str],
    model: VideoModel,
    shape: VideoShape,
    dtype: str | None,
    name: str,
    fix: str,
) -> None:
    """Refuse encoded clips of another shape, precision (where one is named) or encoder."""
    wanted: dict[str, Any] = {"layout": LAYOUT, "shape": asdict(shape)} | ({} if dtype is None else {"dtype": dtype})
    got = parsed_json(header.get("cache", "{}"), name)
    there = isinstance(got, dict) and {key: got.get(key) for key in wanted} == wanted
    if not there or not {"probe", "empty_text"} <= set(stored):
        key = json.dumps(wanted, sort_keys=True)
        raise InputError(name, f"a cache of {key}", f"one of {header.get('cache')}", fix)
    theirs, probe = stored["probe"], _probe(model)
    if theirs.shape != probe.shape or not torch.allclose(theirs, probe, rtol=0.05, atol=0.05):
        raise InputError(name, "a cache made by this model's encoders", "one made by others", fix)


@torch.no_grad()
def _probe(model: VideoModel) -> Float[Tensor, " numbers"]:
    """What a model makes of one small fixed video and of no caption: it tells encoders apart, whatever their names."""
    _, rows, cols = model.grid_for(model.defaults.frames, model.defaults.height, model.defaults.width).stride
    waves = torch.linspace(-3, 3, 3 * 5 * 2 * rows * 2 * cols).sin().reshape(1, 3, 5, 2 * rows, 2 * cols)
    latents, text = model.encode(waves.to(model.device)), model.encode_text([""])
    return torch.cat([latents.flatten().cpu().float(), text.flatten()[:256].cpu().float()])


def _is_whole(path: Path) -> bool:
    """Whether a clip's file is there and sound; safetensors compares its length with what its header promises."""
    try:
        names, header = read_header(path, "a clip of a cache")
    except InputError:
        return False  # missing or cut short: it is made
    return set(_FIELDS) <= set(names) and "clip" in header


def _write_clip(clip: Clip, path: Path, dtype: torch.dtype) -> None:
    tensors = {name: part(clip).contiguous() for name, part in _FIELDS.items()}
    tensors |= {name: tensors[name].to(dtype) for name in ("latents", "text")}
    lens = clip.cameras.lens
    notes = {
        "id": clip.id,
        "caption": clip.caption,
        "unit": clip.cameras.unit,
        "fps": clip.cameras.fps,
        "max_angle": lens.max_angle,
        "size": list(lens.size),
    }
    write_tensors(path, tensors, {"clip": json.dumps(notes, sort_keys=True)})


_FIELDS: dict[str, Callable[[Clip], Tensor]] = {
    "latents": lambda clip: clip.latents,
    "text": lambda clip: clip.text,
    "poses": lambda clip: clip.cameras.world_from_camera,
    "focal": lambda clip: clip.cameras.frame_lens.focal,
    "center": lambda clip: clip.cameras.frame_lens.center,
    "xi": lambda clip: clip.cameras.frame_lens.xi,
    "log_radius": lambda clip: clip.log_radius,
    "radius_known": lambda clip: clip.radius_known,
}


def stored_clip(read: dict[str, Tensor], header: dict[str, str], name: str, fix: str) -> Clip:
    """The clip of a cache's file, whose tensors and header these are."""
    with reading(name, "a clip's parts in its file of the cache", fix):
        notes = parsed_json(header["clip"], name)
        lens = Lens(read["focal"], read["center"], read["xi"], tuple(notes["size"]), notes["max_angle"])
        cameras = Cameras(lens, read["poses"], notes["unit"], notes["fps"])
        latents, text = read["latents"].float(), read["text"].float()
        if not torch.isfinite(latents).all():
            raise InputError(name, "finite latents", "NaN or infinity in the cache", fix)
        return Clip(name, notes["caption"], latents, text, cameras, read["log_radius"], read["radius_known"])


class CachedClips:
    """The clips of a source that a cache holds, read through memory maps as they are asked for."""

    empty_text: Float[Tensor, "l e"]

    def __init__(self, folder: Path, source: FootageSource):
        fix = "Make it: curvedray data cache."
        if not (folder / ENCODER).is_file():
            raise InputError(f"cache {folder}", f"a folder with {ENCODER}", "none", fix)
        self.empty_text = read_tensors(folder / ENCODER, "a cache's encoder file")[0]["empty_text"].float()
        prints = [source.fingerprint(index) for index in range(len(source))]
        kept = [index for index, made_of in enumerate(prints) if clip_file(folder, made_of).is_file()]
        if not kept:
            fix = "`curvedray data check` says why."
            raise InputError("clips", "some that can be read", f"none of {len(source)}", fix)
        self._files = [clip_file(folder, prints[index]) for index in kept]
        self._names = [source.name_of(index) for index in kept]
        self.fingerprint = fingerprint([prints[index] for index in kept])
        self.broken = broken_shards(source)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Clip:
        name, path = self._names[index], self._files[index]
        fix = f"Delete {path} and make the cache again."
        return stored_clip(*read_tensors(path, "a clip of a cache"), name, fix)

    def share_known(self, index: int) -> float:
        """Share of a clip's tokens that have a radial target; of the file only that is read."""
        expected = "a clip's parts in its file of the cache"
        with reading(self._names[index], expected):
            read, _ = read_tensors(self._files[index], "a clip of a cache", only=("radius_known",))
            return float(read["radius_known"].float().mean())

    def name_of(self, index: int) -> str:
        return self._names[index]
