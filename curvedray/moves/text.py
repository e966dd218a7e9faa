"""The line of text that says camera moves: `orbit left 40deg, then dolly in 0.5`.

`then` (or a comma) puts moves one after another, `and` (or `while`) runs them at once, brackets group.

    text   = group, "then" group ...        group = piece "and" piece ...        piece = move | "(" text ")"
    move   = name [direction] [amount] [radius 1.2] [to 40deg] [seed 3] [smooth] [for 2 | for 2s]
    amount = 40deg | 0.5 (near distances) | 1.2m | 2x (zoom) | any of them with /s, a speed
"""

import re
from typing import cast, get_args

from curvedray.errors import InputError
from curvedray.moves.move import (
    ALIASES,
    DEPTHS,
    HEIGHTS,
    KINDS,
    SIDES,
    TURNS,
    Ease,
    Measure,
    Move,
    Quantity,
    Sequence,
    Step,
    Together,
    near_spelling,
    unknown,
)

_DIRECTION_ALIASES = {
    "forward": "in",
    "forwards": "in",
    "ahead": "in",
    "back": "out",
    "backward": "out",
    "backwards": "out",
    "clockwise": "cw",
    "counterclockwise": "ccw",
    "counter-clockwise": "ccw",
    "anticlockwise": "ccw",
}
DIRECTIONS = {i: i for i in (*SIDES, *HEIGHTS, *DEPTHS, *TURNS)} | _DIRECTION_ALIASES
EASE_WORDS: dict[str, Ease] = {i: i for i in get_args(Ease)} | {"ease-in-out": "smooth", "eased": "smooth"}
_UNITS: dict[str, tuple[Measure, float]] = {
    **dict.fromkeys(("deg", "degree", "degrees", "°"), ("deg", 1.0)),
    **dict.fromkeys(("turn", "turns"), ("deg", 360.0)),
    **dict.fromkeys(("near", "nears"), ("near", 1.0)),
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), ("m", 1.0)),
    **dict.fromkeys(("x", "times"), ("x", 1.0)),
}
_DEEPEST = 50  # brackets inside brackets
_DISTANCE_WORDS = ("radius", "subject", "sway")


def move(
    name: str,
    direction: str | None = None,
    amount: float | str | None = None,
    *,
    radius: float | str | None = None,
    to: float | str | None = None,
    seed: int | None = None,
    ease: Ease = "linear",
    share: float = 1.0,
    seconds: float | None = None,
) -> Move:
    """A move from Python: `move("orbit", "left", 40, radius="1.2m")`. A bare number is in the move's own unit.

    `radius` is the one distance a move may have: the orbit's radius, the subject's distance, the sway.
    """
    word = name.lower()
    facing = DIRECTIONS.get(direction.lower(), direction) if direction else None
    chosen = resolve(word, facing)
    unit = KINDS[chosen].amount.unit if KINDS[chosen].amount else "near"  # type: ignore[union-attr]
    return Move(
        chosen,
        facing,
        _quantity(amount, unit),
        _quantity(radius, "near"),
        _quantity(to, "deg" if chosen == "zoom" else "near"),
        seed,
        ease,
        share,
        seconds,
    )


def parse_moves(text: str) -> Step:
    """One line of text -> the moves it says. `str()` of the result parses back to an equal one."""
    tokens = [i for i in _TOKEN.findall(text.lower()) if i]
    if not tokens:
        raise InputError("moves", "text such as `orbit left 40deg, then dolly in 0.5`", "nothing")
    reader = _Reader(tokens)
    steps = reader.sequence()
    if reader.peek():
        raise reader.error("`then`, `and` or the end of the text")
    return steps


_TOKEN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|/\s*s(?:ec|econd)?\b|[^\W\d]+(?:[-_][^\W\d]+)*|°|[^\s]")
_JOINERS = ("and", "while", "with", "&", "+")


