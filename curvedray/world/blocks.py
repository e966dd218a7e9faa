"""Blocked-out scenes: grey boxes, balls, pillars and walls from a line of text or JSON, and their exact distances.

    box 1x1x2m at left 2m ahead 4m; wall ahead 7m; ball 0.5m at right 1m ahead 3m moving left 1m

Positions are seen from the first camera, which stands on the floor at eye height and looks ahead: left or right, ahead
or behind, and up, all in metres. A box has width x depth x height, a wall width x height, a pillar width x height, a
ball one width; what is left out has a usual size. `moving left 1m` is how far a thing goes during the clip, `turned
30deg` turns it.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.world.courts import footprint
from curvedray.world.scene import Room, Scene, Thing
from curvedray.world.themes import paint

BlockKind = Literal["box", "ball", "pillar", "wall"]
EYE = 1.5  # metres of the first camera above the floor
USUAL: dict[str, tuple[float, ...]] = {
    "box": (1.0, 1.0, 1.0),  # width, depth, height
    "ball": (1.0,),
    "pillar": (0.5, 2.5),  # width, height
    "wall": (40.0, 4.0),  # width, height: one that fills the view
}
WALL_THICKNESS = 0.1
LARGEST = 1000.0  # metres, of any number in a scene
DIRECTIONS = {"left": (-1, 0, 0), "right": (1, 0, 0), "ahead": (0, 0, 1), "behind": (0, 0, -1), "up": (0, 1, 0)}
SYNONYMS = {"forward": "ahead", "front": "ahead", "backward": "behind", "back": "behind", "above": "up"}
KINDS = {"cube": "box", "block": "box", "sphere": "ball", "column": "pillar", "cylinder": "pillar"}
GREYS = tuple(paint(code) for code in ("b8b6b1", "9d9fa1", "c9c4ba", "8b8f94"))
UNIT_WORDS = {"m": ("m", "metres", "meters", "metre", "meter"), "deg": ("deg", "degrees", "degree")}
NUMBER = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"


@dataclass(frozen=True)
class Block:
    """One thing of a blocked-out scene, in metres as seen from the first camera."""

    kind: BlockKind
    size: tuple[float, ...]
    right: float = 0.0
    ahead: float = 0.0
    up: float = 0.0
    turned: float = 0.0  # degrees, clockwise seen from above
    moving: tuple[float, float] = (0.0, 0.0)  # right, ahead, from the first frame to the last

    def __post_init__(self) -> None:
        numbers = (*self.size, self.right, self.ahead, self.up, self.turned, *self.moving)
        if not all(math.isfinite(i) and abs(i) <= LARGEST for i in numbers):
            raise InputError(f"{self.kind}", f"finite numbers of at most {LARGEST:g} metres", numbers)
        if len(self.size) != len(USUAL[self.kind]) or min(self.size) <= 0:
            raise InputError(f"{self.kind}'s size", _size_words(self.kind), "x".join(f"{i:g}" for i in self.size))
        if self.up < 0:
            raise InputError(f"{self.kind}", "a position on the floor or above it", f"{-self.up:g} m below")

    def thing(self, colour: tuple[float, float, float]) -> Thing:
        """As the ray-caster knows it."""
        width, height = self.size[0], self.size[-1]
        kind: Literal["ball", "box", "pillar"] = "box" if self.kind == "wall" else self.kind
        deep = {"wall": WALL_THICKNESS / 2, "box": self.size[1] / 2 if self.kind == "box" else None}.get(self.kind)
        return Thing(
            *(kind, self.right, self.ahead, width / 2, height, colour),
            yaw=math.radians(self.turned),
            motion=self.moving,
            depth=deep,
            base=self.up,
        )

    def __str__(self) -> str:
        """The text that gives this block."""
        words = [self.kind, "x".join(f"{i:g}" for i in self.size) + "m at"]
        for value, positive, negative in ((self.right, "right", "left"), (self.ahead, "ahead", "behind")):
            words += [f"{positive if value > 0 else negative} {abs(value):g}m"] if value else []
        words += [f"up {self.up:g}m"] if self.up else []
        if words[-1].endswith(" at") or words[-1] == "at":
            words.append("ahead 0m")
        words += [f"turned {self.turned:g}deg"] if self.turned else []
        for value, positive, negative in ((self.moving[0], "right", "left"), (self.moving[1], "ahead", "behind")):
            words += [f"moving {positive if value > 0 else negative} {abs(value):g}m"] if value else []
        return " ".join(words)


def parse_blocks(text: str) -> list[Block]:
    """Blocks from a line of text, separated by semicolons or line breaks."""
    blocks = [_parse_block(part) for part in re.split(r"[;\n]", text) if part.strip()]
    if not blocks:
        raise InputError("scene", "blocks such as `box 1x1x2m at left 2m ahead 4m; wall ahead 7m`", repr(text))
    return blocks


def _parse_block(text: str) -> Block:
    words = text.lower().replace(",", " ").split()
    kind = KINDS.get(words[0], words[0])
    if kind not in USUAL:
        raise InputError("scene", f"a block that is one of {', '.join(USUAL)}", words[0], f"In: {text.strip()}")
    rest, size = words[1:], USUAL[kind]
    if rest and re.match(r"[0-9]", rest[0]):
        size = _size(kind, rest.pop(0))
    position, moving, turned, motion = np.zeros(3), np.zeros(3), 0.0, False
    while rest:
        word = rest.pop(0)
        word = SYNONYMS.get(word, word)
        if word in ("at", "and", "a", "the"):
            continue
        if word == "moving":
            motion = True
        elif word == "turned":
            turned += _amount(rest, "deg", text)
        elif word in DIRECTIONS:
            step = _amount(rest, "m", text) * np.array(DIRECTIONS[word], float)
            moving, position = (moving + step, position) if motion else (moving, position + step)
        else:
            expected = f"a direction ({', '.join(DIRECTIONS)}), turned, or moving"
            raise InputError("scene", expected, word, f"In: {text.strip()}")
    if moving[1]:
        raise InputError("scene", "things that move left, right, ahead or behind", "one that moves up")
    x, up, z = position.tolist()
    if not position.any() and kind != "wall":
        raise InputError("scene", "where it stands, such as `left 2m ahead 4m`", text.strip())
    return Block(kind, size, x, z, up, turned, (float(moving[0]), float(moving[2])))  # type: ignore[arg-type]


def _size(kind: str, word: str) -> tuple[float, ...]:
    """`1x1x2m`; fewer numbers than the kind has are refused, one alone is the same every way."""
    numbers = re.fullmatch(rf"({NUMBER}(?:x{NUMBER}){{0,2}})m?", word)
    if numbers is None:
        raise InputError(f"{kind}'s size", _size_words(kind), word)
    values = tuple(float(i) for i in numbers[1].split("x"))
    wanted = len(USUAL[kind])
    if len(values) == 1:
        values = values * wanted
    if len(values) != wanted:
        raise InputError(f"{kind}'s size", _size_words(kind), word)
    return values


def _amount(rest: list[str], unit: str, text: str) -> float:
    """The number that must follow, with its unit or without."""
    word = rest.pop(0) if rest else "nothing"
    found = re.fullmatch(rf"(-?{NUMBER})({unit}|{unit}s|°)?", word) if unit == "deg" else None
    found = found or re.fullmatch(rf"({NUMBER})(m|cm)?", word)
    if found is None:
        raise InputError(
            "scene", f"a number of {'degrees' if unit == 'deg' else 'metres'}", word, f"In: {text.strip()}"
        )
    if rest and rest[0] in ("m", "metres", "meters", "metre", "meter", "deg", "degrees"):
        rest.pop(0)
    return float(found[1]) * (0.01 if found[2] == "cm" else 1.0)


def _size_words(kind: str) -> str:
    return {
        "box": "width x depth x height, such as 1x1x2m",
        "ball": "its width, such as 0.5m",
        "pillar": "width x height, such as 0.4x2.5m",
        "wall": "width x height, such as 3x2m",
    }[kind]


def blocks_from_json(record: Any, name: str = "scene") -> list[Block]:
    """A list of blocks, or {"blocks": [...]}; a block's keys are those of `Block`, or it is text as in a command."""
    rows = record.get("blocks") if isinstance(record, dict) else record
    if not isinstance(rows, list) or not rows:
        raise InputError(name, "a list of blocks", type(rows).__name__ if rows is not None else "none")
    found: list[Block] = []
    for index, row in enumerate(rows):
        found += parse_blocks(row) if isinstance(row, str) else [_block_from_json(row, f"{name}, block {index + 1}")]
    return found


