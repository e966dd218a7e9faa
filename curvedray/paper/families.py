"""Families of cameras, told by their cameras alone: lenses by how they bend, moves by whether they turn.

For zero-shot transfer at the embedded scale an adapter is trained on one family of both and tested through lenses that
it never saw.
"""

from collections.abc import Callable

import torch

from curvedray.cameras import Cameras
from curvedray.data.clips import ClipSource, SomeClips
from curvedray.errors import InputError

FISHEYE_FOV = 127.5  # degrees across: half way between the widest wide lens and the narrowest fisheye
TURNS = 8.0  # degrees between the first frame and any other: every turning move of the worlds is over it


def is_pinhole(cameras: Cameras) -> bool:
    return float(cameras.lens.xi.max()) == 0


def is_fisheye(cameras: Cameras) -> bool:
    return not is_pinhole(cameras) and float(cameras.lens.hfov.max()) > FISHEYE_FOV


def is_wide(cameras: Cameras) -> bool:
    return not is_pinhole(cameras) and not is_fisheye(cameras)


def turns(cameras: Cameras) -> bool:
    """Whether the camera ever looks elsewhere than at first, by the angle of its rotation."""
    rotation = cameras.relative_to_first().world_from_camera[..., :3, :3].double()
    cosine = (rotation.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2
    return bool(torch.rad2deg(torch.acos(cosine.clamp(-1, 1))).max() > TURNS)


FAMILIES: dict[str, tuple[str, Callable[[Cameras], bool]]] = {
    "all": ("all clips", lambda cameras: True),
    "pinhole": ("clips through pinholes", is_pinhole),
    "non-pinhole": ("clips through lenses that bend", lambda cameras: not is_pinhole(cameras)),
    "wide, turning": ("clips through wide lenses whose camera turns", lambda c: is_wide(c) and turns(c)),
    "fisheye": ("clips through fisheyes", is_fisheye),
}


def belongs(cameras: Cameras, family: str) -> bool:
    if family not in FAMILIES:
        raise InputError("family of cameras", " or ".join(FAMILIES), family)
    return FAMILIES[family][1](cameras)


def clips_of_family(clips: ClipSource, family: str) -> SomeClips:
    """The clips of a source whose cameras belong to a family."""
    kept = [i for i in range(len(clips)) if belongs(clips[i].cameras, family)]
    if not kept:
        raise InputError("clips", f"some of the family {family!r}", f"none among {len(clips)}")
    return SomeClips(clips, kept, family)
