"""Camera moves in film terms, as values: they can be compared, printed and composed.

`a >> b` is a, then b; `a & b` is both at once. What a move does to a camera is in actions.py, the line of text that
says it in text.py.
"""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn, get_args

from curvedray.errors import InputError

Measure = Literal["deg", "near", "m", "x"]
Ease = Literal["linear", "ease-in", "ease-out", "smooth"]


@dataclass(frozen=True)
class Quantity:
    """An amount with its unit: degrees, near distances, metres or a factor; a speed if `per_second`."""

    value: float
    unit: Measure
    per_second: bool = False

    def __str__(self) -> str:
        unit = "" if self.unit == "near" else self.unit
        return f"{plain(self.value)}{unit}{'/s' * self.per_second}"


@dataclass(frozen=True)
class Kind:
    """What a named move takes: its directions, the unit of its amount, and the word for its one distance."""

    directions: tuple[str, ...]
    amount: Quantity | None
    meaning: str
    distance_word: str = ""
    distance: Quantity | None = None
    note: str = ""


SIDES, HEIGHTS, DEPTHS, TURNS = ("left", "right"), ("up", "down"), ("in", "out"), ("cw", "ccw")
_ONE = Quantity(1.0, "near")
KINDS: dict[str, Kind] = {
    "static": Kind((), None, "stays exactly where it is"),
    "pan": Kind(
        SIDES,
        Quantity(30.0, "deg"),
        "turns about the vertical, in place",
        note="Some tools call a sideways slide a pan; that is truck.",
    ),
    "tilt": Kind(
        HEIGHTS,
        Quantity(20.0, "deg"),
        "looks up or down, in place",
        note="Some tools call a vertical slide a tilt; that is pedestal.",
    ),
    "roll": Kind(TURNS, Quantity(20.0, "deg"), "turns about the lens axis; cw as seen from behind the camera"),
    "truck": Kind(SIDES, Quantity(0.5, "near"), "slides sideways, level"),
    "pedestal": Kind(HEIGHTS, Quantity(0.5, "near"), "rises or sinks, straight up or down"),
    "dolly": Kind(
        DEPTHS, Quantity(0.5, "near"), "goes where the lens points, or back", note="Not a zoom: the camera moves."
    ),
    "zoom": Kind(
        DEPTHS,
        Quantity(1.5, "x"),
        "changes the focal length only; `zoom to 40deg` ends at that horizontal field of view",
        note="Some tools call a dolly a zoom; here the camera stays where it is.",
    ),
    "orbit": Kind(
        (*SIDES, *HEIGHTS),
        Quantity(40.0, "deg"),
        "circles a subject `radius` ahead and keeps looking at it; left: the camera goes left",
        "radius",
        _ONE,
        "Some tools name the side that the subject turns to; here it is the side that the camera goes to.",
    ),
    "spiral": Kind(
        SIDES,
        Quantity(180.0, "deg"),
        "an orbit whose radius changes, from `radius` `to` another (half of it unless said)",
        "radius",
        _ONE,
    ),
    "crane": Kind(
        HEIGHTS, Quantity(0.5, "near"), "rises or sinks and tilts to keep a subject centred", "subject", _ONE
    ),
    "dolly_zoom": Kind(
        DEPTHS, Quantity(0.3, "near"), "dollies while zooming, so that a subject keeps its size", "subject", _ONE
    ),
    "handheld": Kind(
        (),
        Quantity(0.5, "deg"),
        "seeded smooth shake: this much turning (rms) and this much `sway`",
        "sway",
        Quantity(0.01, "near"),
    ),
}
# An alias means the first of its moves that has the direction given: `track left` is a truck, `track in` a dolly.
ALIASES: dict[str, tuple[str, ...]] = {
    "yaw": ("pan",),
    "pitch": ("tilt",),
    "rotate": ("pan", "tilt", "roll"),
    "turn": ("pan",),
    "look": ("pan", "tilt"),
    "bank": ("roll",),
    "track": ("truck", "dolly"),
    "slide": ("truck", "dolly"),
    "crab": ("truck",),
    "strafe": ("truck",),
    "move": ("truck", "pedestal", "dolly"),
    "boom": ("pedestal",),
    "elevate": ("pedestal",),
    "jib": ("crane",),
    "push": ("dolly",),
    "pull": ("dolly",),
    "arc": ("orbit",),
    "circle": ("orbit",),
    "revolve": ("orbit",),
    "helix": ("spiral",),
    "vertigo": ("dolly_zoom",),
    "zolly": ("dolly_zoom",),
    "dolly-zoom": ("dolly_zoom",),
    "hold": ("static",),
    "still": ("static",),
    "locked": ("static",),
    "shake": ("handheld",),
}
# Beyond these a path is no film any more, and its numbers lose their digits.
LONGEST_SECONDS = 1e5
LARGEST: dict[Measure, float] = {"deg": 360_000.0, "near": 1e6, "m": 1e6, "x": 1e4}
_SAID = {"deg": "degrees, such as 30deg", "near": "a length, such as 0.5 (near distances) or 1.2m", "x": "a factor"}


