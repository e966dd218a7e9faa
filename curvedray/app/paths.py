"""What the camera does, as the page asks it: moves, keyframes or a camera file -> cameras in metres, and as JSON."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from curvedray.app.camera_files import read_path
from curvedray.app.lenses import USUAL, lens_of, name_of
from curvedray.app.requests import KeyAsked, LensAsked, PathAsked
from curvedray.app.uploads import Uploads
from curvedray.cameras import Cameras, Lens
from curvedray.cameras.angles import yaw_pitch_roll
from curvedray.errors import InputError
from curvedray.moves.actions import Rig
from curvedray.moves.describe import describe
from curvedray.moves.move import Move, Quantity, Sequence, Step, Together
from curvedray.moves.phrases import in_exact_words
from curvedray.moves.text import parse_moves
from curvedray.moves.timeline import Timeline
from curvedray.moves.trajectory import resample, trajectory

DIGITS = 7  # of a number in an answer: what float32 holds


@dataclass(frozen=True, eq=False)
class PathMade:
    """A path in metres in the scene's frame, and how it was understood."""

    cameras: Cameras
    step: Step | None  # of moves
    lens_name: str | None  # by which the command line makes the lens again
    key_frames: list[float] | None
    notes: list[str]


def path_of(asked: PathAsked, uploads: Uploads) -> PathMade:
    """The cameras of a path, one per frame."""
    if asked.moves is not None:
        return _moved(asked)
    if asked.keys is not None:
        return _keyed(asked)
    cameras, notes = read_path(asked, uploads)
    return PathMade(cameras, None, None if asked.lens is None else name_of(asked.lens), None, notes)


def _moved(asked: PathAsked) -> PathMade:
    step, notes = understood(asked.moves or "")
    lens = lens_of(asked.lens, asked.width, asked.height)
    cameras = trajectory(step, lens, asked.frames, unit="metric", near=asked.near, fps=asked.fps)
    return PathMade(cameras, step, name_of(asked.lens), None, notes)


def understood(text: str) -> tuple[Step, list[str]]:
    """Moves from exact or everyday words, and what those were taken for."""
    try:
        return parse_moves(text), []
    except InputError as exact:
        try:
            step = parse_moves(in_exact_words(text))
        except InputError:
            raise exact from None
    return step, [f"understood as: {step}"]


def says_metres(step: Step) -> bool:
    """Whether moves name a length in metres, which only a near distance turns into the model's unit."""
    if isinstance(step, Sequence | Together):
        return any(says_metres(inner) for inner in step.steps)
    assert isinstance(step, Move)
    return any(isinstance(i, Quantity) and i.unit == "m" for i in (step.amount, step.distance, step.to))


def _keyed(asked: PathAsked) -> PathMade:
    assert asked.keys is not None
    keys, size = asked.keys, (asked.width, asked.height)
    angles = np.deg2rad([[key.yaw, key.pitch, key.roll] for key in keys])
    positions = np.array([key.position for key in keys], float)
    yaw, pitch, roll = angles.T
    poses = torch.from_numpy(Rig(positions, yaw, pitch, roll, np.zeros(len(keys))).poses()).float()
    lens = _lens_per_key([key.lens or asked.lens or USUAL for key in keys], *size)
    line = Timeline(
        Cameras(lens, poses, "metric", asked.fps),
        tuple(key.seconds for key in keys),
        asked.smoothness,
        asked.loop,
        asked.constant_speed,
        asked.near,
    )
    own = {name_of(key.lens or asked.lens) for key in keys}
    name = own.pop() if len(own) == 1 else None
    return PathMade(line.cameras(asked.frames), None, name, line.key_frames(asked.frames), [])


def _lens_per_key(asked: list[LensAsked], width: int, height: int) -> Lens:
    """One lens where all keys have the same, else one per key."""
    lenses = [lens_of(one, width, height) for one in asked]
    if all(one == asked[0] for one in asked):
        return lenses[0]
    focal, center, xi = (torch.stack([getattr(i, part) for i in lenses]) for part in ("focal", "center", "xi"))
    return Lens(focal, center, xi, (width, height), min(i.max_angle for i in lenses))