def _block_from_json(row: Any, name: str) -> Block:
    known = ("kind", "size", "right", "ahead", "up", "turned", "moving")
    if not isinstance(row, dict) or not set(row) <= set(known):
        got = ", ".join(sorted(map(str, row))) if isinstance(row, dict) else type(row).__name__
        raise InputError(name, f"an object with {', '.join(known)}", got)
    said = str(row.get("kind"))
    kind: Any = KINDS.get(said, said)
    if kind not in USUAL:
        raise InputError(f"{name}: kind", f"one of {', '.join(USUAL)}", said)
    numbers = {key: _number(row[key], f"{name}: {key}") for key in ("right", "ahead", "up", "turned") if key in row}
    size = _numbers(row.get("size", list(USUAL[kind])), f"{name}: size")
    moving = _numbers(row.get("moving", [0, 0]), f"{name}: moving")
    if len(moving) != 2:
        raise InputError(f"{name}: moving", "metres to the right and ahead", row["moving"])
    return Block(kind, size, **numbers, moving=(moving[0], moving[1]))


def blocks_to_json(blocks: list[Block]) -> list[dict[str, Any]]:
    return [vars(block) | {"size": list(block.size), "moving": list(block.moving)} for block in blocks]


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e9:
        raise InputError(name, "a number", value)
    return float(value)


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(_number(i, name) for i in values)


