"""The procedural world's words and paints: a caption says what there is, a theme says how the court looks.

a red ball and a blue box in a desert courtyard
a white pillar moving left and a green ball and an orange box in a night courtyard
"""

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from curvedray.errors import InputError
from curvedray.world.scene import Colour, Kind, Room

Side = Literal["left", "right"]
MOST_THINGS = 4  # that a caption names


def paint(code: str) -> Colour:
    """`c8323c` -> red, green, blue in 0..1."""
    red, green, blue = (int(code[i : i + 2], 16) / 255 for i in (0, 2, 4))
    return red, green, blue


@dataclass(frozen=True)
class Theme:
    """A court's paints, as hex codes: walls ahead, right, behind, left, the pillars on them, two tiles, the sky."""

    walls: str
    stripes: str
    tiles: str
    sky: str  # at the horizon, overhead
    tint: str = "ffffff"  # the light that falls on things

    def room(self) -> Room:
        walls, stripes, tiles, sky = (
            tuple(paint(code) for code in line.split()) for line in (self.walls, self.stripes, self.tiles, self.sky)
        )
        return Room(walls, stripes, tiles, sky)  # type: ignore[arg-type]  # as many as the strings above hold

    def lit(self, colour: Colour) -> Colour:
        red, green, blue = (a * b for a, b in zip(colour, paint(self.tint), strict=True))
        return red, green, blue


COLOURS = {
    "red": paint("d0312d"),
    "blue": paint("2456c8"),
    "green": paint("2e9a47"),
    "yellow": paint("f2c21a"),
    "purple": paint("7d3bb0"),
    "orange": paint("f07d1e"),
    "white": paint("f4f2ee"),
}
THEMES = {
    "desert": Theme(
        "cf8a5b b89a5e a8736b 8d9c7a", "ecc9a2 ddc896 d3aca3 bfcbae", "d9c193 c7ad7e", "f3e3c4 7fb2dc", "fff6e6"
    ),
    "snowy": Theme(
        "9fb8cc a9a6c4 9cc2bb 8793a8", "e3eef6 dcdaee d9efe9 c3ccdc", "eef3f8 dbe4ee", "eef2f5 b4c7d8", "f4f8ff"
    ),
    "garden": Theme(
        "6f9a58 b0705a d3c79c 5f9a94", "a9c98f d9a693 f0e8c9 a3cdc7", "8db468 7aa258", "dcebf5 67a5e0", "fffdf2"
    ),
    "night": Theme(
        "43508a 6a4480 336a70 7d4656", "7c8bc4 a67ebf 69a5ab bd7f8e", "4d5672 414960", "343f70 101838", "b4bfe6"
    ),
    "sunset": Theme(
        "c9704f 8a5478 b55a6a 8c6a4e", "f0b285 bd89ab e59aa3 c4a07e", "b98a72 a67a66", "ffb36b 6a5a9e", "ffe0c4"
    ),
    "seaside": Theme(
        "e6e2d6 4fa7b0 e39a86 d8b86a", "7fb4d6 b5e0e2 f8d3c6 f3e3b3", "d9cdb6 cbbda3", "e2f4f8 4fb3e6", "ffffff"
    ),
}


@dataclass(frozen=True)
class Noun:
    """A thing as a caption names it."""

    colour: str
    kind: Kind
    moving: Side | None = None

    def __str__(self) -> str:
        article = "an" if self.colour[0] in "aeiou" else "a"
        return f"{article} {self.colour} {self.kind}" + (f" moving {self.moving}" if self.moving else "")


@dataclass(frozen=True)
class Description:
    """What a caption says: a few things and a theme. It says what there is, and not where."""

    nouns: tuple[Noun, ...]
    theme: str

    @property
    def caption(self) -> str:
        return " and ".join(str(noun) for noun in self.nouns) + f" in a {self.theme} courtyard"


WORDS = tuple(
    sorted({"a", "an", "and", "with", "behind", "in", "courtyard", "moving", *get_args(Side), *get_args(Kind)})
    + sorted(COLOURS)
    + sorted(THEMES)
)


def describe_caption(text: str) -> Description:
    """What a caption asks for. Other words are passed over, but nothing that is missing is guessed."""
    words = " ".join(re.findall(r"[a-z]+", text.lower()))
    noun = rf"\b({'|'.join(COLOURS)}) ({'|'.join(get_args(Kind))})\b(?: moving ({'|'.join(get_args(Side))})\b)?"
    nouns = [
        Noun(colour, cast(Kind, kind), cast(Side, moving) if moving else None)
        for colour, kind, moving in re.findall(noun, words)
    ]
    themes = [word for word in words.split() if word in THEMES]
    if not 1 <= len(nouns) <= MOST_THINGS or len(themes) != 1:
        expected = f"one to four of ({', '.join(COLOURS)}) ({', '.join(get_args(Kind))}) and one of {', '.join(THEMES)}"
        fix = "For example: a red ball and a blue box in a desert courtyard."
        raise InputError("caption", expected, repr(text), fix)
    return Description(tuple(nouns), themes[0])