# -- as JSON


def path_json(made: PathMade, asked: PathAsked) -> dict[str, Any]:
    cameras = made.cameras
    lens = cameras.frame_lens
    poses = cameras.world_from_camera.double()
    angles = np.rad2deg(yaw_pitch_roll(poses[:, :3, :3].numpy()))
    clip = (asked.frames - 1) / asked.fps
    keys = None
    if made.key_frames is not None:
        keys = [{"frame": frame, "seconds": frame / asked.fps} for frame in made.key_frames]
    return {
        "moves": None if made.step is None else str(made.step),
        "frames": len(cameras),
        "fps": asked.fps,
        "width": asked.width,
        "height": asked.height,
        "near": asked.near,
        "seconds": clip,
        "poses": poses_json(poses),
        "angles": _rounded(angles),
        "lenses": _rounded(torch.cat([lens.focal, lens.center, lens.xi[:, None]], -1).double().numpy()),
        "max_angle": lens.max_angle,
        "hfov": _rounded(lens.hfov.double().numpy()),
        "vfov": _rounded(lens.vfov.double().numpy()),
        "lens_name": made.lens_name,
        "keys": keys,
        "notes": made.notes,
    }


def poses_json(poses: Any) -> list[list[float]]:
    return _rounded(np.asarray(poses, float).reshape(len(poses), 16))


def _rounded(numbers: Any) -> Any:
    """As lists, in as many digits as were computed: short to send, and equal when they come back."""
    flat = np.asarray(numbers, float)
    return np.array([float(f"{i:.{DIGITS + 1}g}") for i in flat.reshape(-1)]).reshape(flat.shape).tolist()


def keys_of(asked: PathAsked, count: int, uploads: Uploads) -> list[dict[str, Any]]:
    """A path opened as keyframes, evenly in time, each with its own lens."""
    made = path_of(asked, uploads)
    keys = resample(made.cameras, count)
    poses = keys.world_from_camera.double().numpy()
    angles = np.rad2deg(yaw_pitch_roll(poses[:, :3, :3]))
    seconds = max((asked.frames - 1) / asked.fps / (count - 1), 1e-3)
    rows = []
    for index, (pose, turned) in enumerate(zip(poses, angles, strict=True)):
        lens = _lens_asked(keys.frame_lens[index], asked)
        yaw, pitch, roll = _rounded(turned)
        key = KeyAsked(position=_rounded(pose[:3, 3]), yaw=yaw, pitch=pitch, roll=roll, seconds=seconds, lens=lens)
        rows.append(key.model_dump())
    return rows


def _lens_asked(lens: Lens, asked: PathAsked) -> LensAsked:
    """A lens in the page's words: the path's own with another zoom and pan, else by its field of view and bend."""
    width, height = lens.size
    middle = torch.tensor([width / 2, height / 2])
    pan = _rounded(((lens.center - middle) / torch.tensor([width, height])).double().numpy())
    if asked.lens is not None or asked.upload is None:
        own = asked.lens or USUAL
        base = lens_of(own, width, height)
        if torch.allclose(base.xi, lens.xi, atol=1e-6):
            zoom = float(f"{(lens.focal / base.focal).mean().item() * own.zoom:.6g}")
            shift = _rounded(((lens.center - base.center) / torch.tensor([width, height])).double().numpy())
            return own.model_copy(update={"zoom": zoom, "pan": [a + b for a, b in zip(own.pan, shift, strict=True)]})
    centred = replace(lens, center=middle)
    return LensAsked(hfov=round(centred.hfov.item(), 3), xi=round(lens.xi.item(), 4), pan=pan)


def described(asked: PathAsked, uploads: Uploads) -> dict[str, Any]:
    """A path in words; lengths in near distances, in which moves are said."""
    return describe(path_of(asked, uploads).cameras.scaled(asked.near)).to_dict()