# Moves of one family go in different directions: who asks one of them for another's means the other.
FAMILIES = (("truck", "pedestal", "dolly"), ("pan", "tilt", "roll"))


def _instead(name: str, direction: str | None) -> str:
    """`For left, say truck left.` for a dolly left; nothing where no move of the family goes there."""
    family = next((i for i in FAMILIES if name in i), ())
    return next((f"For {direction}, say {i} {direction}." for i in family if direction in KINDS[i].directions), "")


class Step:
    """Anything that can be run as part of a trajectory: a move, moves one after another, or moves at once."""

    share: float
    seconds: float | None

    def then(self, other: "Step") -> "Sequence":
        """This, then the other: their time is divided by their shares."""
        return Sequence((self, other))

    def along(self, other: "Step") -> "Together":
        """This and the other at the same time."""
        return Together((self, other))

    __rshift__ = then
    __and__ = along


@dataclass(frozen=True)
class Move(Step):
    """One move. What is left out takes the move's own default, so that equal moves compare equal."""

    name: str
    direction: str | None = None
    amount: Quantity | None = None
    distance: Quantity | None = None  # the radius, the subject's distance or the sway
    to: Quantity | None = None  # zoom: the field of view to end at; spiral: the radius to end at
    seed: int | None = None
    ease: Ease = "linear"
    share: float = 1.0  # of the time, relative to the other moves of a sequence
    seconds: float | None = None  # how long it takes, in place of a share

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            unknown("move", self.name, [*KINDS, *ALIASES])
        kind = KINDS[self.name]
        self._check_direction(kind)
        self._fill(kind)
        if self.to is not None and self.name not in ("zoom", "spiral"):
            raise InputError(self.name, "no `to`; only zoom and spiral end at something", f"to {self.to}")
        if self.seed is not None and (self.name != "handheld" or self.seed < 0):
            raise InputError(self.name, "a seed of 0 or more, and only for handheld", f"seed {self.seed}")
        if self.ease not in get_args(Ease):
            unknown("easing", self.ease, get_args(Ease))
        if not (math.isfinite(self.share) and self.share > 0):
            raise InputError(f"share of {self.name}", "a positive number", self.share)
        if self.seconds is not None and not 0 < self.seconds <= LONGEST_SECONDS:
            raise InputError(f"seconds of {self.name}", f"above 0 and at most {LONGEST_SECONDS:g}", self.seconds)
        self._check_quantities(kind)

    def _check_direction(self, kind: Kind) -> None:
        if self.name == "zoom" and self.to is not None:
            if self.direction or self.amount:
                raise InputError("zoom", "either a direction and a factor or `to` a field of view", "both")
        elif kind.directions and self.direction not in kind.directions:
            raise InputError(
                f"direction of {self.name}",
                " or ".join(kind.directions),
                self.direction or "none",
                _instead(self.name, self.direction) or f"{self.name} {kind.meaning}.",
            )
        elif not kind.directions and self.direction:
            raise InputError(self.name, "no direction", self.direction)

    def _fill(self, kind: Kind) -> None:
        fill = {}
        if self.amount is None and (self.to is None or self.name == "spiral"):
            fill["amount"] = kind.amount
        if self.distance is None:
            fill["distance"] = kind.distance
        if self.name == "spiral" and self.to is None:
            distance = self.distance or kind.distance
            assert distance is not None
            fill["to"] = replace(distance, value=distance.value / 2)
        for key, value in fill.items():
            object.__setattr__(self, key, value)
        if self.name == "handheld" and self.seed is None:
            object.__setattr__(self, "seed", 0)

    def _check_quantities(self, kind: Kind) -> None:
        if self.amount is not None:
            if kind.amount is None:
                raise InputError(self.name, "no amount", self.amount)
            _check(f"amount of {self.name}", self.amount, kind.amount.unit, kind.note)
            if self.name == "zoom" and self.amount.value < 1:
                raise InputError("amount of zoom", "a factor of 1 or more", self.amount, "To widen, say zoom out.")
            if self.name == "handheld" and self.amount.per_second:
                raise InputError("amount of handheld", "degrees of shake", self.amount)
        for word, distance in ((kind.distance_word, self.distance), ("to", self.to)):
            if distance is None:
                continue
            if word == "":
                raise InputError(self.name, "no radius, subject or sway", distance)
            _check(f"{word} of {self.name}", distance, "deg" if self.name == "zoom" else "near")
            if distance.per_second or (distance.value == 0 and word != "sway"):
                raise InputError(f"{word} of {self.name}", "more than 0, and no speed", distance)

    def __str__(self) -> str:
        words = [self.name, self.direction, self.amount]
        words += [KINDS[self.name].distance_word, self.distance] if self.distance else []
        words += ["to", self.to] if self.to else []
        words += [f"seed {self.seed}"] if self.seed is not None else []
        words += [self.ease] if self.ease != "linear" else []
        words += [f"for {plain(self.share)}"] if self.share != 1 and self.seconds is None else []
        words += [f"for {plain(self.seconds)}s"] if self.seconds is not None else []
        return " ".join(str(i) for i in words if i is not None)