class _Reader:
    """Reads tokens from left to right; every complaint names the word it stopped at."""

    def __init__(self, tokens: list[str]):
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *wanted: str) -> bool:
        """Move past the next word if it is one of these."""
        found = self.peek() in wanted and self.peek() != ""
        self.at += found
        return found

    def error(self, expected: str, fix: str = "") -> InputError:
        where = " ".join(self.tokens[max(0, self.at - 4) : self.at])
        got = f"`{self.peek()}`" if self.peek() else "the end"
        return InputError("moves", expected, f"{got} after `{where}`" if where else got, fix)

    def sequence(self) -> Step:
        steps = [self.together()]
        while self._then():
            steps.append(self.together())
        return steps[0] if len(steps) == 1 else Sequence(tuple(steps))

    def _then(self) -> bool:
        comma = self.take(",", ";")
        if self.peek() == "and" and self.peek(1) == "then":
            self.at += 1
        return self.take("then") or comma

    def together(self) -> Step:
        steps = [self.piece()]
        while self.peek() in _JOINERS and self.peek(1) != "then":
            self.at += 1
            steps.append(self.piece())
        return steps[0] if len(steps) == 1 else Together(tuple(steps))

    def piece(self) -> Step:
        if self.take("("):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.error(f"at most {_DEEPEST} brackets inside each other")
            inner = self.sequence()
            if not self.take(")"):
                raise self.error("a closing bracket")
            self.depth -= 1
            return inner
        return self.move()

    def move(self) -> Move:
        name = self.peek()
        if name not in KINDS and name not in ALIASES:
            if not name or not name[0].isalpha():
                raise self.error("a move such as `pan left 30deg`")
            unknown("move", name, [*KINDS, *ALIASES])
        self.at += 1
        if name == "dolly" and self.take("zoom"):
            name = "dolly_zoom"
        found: dict[str, object] = {}
        while self.peek() and self.peek() not in (*_JOINERS, "then", ",", ";", ")"):
            before = self.at
            key, value = self.word(name)
            if key in found:
                self.at = before
                raise self.error(f"one {key} for {name}, not two")
            found[key] = value
        direction = cast("str | None", found.get("direction"))
        return Move(resolve(name, direction), **found)  # type: ignore[arg-type]

    def word(self, name: str) -> tuple[str, object]:
        """One property of the move being read."""
        word = self.peek()
        if _is_number(word):
            own = KINDS[resolve(name, None)].amount
            return "amount", self.quantity("x" if own and own.unit == "x" else "near")
        self.at += 1
        if word == "ease" and self.peek() in ("in", "out"):
            word, self.at = f"ease-{self.peek()}", self.at + 1
        if word in EASE_WORDS:
            return "ease", EASE_WORDS[word]
        if word in DIRECTIONS:
            return "direction", DIRECTIONS[word]
        if word in _DISTANCE_WORDS:
            expected = KINDS[resolve(name, None)].distance_word
            if word != expected:
                self.at -= 1
                raise self.error(f"`{expected}`" if expected else f"no distance for {name}")
            return "distance", self.quantity("near")
        if word == "to":
            return "to", self.quantity("near")
        if word == "seed":
            return "seed", self.whole()
        if word == "for":
            return self.duration()
        self.at -= 1
        if word in KINDS or word in ALIASES:
            raise self.error("`then` or `and` between two moves", f"Say `{name} ..., then {word} ...`, or `and`.")
        known = [*DIRECTIONS, *EASE_WORDS, *_DISTANCE_WORDS, "to", "seed", "for", "then", "and", "while"]
        raise self.error(f"a direction, an amount, an easing, `then` or `and` for {name}", near_spelling(word, known))

    def number(self) -> float:
        if not _is_number(self.peek()):
            raise self.error("a number")
        self.at += 1
        return float(self.tokens[self.at - 1])

    def duration(self) -> tuple[str, float]:
        """`2s` is that many seconds, `2` a share of the time."""
        value = self.number()
        return ("seconds" if self.take("s", "sec", "second", "seconds") else "share"), value

    def whole(self) -> int:
        word = self.peek()
        if not (word.isdecimal() and len(word) < 19):
            raise self.error("a whole number of 0 or more, of at most 18 digits")
        self.at += 1
        return int(word)

    def quantity(self, bare: Measure) -> Quantity:
        """A number with its unit; without one it is in `bare`."""
        value = self.number()
        unit, scale = bare, 1.0
        if self.peek() in _UNITS:
            unit, scale = _UNITS[self.peek()]
            self.at += 1
        per_second = self.peek().startswith("/") and self.peek() != "/"
        self.at += per_second
        return Quantity(value * scale, unit, per_second)


def resolve(word: str, direction: str | None) -> str:
    """The move that a name or an alias means in this direction."""
    names = ALIASES.get(word, (word,))
    return next((i for i in names if i in KINDS and direction in KINDS[i].directions), names[0])


def _quantity(value: float | str | None, unit: Measure) -> Quantity | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return Quantity(float(value), unit)
    reader = _Reader([i for i in _TOKEN.findall(value.lower()) if i])
    result = reader.quantity(unit)
    if reader.peek():
        raise reader.error("one amount")
    return result


def _is_number(token: str) -> bool:
    return bool(re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", token))
