"""Cameras -> the moves that they may be: the inverse of actions.py. Which of them is true, recognise.py says.

A path is tried as one move, as moves at once and in step, as a hand's shake (over a steady move or none), as one move
after another, as moves at once after others, and as moves at once each at its own pace, in that order.

t frame
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_vector, yaw_pitch_roll
from curvedray.errors import InputError
from curvedray.moves.actions import EASES
from curvedray.moves.move import Move, Quantity, Sequence, Step, Together
from curvedray.moves.path import SHORTEST, STILL_LENGTH, Path

Array = NDArray[np.float64]
PURE = 0.98  # of a motion's size that must lie along one axis
EXACT = 1e-4  # of its radius: an orbit whose radius changes less is no crane
ROUND = 0.05  # of its radius by which an orbit's radius may change
FIT = 0.02  # of its size that a path may leave a move by
PART = 0.05  # of the largest part below which a part is not worth a word
MOST_FRAMES = 121  # a longer path is looked at in this many of its frames
IN_STEP = 0.05  # of the whole way that moves at once may be ahead of each other
MOST_MOVES = 4
ROUNDING = 1e-5  # of a path's size, or of a radian: poses in single precision are exact to less
SHAKE_ANGLE = np.deg2rad(10)  # a hand does not turn farther than this


def candidates(cameras: Cameras) -> Iterator[Step]:
    """The moves that a path may be, likeliest first, with amounts to three digits; none for a free path."""
    path = Path.of(cameras, MOST_FRAMES)
    length = "m" if cameras.unit == "metric" else "near"
    readers: tuple[Callable[[Path], Step | None], ...] = (
        _whole,
        _shake,
        _in_turn,
        lambda path: _in_turn(path, grouped=True),
        lambda path: _whole(path, in_step=False),
    )
    for read in readers:
        with suppress(InputError):  # an amount beyond what moves can say
            if step := read(path):
                yield from (_said(step, length, digits) for digits in ((1, 2) if isinstance(step, Sequence) else (1,)))


@dataclass(frozen=True, eq=False)
class _Part:
    """A move, and how far through it the path is at every frame."""

    move: Move
    progress: Array  # t

    @classmethod
    def of(cls, channel: Array, names: tuple[str, str, str], amount: Quantity) -> "_Part":
        name, more, less = names
        return cls(Move(name, more if channel[-1] > 0 else less, amount), channel / channel[-1])

    @property
    def eased(self) -> Move:
        """The move with the easing that its progress is nearest to."""
        s = np.linspace(0, 1, len(self.progress))
        return replace(self.move, ease=min(EASES, key=lambda ease: float(np.abs(EASES[ease](s) - self.progress).max())))

    @property
    def degrees(self) -> float:
        return self.move.amount.value if self.move.amount and self.move.amount.unit == "deg" else 0.0


def _whole(path: Path, in_step: bool = True) -> Step | None:
    """The path as one move or moves at once, in the axes that need the fewest; of equals, those that turn the most."""
    if path.held.any() and not path.held.all() and in_step:
        return None
    found = [parts for view in path.views() if (parts := _parts(view))]
    parts = min(found, key=lambda parts: (len(parts), -sum(i.degrees for i in parts)), default=None)
    if not parts:
        return None
    progress = np.stack([i.progress for i in parts])
    if in_step and np.ptp(progress, axis=0).max() > IN_STEP:
        return None
    return parts[0].eased if len(parts) == 1 else Together(tuple(i.eased for i in parts))


def _parts(path: Path) -> list[_Part] | None:
    """The moves that the path is made of; None if it is made of none that we know."""
    if not (path.moves or path.turns or path.zooms):
        return [_Part(Move("static"), np.zeros(len(path)))]
    vertigo = _dolly_zoom(path) if path.zooms and path.moves and not path.turns else None
    around = _around(path) if path.moves and path.turns else None
    slides = ([vertigo or around] if vertigo or around else _slides(path)) if path.moves else []
    turns = _turns(path) if path.turns and not around else []
    zooms = _zooms(path) if path.zooms and not vertigo else []
    if slides is None or turns is None or zooms is None:
        return None
    return [i for i in (*slides, *turns, *zooms) if i]


def _zooms(path: Path) -> list[_Part] | None:
    factor = Quantity(float(np.exp(np.abs(path.zoom[-1]))), "x")
    return [_Part.of(path.zoom, ("zoom", "in", "out"), factor)] if _one_way(path.zoom) else None


def _around(path: Path) -> _Part | None:
    """Orbit, spiral or crane: the lens axes meet in one point ahead of every camera."""
    ahead = path.rotation[:, :, 2]
    across = np.eye(3) - ahead[:, :, None] * ahead[:, None, :]
    total = across.sum(0)
    if np.linalg.cond(total) > 1e9:
        return None
    center = np.linalg.solve(total, (across @ path.position[:, :, None]).sum(0))[:, 0]
    radius = ((center - path.position) * ahead).sum(-1)
    miss = np.linalg.norm(center - path.position - radius[:, None] * ahead, axis=-1)
    if radius.min() <= 0 or miss.max() > FIT * radius.mean():
        return None
    first, yaw, pitch = Quantity(float(radius[0]), "near"), path.world_turn[:, 1], path.body_turn[:, 0]
    round_it, over_it = (abs(i.sum()) >= PURE * path.turned for i in (yaw, pitch))
    side, height = "left" if yaw.sum() > 0 else "right", "up" if pitch.sum() < 0 else "down"
    angle = _so_far(yaw if round_it else pitch)
    progress = angle / (angle[-1] or 1.0)
    breathing = np.ptp(radius) / radius.mean()
    slides = _slides(path) if over_it and breathing > EXACT else None
    if slides and [(i.move.name, i.move.direction) for i in slides] == [("pedestal", height)]:
        return _Part(Move("crane", height, slides[0].move.amount, first), slides[0].progress)
    if breathing <= ROUND and (round_it or over_it):
        return _Part(Move("orbit", side if round_it else height, _degrees(angle[-1]), first), progress)
    nearing = (radius - radius[0]) / ((radius[-1] - radius[0]) or 1.0)
    if round_it and np.abs(nearing - progress).max() <= IN_STEP:
        last = Quantity(float(radius[-1]), "near")
        return _Part(Move("spiral", side, _degrees(angle[-1]), first, last), progress)
    return None


def _turns(path: Path) -> list[_Part] | None:
    """Pan, tilt and roll: about one axis any number of times round, else all three angles, each going one way."""
    turns = (path.world_turn[:, 1], path.body_turn[:, 0], path.body_turn[:, 2])
    for turn, names in zip(turns, _TURNS, strict=True):
        if abs(turn.sum()) >= PURE * path.turned:
            return [_Part.of(_so_far(turn), names, _degrees(turn.sum()))]
    angles = np.unwrap(yaw_pitch_roll(path.rotation), axis=0)
    return _channels(angles - angles[0], _TURNS)


_TURNS = (("pan", "right", "left"), ("tilt", "up", "down"), ("roll", "cw", "ccw"))
_SLIDES = (("truck", "right", "left"), ("pedestal", "down", "up"), ("dolly", "in", "out"))


def _slides(path: Path) -> list[_Part] | None:
    """Truck, pedestal and dolly: a straight line, travelled one way."""
    size = float(np.linalg.norm(path.position[-1]))
    if size <= STILL_LENGTH:
        return None
    way = path.position[-1] / size
    along = path.position @ way
    if np.linalg.norm(path.position - along[:, None] * way, axis=-1).max() > FIT * size or not _one_way(along):
        return None
    ahead = float(way @ path.rotation[0, :, 2])
    if abs(ahead) >= 1 - PART**2 / 2:  # a tilted camera still dollies where it looks
        return [_Part.of(along * np.sign(ahead), _SLIDES[2], Quantity(size, "near"))]
    return _channels(path.position, _SLIDES)


def _channels(channels: Array, names: tuple[tuple[str, str, str], ...]) -> list[_Part] | None:
    """One move for every channel (t 3) that goes somewhere; None if one of them goes back and forth."""
    chosen = [i for i in range(3) if np.abs(channels[:, i]).max() > PART * np.abs(channels).max()]
    if not all(_one_way(channels[:, i]) for i in chosen):
        return None
    sizes = [float(abs(channels[-1, i])) for i in chosen]
    amounts = [_degrees(i) if names is _TURNS else Quantity(i, "near") for i in sizes]
    return [_Part.of(channels[:, i], names[i], amount) for i, amount in zip(chosen, amounts, strict=True)]


def _dolly_zoom(path: Path) -> _Part | None:
    """f / f0 = 1 - travel / subject, with the camera going straight along its lens axis."""
    slides = _slides(path)
    if not slides or [i.move.name for i in slides] != ["dolly"]:
        return None
    travel, shrink = path.position @ path.rotation[0, :, 2], 1 - np.exp(path.zoom)
    per_unit = float(travel @ shrink / (travel @ travel))
    if per_unit <= 0 or np.abs(shrink - per_unit * travel).max() > FIT * np.abs(shrink).max():
        return None
    dolly = slides[0].move
    return _Part(Move("dolly_zoom", dolly.direction, dolly.amount, Quantity(1 / per_unit, "near")), slides[0].progress)


def _shake(path: Path) -> Step | None:
    """A small motion that turns back again and again, over a steady one or none. Its seed cannot be told."""
    own = path.seen_from(path.rotation[0])
    angles, positions = rotation_vector(own.rotation)[:, [1, 0, 2]], own.position
    (turn, turning), (sway, going) = _steady(angles), _steady(positions)
    speeds = np.concatenate([_beyond_rounding(turn, 1.0), _beyond_rounding(sway, np.abs(positions).max())], -1)
    reversals = (speeds[1:] * speeds[:-1] < 0).sum(0)
    if path.zooms or np.abs(turn).max() > SHAKE_ANGLE or reversals.max(initial=0) < 3 or np.median(reversals) < 2:
        return None
    spread, size = (float(np.sqrt(((i - i.mean(0)) ** 2).sum(-1).mean())) for i in (turn, sway))
    shake = Move("handheld", None, _degrees(spread), Quantity(size, "near"))
    under = [*(_channels(going, _SLIDES) or []), *(_channels(turning, _TURNS) or [])]
    return Together((*(i.move for i in under), shake)) if under else shake


def _beyond_rounding(channels: Array, size: float) -> Array:
    """Steps from frame to frame, without those that rounding leaves: they turn back again and again, too."""
    steps = np.diff(channels, axis=0)
    return np.where(np.abs(steps) > ROUNDING * size, steps, 0.0)


def _steady(channels: Array) -> tuple[Array, Array]:
    """Split into what is left over and a steady trend, if there is more of a trend than a shake would leave."""
    trend = np.linspace(0, 1, len(channels))[:, None] * (channels[-1] - channels[0])
    rest = channels - trend
    spread = np.sqrt(((rest - rest.mean(0)) ** 2).sum(-1).mean())
    return (rest, trend) if np.linalg.norm(trend[-1]) > 6 * spread else (channels, 0 * trend)


def _in_turn(path: Path, grouped: bool = False) -> Step | None:
    """One move (or several at once) after another: cut where the camera is held, each piece into the longest moves."""
    cuts = (np.flatnonzero(np.diff(path.held.astype(int))) + 1).tolist()
    steps: list[Step] = []
    for begin, end in zip([0, *cuts], [*cuts, len(path) - 1], strict=True):
        spans = [(begin, end)] if path.held[begin] else _spans(path, begin, end, grouped)
        moves = [_single(path, *i, grouped) for i in spans]
        steps += [_lasting(i, float(b - a)) for i, (a, b) in zip(moves, spans, strict=True) if i]
        if not spans or len(steps) > MOST_MOVES:
            return None
    return Sequence(tuple(steps)) if len(steps) > 1 else None


def _lasting(step: Step, share: float) -> Step:
    """The same step over this share of the time."""
    if isinstance(step, Together):
        return Together(tuple(_lasting(i, share) for i in step.steps))
    assert isinstance(step, Move)
    return replace(step, share=share)


def _single(path: Path, begin: int, end: int, grouped: bool) -> Step | None:
    """The one move that the frames from begin to end make, or (grouped) the moves at once, if they make any."""
    step = _whole(path.part(begin, end))
    return step if (grouped or isinstance(step, Move)) and end - begin >= SHORTEST - 1 else None


def _names(step: Step | None) -> list[str]:
    if isinstance(step, Together):
        return [name for i in step.steps for name in _names(i)]
    return [step.name] if isinstance(step, Move) else []


def _spans(path: Path, begin: int, last: int, grouped: bool) -> list[tuple[int, int]]:
    """Where single moves begin and end from one frame to another; none if they do not reach the end."""
    spans: list[tuple[int, int]] = []
    while begin < last and len(spans) <= MOST_MOVES:
        if spans and not _single(path, begin, min(begin + SHORTEST - 1, last), grouped):
            begin += 1  # a corner between two frames belongs to neither move
        end = _farthest(path, begin, last, grouped)
        if end is None:
            return []
        if spans:
            begin = _corner(path, spans, begin, end, grouped)
        spans.append((begin, end))
        begin = end
    return spans if spans and spans[-1][1] == last else []


def _corner(path: Path, spans: list[tuple[int, int]], begin: int, end: int, grouped: bool) -> int:
    """The first move took what it could of the second, within tolerance; the corner is where the pace changes most."""
    second = _names(_single(path, begin, end, grouped))
    earliest = begin
    while earliest - 1 > spans[-1][0] + SHORTEST:
        longer = _names(_single(path, earliest - 1, end, grouped))
        if not second or second != longer:
            break
        earliest -= 1
    first, last = spans[-1]
    if earliest < last:
        begin = earliest + int(np.argmax(path.jerk[earliest - 1 : last]))
        spans[-1] = (first, begin)
    return begin


def _farthest(path: Path, begin: int, last: int, grouped: bool) -> int | None:
    """The last frame that one move from `begin` reaches, by bisection: the beginning of a move is a move too."""
    low, high = begin + SHORTEST - 1, last
    if low > high or not _single(path, begin, low, grouped):
        return None
    if _single(path, begin, high, grouped):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _single(path, begin, middle, grouped) else (low, middle)
    return low


def _so_far(steps: Array) -> Array:
    """Steps from a frame to the next -> the whole way at every frame."""
    return np.concatenate([[0.0], np.cumsum(steps)])


def _one_way(channel: Array) -> bool:
    """Hardly ever goes back, and ends away from where it began."""
    change = np.diff(channel)
    back = np.abs(change).sum() - abs(change.sum())
    return bool(abs(change.sum()) > 0 and back <= FIT * abs(change.sum()))


def _degrees(radians: float) -> Quantity:
    return Quantity(float(abs(np.rad2deg(radians))), "deg")


def _said(step: Step, length: str, digits: int) -> Step:
    """With every amount to three digits, lengths in this unit, and shares that begin at 1, to so many decimals."""
    if isinstance(step, Together):
        return Together(tuple(_said(i, length, digits) for i in step.steps))
    if isinstance(step, Sequence):
        least = min(i.share for i in step.steps)
        shares = [round(i.share / least, digits) for i in step.steps]
        return Sequence(tuple(_said(_lasting(i, j), length, digits) for i, j in zip(step.steps, shares, strict=True)))
    assert isinstance(step, Move)

    def rounded(quantity: Quantity | None) -> Quantity | None:
        if quantity is None:
            return None
        unit = length if quantity.unit == "near" else quantity.unit
        return Quantity(float(f"{quantity.value:.3g}"), unit)  # type: ignore[arg-type]

    return replace(step, amount=rounded(step.amount), distance=rounded(step.distance), to=rounded(step.to))
