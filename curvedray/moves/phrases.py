"""Words that people type, said in the exact grammar: `circle around the subject slowly` is `orbit left 20deg`.

Text that the grammar of text.py reads keeps its meaning. What it does not read is tried here, clause by clause, by the
tables below: phrases, directions, units, speeds and durations become a move. What was understood is always said back,
and a word that stands in no table is an error: nothing is skipped but words that cannot matter.
"""

import logging
import re
from functools import lru_cache

from curvedray.errors import InputError
from curvedray.moves.move import KINDS, Step, plain
from curvedray.moves.text import DIRECTIONS, EASE_WORDS, parse_moves, resolve

log = logging.getLogger("curvedray.moves")

# Phrases -> a move's name, and what else they say. The longest that fits is taken.
_SAID_SO = {
    "orbit": "circle around, rotate around, fly around, go around, move around, walk around, orbit around, arc around, "
    "revolve around, circle, encircle, revolve, orbit, arc",
    "move": "fly, go, drive, walk, travel, float, glide, move, drift, slide, track",
    "dolly in": "advance, approach, push in, push forward, push, close in, creep in, move closer, get closer, "
    "go closer, come closer, fly closer",
    "dolly out": "retreat, pull out, pull back, pull away, pull, back away, move away, fly away",
    "pedestal up": "rise up, rise, ascend, climb, lift up, lift, raise, boom up",
    "pedestal down": "lower, descend, sink, drop down, drop, boom down",
    "pan 90 deg smooth quickly": "whip pan, swish pan, whip",
    "dolly_zoom": "dolly zoom, vertigo effect, vertigo, hitchcock zoom, zolly",
    "spin": "spin around, spin, look around, turn around",
    "roll": "dutch angle, dutch tilt, dutch, bank",
    "static": "pause, hold still, hold, wait, stay still, stay, freeze, stop, rest, stand still, do not move, "
    "don't move, no movement, locked off, locked",
    "handheld": "hand-held, hand held, shaky, shake",
    "spiral": "corkscrew, spiral around, spiral",
}
PHRASES = {phrase: move for move, phrases in _SAID_SO.items() for phrase in phrases.split(", ")}
PHRASES |= {name: name for name in (*KINDS, "look", "yaw", "pitch", "boom", "jib", "helix", "turn", "rotate")}
# The direction of a move that is as much itself either way, or that everybody means one way.
USUAL_DIRECTIONS = {"orbit": "left", "spiral": "left", "zoom": "in", "dolly": "in", "dolly_zoom": "in", "roll": "cw"}
TOWARDS = {
    **dict.fromkeys(("upward", "upwards", "skyward"), "up"),
    **dict.fromkeys(("downward", "downwards"), "down"),
    **dict.fromkeys(("inward", "inwards", "closer", "nearer"), "in"),
    **dict.fromkeys(("outward", "outwards", "away"), "out"),
    **dict.fromkeys(("leftward", "leftwards"), "left"),
    **dict.fromkeys(("rightward", "rightwards"), "right"),
}
METRES = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1.0),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), 0.01),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 0.001),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("inch", "inches"), 0.0254),
}
OTHER_UNITS = {
    **dict.fromkeys(("deg", "degree", "degrees", "°"), "deg"),
    **dict.fromkeys(("x", "times"), "x"),
    "near": "",
}
SECONDS = ("s", "sec", "secs", "second", "seconds")
NUMBERS = {"half": "0.5", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "ten": "10", "twice": "2"}
TURNS = {"full circle": "360deg", "half circle": "180deg", "full turn": "360deg", "half turn": "180deg"}
TURNS |= {"quarter turn": "90deg", "all the way around": "360deg", "all the way round": "360deg"}
DISTANCES = ("radius", "subject", "sway", "to", "seed")
# How far a move goes where no amount is said, against its own default; with an amount, how much of the time it takes.
PACES = {
    **dict.fromkeys(("slowly", "slow", "gently", "gentle", "slightly", "subtle", "little", "bit", "softly"), 0.5),
    **dict.fromkeys(("fast", "quickly", "quick", "rapidly", "rapid", "swiftly", "far", "lot", "wide"), 2.0),
}
_IDLE = (
    "the, a, an, of, it, its, this, that, to, towards, around, round, at, on, camera, drone, shot, view, subject, "
    "object, scene, center, centre, middle, person, please, very, by, through, into, straight, movement, motion, side, "
    "effect, just, our"
)
IDLE = frozenset(_IDLE.split(", "))  # words that change nothing
LONGEST_TEXT = 2000  # characters that are tried
_WORDS = re.compile(r"\d+\.?\d*|\.\d+|[^\W\d_]+(?:['_-][^\W\d_]+)*|°|[^\s]")
_THEN = re.compile(r"\s*(?:,?\s*(?:and then|then|followed by|after that|afterwards|next)\b|[,;.](?!\d))\s*")
_AND = re.compile(r"\s+(?:and|while|with|as well as|plus|at the same time as)\s+|\s*[&+]\s*")


