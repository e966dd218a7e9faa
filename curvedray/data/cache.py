"""Latents, text and radial targets computed once, in shards that are written whole and read through memory maps.

A cache is a folder of `shard-00000.safetensors`. Making it again goes on where it stopped; memory holds one shard.
Each shard says what it was made of; a cache made of something else is refused, not mixed.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.data.clips import Clip, FootageSource, VideoShape, encoded
from curvedray.errors import InputError
from curvedray.files import whole_file, writing
from curvedray.models.interface import VideoModel

CacheDtype = Literal["float32", "float16"]
CLIPS_A_SHARD = 32
LAYOUT = 1  # of the shards; a change of it makes old caches another thing


@dataclass(frozen=True)
class CacheReport:
    """What a cache holds and what it had to leave out."""

    clips: int
    skipped: tuple[tuple[str, str], ...]  # name, reason
    bytes: int
    made: int  # shards written by this call; the others were there

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def build_cache(
    source: FootageSource,
    model: VideoModel,
    shape: VideoShape,
    folder: Path,
    *,
    dtype: CacheDtype = "float32",
    clips_a_shard: int = CLIPS_A_SHARD,
    share: tuple[int, int] = (0, 1),
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> CacheReport:
    """Encode every clip of a source once. Clips that cannot be read are left out and named in the report.

    Several processes may share the work: `share` is this one's number and how many there are, and the report is of
    its own shards.
    """
    if not len(source):
        raise InputError("clips", "at least one", "none")
    key, probe = _key(source, shape, dtype), _probe(model)
    made, skipped, clips = 0, [], 0
    rank, count = share
    for number, first in list(enumerate(range(0, len(source), clips_a_shard)))[rank::count]:
        path = folder / f"shard-{number:05d}.safetensors"
        wanted = range(first, min(first + clips_a_shard, len(source)))
        if not _is_whole(path, key, probe):
            tensors, notes = _encode_shard(source, model, shape, wanted, getattr(torch, dtype), tick)
            fix = "Make room and run the same command again: it goes on where it stopped."
            with writing(f"cache {folder}", fix), whole_file(path) as temporary:
                save_file({**tensors, "probe": probe}, temporary, {"key": key, "notes": json.dumps(notes)})
            made += 1
        notes = _notes(path)
        skipped += [(name, reason) for name, reason in notes["skipped"]]
        clips += len(notes["ids"])
        tick(wanted.stop, len(source))
    size = sum(path.stat().st_size for path in folder.glob("shard-*.safetensors"))
    return CacheReport(clips, tuple(skipped), size, made)


def _key(source: FootageSource, shape: VideoShape, dtype: str) -> str:
    """What a shard was made of, as text that two equal makings share."""
    made_of = {"layout": LAYOUT, "source": source.describe(), "shape": asdict(shape), "dtype": dtype}
    return json.dumps(made_of, sort_keys=True)


@torch.no_grad()
def _probe(model: VideoModel) -> Float[Tensor, " numbers"]:
    """What a model makes of one small fixed video and of no caption: it tells encoders apart, whatever their names."""
    _, rows, cols = model.grid_for(model.defaults.frames, model.defaults.height, model.defaults.width).stride
    waves = torch.linspace(-3, 3, 3 * 5 * 2 * rows * 2 * cols).sin().reshape(1, 3, 5, 2 * rows, 2 * cols)
    latents, text = model.encode(waves.to(model.device)), model.encode_text([""])
    return torch.cat([latents.flatten().cpu().float(), text.flatten()[:256].cpu().float()])


def _is_whole(path: Path, key: str, probe: Tensor) -> bool:
    """Whether a shard is there and sound. One made of something else is an error: two data sets must not mix."""
    if not path.is_file():
        return False
    try:
        with safe_open(path, "pt") as shard:
            got, encoder = shard.metadata()["key"], shard.get_tensor("probe")
    except (SafetensorError, KeyError, TypeError):
        return False  # cut short or not ours: it is made again
    fix = "Choose another folder, or delete this one to make it again."
    if got != key:
        raise InputError(f"cache {path.parent}", f"a cache made of {key}", f"one made of {got}", fix)
    if encoder.shape != probe.shape or not torch.allclose(encoder, probe, rtol=0.05, atol=0.05):
        raise InputError(f"cache {path.parent}", "a cache made by this model's encoders", "one made by others", fix)
    return True


def _notes(path: Path) -> dict[str, Any]:
    with safe_open(path, "pt") as shard:
        return dict(json.loads(shard.metadata()["notes"]))


def _encode_shard(
    source: FootageSource,
    model: VideoModel,
    shape: VideoShape,
    wanted: range,
    dtype: torch.dtype,
    tick: Callable[[int, int], None],
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of some clips, stacked, and what is to be noted beside them."""
    clips: list[Clip] = []
    skipped: list[tuple[str, str]] = []
    for index in wanted:
        tick(index, len(source))
        try:
            clips.append(encoded(source[index], model, shape))
        except InputError as error:
            skipped.append((source.name_of(index), str(error)))
    with torch.no_grad():
        tensors = {"empty_text": model.encode_text([""])[0].cpu().to(dtype)}
    for name, part in _FIELDS.items() if clips else ():
        stacked = torch.stack([part(clip) for clip in clips]).contiguous()
        tensors[name] = stacked.to(dtype) if name in ("latents", "text") else stacked
    notes = {
        "ids": [clip.id for clip in clips],
        "captions": [clip.caption for clip in clips],
        "units": [clip.cameras.unit for clip in clips],
        "max_angles": [clip.cameras.lens.max_angle for clip in clips],
        "size": [shape.width, shape.height],
        "skipped": skipped,
    }
    return tensors, notes


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


