"""Clips on their way from disk to the loss: footage with a camera per frame, fitted to a model, encoded, batched.

Footage is what people have: pixels, a camera per frame, a caption and perhaps a radial map, in metres or another unit.
A clip is what the loss sees: latents, text, one camera per latent frame and radial targets, all in near distances.

    b clip   t frame   c h w channel, row, column   n token   l e text token and its width
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from curvedray.cameras import Cameras, TokenGrid, stacked
from curvedray.data.fingerprint import fingerprint
from curvedray.data.tracks import camera_problems
from curvedray.encoding.curved import OFFSETS
from curvedray.errors import InputError
from curvedray.media.pixels import video_from_frames
from curvedray.models.interface import VideoModel
from curvedray.radial.interval import RadialInterval
from curvedray.radial.map import RadialMap, check_scale


@dataclass(frozen=True, eq=False)
class Footage:
    """A video with a camera per frame. `near` is its near distance in the cameras' unit, where somebody knows it."""

    id: str
    caption: str
    video: UInt8[Tensor, "t h w 3"]
    cameras: Cameras
    radial: RadialMap | None = None
    near: float | None = None
    moving: Bool[Tensor, "t h w"] | None = None  # where something moves by itself, if somebody marked it


@runtime_checkable
class FootageSource(Protocol):
    """A list of footage that is read one at a time."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Footage: ...

    def name_of(self, index: int) -> str:
        """A clip's name, also of one that cannot be read."""
        ...

    def fingerprint(self, index: int) -> str:
        """What a clip is made of, in letters that change when anything in it changes; nothing is decoded for it."""
        ...


@runtime_checkable
class KeepsSomeBack(Protocol):
    """Footage with a split of its own: the numbers of clips that are kept from training."""

    @property
    def held_out(self) -> Sequence[int]: ...


@dataclass(frozen=True)
class VideoShape:
    """What a model is trained on: 81 x 480 x 832, say."""

    frames: int
    height: int
    width: int


@dataclass(frozen=True, eq=False)
class Clip:
    """What flows from disk to the loss: cameras and radii in near distances, one camera per latent frame."""

    id: str
    caption: str
    latents: Float[Tensor, "c t h w"]
    text: Float[Tensor, "l e"]
    cameras: Cameras
    log_radius: Float[Tensor, " n"]
    radius_known: Bool[Tensor, " n"]


@runtime_checkable
class ClipSource(Protocol):
    """Encoded clips by number, and the text of an empty caption, for training without one."""

    empty_text: Float[Tensor, "l e"]
    fingerprint: str  # of all of them: another data set, or one that changed, has another

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Clip: ...

    def name_of(self, index: int) -> str: ...


@runtime_checkable
class HasOrder(Protocol):
    """Clips that are quick to read in some orders only, and draw one of them for every epoch."""

    def epoch_order(self, seed: int, epoch: int) -> Sequence[int]:
        """Every clip's number once; a pure function, so that a run can go on from the middle of an epoch."""
        ...


@dataclass(frozen=True)
class FootageSubset:
    """Some footage of a source, by its numbers."""

    source: FootageSource
    kept: Sequence[int]

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> Footage:
        return self.source[self.kept[index]]

    def name_of(self, index: int) -> str:
        return self.source.name_of(self.kept[index])

    def fingerprint(self, index: int) -> str:
        return self.source.fingerprint(self.kept[index])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Encoded clips that training never sees, and the text that guidance leads away from: nothing is left to encode."""

    clips: Sequence[Clip]
    negative_text: Float[Tensor, "l e"]


class SomeClips:
    """Some clips of a source, by their numbers; `why` names the choice. In the order of the source, if it has one."""

    def __init__(self, clips: ClipSource, kept: Sequence[int], why: object):
        self.clips, self.kept, self.empty_text = clips, kept, clips.empty_text
        self.fingerprint = fingerprint([clips.fingerprint, why])
        self._number = {number: place for place, number in enumerate(kept)}
        self._drawn: tuple[tuple[int, int], Sequence[int]] | None = None

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> Clip:
        return self.clips[self.kept[index]]

    def name_of(self, index: int) -> str:
        return self.clips.name_of(self.kept[index])

    def epoch_order(self, seed: int, epoch: int) -> Sequence[int]:
        if not isinstance(self.clips, HasOrder):
            return _order(len(self), seed, epoch)
        if self._drawn is None or self._drawn[0] != (seed, epoch):
            whole = self.clips.epoch_order(seed, epoch)
            self._drawn = (seed, epoch), tuple(self._number[i] for i in whole if i in self._number)
        return self._drawn[1]


def clips_except(clips: ClipSource, names: set[str]) -> SomeClips:
    """What is left to train on when clips of certain names are held out."""
    return SomeClips(clips, [i for i in range(len(clips)) if clips.name_of(i) not in names], sorted(names))


@dataclass(frozen=True, eq=False)
class Batch:
    """Clips side by side; the cameras have a batch axis."""

    ids: tuple[str, ...]
    captions: tuple[str, ...]
    latents: Float[Tensor, "b c t h w"]
    text: Float[Tensor, "b l e"]
    cameras: Cameras
    log_radius: Float[Tensor, "b n"]
    radius_known: Bool[Tensor, "b n"]

    def __len__(self) -> int:
        return len(self.ids)

    def teacher(self, sigma: float) -> RadialInterval:
        """The narrow interval that MixForcing puts in the prediction's place."""
        return RadialInterval(self.log_radius, torch.full_like(self.log_radius, sigma))

    def to(self, device: torch.device) -> "Batch":
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return replace(self, cameras=self.cameras.to(device), **moved)


