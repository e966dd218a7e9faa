"""What a run is trained on, opened: the procedural world or a folder, cached or encoded on the fly."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from curvedray.data.cache import ENCODER, CachedClips, CacheReport, build_cache
from curvedray.data.clips import (
    Clip,
    ClipSource,
    EncodedOnTheFly,
    Footage,
    FootageSource,
    FootageSubset,
    HeldOut,
    KeepsSomeBack,
    VideoShape,
    clips_except,
    encoded,
)
from curvedray.data.fingerprint import fingerprint
from curvedray.data.folders import FolderFootage
from curvedray.data.shards import ShardedClips
from curvedray.data.tars import is_address, read_away
from curvedray.data.webdataset import ShardFootage
from curvedray.errors import InputError
from curvedray.models.interface import VideoModel
from curvedray.radial.map import RadialMap
from curvedray.world import world
from curvedray.world.world import Split

# The procedural worlds by name: the number of what a clip looks like (a change makes old caches another thing), and how
# a clip is drawn.
WORLDS: dict[str, tuple[int, Callable[..., world.WorldClip]]] = {"world": (2, world.world_clip)}


@dataclass(frozen=True)
class Data:
    """What is trained on."""

    source: str = "world"  # a procedural world, or a folder
    clips: int = 2048  # of the world; a folder has as many as it has
    frames: int | None = None  # of the video; None: what the model was made for
    height: int | None = None
    width: int | None = None
    cache: str = "auto"  # auto: in the run's folder; off: encode in every step; or a folder to share
    cache_dtype: Literal["float32", "float16"] = "float32"
    labels: str | None = None  # a folder of maps, <clip>.npz; those beside the clips are found without it


@dataclass(frozen=True)
class WorldFootage:
    """Clips of a procedural world, drawn as they are asked for."""

    clips: int
    split: Split
    shape: VideoShape
    first: int = 0
    world: str = "world"

    def __len__(self) -> int:
        return self.clips

    def __getitem__(self, index: int) -> Footage:
        draw = WORLDS[self.world][1]
        clip = draw(self.first + index, self.split, self.shape.frames, self.shape.height, self.shape.width)
        return Footage(clip.id, clip.caption, clip.video, clip.cameras, RadialMap.from_metric(clip.radius, clip.valid))

    def name_of(self, index: int) -> str:
        return f"{self.split}-{self.first + index:06d}"

    def fingerprint(self, index: int) -> str:
        shape = (self.shape.frames, self.shape.height, self.shape.width)
        return fingerprint(["world", WORLDS[self.world][0], self.split, self.first + index, shape])


def video_shape(data: Data, model: VideoModel) -> VideoShape:
    """The shape asked for, with the model's own where it says none; checked against the model's strides."""
    own = model.defaults
    shape = VideoShape(data.frames or own.frames, data.height or own.height, data.width or own.width)
    model.grid_for(shape.frames, shape.height, shape.width)
    return shape


def check_source(data: Data) -> None:
    """Refuse footage that is not there, before a model is loaded for it."""
    if data.source not in WORLDS and not is_address(data.source) and not Path(data.source).is_dir():
        raise InputError("data", f"a folder of clips, or {' or '.join(WORLDS)}", f"{data.source}, which is neither")


def open_footage(
    source: str, shape: VideoShape, clips: int, split: Split = "train", labels: str | None = None
) -> FootageSource:
    if source in WORLDS:
        if labels is not None:
            raise InputError("labels", "a folder of clips to label", f"{source}, whose distances are exact")
        return WorldFootage(clips, split, shape, world=source)
    if holds_shards(source):
        if labels is not None:
            raise InputError("labels", "a folder of clips to label", f"{source}, shards that carry their own maps")
        return ShardFootage(source)
    return FolderFootage(Path(source), None if labels is None else Path(labels), shape.frames)


def open_clips(
    data: Data,
    model: VideoModel,
    out: Path,
    *,
    held_out: int = 0,
    share: tuple[int, int] = (0, 1),
    wait: Callable[[], None] = lambda: None,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[ClipSource, CacheReport | None]:
    """The clips to train on, less those `held_out` for validation: from a cache, made or finished first, or on the fly.

    Where several processes train, each makes its `share` of the cache, and they `wait` for one another to open it.
    """
    shape = video_shape(data, model)
    if holds_encoded_shards(data.source):
        encoded_clips = _encoded_shards(data, model, shape)
        names = {encoded_clips.name_of(i) for i in _last(held_out, len(encoded_clips))}
        return clips_except(encoded_clips, names), None
    footage = open_footage(data.source, shape, data.clips, labels=data.labels)
    excluded = {footage.name_of(i) for i in _held_out(data, held_out, footage)}
    if isinstance(footage, KeepsSomeBack) and footage.held_out:
        kept = [i for i in range(len(footage)) if i not in set(footage.held_out)]
        footage = FootageSubset(footage, kept)
    if data.cache == "off":
        return clips_except(EncodedOnTheFly(footage, model, shape), excluded), None
    folder = cache_folder(data, out)
    report = build_cache(footage, model, shape, folder, dtype=data.cache_dtype, share=share, tick=tick)
    wait()
    return clips_except(CachedClips(folder, footage), excluded), report


def open_held_out(data: Data, model: VideoModel, out: Path, count: int) -> HeldOut | None:
    """Clips that training never sees, encoded: of the world's validation split, or the last of a folder.

    One that cannot be read is left out here; it was named when the cache was made. None where none is left.
    """
    shape = video_shape(data, model)
    if holds_encoded_shards(data.source):
        found = _encoded_shards(data, model, shape)
        return _as_held_out([found[i] for i in _last(count, len(found))], model)
    footage = open_footage(data.source, shape, count, "val", data.labels)
    if data.source not in WORLDS:
        footage = FootageSubset(footage, _held_out(data, count, footage)[:count])
    clips: list[Clip] = []
    if len(footage) and data.cache == "off":
        for index in range(len(footage)):
            with suppress(InputError):
                clips.append(encoded(footage[index], model, shape))
    elif len(footage) and build_cache(footage, model, shape, cache_folder(data, out), dtype=data.cache_dtype).clips:
        cached = CachedClips(cache_folder(data, out), footage)
        clips = [cached[index] for index in range(len(cached))]
    return _as_held_out(clips, model)


def _as_held_out(clips: list[Clip], model: VideoModel) -> HeldOut | None:
    if not clips:
        return None
    with torch.no_grad():
        return HeldOut(clips, model.encode_text([model.defaults.negative])[0].cpu())


def cache_folder(data: Data, out: Path) -> Path:
    return out / "cache" if data.cache == "auto" else Path(data.cache)


def _held_out(data: Data, count: int, footage: FootageSource) -> Sequence[int]:
    """All that a folder's own split keeps from training; else its last clips, at most a quarter of it.

    The world has a split of its own.
    """
    if data.source in WORLDS:
        return range(0)
    if isinstance(footage, KeepsSomeBack) and footage.held_out:
        return footage.held_out
    return _last(count, len(footage))


def _last(count: int, of: int) -> range:
    return range(of - min(count, of // 4), of)


def holds_shards(source: str) -> bool:
    """Whether a folder or an address holds tar shards, of footage or of encoded clips."""
    if source in WORLDS:
        return False
    folder = Path(source)
    if is_address(source) or not folder.is_dir() or next(folder.glob("metadata.*"), None) is not None:
        return is_address(source)
    return next(folder.glob("*.tar"), None) is not None


def holds_encoded_shards(source: str) -> bool:
    return holds_shards(source) and read_away(source, ENCODER) is not None


def _encoded_shards(data: Data, model: VideoModel, shape: VideoShape) -> ShardedClips:
    clips = ShardedClips(data.source)
    clips.check(model, shape)
    return clips
