"""What an adapter is: the whole ablation space as one frozen value, read from and written to JSON.

A method is a row of METHODS; nothing is chosen by looking inside a name.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.configs import check_laws, config_of, number, record_of, whole
from curvedray.encoding.curved import DEFAULT_PERIODS, OFFSETS, Periods, fitted_periods, log_spaced_frequencies
from curvedray.errors import InputError

CameraMap = Literal["orientation", "plucker", "pose"]
NARROWEST_HEAD = 24  # channels that hold every ray and coordinate (3 rays x 4 coordinates) of a curved ray once
MOST_HEADS, MOST_BREAKPOINTS, WIDEST = 128, 256, 16_384  # more than any transformer has: a typo
FARTHEST_LOG_RADIUS, LONGEST_PERIOD = 30.0, 1e6  # e^30 near distances; a float32 phase has no digits left before that


@dataclass(frozen=True)
class Kind:
    """How a block's branch attends. adapter/view.py makes each kind's encoding."""

    says: str
    predicts_radius: bool = False
    radius_feature: bool = False  # the radius is also an input, as a feature
    copies: bool = False  # a copy in the place of the block's self-attention, not a branch beside it


CURVED = Kind("curved rays, placed by predicted radii", predicts_radius=True)
CONCAT = Kind("relative rays, with the predicted radius as a feature", predicts_radius=True, radius_feature=True)
RAY, PROPE, GTA = Kind("relative rays"), Kind("relative projective cameras"), Kind("relative rigid cameras")
PLAIN = Kind("plain attention")
COPY = Kind("a trained copy of the block's own self-attention", copies=True)
COPY_CONCAT = Kind("the same, with the predicted radius as a feature", True, True, copies=True)


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
        return self.curved is not None and self.curved.predicts_radius


METHODS: dict[str, Method] = {
    "none": Method("the backbone, untouched", None, None, None),
    "crepe": Method("curved-ray expected RoPE in the middle, relative rays outside", CURVED, RAY),
    "endpoint": Method("the same with two breakpoints: RayRoPE-style", CURVED, RAY, breakpoints=2),
    "point": Method("the same at one radius, no interval", CURVED, RAY, breakpoints=1),
    "ucpe": Method("UCPE: the relative ray in every block", RAY, RAY),
    "prope": Method("PRoPE: relative projective cameras", PROPE, PROPE),
    "gta": Method("GTA: relative rigid cameras", GTA, GTA),
    "plucker": Method("Plücker ray maps added to plain attention", PLAIN, PLAIN, "plucker"),
    "recammaster": Method("pose and lens embedding into a trained copy of self-attention", COPY, COPY, "pose"),
    "depth_concat": Method("predicted radius as a feature, relative rays everywhere", CONCAT, RAY),
    "copy_concat": Method("as recammaster, with the radius as a feature", COPY_CONCAT, COPY, "pose"),
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
    periods: Periods = DEFAULT_PERIODS  # longest and shortest of u, v, range and depth; `fitted_to` sets them by a grid
    query_rotation: bool = False  # rotate a query by its own (u, v), so that it knows its pixel
    value_rotation: bool = False  # values turned as keys, outputs back by the query's bearing: they carry *where*
    interval_feature: bool = False  # the interval is a feature of the curved blocks too, as in depth_concat
    rays_beside: bool = False  # curved blocks attend through relative rays too, in as many heads of their own
    fourth_coordinate: bool = False  # beta / norm: tells front from back
    orientation: bool = True  # absolute up and latitude maps
    ray_map: bool = False  # beside them each token's ray in its camera's frame: the lens, said outright
    ucpe_conventions: bool = False  # its up map and its identity where a token has no ray: for its released weights
    supervise: Literal["all", "middle"] = "all"  # which curved blocks the radial loss sees

    def __post_init__(self) -> None:
        farthest, longest = FARTHEST_LOG_RADIUS, LONGEST_PERIOD
        laws = [
            ("method", self.method in METHODS, f"one of {', '.join(METHODS)}"),
            ("curved_blocks", self.curved_blocks is None or _pair(self.curved_blocks), "two block numbers, or null"),
            ("width", self.width is None or whole(self.width, 1, WIDEST), f"channels, 1 to {WIDEST}, or null"),
            ("heads", whole(self.heads, 1, MOST_HEADS), f"1 to {MOST_HEADS}"),
            ("breakpoints", whole(self.breakpoints, 1, MOST_BREAKPOINTS), f"1 to {MOST_BREAKPOINTS}"),
            ("rays_per_patch", whole(self.rays_per_patch, 1, len(OFFSETS)), "1, 2 or 3"),
            (
                "log_radius",
                _numbers(self.log_radius, -farthest, farthest) and self.log_radius[0] < self.log_radius[1],
                f"two numbers from {-farthest:g} to {farthest:g}, the lower first",
            ),
            (
                "periods",
                len(self.periods) == 4 and all(_numbers(pair, 1 / longest, longest) for pair in self.periods),
                f"a (longest, shortest) for each of u, v, range and depth, from {1 / longest:g} to {longest:g}",
            ),
            (
                "ray_map",
                not (self.ray_map and self.method in METHODS) or self.rule.camera_map == "orientation",
                f"false: method {self.method} has no orientation maps to put it beside",
            ),
            (
                "rays_beside",
                not (self.rays_beside and self.method in METHODS) or self.rule.curved is CURVED,
                f"false: method {self.method} has no curved rays to put them beside",
            ),
            ("supervise", self.supervise in ("all", "middle"), "all or middle"),
        ]
        check_laws(self, laws, "AdapterConfig.")

    @property
    def rule(self) -> Method:
        return METHODS[self.method]

    @property
    def path_points(self) -> int:
        """K, the breakpoints of a curved ray: the method's own where it fixes them."""
        return self.rule.breakpoints or self.breakpoints

    def curved(self, depth: int) -> range:
        """The curved blocks of `depth`: all but a third, rounded down, at each end; [10, 20) of 30, [2, 6) of 8."""
        if self.curved_blocks is None:
            first = depth // 3
            return range(first, max(first + 1, depth - first))
        first, last = self.curved_blocks
        if not 0 <= first < last <= depth:
            raise InputError("AdapterConfig.curved_blocks", f"some blocks within [0, {depth})", self.curved_blocks)
        return range(first, last)

    def window(self, which: str, depth: int) -> tuple[int, int]:
        """The first or the last blocks, as many as this config's own window has, that window, or all blocks."""
        own = self.curved(depth)
        windows = {
            "first": (0, len(own)),
            "middle": (own.start, own.stop),
            "last": (depth - len(own), depth),
            "all": (0, depth),
        }
        return windows[which]

    def has_radius_feature(self, kind: Kind | None) -> bool:
        """Whether a block of this kind takes the interval as a feature: by its method, or beside its rotation."""
        return kind is not None and (kind.radius_feature or (self.interval_feature and kind.predicts_radius))

    def kinds(self, kind: Kind) -> tuple[Kind, ...]:
        """How a block of this kind attends, each way in heads of its own."""
        return (kind, RAY) if self.rays_beside and kind is CURVED else (kind,)

    def supervised(self, depth: int) -> tuple[int, ...]:
        """The blocks whose predicted radii the loss sees."""
        blocks = self.curved(depth) if self.rule.predicts_radius else range(0)
        return tuple(blocks) if self.supervise == "all" else tuple(blocks[len(blocks) // 2 :][:1])

    def branch_width(self, dim: int) -> int:
        """Channels of the branch on a backbone of `dim` channels, a whole number of 8-channel groups per head.

        A branch wider than its backbone is refused: it would be no adapter, and many heads could ask for gigabytes.
        """
        step, narrowest = 8 * self.heads, NARROWEST_HEAD * self.heads
        width = self.width or max(-(-dim // 8 // step) * step, narrowest)
        if width % step or (self.rule.curved is CURVED and width < narrowest):
            expected = f"a multiple of {step} of at least {narrowest}, for {self.heads} head(s)"
            raise InputError("AdapterConfig.width", expected, width)
        if width > max(dim, NARROWEST_HEAD):
            expected = f"a branch no wider than its backbone's {dim} channels"
            raise InputError("AdapterConfig", expected, f"{width}, in {self.heads} head(s)", "Ask for fewer heads.")
        return width

    def fitted_to(self, grid: TokenGrid) -> "AdapterConfig":
        """The same adapter with u and v periods that end at two patches of this grid."""
        return replace(self, periods=fitted_periods(self.periods, grid))

    def frequencies(self, head_width: int) -> Float[Tensor, "c f"]:
        """Radians per unit of (u, v, range[, depth]), log-spaced, as many as the head's channels hold."""
        coordinates = 4 if self.fourth_coordinate else 3
        count = head_width // (2 * self.rays_per_patch * coordinates)
        return log_spaced_frequencies(self.periods[:coordinates], count)

    # -- JSON

    def to_json(self) -> dict[str, Any]:
        return record_of(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "AdapterConfig":
        """Unknown keys and wrong types are refused: a typo must not train another model."""
        return config_of(cls, record, "adapter config")


def _pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(whole(i, 0, WIDEST) for i in value)


def _numbers(value: object, low: float, high: float) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(number(i, low, high) for i in value)
