"""Camera paths through a scene, from a seed: moves in film terms that keep clear of everything, some only just."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator

from curvedray.cameras import Cameras, Lens
from curvedray.moves.trajectory import trajectory
from curvedray.world.courts import footprint
from curvedray.world.scene import Scene

FPS = 8.0
CLEAR = 0.3  # metres a camera keeps from things, walls and the floor
CLOSE_SHARE, CANDIDATES = 0.5, 4  # clips whose path is the closest pass of several
STATIC_SHARE = 0.04
CHECKED_FRAMES = 33  # a path is judged on so many, whatever the clip has, so that its length changes nothing
TRIES = 40


@dataclass(frozen=True)
class Amounts:
    """How far each move goes, in degrees or metres, drawn evenly; an orbit's radius; the share of two moves at once."""

    moves: dict[str, tuple[float, float, str]]
    orbit_radius: tuple[float, float]
    pairs: float


LARGE = Amounts(
    {
        "dolly in": (0.9, 4.5, "m"),
        "dolly out": (0.7, 2.2, "m"),
        **dict.fromkeys(("truck left", "truck right"), (0.9, 3.4, "m")),
        "pedestal up": (0.5, 1.8, "m"),
        "pedestal down": (0.3, 1.0, "m"),
        **dict.fromkeys(("pan left", "pan right"), (25.0, 60.0, "deg")),
        **dict.fromkeys(("tilt up", "tilt down"), (12.0, 32.0, "deg")),
        **dict.fromkeys(("roll cw", "roll ccw"), (20.0, 50.0, "deg")),
        **dict.fromkeys(("orbit left", "orbit right"), (20.0, 65.0, "deg")),
    },
    orbit_radius=(1.5, 4.5),
    pairs=0.45,
)


def draw_path(random: Generator, scene: Scene, lens: Lens, frames: int) -> tuple[str, Cameras] | None:
    """A move of one or two parts that keeps clear, as text and as cameras in metres; None where none was found."""
    wanted = CANDIDATES if random.random() < CLOSE_SHARE else 1
    yaw = random.uniform(-4, 4)
    found: list[tuple[float, str]] = []
    for _ in range(TRIES):
        move = draw_move(random, LARGE)
        distance = clearance(trajectory(move, lens, CHECKED_FRAMES, unit="metric", yaw=yaw), scene)
        if distance >= CLEAR:
            found.append((distance, move))
        if len(found) == wanted:
            break
    if not found:
        return None
    move = min(found)[1]
    return move, trajectory(move, lens, frames, unit="metric", fps=FPS, yaw=yaw)


def draw_move(random: Generator, amounts: Amounts) -> str:
    """One move, or two different ones at once, each then a little shorter."""
    if random.random() < STATIC_SHARE:
        return "static"
    pair = random.random() < amounts.pairs
    names = list(amounts.moves)
    chosen = random.choice(names, 2 if pair else 1, replace=False).tolist()
    ease = ("linear", "smooth")[random.integers(2)]
    while pair and chosen[0].split()[0] == chosen[1].split()[0]:  # opposite ones would only cancel
        chosen[1] = names[random.integers(len(names))]
    parts = []
    for name in chosen:
        low, high, unit = amounts.moves[name]
        amount = random.uniform(low, high) * (0.75 if pair else 1.0)
        radius = f" radius {random.uniform(*amounts.orbit_radius):.2f}m" if name.startswith("orbit") else ""
        parts.append(f"{name} {amount:.2f}{unit}{radius} {ease}")
    return " and ".join(parts)


def clearance(cameras: Cameras, scene: Scene) -> float:
    """The least distance, in metres, between a path and any wall, floor or thing; things count as endlessly high."""
    positions = cameras.world_from_camera[:, :3, 3].double()
    x, y, z = positions.unbind(-1)
    room = scene.room
    nearest = [room.half - x.abs().max(), room.half_depth - (z - room.ahead).abs().max(), room.floor - y.max()]
    times = np.linspace(0, 1, len(positions))[:, None, None]
    for thing in scene.things:
        circles = np.array(footprint(thing))
        centres = circles[:, :2] + times * np.array(thing.motion)
        apart = np.linalg.norm(centres - positions[:, None, ::2].numpy(), axis=-1) - circles[:, 2]
        nearest.append(torch.tensor(apart.min()))
    return min(float(i) for i in nearest)