@dataclass(frozen=True)
class Sequence(Step):
    """Steps one after another; a sequence inside a sequence is the same as its steps."""

    steps: tuple[Step, ...]
    share: float = field(init=False)
    seconds: float | None = field(init=False)

    def __post_init__(self) -> None:
        flat = tuple(j for i in self.steps for j in (i.steps if isinstance(i, Sequence) else (i,)))
        if len(flat) < 2:
            raise InputError("Sequence", "at least two moves", len(flat))
        object.__setattr__(self, "steps", flat)
        object.__setattr__(self, "share", sum(i.share for i in flat))
        object.__setattr__(self, "seconds", _of_all(sum, flat))

    def __str__(self) -> str:
        return ", then ".join(str(i) for i in self.steps)


@dataclass(frozen=True)
class Together(Step):
    """Steps at the same time, each over the whole of it."""

    steps: tuple[Step, ...]
    share: float = field(init=False)
    seconds: float | None = field(init=False)

    def __post_init__(self) -> None:
        flat = tuple(j for i in self.steps for j in (i.steps if isinstance(i, Together) else (i,)))
        if len(flat) < 2:
            raise InputError("Together", "at least two moves", len(flat))
        object.__setattr__(self, "steps", flat)
        object.__setattr__(self, "share", max(i.share for i in flat))
        object.__setattr__(self, "seconds", _of_all(max, flat))

    def __str__(self) -> str:
        return " and ".join(f"({i})" if isinstance(i, Sequence) else str(i) for i in self.steps)


def _of_all(combine: Callable[[list[float]], float], steps: tuple[Step, ...]) -> float | None:
    """The sum or the maximum of the steps' seconds, where each says its own."""
    known = [i.seconds for i in steps if i.seconds is not None]
    return combine(known) if len(known) == len(steps) else None


def plain(value: float) -> str:
    """A number as short as it can be said without losing a bit: 40, not 40.0."""
    text = repr(float(value))
    return text.removesuffix(".0")


def near_spelling(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """`Did you mean ...?` for a word that is nearly one that we know, else nothing."""
    close = [i for i in difflib.get_close_matches(word, known, n=2, cutoff=0.76) if i != word]
    return f"Did you mean {' or '.join(close)}?" if close else ""


def unknown(what: str, word: str, known: "list[str] | tuple[str, ...]") -> NoReturn:
    names = [i for i in known if i not in ALIASES]
    raise InputError(what, "one of " + ", ".join(names), f"`{word}`", near_spelling(word, known))


def _check(name: str, got: Quantity, unit: Measure, note: str = "") -> None:
    lengths = ("near", "m")
    if got.unit != unit and not (got.unit in lengths and unit in lengths):
        raise InputError(name, _SAID[unit], got, note)
    if not got.value >= 0:
        raise InputError(name, "a number of 0 or more; the direction says the sign", got)
    if not got.value <= LARGEST[got.unit]:
        raise InputError(name, f"at most {Quantity(LARGEST[got.unit], got.unit)}", got)
