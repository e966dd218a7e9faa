"""Which clips are taken from which panoramas: their lenses and moves, all drawn before any is taken.

Everything about a clip follows from its panorama's name, its number and a seed.
"""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.random import Generator

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import VideoShape
from curvedray.data.fingerprint import fingerprint
from curvedray.data.panoramas import Panorama
from curvedray.errors import InputError
from curvedray.moves.trajectory import trajectory
from curvedray.world.paths import Amounts, draw_move
from curvedray.world.world import LENS_FAMILIES

RANDOM = "random"
TURNS = Amounts(  # what a random move does: the horizon stays level
    {
        **dict.fromkeys(("pan left", "pan right"), (8.0, 90.0, "deg")),
        **dict.fromkeys(("tilt up", "tilt down"), (6.0, 30.0, "deg")),
    },
    orbit_radius=(1.0, 1.0),
    pairs=0.4,
)
PITCH = 15.0  # degrees up or down at most, at the start of a random move


@dataclass(frozen=True)
class ShotJob:
    """One clip to take. Plain values, so that a job can be sent to another process."""

    id: str
    panorama: Panorama
    lens: str
    move: str
    yaw: float  # degrees, where the camera looks first
    pitch: float
    start: float  # in 0..1: when, within what the panorama's length leaves free
    shape: VideoShape
    folder: Path
    level: Literal["world", "panorama"] = "world"

    def key(self) -> str:
        """What the clip is made of; a clip that is there with the same key is not taken again."""
        said = {name: value for name, value in asdict(self).items() if name not in ("panorama", "folder")}
        return fingerprint(["shot-2", self.panorama.fingerprint(), said])


def plan_shots(
    panoramas: Sequence[Panorama],
    clips: int,
    folder: Path,
    shape: VideoShape,
    *,
    lenses: Sequence[str] = (RANDOM,),
    moves: Sequence[str] = (RANDOM,),
    seed: int = 0,
    level: Literal["world", "panorama"] = "world",
) -> list[ShotJob]:
    """`clips` jobs, evenly from the panoramas; of each, the lenses and moves in turn. `random` is drawn per clip."""
    for lens in set(lenses) - {RANDOM}:
        named_lens(lens, shape.width, shape.height)
    for move in set(moves) - {RANDOM}:
        turning(move, named_lens("pinhole-90"), 2, 1.0)
    jobs = []
    for place, panorama in enumerate(panoramas):
        share = clips // len(panoramas) + (place < clips % len(panoramas))
        for number in range(share):
            random = np.random.default_rng([seed, zlib.crc32(panorama.id.encode()), number])
            lens, move = lenses[number % len(lenses)], moves[number % len(moves)]
            yaw, pitch, start = random.uniform(-180, 180), random.uniform(-PITCH, PITCH), random.uniform()
            drawn = random_lens(random), draw_move(random, TURNS)
            while drawn[1] == "static" and not panorama.is_video:  # it would be a still picture
                drawn = drawn[0], draw_move(random, TURNS)
            jobs.append(
                ShotJob(
                    f"{panorama.id}-{number:04d}",
                    panorama,
                    drawn[0] if lens == RANDOM else lens,
                    drawn[1] if move == RANDOM else move,
                    round(yaw, 2),
                    round(pitch, 2) if move == RANDOM else 0.0,
                    round(start, 4),
                    shape,
                    folder,
                    level,
                )
            )
    return jobs


def random_lens(random: Generator) -> str:
    """A pinhole, a wide lens or a fisheye, as likely as one another."""
    family = list(LENS_FAMILIES)[random.integers(len(LENS_FAMILIES))]
    (low, high), bend = LENS_FAMILIES[family]
    return f"{family}-{random.uniform(low, high):.1f}@{random.uniform(*bend):.3f}"


def turning(move: str, lens: Lens, frames: int, fps: float, yaw: float = 0.0, pitch: float = 0.0) -> Cameras:
    """A move as cameras at the origin; one that travels is refused."""
    cameras = trajectory(move, lens, frames, unit="near", near=1.0, fps=fps, yaw=yaw, pitch=pitch)
    if bool(cameras.world_from_camera[:, :3, 3].abs().max() > 0):
        fix = "A panorama is seen from one place: a clip travels where the panorama's own track does."
        raise InputError("move", "one that turns or zooms (pan, tilt, roll, zoom, static)", move, fix)
    return cameras
