"""A trajectory in words and numbers: `orbit left 40 degrees, radius 1.2, 81 frames, fisheye 150 degrees`."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from curvedray.cameras import Cameras, Unit
from curvedray.cameras.angles import rotation_angle, yaw_pitch_roll
from curvedray.errors import InputError
from curvedray.moves.move import KINDS, Move, Quantity, Sequence, Step, Together, plain
from curvedray.moves.recognise import Deviation, recognise

LENGTHS: dict[Unit, str] = {"near": "near distances", "metric": "metres", "arbitrary": "units of unknown size"}
WIDE_XI, FISHEYE_XI = 0.05, 0.8  # where a lens stops being called a pinhole, and a wide angle


@dataclass(frozen=True)
class Description:
    """What `describe` found. Lengths are in `unit`, angles in degrees; yaw right, pitch up, roll clockwise are +."""

    frames: int
    fps: float | None
    unit: Unit
    size: tuple[int, int]  # of the image: width, height
    path_length: float
    displacement: tuple[float, float, float]  # right, down, ahead of the first camera
    total_rotation: float  # all turning, there and back
    net_yaw: float  # of the last camera as the first one sees it
    net_pitch: float
    net_roll: float
    hfov: tuple[float, float]  # of the first and the last frame
    xi: tuple[float, float]
    speed: float  # per frame, on average
    move: str | None  # text that makes this path again, checked at every frame; None where none does
    looks_like: str
    nearest: str | None  # where there is no such text: the nearest that was found
    off: Deviation | None  # how far the path is from what that text makes

    def __str__(self) -> str:
        seconds = f", {(self.frames - 1) / self.fps:.3g} s at {self.fps:g} fps" if self.fps else ""
        return "\n".join(
            [
                f"{self.looks_like}, {self.frames} frame{'s' * (self.frames != 1)}, {self._lens()}",
                *([f'no text makes this path; the nearest, "{self.nearest}", is {self.off}'] if self.nearest else []),
                f"path {self.path_length:.4g} {LENGTHS[self.unit]} ({self.speed:.3g} per frame){seconds}",
                f"turned {self.total_rotation:.1f} degrees in all; the last camera is yaw {self.net_yaw:+z.1f}, "
                f"pitch {self.net_pitch:+z.1f}, roll {self.net_roll:+z.1f} from the first",
                f"horizontal field of view {_span(self.hfov, '.1f')} degrees, xi {_span(self.xi, '.3g')}, "
                f"{self.size[0]} x {self.size[1]} pixels",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """For a script: everything above, and the sentences."""
        return {**asdict(self), "words": str(self)}

    def _lens(self) -> str:
        bend = max(self.xi)
        kind = "pinhole" if bend < WIDE_XI else "wide angle" if bend < FISHEYE_XI else "fisheye"
        return f"{kind} {_span(self.hfov, '.0f')} degrees"


def describe(cameras: Cameras) -> Description:
    """Say a trajectory in words and numbers, and which move it looks like."""
    if cameras.batch_shape:
        raise InputError("describe", "one trajectory", f"a batch of shape {cameras.batch_shape}")
    poses = cameras.relative_to_first().world_from_camera.detach().cpu().double().numpy()
    steps = rotation_angle(poses[:-1, :3, :3], poses[1:, :3, :3])
    lens = cameras.frame_lens
    length = float(np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=-1).sum())
    yaw, pitch, roll = (float(i) for i in np.rad2deg(yaw_pitch_roll(poses[-1, :3, :3])))
    step, off = recognise(cameras)
    close = off is not None and off.close
    return Description(
        frames=len(cameras),
        fps=cameras.fps,
        unit=cameras.unit,
        size=lens.size,
        path_length=length,
        displacement=tuple(float(i) for i in poses[-1, :3, 3]),  # type: ignore[arg-type]
        total_rotation=float(np.rad2deg(steps.sum())),
        net_yaw=yaw,
        net_pitch=pitch,
        net_roll=roll,
        hfov=(lens.hfov[0].item(), lens.hfov[-1].item()),
        xi=(lens.xi[0].item(), lens.xi[-1].item()),
        speed=length / max(len(cameras) - 1, 1),
        move=str(step) if step and close else None,
        looks_like=words(step) if step and close else "free path",
        nearest=str(step) if step and not close else None,
        off=off,
    )


def words(step: Step) -> str:
    """Moves as one would say them: `orbit left 40 degrees, radius 1.2`."""
    if isinstance(step, Sequence):
        return ", then ".join(words(i) for i in step.steps)
    if isinstance(step, Together):
        return " and ".join(f"({words(i)})" if isinstance(i, Sequence) else words(i) for i in step.steps)
    assert isinstance(step, Move)
    said = [step.name.replace("_", " "), step.direction, _said(step.amount)]
    text = " ".join(i for i in said if i)
    if step.distance:
        text += f", {KINDS[step.name].distance_word} {_said(step.distance)}"
    text += f" to {_said(step.to)}" if step.to else ""
    return text + f", {step.ease}" * (step.ease != "linear")


def _said(quantity: Quantity | None) -> str:
    if quantity is None:
        return ""
    unit = {"deg": " degrees", "m": " m", "x": "x", "near": ""}[quantity.unit]
    return plain(quantity.value) + unit + " per second" * quantity.per_second


def _span(ends: tuple[float, float], form: str) -> str:
    first, last = (format(i, form) for i in ends)
    return first if first == last else f"{first} to {last}"
