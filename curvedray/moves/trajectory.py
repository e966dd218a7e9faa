"""Moves -> cameras: what each named move does, keyframes joined by splines, and paths resampled in time.

A rig has a position and three angles, yaw (right +), pitch (up +) and roll (clockwise from behind +), so that
rotation = Ry(yaw) Rx(pitch) Rz(roll): pan stays about the vertical however far the camera is tilted.
Every step is a path of changes from where it starts, zero at its start; steps in a row and steps at once both add.

t frame   k keyframe   s progress through a step, 0 to 1
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation, RotationSpline
from torch import Tensor

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.errors import InputError
from curvedray.moves.move import Ease, Move, Quantity, Sequence, Step, Together
from curvedray.moves.text import parse_moves

Array = NDArray[np.float64]
EASES: dict[Ease, Callable[[Array], Array]] = {
    "linear": lambda s: s,
    "ease-in": lambda s: s * s,
    "ease-out": lambda s: s * (2 - s),
    "smooth": lambda s: s * s * (3 - 2 * s),
}
MOST_FRAMES = 100_000  # over an hour of film; more is a slip of the finger that would fill the memory
SHAKE_HERTZ = (0.4, 0.7, 1.1, 1.7, 2.6)  # a hand's sway and tremor, the faster the smaller


def trajectory(
    moves: str | Step,
    lens: Lens,
    frames: int = 81,
    *,
    unit: Unit = "near",
    near: float | None = None,
    fps: float = 16.0,
    yaw: float = 0.0,
    pitch: float = 0.0,
) -> Cameras:
    """Cameras that make these moves, the first at the origin, looking along z (or `yaw` right and `pitch` up of it).

    A plain length is in near distances, one with `m` in metres; `near`, the near distance in metres, converts. In
    unit `arbitrary` plain lengths are that unit. A zoom gives a lens per frame.
    """
    _check_frames(frames)
    if not (math.isfinite(fps) and fps > 0):
        raise InputError("fps", "a positive number of frames per second", fps)
    if near is not None and not (math.isfinite(near) and near > 0):
        raise InputError("near", "a positive number of metres", near)
    step = parse_moves(moves) if isinstance(moves, str) else moves
    start = Rig.change(np.zeros(1), yaw=np.deg2rad([yaw]), pitch=np.deg2rad([pitch]))
    stage = _Stage(lens, unit, near, (frames - 1) / fps)
    rig = start + _changes(step, np.linspace(0.0, 1.0, frames), start, stage)
    dtype = lens.focal.dtype
    seen = lens.zoomed(torch.from_numpy(np.exp(rig.zoom)).to(dtype)) if rig.zoom.any() else lens
    return Cameras(seen, torch.from_numpy(rig.poses()).to(dtype), unit, fps)


def _check_frames(frames: int) -> None:
    if not 1 <= frames <= MOST_FRAMES:
        raise InputError("frames", "at least 1" + f" and at most {MOST_FRAMES}" * (frames > 1), frames)


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
        poses[:, :3, :3] = Rotation.from_euler("YXZ", np.stack([self.yaw, self.pitch, self.roll], -1)).as_matrix()
        poses[:, :3, 3] = self.position
        return poses


def yaw_pitch_roll(rotation: Array) -> Array:
    """The angles (radians) of rotations (... 3 3): the inverse of Rig.poses, wherever the camera is not plumb."""
    r = rotation
    return np.stack(
        [
            np.arctan2(r[..., 0, 2], r[..., 2, 2]),
            -np.arcsin(np.clip(r[..., 1, 2], -1, 1)),
            np.arctan2(r[..., 1, 0], r[..., 1, 1]),
        ],
        -1,
    )


@dataclass(frozen=True)
class _Stage:
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
            return math.radians(quantity.value) * times
        return (math.log(quantity.value) if quantity.unit == "x" else self.length(quantity)) * times

    def distance(self, quantity: Quantity | None) -> float:
        assert quantity is not None, "Move fills in its own distance"
        return self.length(quantity)


def _changes(step: Step, s: Array, start: Rig, stage: _Stage) -> Rig:
    """How the rig has changed at each progress s through the step, given where it starts."""
    if isinstance(step, Move):
        return _ACTIONS[step.name](step, EASES[step.ease](s), start, stage)
    if isinstance(step, Together):
        changes = [_changes(i, s, start, stage) for i in step.steps]
        return sum(changes[1:], changes[0])
    assert isinstance(step, Sequence)
    shares = np.cumsum([i.share for i in step.steps])
    ends = shares / shares[-1]
    total, begin = Rig.change(s), 0.0
    for part, end in zip(step.steps, ends, strict=True):
        inside = np.append(np.clip((s - begin) / (end - begin), 0.0, 1.0), 1.0)
        change = _changes(part, inside, start, replace(stage, seconds=stage.seconds * (end - begin)))
        total, start, begin = total + change[:-1], start + change[-1:], end
    return total


# -- what each move does


def _forward(yaw: Array, pitch: Array) -> Array:
    """Where the lens points: Ry(yaw) Rx(pitch) z."""
    return np.stack([np.sin(yaw) * np.cos(pitch), -np.sin(pitch), np.cos(yaw) * np.cos(pitch)], -1)


def _sign(move: Move) -> float:
    return 1.0 if move.direction in ("right", "up", "in", "cw") else -1.0


def _static(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    return Rig.change(s)


def _turn(channel: str) -> Callable[[Move, Array, Rig, _Stage], Rig]:
    def act(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
        return Rig.change(s, **{channel: _sign(move) * stage.amount(move) * s})

    return act


def _truck(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    right = np.stack([np.cos(start.yaw), 0 * start.yaw, -np.sin(start.yaw)], -1)
    return Rig.change(s, position=_sign(move) * stage.amount(move) * s[:, None] * right)


def _pedestal(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    return Rig.change(s, position=_sign(move) * stage.amount(move) * s[:, None] * np.array([0.0, -1.0, 0.0]))


def _dolly(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    travel = _sign(move) * stage.amount(move) * s
    return Rig.change(s, position=travel[:, None] * _forward(start.yaw, start.pitch))


def _zoom(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    """At an even rate of focal length's logarithm; `to` a field of view from whatever zoom it starts at."""
    if move.to is None:
        return Rig.change(s, zoom=_sign(move) * stage.amount(move) * s)
    return Rig.change(s, zoom=(log_zoom_to(stage.lens, move.to.value) - start.zoom) * s)


