"""What each named move does to a camera: a rig that changes along the move.

A rig has a position and three angles, yaw (right +), pitch (up +) and roll (clockwise from behind +), so that
rotation = Ry(yaw) Rx(pitch) Rz(roll): pan stays about the vertical however far the camera is tilted.
Every step is a path of changes from where it starts, zero at its start; steps in a row and steps at once both add.

t frame   s progress through a step, 0 to 1
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from curvedray.cameras import Lens, Unit
from curvedray.cameras.angles import rotation_of
from curvedray.errors import InputError
from curvedray.moves.move import LARGEST, Ease, Move, Quantity, Sequence, Step, Together

Array = NDArray[np.float64]
EASES: dict[Ease, Callable[[Array], Array]] = {
    "linear": lambda s: s,
    "ease-in": lambda s: s * s,
    "ease-out": lambda s: s * (2 - s),
    "smooth": lambda s: s * s * (3 - 2 * s),
}
SHAKE_HERTZ = (0.4, 0.7, 1.1, 1.7, 2.6)  # a hand's sway and tremor, the faster the smaller


@dataclass(frozen=True)
class Rig:
    """Where cameras stand and how they are turned (radians), and the logarithm of their zoom; or a change of it."""

    position: Array  # t 3
    yaw: Array  # t
    pitch: Array
    roll: Array
    zoom: Array

    @classmethod
    def change(cls, s: Array, **channels: Array) -> "Rig":
        """A change with only these channels, the others zero."""
        empty = {"position": np.zeros((len(s), 3))} | {i: np.zeros(len(s)) for i in ("yaw", "pitch", "roll", "zoom")}
        return cls(**(empty | channels))

    def __add__(self, other: "Rig") -> "Rig":
        return Rig(*(a + b for a, b in zip(self.channels, other.channels, strict=True)))

    def __getitem__(self, frames: slice) -> "Rig":
        return Rig(*(i[frames] for i in self.channels))

    @property
    def channels(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.position, self.yaw, self.pitch, self.roll, self.zoom

    def poses(self) -> Array:
        """world_from_camera, (t 4 4)."""
        poses = np.tile(np.eye(4), (len(self.yaw), 1, 1))
        poses[:, :3, :3] = rotation_of(np.stack([self.yaw, self.pitch, self.roll], -1))
        poses[:, :3, 3] = self.position
        return poses


@dataclass(frozen=True)
class Stage:
    """What a move needs to know beyond itself: the lens, what a length means, and how long the clip is."""

    lens: Lens
    unit: Unit
    near: float | None
    seconds: float

    def length(self, quantity: Quantity) -> float:
        wanted = "m" if self.unit == "metric" else "near"
        if quantity.unit == wanted:
            return quantity.value
        if self.near is None or self.unit == "arbitrary":
            expected = "metres, such as 1.2m" if wanted == "m" else "plain numbers"
            fix = "Or give near=, the near distance in metres, to convert." if self.unit != "arbitrary" else ""
            raise InputError("length", f"{expected}, as the unit is {self.unit}", quantity, fix)
        return quantity.value * self.near if wanted == "m" else quantity.value / self.near

    def amount(self, move: Move) -> float:
        """The move's amount in radians, in the unit of length, or as the logarithm of a factor."""
        quantity = move.amount
        if quantity is None:
            return 0.0
        times = self.seconds if quantity.per_second else 1.0
        if quantity.unit == "deg":
            amount = math.radians(quantity.value) * times
        else:
            amount = (math.log(quantity.value) if quantity.unit == "x" else self.length(quantity)) * times
        if amount > LARGEST["near"]:
            raise InputError(f"amount of {move.name}", f"at most {LARGEST['near']:g} in all", f"{quantity}, {amount:g}")
        return amount

    def distance(self, quantity: Quantity | None) -> float:
        assert quantity is not None, "Move fills in its own distance"
        return self.length(quantity)