def block_scene(blocks: list[Block], eye: float = EYE) -> Scene:
    """The blocks on open ground under the sky, in greys."""
    ground, sky = (paint("a9a79f"), paint("97958d")), (paint("e8edf2"), paint("8fb4d8"))
    greys = (GREYS[0],) * 4
    # Walls of hardly any height, too far away to matter: what is not a block is ground or sky.
    room = Room(greys, greys, ground, sky, half=LARGEST, floor=eye, height=0.001, softness=0.04, spacing=2.0)
    return Scene(room, tuple(block.thing(GREYS[i % len(GREYS)]) for i, block in enumerate(blocks)))


def check_clear(blocks: list[Block], scene: Scene, path: Cameras) -> None:
    """Refuse a path that runs through a block or into the ground: the map would show its inside."""
    positions = path.world_from_camera[:, :3, 3].double().numpy()
    times = np.linspace(0, 1, len(positions))
    deepest = int(positions[:, 1].argmax())
    if positions[deepest, 1] >= scene.room.floor:
        raise InputError("path", "one above the ground", f"one that goes below it at frame {deepest}", "Raise --eye.")
    for block, thing in zip(blocks, scene.things, strict=True):
        low, high = scene.room.floor - thing.base, scene.room.floor - thing.base - block.size[-1]
        for frame, (position, time) in enumerate(zip(positions, times, strict=True)):
            circles = footprint(replace(thing, x=thing.x + time * thing.motion[0], z=thing.z + time * thing.motion[1]))
            level = high <= position[1] <= low
            if level and any(math.dist(position[::2], (x, z)) < radius for x, z, radius in circles):
                fix = "Move the block, or the camera."
                raise InputError("path", f"one that keeps out of `{block}`", f"one inside it at frame {frame}", fix)
