"""Cameras -> the moves that make them again: every candidate is made anew and compared over all frames.

t frame
"""

from dataclasses import dataclass, replace

import numpy as np

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_angle, yaw_pitch_roll
from curvedray.errors import InputError
from curvedray.moves.candidates import candidates
from curvedray.moves.move import Move, Sequence, Step, Together
from curvedray.moves.trajectory import MOST_FRAMES, trajectory

CLOSE = 0.05  # of its own size that a path may be off by, at any frame, from the text that is offered for it
CLOSE_DEGREES = 1.0  # nor need it be closer than this
CLOSE_LENGTH = 1e-3  # of the unit
CLOSE_ZOOM = 0.01  # of the focal length's logarithm
SHAKE_PEAK = 4.0  # times its rms that a shake may reach
TILTED = 0.1  # degrees of pitch from which a first camera is not level


@dataclass(frozen=True)
class Deviation:
    """The farthest that a path and its remake are apart, each at its own worst frame."""

    degrees: float
    length: float  # in the path's unit
    zoom: float  # of the focal length, as a factor: 1 is none
    frame: int  # where it is worst, relative to what is allowed
    excess: float  # what it is there in units of what is allowed: close if at most 1
    pitch: float = 0.0  # degrees up that the remake's first camera looks

    @property
    def close(self) -> bool:
        return self.excess <= 1

    def __str__(self) -> str:
        parts = [f"{self.degrees:.3g} degrees", f"{self.length:.3g} in length"]
        parts += [f"{self.zoom:.3g}x in focal length"] if self.zoom > 1 + CLOSE_ZOOM else []
        return f"up to {' and '.join(parts)} off, the worst at frame {self.frame + 1}"


def recognise(cameras: Cameras) -> tuple[Step | None, Deviation | None]:
    """The likeliest moves that make this path again, closely; else the nearest ones, and how far off they are.

    Of more frames than moves are made in, some are compared, evenly chosen.
    """
    chosen = np.linspace(0, len(cameras) - 1, min(len(cameras), MOST_FRAMES)).round().astype(int).tolist()
    cameras = cameras if len(chosen) == len(cameras) else cameras[chosen]
    best: tuple[Step | None, Deviation | None] = None, None
    for step in candidates(cameras):
        try:
            off = deviation(cameras, step)
        except InputError:  # moves that cannot be made, such as a dolly zoom through its subject
            continue
        if best[1] is None or off.excess < best[1].excess:
            best = step, replace(off, frame=chosen[off.frame])
        if off.close:
            break
    return best


def deviation(cameras: Cameras, step: Step) -> Deviation:
    """The moves made anew, from a level first camera or one tilted as the path's first is, whichever is nearer."""
    pitch = float(np.rad2deg(yaw_pitch_roll(_poses(cameras)[0, :3, :3])[1]))
    starts = [0.0, round(pitch, 1)] if abs(pitch) > TILTED else [0.0]
    return min((_deviation(cameras, step, start) for start in starts), key=lambda i: i.excess)


def _deviation(cameras: Cameras, step: Step, pitch: float) -> Deviation:
    steady, shake = _without_shake(step)
    first = replace(cameras[:1].frame_lens[0], max_angle=cameras.lens.max_angle).to("cpu")
    # Candidates hold neither seconds nor speeds: any frame rate makes the same path, also where theirs is none of ours.
    made = trajectory(steady, first, len(cameras), unit=cameras.unit, fps=16.0, pitch=pitch)
    path, remade = (_poses(i.relative_to_first()) for i in (cameras, made))
    turned = np.rad2deg(rotation_angle(path[:, :3, :3], remade[:, :3, :3]))
    moved = np.linalg.norm(path[:, :3, 3] - remade[:, :3, 3], axis=-1)
    focal = _log_focal(cameras)
    zoomed = np.abs(focal - focal[0] - _log_focal(made) + _log_focal(made)[0])
    angle = np.rad2deg(rotation_angle(path[:, :3, :3], np.broadcast_to(np.eye(3), path[:, :3, :3].shape)))
    allowed = (
        max(CLOSE_DEGREES, CLOSE * angle.max()) + SHAKE_PEAK * shake[0],
        max(CLOSE_LENGTH, CLOSE * np.linalg.norm(path[:, :3, 3], axis=-1).max()) + SHAKE_PEAK * shake[1],
        max(CLOSE_ZOOM, CLOSE * np.abs(focal - focal[0]).max()),
    )
    excess = np.max([off / most for off, most in zip((turned, moved, zoomed), allowed, strict=True)], axis=0)
    return Deviation(
        degrees=float(turned.max()),
        length=float(moved.max()),
        zoom=float(np.exp(zoomed.max())),
        frame=int(excess.argmax()),
        excess=float(excess.max()),
        pitch=pitch,
    )


def _without_shake(step: Step) -> tuple[Step, tuple[float, float]]:
    """The steps with every shake held still, as its seed cannot be told; and its degrees and length (rms)."""
    if isinstance(step, Move):
        if step.name != "handheld":
            return step, (0.0, 0.0)
        assert step.amount is not None
        assert step.distance is not None
        return Move("static", share=step.share), (step.amount.value, step.distance.value)
    assert isinstance(step, Sequence | Together)
    parts = [_without_shake(i) for i in step.steps]
    shakes = [shake for _, shake in parts]
    return replace(step, steps=tuple(i for i, _ in parts)), (max(i for i, _ in shakes), max(i for _, i in shakes))


def _poses(cameras: Cameras) -> np.ndarray:
    return cameras.world_from_camera.detach().cpu().double().numpy()


def _log_focal(cameras: Cameras) -> np.ndarray:
    return cameras.frame_lens.focal.detach().cpu().double().log().mean(-1).numpy()
