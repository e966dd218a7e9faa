"""A clip's pictures: a video, a part of one, or images in the order of the numbers in their names.

t frame   h w rows and columns
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.inputs import is_folder, megabytes, reading
from curvedray.media.image import read_image
from curvedray.media.stream import video_frames, video_header
from curvedray.media.video import LARGEST_DECODED, read_video

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")


@runtime_checkable
class PictureSource(Protocol):
    """Frames that lie in no file of their own."""

    def read(self) -> UInt8[Tensor, "t h w 3"]: ...

    def files(self) -> list[Path]: ...


@dataclass(frozen=True)
class VideoPart:
    """Some frames of a video that may be too long to be held whole."""

    path: Path
    first: int
    count: int

    def read(self) -> UInt8[Tensor, "t h w 3"]:
        header = video_header(self.path)
        total = 3 * header.width * header.height * self.count
        if total > LARGEST_DECODED:
            raise _too_large(self.count, header.width, header.height, total)
        return torch.stack(list(video_frames(self.path, self.first, self.count)))

    def files(self) -> list[Path]:
        return [self.path]


def read_pictures(pictures: Path | Sequence[Path]) -> UInt8[Tensor, "t h w 3"]:
    """The frames of a video, of a folder of images, or of images in order; all of one size."""
    if isinstance(pictures, Path):
        if not is_folder(pictures):
            return read_video(pictures).frames
        pictures = image_files(pictures)
    first = read_image(pictures[0])
    total = first.numel() * len(pictures)
    if total > LARGEST_DECODED:
        raise _too_large(len(pictures), first.shape[1], first.shape[0], total)
    frames = torch.empty(len(pictures), *first.shape, dtype=torch.uint8)
    for index, file in enumerate(pictures):
        frame = read_image(file) if index else first
        if frame.shape != first.shape:
            got = f"{frame.shape[1]} x {frame.shape[0]}"
            raise InputError(str(file), f"a picture of {first.shape[1]} x {first.shape[0]}, as the first is", got)
        frames[index] = frame
    return frames


def _too_large(count: int, width: int, height: int, total: int) -> InputError:
    got = f"{count} of {width} x {height}, {megabytes(total)}"
    return InputError("frames", f"at most {megabytes(LARGEST_DECODED)} of them in a clip", got, "Say --frames 81.")


def read_masks(files: Sequence[Path], width: int, height: int) -> Bool[Tensor, "t h w"]:
    """What moves: every pixel of a mask that is not black."""
    masks = [(read_image(file) > 0).any(-1) for file in files]
    for file, mask in zip(files, masks, strict=True):
        if mask.shape != (height, width):
            got = f"{mask.shape[1]} x {mask.shape[0]}"
            raise InputError(f"mask {file.name}", f"the frames' size, {width} x {height}", got)
    return torch.stack(masks)


def image_files(folder: Path) -> list[Path]:
    """The pictures of a folder in the order of the numbers in their names."""
    from curvedray.formats.source import natural

    with reading(str(folder), "a folder of images"):
        found = [i for i in folder.iterdir() if i.suffix.lower() in IMAGES and not i.name.startswith(".")]
    if not found:
        raise InputError(str(folder), f"a folder of images ({', '.join(IMAGES)})", "none")
    return sorted(found, key=lambda file: natural(file.name))


def usual_step(files: Sequence[Path]) -> int:
    """How far apart the numbers in pictures' names are, most of them: 1, or n where every n-th frame was kept."""
    steps = np.diff([_number(file) for file in files])
    values, counts = np.unique(steps[steps > 0], return_counts=True)
    return int(values[counts.argmax()]) if len(values) else 1


def gap_in(files: Sequence[Path], usual: int) -> str:
    """Where pictures are missing between those that are there; nothing where none are."""
    for before, after in pairwise(files):
        if _number(after) - _number(before) != usual:
            return f"none between {before.name} and {after.name}"
    return ""


def _number(file: Path) -> int:
    digits = re.findall(r"\d+", file.stem)
    return int(digits[-1]) if digits else 0