_TENSORS = ("latents", "text", "log_radius", "radius_known")


def batch_of(clips: Sequence[Clip]) -> Batch:
    """Clips stacked into a batch, in float32 but for what is true or false."""
    tensors = {name: torch.stack([getattr(clip, name) for clip in clips]) for name in _TENSORS}
    tensors = {name: x if x.dtype == torch.bool else x.float() for name, x in tensors.items()}
    cameras = stacked([clip.cameras for clip in clips])
    return Batch(tuple(i.id for i in clips), tuple(i.caption for i in clips), cameras=cameras, **tensors)


# -- from footage to a clip


def fitted(footage: Footage, shape: VideoShape) -> Footage:
    """The first frames that the model wants, cropped at the centre and resized to its shape; the lens with them."""
    frames, height, width = footage.video.shape[:3]
    if frames < shape.frames:
        raise InputError(
            footage.id, f"at least {shape.frames} frames", frames, "Train on fewer frames or leave it out."
        )
    if footage.cameras.frames < shape.frames:
        got = f"{footage.cameras.frames} for {frames} frames"
        raise InputError(footage.id, f"a camera per frame, at least {shape.frames}", got)
    crop_w = min(width, round(height * shape.width / shape.height))
    crop_h = min(height, round(width * shape.height / shape.width))
    left, top = (width - crop_w) // 2, (height - crop_h) // 2
    pixels = rearrange(footage.video[: shape.frames, top : top + crop_h, left : left + crop_w], "t h w c -> t c h w")
    if (crop_h, crop_w) != (shape.height, shape.width):
        resized = F.interpolate(
            pixels.float(), (shape.height, shape.width), mode="bilinear", antialias=True, align_corners=False
        )
        pixels = resized.round().clamp(0, 255).to(torch.uint8)
    cameras = footage.cameras[: shape.frames]
    lens = cameras.lens.sized(width, height).cropped(left, top, crop_w, crop_h).resized(shape.width, shape.height)
    radial = footage.radial
    if radial is not None:  # the map may be of another size than the video; the window is the same share of it
        map_h, map_w = radial.radius.shape[1:]
        rows = slice(round(top / height * map_h), round((top + crop_h) / height * map_h))
        cols = slice(round(left / width * map_w), round((left + crop_w) / width * map_w))
        kept = slice(shape.frames)
        radial = replace(radial, radius=radial.radius[kept, rows, cols], valid=radial.valid[kept, rows, cols])
    moving = footage.moving
    if moving is not None:
        window = moving[: shape.frames, None, top : top + crop_h, left : left + crop_w].float()
        moving = F.interpolate(window, (shape.height, shape.width), mode="area")[:, 0] >= 0.5
    video = rearrange(pixels, "t c h w -> t h w c")
    return replace(footage, video=video, cameras=replace(cameras, lens=lens), radial=radial, moving=moving)