def changes(step: Step, s: Array, start: Rig, stage: Stage) -> Rig:
    """How the rig has changed at each progress s through the step, given where it starts."""
    if step.seconds is not None and step.seconds > stage.seconds * (1 + 1e-9) > 0:
        fix = "Make it longer (more frames, or a lower frame rate), or the moves shorter."
        raise InputError("moves", f"at most the {stage.seconds:.3g} s that there are", f"{step.seconds:.3g} s", fix)
    if step.seconds is not None and 0 < step.seconds < stage.seconds * (1 - 1e-9):  # then it holds
        s, stage = np.minimum(s * (stage.seconds / step.seconds), 1.0), replace(stage, seconds=step.seconds)
    if isinstance(step, Move):
        return _ACTIONS[step.name](step, EASES[step.ease](s), start, stage)
    if isinstance(step, Together):
        parts = [changes(i, s, start, stage) for i in step.steps]
        return sum(parts[1:], parts[0])
    assert isinstance(step, Sequence)
    total, begin = Rig.change(s), 0.0
    for part, end in zip(step.steps, _ends(step, stage.seconds), strict=True):
        inside = np.append(np.clip((s - begin) / (end - begin), 0.0, 1.0), 1.0)
        change = changes(part, inside, start, replace(stage, seconds=stage.seconds * (end - begin)))
        total, start, begin = total + change[:-1], start + change[-1:], end
    return total


def _ends(step: Sequence, seconds: float) -> Array:
    """Where each part of a sequence ends, of its time: parts with seconds take them, the others share what is left."""
    timed = sum(i.seconds for i in step.steps if i.seconds is not None)
    shared = sum(i.share for i in step.steps if i.seconds is None)
    if not timed or not seconds:
        ends = np.cumsum([i.share for i in step.steps])
        return ends / ends[-1]
    left = seconds - timed
    if left < -1e-9 * seconds or (shared and left <= 0):
        fix = "Make it longer (more frames, or a lower frame rate), or let moves take shares: `for 2`, not `for 2s`."
        most = "less than" if shared else "at most"
        raise InputError("moves", f"{most} the {seconds:.3g} s that there are", f"{timed:.3g} s", fix)
    lengths = [left * i.share / shared if i.seconds is None else i.seconds for i in step.steps]
    return np.minimum(np.cumsum(lengths) / seconds, 1.0)


# -- what each move does


def _forward(yaw: Array, pitch: Array) -> Array:
    """Where the lens points: Ry(yaw) Rx(pitch) z."""
    return np.stack([np.sin(yaw) * np.cos(pitch), -np.sin(pitch), np.cos(yaw) * np.cos(pitch)], -1)


def _sign(move: Move) -> float:
    return 1.0 if move.direction in ("right", "up", "in", "cw") else -1.0