class CachedClips:
    """The clips of a cache, read through memory maps as they are asked for."""

    empty_text: Float[Tensor, "l e"]

    def __init__(self, folder: Path):
        paths = sorted(folder.glob("shard-*.safetensors"))
        if not paths:
            fix = "Make it: curvedray data cache."
            raise InputError(f"cache {folder}", "shard-*.safetensors files", "none", fix)
        try:
            self._shards = [safe_open(path, "pt") for path in paths]
            self._notes = [json.loads(shard.metadata()["notes"]) for shard in self._shards]
        except (SafetensorError, KeyError, TypeError) as error:
            fix = "Run `curvedray data cache` again: it makes anew only what is damaged."
            raise InputError(f"cache {folder}", "whole shards", error, fix) from error
        self.skipped = [tuple(i) for notes in self._notes for i in notes["skipped"]]
        self._places = [(s, i) for s, notes in enumerate(self._notes) for i in range(len(notes["ids"]))]
        if not self._places:
            fix = f"The first says: {self.skipped[0][1]}"
            raise InputError("clips", "some that can be read", f"none of {len(self.skipped)}", fix)
        self.empty_text = self._shards[0].get_tensor("empty_text").float()

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Clip:
        number, row = self._places[index]
        shard, notes = self._shards[number], self._notes[number]
        read = {name: shard.get_slice(name)[row] for name in _FIELDS}
        name = notes["ids"][row]
        if not (torch.isfinite(read["latents"]).all() and torch.isfinite(read["poses"]).all()):
            raise InputError(name, "finite latents and poses", "NaN or infinity in the cache", "Make the cache again.")
        lens = Lens(read["focal"], read["center"], read["xi"], tuple(notes["size"]), notes["max_angles"][row])
        cameras = Cameras(lens, read["poses"], notes["units"][row])
        latents, text = read["latents"].float(), read["text"].float()
        return Clip(name, notes["captions"][row], latents, text, cameras, read["log_radius"], read["radius_known"])

    def name_of(self, index: int) -> str:
        number, row = self._places[index]
        return str(self._notes[number]["ids"][row])