def in_near_distances(footage: Footage) -> tuple[Cameras, RadialMap | None]:
    """Translations and radii in near distances: metric ones divided by the clip's own, else by its radial map's.

    Poses in a unit of their own have a near distance in that unit, and a map has one in metres: each is divided by its
    own. Without one they stay as they are, and beside a map are refused, for the two would disagree; a map in the
    cameras' own unit (triangulated between them) agrees with them, and its near distance divides both.
    """
    cameras, radial, near = footage.cameras, footage.radial, footage.near
    if cameras.unit == "near":
        return cameras, radial
    if cameras.unit == "arbitrary":
        check_scale(footage.id, cameras.unit, near, radial)
        if radial is not None and radial.unit == "cameras":
            near = near or radial.near
            radial = replace(radial, near=near)
        return cameras if near is None else cameras.scaled(near), radial
    near = near or (radial.near if radial is not None else None)
    if near is None:
        return cameras, radial
    return cameras.scaled(near), None if radial is None else replace(radial, near=near)


def encoded(footage: Footage, model: VideoModel, shape: VideoShape) -> Clip:
    """Footage of any size as the clip that a model is trained on."""
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    footage = fitted(footage, shape)
    if problems := camera_problems(footage.cameras):
        fix = "Cut it there, or leave it out. `curvedray data check` looks at all of them."
        raise InputError(footage.id, "a path that one camera can take", problems[0], fix)
    cameras, radial = in_near_distances(footage)
    log_radius, known = _targets(radial, cameras, grid)
    with torch.no_grad():
        latents = model.encode(video_from_frames(footage.video)[None].to(model.device))[0].cpu()
        text = model.encode_text([footage.caption])[0].cpu()
    if not torch.isfinite(latents).all():
        raise InputError(footage.id, "finite latents", "NaN or infinity", "Is the video sound?")
    return Clip(footage.id, footage.caption, latents, text, cameras.latent_frames(grid), log_radius, known)


def _targets(radial: RadialMap | None, cameras: Cameras, grid: TokenGrid) -> tuple[Tensor, Tensor]:
    """Log radii of tokens, and which are known. A token without a ray has no distance, whatever a map says."""
    if radial is None:
        return torch.zeros(grid.tokens), torch.zeros(grid.tokens, dtype=torch.bool)
    interval, known = radial.on(grid)
    _, exists = cameras.latent_frames(grid).rays(grid, torch.tensor(OFFSETS))
    return interval.mu, known & exists.any(-1).flatten()


class EncodedOnTheFly:
    """Clips encoded as they are asked for: no cache, no disk, and the encoders' time in every step."""

    def __init__(self, source: FootageSource, model: VideoModel, shape: VideoShape):
        self.source, self.model, self.shape = source, model, shape
        self.fingerprint = fingerprint([source.fingerprint(i) for i in range(len(source))])
        with torch.no_grad():
            self.empty_text = model.encode_text([""])[0].cpu()

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Clip:
        return encoded(self.source[index], self.model, self.shape)

    def name_of(self, index: int) -> str:
        return self.source.name_of(index)


# -- which clip comes when


@lru_cache(maxsize=4)
def _order(count: int, seed: int, epoch: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    return tuple(torch.randperm(count, generator=generator).tolist())


def clip_number(position: int, count: int, seed: int) -> int:
    """The clip at a position of the endless shuffled stream: each once per epoch, a pure function of its arguments."""
    return _order(count, seed, position // count)[position % count]


def _number_at(clips: ClipSource, position: int, seed: int) -> int:
    """The clip at a position of a source's stream, in the source's own order if it has one."""
    if isinstance(clips, HasOrder):
        return clips.epoch_order(seed, position // len(clips))[position % len(clips)]
    return clip_number(position, len(clips), seed)


def clip_at(clips: ClipSource, position: int, seed: int, report: "Skipped") -> Clip:
    """The clip at a position of the stream; one that cannot be read is reported, and the next is taken instead."""
    for attempt in range(min(len(clips), 100)):
        number = (_number_at(clips, position, seed) + attempt) % len(clips)
        try:
            return clips[number]
        except InputError as error:
            report.add(number, str(error))
    raise InputError("clips", "some that can be read", f"{min(len(clips), 100)} in a row that cannot", report.last())


class Skipped:
    """Clips that could not be read, each named once with the reason."""

    def __init__(self) -> None:
        self.reasons: dict[int, str] = {}

    def add(self, number: int, reason: str) -> None:
        self.reasons.setdefault(number, reason)

    def last(self) -> str:
        return f"The last says: {list(self.reasons.values())[-1]}" if self.reasons else ""

    def __len__(self) -> int:
        return len(self.reasons)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self.reasons.items())
