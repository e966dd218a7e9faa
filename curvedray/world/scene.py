"""What there is to see: a court with balls, boxes and pillars, as values.

The world's axes are the cameras': x right, y down, z forward, so the floor lies at y = +eye height. Lengths are metres.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from curvedray.errors import InputError

Colour = tuple[float, float, float]  # red, green, blue in 0..1
Kind = Literal["ball", "box", "pillar"]
# The surfaces of a scene by number: walls +z, +x, -z, -x, then floor, sky, and the things in their order.
FLOOR, SKY, FIRST_THING = 4, 5, 6


@dataclass(frozen=True)
class Thing:
    """A ball, box or pillar at (x, z), on the floor or `base` metres above it. `radius` is a box's half width."""

    kind: Kind
    x: float
    z: float
    radius: float
    height: float  # of boxes and pillars; a ball is as high as it is wide
    colour: Colour
    accent: Colour | None = None  # of its stripes, if it has any
    yaw: float = 0.0  # of a box, radians
    motion: tuple[float, float] = (0.0, 0.0)  # how far it goes along x and z from the first frame to the last
    depth: float | None = None  # half a box's depth; None: as deep as wide
    base: float = 0.0

    @property
    def half_depth(self) -> float:
        return self.radius if self.depth is None else self.depth

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError("thing", " or ".join(get_args(Kind)), self.kind)
        _check_lengths(f"{self.kind}'s", positive={"radius": self.radius, "height": self.height})
        _check_lengths(f"{self.kind}'s", {"x": self.x, "z": self.z, "yaw": self.yaw, "motion": sum(self.motion)})

    @property
    def moves(self) -> bool:
        return self.motion != (0.0, 0.0)

    def at(self, time: float) -> "Thing":
        """Where it stands at a time in 0..1 of the clip."""
        return replace(self, x=self.x + time * self.motion[0], z=self.z + time * self.motion[1], motion=(0.0, 0.0))


@dataclass(frozen=True)
class Room:
    """A court under the sky, with wide pillars painted on four coloured walls. Its centre is (0, `ahead`) in (x, z)."""

    walls: tuple[Colour, Colour, Colour, Colour]  # +z, +x, -z, -x
    stripes: tuple[Colour, Colour, Colour, Colour]  # the pillars on each wall
    tiles: tuple[Colour, Colour]
    sky: tuple[Colour, Colour]  # at the horizon and overhead
    half: float = 7.0  # metres from the centre to a wall
    floor: float = 1.5  # metres below the origin
    height: float = 4.0  # of the walls
    spacing: float = 3.5  # of the pillars; a floor tile is half as wide
    stripe: float = 1.1  # width of a pillar
    softness: float = 0.12  # metres over which one colour becomes the other
    ink: float = 0.0  # darkness of fine lines along tiles and courses, 0 for none
    deep: float | None = None  # metres from the centre to the walls +z and -z; None: as to the others
    ahead: float = 0.0
    shadows: float = 0.0  # darkness of what the sun does not reach, 0 for a court without sun

    @property
    def half_depth(self) -> float:
        return self.half if self.deep is None else self.deep

    def __post_init__(self) -> None:
        positive = {name: getattr(self, name) for name in ("half", "height", "spacing", "softness")}
        _check_lengths("room's", {"floor": self.floor, "stripe": self.stripe, "ink": self.ink}, positive)


@dataclass(frozen=True)
class Scene:
    """What there is to see."""

    room: Room
    things: tuple[Thing, ...] = ()

    def at(self, time: float) -> "Scene":
        return replace(self, things=tuple(thing.at(time) for thing in self.things))


def _check_lengths(
    whose: str, finite: dict[str, float] | None = None, positive: dict[str, float] | None = None
) -> None:
    for name, value in ((finite or {}) | (positive or {})).items():
        if not math.isfinite(value):
            raise InputError(f"{whose} {name}", "a finite number", value)
    for name, value in (positive or {}).items():
        if value <= 0:
            raise InputError(f"{whose} {name}", "more than 0", value)
