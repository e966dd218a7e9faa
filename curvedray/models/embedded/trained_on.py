"""What the embedded model was trained on, as data: its words, lenses, paths, size and length.

Outside of it a video still comes out, and is worth little; so it is said before filming.
"""

import re
from dataclasses import dataclass

from curvedray.errors import InputError
from curvedray.world.themes import COLOURS, THEMES, WORDS, describe_caption


@dataclass(frozen=True)
class TrainedOn:
    """The bounds of the training clips. Paths: the 99th percentile of 120 clips of `curvedray.world`, rounded up."""

    hfov: tuple[float, float] = (60.0, 180.0)  # degrees across
    xi: tuple[float, float] = (0.0, 1.3)
    turn: float = 65.0  # degrees from the first frame
    travel: float = 4.0  # near distances from the first frame


TRAINED_ON = TrainedOn()

# Words that mean one of the world's own.
SYNONYMS = {
    "red": "crimson scarlet ruby cherry maroon",
    "blue": "azure navy cobalt sapphire cyan turquoise",
    "green": "emerald lime olive jade",
    "yellow": "gold golden lemon",
    "purple": "violet lilac magenta lavender",
    "orange": "amber tangerine",
    "white": "ivory cream pale",
    "ball": "sphere orb globe balls spheres orbs globes",
    "box": "cube block crate boxes cubes blocks crates",
    "pillar": "column post cylinder tower pillars columns posts cylinders towers",
    "desert": "sand sandy dunes dune sahara",
    "snowy": "snow winter icy wintry frozen",
    "garden": "park meadow lawn gardens",
    "night": "midnight moonlit dark nighttime",
    "sunset": "dusk evening twilight",
    "seaside": "sea beach coast ocean shore",
    "courtyard": "court yard patio courtyards",
    "moving": "sliding rolling going",
}
MEANING = {synonym: word for word, synonyms in SYNONYMS.items() for synonym in synonyms.split()}
# Words that say nothing about a picture: they are left out without a notice.
FILLERS = {*"the of on at is are there to some one scene video it its by near next beside".split()}  # noqa: SIM905

LITTLE_WORDS = {"a", "an", "and", "with", "behind", "in"}  # of the world's own: alone they ask for nothing


def read_caption(text: str) -> tuple[str, list[str]]:
    """A caption in the words and the order the model was trained on, and notices of what was changed or missed.

    A caption that is already so comes back as it is.
    """
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower())
    meant = [MEANING.get(word, word) for word in words]
    unknown = [word for word in meant if word not in WORDS and word not in FILLERS]
    notices = []
    if unknown:
        named = ", ".join(dict.fromkeys(unknown))
        notices.append(f"words the embedded model does not know, left out: {named}")
    known = [word for word in meant if word in WORDS]
    if set(known) <= LITTLE_WORDS:
        known = []
    try:
        caption = describe_caption(" ".join(known)).caption
    except InputError:
        caption = " ".join(known)
        notices.append(_incomplete(known))
    if caption.split() != text.split():
        notices.append(f"understood as: {caption or 'nothing'}")
        return caption, notices
    return text, notices


def _incomplete(known: list[str]) -> str:
    themes = sum(word in THEMES for word in known)
    if themes != 1:
        got = "no place" if not themes else "several places"
        return f"the caption names {got}; the model was always told one of {', '.join(THEMES)}"
    return f"the model was always told one to four things, each a colour ({', '.join(COLOURS)}) and a kind"