def _dolly_zoom(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    """A small subject straight ahead spans f h / ((1 + xi) Z) pixels, so f grows with its distance Z."""
    subject, travel = stage.distance(move.distance), _sign(move) * stage.amount(move)
    if travel >= subject:
        fix = "Give a subject farther away or a shorter dolly."
        raise InputError("dolly_zoom in", f"less than the subject's distance, {subject:g}", f"{travel:g}", fix)
    path = _dolly(move, s, start, stage)
    return replace(path, zoom=np.log1p(-travel * s / subject))


def _orbit(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    """Going left means turning right: the centre stays ahead."""
    angle = -_sign(move) * stage.amount(move) * s
    radius = stage.distance(move.distance)
    channel = "yaw" if move.direction in ("left", "right") else "pitch"
    return _around(start, Rig.change(s, **{channel: angle}), radius, np.full(len(s), radius))


def _spiral(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    first, last = stage.distance(move.distance), stage.distance(move.to)
    turn = Rig.change(s, yaw=-_sign(move) * stage.amount(move) * s)
    return _around(start, turn, first, first + (last - first) * s)


def _around(start: Rig, turn: Rig, first: float, radius: Array) -> Rig:
    """Turned, and moved so that the point that was `first` ahead is ahead still, `radius` away."""
    ahead = radius[:, None] * _forward(start.yaw + turn.yaw, start.pitch + turn.pitch)
    return replace(turn, position=first * _forward(start.yaw, start.pitch) - ahead)


def _crane(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
    """The pitch that keeps the subject centred is the angle of the line to it."""
    rise = _sign(move) * stage.amount(move) * s
    subject = stage.distance(move.distance)
    level, above = subject * np.cos(start.pitch), subject * np.sin(start.pitch)
    pitch = np.arctan2(above - rise, level) - np.arctan2(above, level)
    return replace(_pedestal(move, s, start, stage), pitch=pitch)


def _handheld(move: Move, s: Array, start: Rig, stage: _Stage) -> Rig:
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


_ACTIONS: dict[str, Callable[[Move, Array, Rig, _Stage], Rig]] = {
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


# -- keyframes


def keyframes(
    world_from_camera: Float[Tensor, "k 4 4"],
    lens: Lens,
    frames: int = 81,
    *,
    times: Float[Tensor, " k"] | None = None,
    unit: Unit = "near",
    fps: float | None = None,
) -> Cameras:
    """A smooth path exactly through some poses, evenly in time or at `times` (any clock, always later).

    Positions follow a cubic spline, rotations a rotation spline; a lens a keyframe is blended too (focal lengths
    evenly in their logarithm).
    """
    _check_frames(frames)
    keys = Cameras(lens, world_from_camera, unit, fps)
    clock = np.arange(float(len(keys))) if times is None else times.double().numpy()
    if len(clock) != len(keys) or not np.isfinite(clock).all() or not (np.diff(clock) > 0).all():
        raise InputError("times", f"{len(keys)} numbers, each later than the one before", clock.tolist())
    return _at(keys, clock, np.linspace(clock[0], clock[-1], frames))


def resample(cameras: Cameras, frames: int) -> Cameras:
    """The same path over the same time in another number of frames; lens and frame rate go along."""
    if cameras.batch_shape:
        raise InputError("resample", "one trajectory", f"a batch of shape {cameras.batch_shape}")
    _check_frames(frames)
    if frames == len(cameras):
        return cameras
    last = len(cameras) - 1.0
    fps = cameras.fps * (frames - 1) / last if cameras.fps and last and frames > 1 else cameras.fps
    return replace(_at(cameras, np.arange(last + 1), np.linspace(0.0, last, frames)), fps=fps)


def look_at(positions: Float[Tensor, "k 3"], target: Float[Tensor, "*k 3"]) -> Float[Tensor, "k 4 4"]:
    """Level cameras at these positions, each facing the target: keyframes made by hand."""
    ahead = (target - positions).double()
    down = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64, device=ahead.device)
    right = torch.linalg.cross(down.expand_as(ahead), ahead)
    if not (right.norm(dim=-1) > 1e-9 * ahead.norm(dim=-1)).all():
        raise InputError("look_at", "a target that is not at the camera, nor straight above or below it", "one that is")
    z = torch.nn.functional.normalize(ahead, dim=-1)
    x = torch.nn.functional.normalize(right, dim=-1)
    poses = torch.eye(4, dtype=torch.float64, device=ahead.device).repeat(len(positions), 1, 1)
    poses[:, :3] = torch.stack([x, torch.linalg.cross(z, x), z, positions.double()], -1)
    return poses.to(positions.dtype)


def _at(keys: Cameras, clock: Array, now: Array) -> Cameras:
    """The cameras between keys; where the clock strikes a key, that key to the bit."""
    poses = keys.world_from_camera.detach().cpu()
    key, struck = _struck(clock, now)
    result = poses[key].clone()
    between = ~struck & bool((poses != poses[0]).any())  # a static camera stays static to the bit
    if between.any():
        wide = poses.double().numpy()
        result[between, :3, 3] = torch.from_numpy(CubicSpline(clock, wide[:, :3, 3])(now[between])).to(poses.dtype)
        turned = RotationSpline(clock, Rotation.from_matrix(wide[:, :3, :3]))(now[between]).as_matrix()
        result[between, :3, :3] = torch.from_numpy(turned).to(poses.dtype)
    lens = keys.lens if keys.lens.batch_shape in ((), (1,)) else _lens_at(keys.frame_lens, clock, now)
    return replace(keys, lens=lens, world_from_camera=result.to(keys.world_from_camera.device))


def _lens_at(lens: Lens, clock: Array, now: Array) -> Lens:
    key, struck = _struck(clock, now)

    def blend(
        values: Tensor, curve: Callable[[Array], Array] = np.array, back: Callable[[Array], Array] = np.array
    ) -> Tensor:
        columns = curve(values.detach().cpu().double().numpy()).reshape(len(clock), -1)
        rows = np.stack([back(np.interp(now, clock, i)) for i in columns.T], -1)
        blended = torch.from_numpy(rows).reshape(len(now), *values.shape[1:]).to(values)
        blended[struck] = values[key[struck]]
        return blended

    return replace(lens, focal=blend(lens.focal, np.log, np.exp), center=blend(lens.center), xi=blend(lens.xi))


def _struck(clock: Array, now: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The key at or after each moment, and whether it is at it."""
    key = np.clip(np.searchsorted(clock, now), 0, len(clock) - 1)
    return key, clock[key] == now