def read_moves(text: str) -> Step:
    """One line of text -> the moves it says, exactly or in everyday words; what those were taken for is logged."""
    try:
        return parse_moves(text)
    except InputError as exact:
        try:
            said = in_exact_words(text)
            step = parse_moves(said)
        except InputError:
            raise exact from None
    _say_back(text.strip(), str(step))
    return step


@lru_cache(maxsize=256)
def _say_back(text: str, understood: str) -> None:
    """Once per text, however often it is made into cameras in a row."""
    log.warning("moves: `%s` understood as: %s", text[:200], understood)


def in_exact_words(text: str) -> str:
    """Everyday words in the exact grammar; InputError where a word is not understood."""
    if len(text) > LONGEST_TEXT or "(" in text:
        raise InputError("moves", "a line of plain words", text)
    clauses = [i.strip() for i in _THEN.split(text.lower().strip(" .!"))]
    if not all(clauses):
        raise InputError("moves", "a move on each side of `then`", text)
    groups = [[_Clause(i) for i in _AND.split(clause)] for clause in clauses]
    if len(groups) == 1:
        return _together(groups[0])
    _check_halves(groups)
    # One after another, moves share the time by themselves; beside others, each holds still for the rest of it.
    return ", then ".join(group[0].text if len(group) == 1 else _together(group) for group in groups)


def _check_halves(groups: list[list["_Clause"]]) -> None:
    """A half and `then` both say when: of two moves that share the time evenly they may say the same."""
    even = len(groups) == 2 and not any(clause.duration for group in groups for clause in group)
    for index, group in enumerate(groups):
        for clause in group:
            if clause.half and not (even and clause.half == ("second" if index else "first")):
                raise InputError("moves", "a half of the time, or moves one after another", "both")
            clause.half = ""


def _together(group: list["_Clause"]) -> str:
    """Moves at the same time, each with its own holds in brackets."""
    held = [clause.held for clause in group]
    return " and ".join(f"({i})" if ", then " in i and len(held) > 1 else i for i in held)


