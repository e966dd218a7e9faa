"""What an adapter is: the whole ablation space as one frozen value, read from and written to JSON.

A method is a row of METHODS; nothing is chosen by looking inside a name.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError

Kind = Literal["curved", "ray", "prope", "gta", "plain", "concat", "copy"]
CameraMap = Literal["orientation", "plucker", "pose"]
NARROWEST_HEAD = 24  # channels that hold every ray and coordinate (3 rays x 4 coordinates) of a curved ray once


@dataclass(frozen=True)
class Method:
    """How a method attends in the curved blocks and outside them, and which map of the camera it adds to its input."""

    says: str
    curved: Kind | None
    outside: Kind | None
    camera_map: CameraMap | None = "orientation"
    breakpoints: int | None = None  # fixed by the method; None: the config's

    @property
    def predicts_radius(self) -> bool:
        return self.curved in ("curved", "concat")


METHODS: dict[str, Method] = {
    "none": Method("the backbone, untouched", None, None, None),
    "crepe": Method("curved-ray expected RoPE in the middle, relative rays outside", "curved", "ray"),
    "endpoint": Method("the same with two breakpoints: RayRoPE-style", "curved", "ray", breakpoints=2),
    "point": Method("the same at one radius, no interval", "curved", "ray", breakpoints=1),
    "ucpe": Method("UCPE: the relative ray in every block", "ray", "ray"),
    "prope": Method("PRoPE: relative projective cameras", "prope", "prope"),
    "gta": Method("GTA: relative rigid cameras", "gta", "gta"),
    "plucker": Method("Plücker ray maps added to plain attention", "plain", "plain", "plucker"),
    "recammaster": Method("pose and lens embedding into a trained copy of self-attention", "copy", "copy", "pose"),
    "depth_concat": Method("predicted radius as a feature, relative rays everywhere", "concat", "ray"),
}


@dataclass(frozen=True)
class AdapterConfig:
    """One adapter. `replace()` is how an ablation is written."""

    method: str = "crepe"  # a row of METHODS
    curved_blocks: tuple[int, int] | None = None  # first, one past the last; None: the middle third
    width: int | None = None  # channels of the branch; None: an eighth of the backbone's
    heads: int = 1
    breakpoints: int = 5  # K
    rays_per_patch: int = 3  # A
    log_radius: tuple[float, float] = (-3.0, 3.0)  # where the predicted interval may lie
    # Longest and shortest period of u, v, range (and depth, the fourth coordinate). The shortest of u and v are two
    # patches of Wan's 30 x 52; `fitted_to` sets them for another grid.
    periods: tuple[tuple[float, float], ...] = ((8.0, 2 / 52), (8.0, 2 / 30), (80.0, 2.0), (8.0, 2 / 52))
    query_rotation: bool = False  # rotate a query by its own (u, v), so that it knows its pixel
    fourth_coordinate: bool = False  # beta / norm: tells front from back
    orientation: bool = True  # absolute up and latitude maps
    ucpe_conventions: bool = False  # its up map and its identity where a token has no ray: for its released weights
    supervise: Literal["all", "middle"] = "all"  # which curved blocks the radial loss sees

    def __post_init__(self) -> None:
        laws = [
            ("method", self.method in METHODS, f"one of {', '.join(METHODS)}"),
            ("width", self.width is None or self.width > 0, "a positive number of channels, or null"),
            ("heads", self.heads >= 1, "at least 1"),
            ("breakpoints", self.breakpoints >= 1, "at least 1"),
            ("rays_per_patch", self.rays_per_patch in (1, 2, 3), "1, 2 or 3"),
            ("log_radius", self.log_radius[0] < self.log_radius[1], "two numbers, the lower first"),
            (
                "periods",
                len(self.periods) == 4 and all(len(pair) == 2 and min(pair) > 0 for pair in self.periods),
                "a positive (longest, shortest) for each of u, v, range and depth",
            ),
            ("supervise", self.supervise in ("all", "middle"), "all or middle"),
        ]
        for name, holds, expected in laws:
            if not holds:
                raise InputError(f"AdapterConfig.{name}", expected, getattr(self, name))

    @property
    def rule(self) -> Method:
        return METHODS[self.method]

    @property
    def path_points(self) -> int:
        """K, the breakpoints of a curved ray: the method's own where it fixes them."""
        return self.rule.breakpoints or self.breakpoints

    def curved(self, depth: int) -> range:
        """The curved blocks of a transformer of `depth` blocks: [10, 20) of 30, the middle third of others."""
        if self.curved_blocks is None:
            first = depth // 3
            return range(first, max(first + 1, depth - first))
        first, last = self.curved_blocks
        if not 0 <= first <= last <= depth:
            raise InputError("AdapterConfig.curved_blocks", f"a range within [0, {depth})", self.curved_blocks)
        return range(first, last)

    def supervised(self, depth: int) -> tuple[int, ...]:
        """The blocks whose predicted radii the loss sees."""
        blocks = self.curved(depth) if self.rule.predicts_radius else range(0)
        return tuple(blocks) if self.supervise == "all" else tuple(blocks[len(blocks) // 2 :][:1])

    def branch_width(self, dim: int) -> int:
        """Channels of the branch on a backbone of `dim` channels, a whole number of 8-channel groups per head."""
        step = 8 * self.heads
        width = self.width or max(-(-dim // 8 // step) * step, NARROWEST_HEAD * self.heads)
        if width % step or (self.rule.curved == "curved" and width < NARROWEST_HEAD * self.heads):
            expected = f"a multiple of {step} of at least {NARROWEST_HEAD * self.heads}, for {self.heads} head(s)"
            raise InputError("AdapterConfig.width", expected, width)
        return width

    def fitted_to(self, grid: TokenGrid) -> "AdapterConfig":
        """The same adapter with u and v periods that end at two patches of this grid."""
        u, v, radius, depth = self.periods
        finest = 2 / max(grid.cols, grid.rows)
        return dataclasses.replace(
            self, periods=((u[0], 2 / grid.cols), (v[0], 2 / grid.rows), radius, (depth[0], finest))
        )

    def frequencies(self, head_width: int) -> Float[Tensor, "c f"]:
        """Radians per unit of (u, v, range[, depth]), log-spaced, as many as the head's channels hold."""
        coordinates = 4 if self.fourth_coordinate else 3
        count = head_width // (2 * self.rays_per_patch * coordinates)
        longest, shortest = torch.tensor(self.periods[:coordinates], dtype=torch.float64).unbind(-1)
        step = torch.linspace(0, 1, count, dtype=torch.float64)
        return (2 * math.pi / (longest[:, None] * (shortest / longest)[:, None] ** step)).float()

    # -- JSON

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "AdapterConfig":
        """Unknown keys and wrong types are refused: a typo must not train another model."""
        defaults = dataclasses.asdict(cls())
        unknown = sorted(set(record) - set(defaults))
        if unknown:
            raise InputError("adapter config", f"keys among {', '.join(defaults)}", ", ".join(unknown))
        values: dict[str, Any] = {k: _tuples(v) for k, v in record.items()}
        for name, value in values.items():
            if not _fits(value, defaults[name], optional=name in ("width", "curved_blocks")):
                raise InputError(f"adapter config: {name}", f"a value like {defaults[name]!r}", repr(value))
        return cls(**values)


def _fits(value: object, default: object, optional: bool) -> bool:
    """Whether a JSON value has the type of a field's default; an optional one is null, an integer or a pair."""
    if optional:
        pair = isinstance(value, tuple) and len(value) == 2 and all(type(i) is int for i in value)
        return value is None or type(value) is int or pair
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or len(value) != len(default):
            return False
        return all(_fits(mine, its, optional=False) for mine, its in zip(value, default, strict=True))
    return type(value) is type(default) or (type(default) is float and type(value) is int)


def _tuples(value: object) -> object:
    """JSON's lists as the tuples they were."""
    return tuple(_tuples(i) for i in value) if isinstance(value, list | tuple) else value
