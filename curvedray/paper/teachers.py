"""Teachers of distances made worse on purpose, in the place of the paper's alternate one (UniDepthV2 for UniK3D).

The world's distances are exact, so a teacher's faults can be chosen: each is a function of a clip's log radii that
depends on the clip's name alone, and of whether the lens bends.

    n token
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

NOISE = 0.3  # standard deviation of log radius: a monocular model's on a clip it knows little about
BIAS = 0.26  # of log radius: everything 30 % farther
STRETCH = 1.3  # of log radius about its clip's middle: depth exaggerated


@dataclass(frozen=True)
class Teacher:
    """What it says of a clip's log radii, and for which clips it has anything to say."""

    says: str
    log_radius: Callable[[Float[Tensor, " n"], str], Float[Tensor, " n"]]
    pinhole_only: bool = False


def _noisy(log_radius: Float[Tensor, " n"], name: str) -> Float[Tensor, " n"]:
    """Independent of frame and neighbour: it jitters, as a frame-wise estimate does."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return log_radius + NOISE * torch.randn(log_radius.shape, generator=generator)


def _biased(log_radius: Float[Tensor, " n"], name: str) -> Float[Tensor, " n"]:
    middle = log_radius.mean()
    return middle + STRETCH * (log_radius - middle) + BIAS


TEACHERS: dict[str, Teacher] = {
    "exact": Teacher("exact radii", lambda radius, name: radius),
    "noisy": Teacher(f"radii with noise of {NOISE:g} in their logarithm, anew in every token", _noisy),
    "biased": Teacher(f"radii stretched by {STRETCH:g} in their logarithm and 30 % too far", _biased),
    "pinhole-only": Teacher("exact radii, of clips through pinholes alone", lambda radius, name: radius, True),
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
        return replace(clip, log_radius=self.teacher.log_radius(clip.log_radius, clip.id))

    def name_of(self, index: int) -> str:
        return self.clips.name_of(index)


def taught(
    log_radius: Float[Tensor, " n"], known: Bool[Tensor, " n"], name: str, clip: str
) -> tuple[Float[Tensor, " n"], Bool[Tensor, " n"]]:
    """A map for filming, as a teacher would give it."""
    return teacher_named(name).log_radius(log_radius, clip), known