class _Clause:
    """One move in everyday words: its slots filled word by word, then said in the exact grammar's order."""

    def __init__(self, words: str):
        self.name, self.direction, self.amount, self.rest = "", "", "", ""
        self.pace, self.duration, self.half = 1.0, "", ""
        self.share = 1.0  # of the time, where an amount was said and a pace
        self.words = [_BASE_FORMS.get(i, i) for i in _WORDS.findall(words)]
        while self.words:
            self._take()
        self._settle()

    def _take(self) -> None:
        """Read what begins at the next word."""
        readers = (self._phrase, self._duration, self._turn, self._distance, self._quantity, self._word)
        if not any(read() for read in readers):
            raise InputError("moves", "words for a camera's move", f"`{self.words[0]}`")

    def _fill(self, slot: str, value: str) -> None:
        """Say something of the move, once: two amounts or two directions are one too many."""
        before = getattr(self, slot)
        if before and before != value:
            raise InputError("moves", f"one {slot} for a move", f"{before} and {value}")
        setattr(self, slot, value)

    def _starts(self, phrase: str) -> bool:
        words = phrase.split()
        if self.words[: len(words)] != words:
            return False
        self.words = self.words[len(words) :]
        return True

    def _phrase(self) -> bool:
        if self.name:
            return False
        for phrase in _LONGEST_FIRST:
            if self._starts(phrase):
                self.name, *more = PHRASES[phrase].split()
                self.words = more + self.words
                return True
        return False

    def _duration(self) -> bool:
        match = re.match(r"(?:over|for|in|during|within) (?:the )?(\S+) (\S+)", " ".join(self.words))
        if match is None:
            return False
        number, unit = NUMBERS.get(match[1], match[1]), match[2]
        if match[1] in ("first", "second", "last") and unit == "half":
            self._fill("half", "first" if match[1] == "first" else "second")
        elif unit in SECONDS and _is_number([number]):
            self._fill("duration", f"for {number}s")
        else:
            return False
        self.words = self.words[len(match[0].split()) :]
        return True

    def _turn(self) -> bool:
        for phrase, amount in TURNS.items():
            if self._starts(phrase):
                self._fill("amount", amount)
                self.name = self.name or ("orbit" if "circle" in phrase else "")
                return True
        return False

    def _distance(self) -> bool:
        """`radius 2 m`, as the grammar has it."""
        if self.words[0] not in DISTANCES or not _is_number(self.words[1:2]):
            return False
        unit = [i for i in self.words[2:3] if i in METRES or i in OTHER_UNITS]
        self.rest += " " + " ".join(self.words[: 2 + len(unit)])
        self.words = self.words[2 + len(unit) :]
        return True

    def _quantity(self) -> bool:
        """A number and its unit; a bare number is taken for degrees where a move turns, if it is not tiny."""
        word = NUMBERS.get(self.words[0], self.words[0])
        if not _is_number([word]):
            return False
        following = [i for i in self.words[1:] if i not in ("a", "an", "of")]
        unit = following[0] if following else ""
        if unit in METRES:
            self._fill("amount", f"{plain(round(float(word) * METRES[unit], 9))}m")
        elif unit in OTHER_UNITS:
            self._fill("amount", word + OTHER_UNITS[unit])
        elif unit in SECONDS:
            self._fill("duration", f"for {word}s")
        elif self.words[0] in NUMBERS:
            return False
        else:
            unit = ""
            self._fill("amount", word)
        self.words = following[1:] if unit else self.words[1:]
        return True

    def _word(self) -> bool:
        word = self.words[0]
        if word in PACES:
            self.pace = PACES[word]
        elif word in EASE_WORDS or word == "smoothly":
            self.rest += " smooth" if word == "smoothly" else f" {word}"
        elif word in DIRECTIONS or word in TOWARDS:
            self._fill("direction", TOWARDS.get(word) or DIRECTIONS[word])
        elif word not in IDLE:
            return False
        self.words = self.words[1:]
        return True

    def _settle(self) -> None:
        """The move's name, its usual direction, and its amount at this pace."""
        if self.name == "spin":
            rolls = self.direction in ("cw", "ccw")
            self.name, self.direction = ("roll" if rolls else "pan"), self.direction or "right"
            self.amount = self.amount or "360deg"
        if not self.name:
            raise InputError("moves", "a move", "none")
        self.name = resolve(self.name, self.direction or None)
        kind = KINDS[self.name]
        if self.name in ("orbit", "spiral"):  # seen from above
            self.direction = {"cw": "left", "ccw": "right"}.get(self.direction, self.direction)
        self.direction = self.direction or USUAL_DIRECTIONS.get(self.name, "")
        unit = kind.amount.unit if kind.amount else ""
        if unit == "deg" and _is_number([self.amount]) and float(self.amount) >= 5:
            self.amount += "deg"
        if self.half and self.duration:
            raise InputError("moves", "one time for a move", f"{self.duration} and the {self.half} half")
        if self.pace == 1 or self.duration:
            return
        if self.amount:
            self.share = 1 / self.pace
            self.duration = f"for {plain(self.share)}"
        elif kind.amount:
            value = kind.amount.value**self.pace if unit == "x" else kind.amount.value * self.pace
            self.amount = plain(round(value, 2)) + ("" if unit == "near" else unit)

    @property
    def text(self) -> str:
        return " ".join(i for i in (self.name, self.direction, self.amount, self.rest.strip(), self.duration) if i)

    @property
    def held(self) -> str:
        """The same with what the camera holds still before and after it: in the other half, or once it hurried."""
        rest = 1.0 if self.share < 1 else 0.0
        before = self.share + rest if self.half == "second" else 0.0
        after = rest or (self.share if self.half == "first" else 0.0)
        return ", then ".join(i for i in (_hold(before), self.text, _hold(after)) if i)


def _hold(share: float) -> str:
    return "static" if share == 1 else f"static for {plain(share)}" if share else ""


def _is_number(words: list[str]) -> bool:
    return bool(words) and bool(re.fullmatch(r"[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9}", words[0]))


def _base_forms(verb: str) -> dict[str, str]:
    """`orbits`, `orbiting`, `rising`, `panning` -> the word that the tables have."""
    stem = verb.removesuffix("e")
    return dict.fromkeys((f"{verb}s", f"{verb}es", f"{stem}ing", f"{verb}{verb[-1]}ing"), verb)


_LONGEST_FIRST = sorted(PHRASES, key=lambda i: -len(i.split()))
_BASE_FORMS = {form: verb for phrase in PHRASES for form, verb in _base_forms(phrase.split()[0]).items()}