def _static(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    return Rig.change(s)


def _turn(channel: str) -> Callable[[Move, Array, Rig, Stage], Rig]:
    def act(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
        return Rig.change(s, **{channel: _sign(move) * stage.amount(move) * s})

    return act


def _truck(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    right = np.stack([np.cos(start.yaw), 0 * start.yaw, -np.sin(start.yaw)], -1)
    return Rig.change(s, position=_sign(move) * stage.amount(move) * s[:, None] * right)


def _pedestal(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    return Rig.change(s, position=_sign(move) * stage.amount(move) * s[:, None] * np.array([0.0, -1.0, 0.0]))


def _dolly(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    travel = _sign(move) * stage.amount(move) * s
    return Rig.change(s, position=travel[:, None] * _forward(start.yaw, start.pitch))


def _zoom(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    """At an even rate of focal length's logarithm; `to` a field of view from whatever zoom it starts at."""
    if move.to is None:
        return Rig.change(s, zoom=_sign(move) * stage.amount(move) * s)
    return Rig.change(s, zoom=(log_zoom_to(stage.lens, move.to.value) - start.zoom) * s)


def _dolly_zoom(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    """A small subject straight ahead spans f h / ((1 + xi) Z) pixels, so f grows with its distance Z."""
    subject, travel = stage.distance(move.distance), _sign(move) * stage.amount(move)
    if travel >= subject:
        fix = "Give a subject farther away or a shorter dolly."
        raise InputError("dolly_zoom in", f"less than the subject's distance, {subject:g}", f"{travel:g}", fix)
    path = _dolly(move, s, start, stage)
    return replace(path, zoom=np.log1p(-travel * s / subject))


def _orbit(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    """Going left means turning right: the centre stays ahead."""
    angle = -_sign(move) * stage.amount(move) * s
    radius = stage.distance(move.distance)
    channel = "yaw" if move.direction in ("left", "right") else "pitch"
    return _around(start, Rig.change(s, **{channel: angle}), radius, np.full(len(s), radius))


def _spiral(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    first, last = stage.distance(move.distance), stage.distance(move.to)
    turn = Rig.change(s, yaw=-_sign(move) * stage.amount(move) * s)
    return _around(start, turn, first, first + (last - first) * s)


def _around(start: Rig, turn: Rig, first: float, radius: Array) -> Rig:
    """Turned, and moved so that the point that was `first` ahead is ahead still, `radius` away."""
    ahead = radius[:, None] * _forward(start.yaw + turn.yaw, start.pitch + turn.pitch)
    return replace(turn, position=first * _forward(start.yaw, start.pitch) - ahead)


def _crane(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    """The pitch that keeps the subject centred is the angle of the line to it."""
    rise = _sign(move) * stage.amount(move) * s
    subject = stage.distance(move.distance)
    level, above = subject * np.cos(start.pitch), subject * np.sin(start.pitch)
    pitch = np.arctan2(above - rise, level) - np.arctan2(above, level)
    return replace(_pedestal(move, s, start, stage), pitch=pitch)


def _handheld(move: Move, s: Array, start: Rig, stage: Stage) -> Rig:
    """Sums of sines with seeded phases, scaled so that the shake over the whole step has the rms asked for."""
    random = np.random.default_rng(move.seed)
    phases = random.uniform(0, 2 * np.pi, (6, len(SHAKE_HERTZ)))
    weights = random.normal(size=phases.shape) / np.array(SHAKE_HERTZ)

    def shake(at: Array) -> Array:
        seconds = max(stage.seconds, 1e-9) * at[:, None, None]
        return (weights * np.sin(2 * np.pi * np.array(SHAKE_HERTZ) * seconds + phases)).sum(-1)

    whole = shake(np.linspace(0, 1, 513))
    spread = ((whole - whole.mean(0)) ** 2).mean(0).reshape(2, 3).sum(-1) ** 0.5
    wanted = np.array([stage.amount(move), stage.distance(move.distance)])
    turned, moved = np.split((shake(s) - shake(np.zeros(1))) * np.repeat(wanted / np.maximum(spread, 1e-12), 3), 2, 1)
    return Rig.change(s, position=moved, yaw=turned[:, 0], pitch=turned[:, 1], roll=turned[:, 2])


_ACTIONS: dict[str, Callable[[Move, Array, Rig, Stage], Rig]] = {
    "static": _static,
    "pan": _turn("yaw"),
    "tilt": _turn("pitch"),
    "roll": _turn("roll"),
    "truck": _truck,
    "pedestal": _pedestal,
    "dolly": _dolly,
    "zoom": _zoom,
    "dolly_zoom": _dolly_zoom,
    "orbit": _orbit,
    "spiral": _spiral,
    "crane": _crane,
    "handheld": _handheld,
}


def log_zoom_to(lens: Lens, hfov: float) -> float:
    """The logarithm of the factor that brings a lens to this horizontal field of view in degrees."""
    if lens.batch_shape:
        raise InputError("zoom to", "one lens, whose field of view can be changed", f"{lens.batch_shape[0]} of them")
    from scipy.optimize import brentq  # here: importing it takes longer than most paths

    lens = lens.to(torch.float64)

    def excess(zoom: float) -> float:
        return lens.zoomed(math.exp(zoom)).hfov.item() - hfov

    low, high = -6.0, 10.0
    if not excess(high) < 0 < excess(low):
        limit = lens.zoomed(math.exp(low)).hfov.item()
        raise InputError(
            "zoom to", f"degrees above 0 and below {limit:.0f}, all that this lens can see", f"{hfov:g}deg"
        )
    return float(brentq(excess, low, high, xtol=1e-12))
