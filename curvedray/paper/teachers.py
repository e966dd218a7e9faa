"""Teachers of distances made worse on purpose, in the place of the paper's alternate one (UniDepthV2 for UniK3D).

The world's distances are exact, so a teacher's faults can be chosen: each is a function of a clip's log radii that
depends on the clip's name alone, and of whether the lens bends.

    n token, in the order (t y x)
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.data.clips import Clip, ClipSource
from curvedray.data.fingerprint import fingerprint
from curvedray.errors import InputError

Radii = Float[Tensor, " n"]
Known = Bool[Tensor, " n"]
NOISE = 0.3  # standard deviation of log radius: a monocular model's on a clip it knows little about
BIAS = 0.26  # of log radius: everything 30 % farther
STRETCH = 1.3  # of log radius about its clip's middle: depth exaggerated
JITTER = 0.2  # standard deviation of a frame's offset: a frame-wise model's scale, guessed anew in each


@dataclass(frozen=True)
class Teacher:
    """What it says of a clip's log radii, and for which clips it has anything to say."""

    says: str
    log_radius: Callable[[Radii, Known, int, str], Radii]  # of which are known, in so many frames, of this clip
    pinhole_only: bool = False


def _exact(log_radius: Radii, known: Known, frames: int, name: str) -> Radii:
    return log_radius


def _noisy(log_radius: Radii, known: Known, frames: int, name: str) -> Radii:
    """Independent of frame and neighbour."""
    return log_radius + NOISE * torch.randn(log_radius.shape, generator=_chance_of(name))


def _jittery(log_radius: Radii, known: Known, frames: int, name: str) -> Radii:
    """A whole frame is too near or too far."""
    offsets = JITTER * torch.randn(frames, generator=_chance_of(name))
    return log_radius + offsets.repeat_interleave(len(log_radius) // frames)


def _biased(log_radius: Radii, known: Known, frames: int, name: str) -> Radii:
    """What is unknown holds no distance, and has no part in the clip's middle."""
    middle = log_radius[known].mean() if known.any() else log_radius.new_zeros(())
    return middle + STRETCH * (log_radius - middle) + BIAS


def _chance_of(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


TEACHERS: dict[str, Teacher] = {
    "exact": Teacher("exact radii", _exact),
    "noisy": Teacher(f"radii with noise of {NOISE:g} in their logarithm, anew in every token", _noisy),
    "jittery": Teacher(f"radii with an offset of {JITTER:g} in their logarithm, anew in every frame", _jittery),
    "biased": Teacher(f"radii stretched by {STRETCH:g} in their logarithm and 30 % too far", _biased),
    "pinhole-only": Teacher("exact radii, of clips through pinholes alone", _exact, True),
}


def teacher_named(name: str) -> Teacher:
    if name not in TEACHERS:
        raise InputError("teacher", " or ".join(TEACHERS), name)
    return TEACHERS[name]


class TaughtClips:
    """The same clips with a teacher's distances in place of their own."""

    def __init__(self, clips: ClipSource, name: str):
        self.clips, self.teacher, self.empty_text = clips, teacher_named(name), clips.empty_text
        self.fingerprint = fingerprint([clips.fingerprint, name])

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> Clip:
        clip = self.clips[index]
        if self.teacher.pinhole_only and clip.cameras.lens.xi.max() > 0:
            return replace(clip, radius_known=torch.zeros_like(clip.radius_known))
        said = self.teacher.log_radius(clip.log_radius, clip.radius_known, clip.latents.shape[1], clip.id)
        return replace(clip, log_radius=said)

    def name_of(self, index: int) -> str:
        return self.clips.name_of(index)


def taught(log_radius: Radii, known: Known, frames: int, name: str, clip: str) -> tuple[Radii, Known]:
    """A map for filming, as a teacher would give it."""
    return teacher_named(name).log_radius(log_radius, known, frames, clip), known
