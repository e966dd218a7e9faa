"""The formats we know: each one's name, endings, convention in words, what it cannot carry, its reader and writer."""

from collections.abc import Callable
from dataclasses import dataclass

from curvedray.cameras import Cameras, Unit
from curvedray.formats import own, realestate
from curvedray.formats.source import Source

EVERYTHING = frozenset({"focal", "center", "xi", "max_angle", "size", "unit", "fps"})


@dataclass(frozen=True)
class Format:
    """One kind of camera file."""

    name: str
    extensions: tuple[str, ...]
    convention: str
    lost: str  # what a reader must be told again, in words
    carries: frozenset[str]  # the parts of Cameras, beside the poses, that survive a round trip
    unit: Unit  # what its translations are taken for, where the file does not say
    detect: Callable[[Source], str | None]
    read: Callable[..., Cameras]
    write: Callable[..., bytes | dict[str, bytes]] | None  # None: only read; a dict is a folder's files


_ALL = (
    Format(
        "curvedray",
        (".json",),
        "world_from_camera, OpenCV axes, pixels with centres at +0.5; says its unit, fps and lens",
        "nothing",
        EVERYTHING,
        "arbitrary",
        own.detect,
        own.read,
        own.write,
    ),
    Format(
        "realestate10k",
        (".txt",),
        "camera_from_world, OpenCV axes, intrinsics divided by width and height, microseconds",
        "xi (refused), image size, unit",
        frozenset({"focal", "center", "fps"}),
        "arbitrary",
        realestate.detect,
        realestate.read,
        realestate.write,
    ),
)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
