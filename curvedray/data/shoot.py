"""Clips taken from panoramas: any lens of ours turned any way, with exact cameras, as PanShot was made.

A panorama is seen from one place, so a clip turns, tilts, rolls and zooms; it travels only where the panorama's own
track does. With a track the camera is held level in the track's world, whose y points down; without one, in the
panorama's. Everything about a clip follows from its panorama's name, its number and a seed.

    t frame
"""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.random import Generator
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import VideoShape
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.layouts.metadata import write_table
from curvedray.data.panoramas import Panorama, tilt_of
from curvedray.data.sphere_pyramid import Pyramid, View, distances_seen, look_planes, pyramid_of
from curvedray.data.splits import split_of_source
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.inputs import is_file, read_json
from curvedray.locks import lock_folder, remove_leftovers
from curvedray.media.video import check_size, write_planes
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap, write_radial_map
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
STILL_FPS = 16.0  # of clips taken from stills
MAP_STEP = 4  # pixels of the video per pixel of its map, whose tokens are 16 pixels wide
TILTED = 10.0  # degrees between a track's vertical and its panoramas' beyond which that is said
STILL_COPIES = 6  # of a still, from fine to coarse: more than any lens asks of a panorama it can show
CRF, PRESET = 14, "superfast"


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


@dataclass(frozen=True)
class Shot:
    """What became of a job: a row of the folder's table, or why there is none."""

    id: str
    source: str
    row: dict[str, Any] | None
    failure: str = ""
    note: str = ""
    kept: bool = False  # it was there before


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
        _turning(move, named_lens("pinhole-90"), 2, 1.0)
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


# -- one clip


def shoot_clip(job: ShotJob) -> Shot:
    """Take one clip and write its files, whole; what is wrong with it is said in the result."""
    try:
        key = job.key()
        note, row = _kept(job, key) or ("", None)
        kept = row is not None
        if row is None:
            note, row = _taken(job, key)
        return Shot(job.id, job.panorama.id, row, note=note, kept=kept)
    except InputError as error:
        return Shot(job.id, job.panorama.id, None, str(error))


def _taken(job: ShotJob, key: str) -> tuple[str, dict[str, Any]]:
    panorama, shape = job.panorama, job.shape
    header = panorama.header()
    check_size(shape.width, shape.height)
    if panorama.is_video and header.frames < shape.frames:
        raise InputError(panorama.id, f"at least {shape.frames} frames", header.frames, "Ask for fewer frames.")
    first = int(job.start * (header.frames - shape.frames + 1)) if panorama.is_video else 0
    window = slice(first, first + (shape.frames if panorama.is_video else 1))
    fps = header.fps if panorama.is_video else STILL_FPS
    lens = named_lens(job.lens, shape.width, shape.height)
    track = panorama.track(header.frames)
    cameras, turns, note = _cameras(job, lens, None if track is None else track[window], fps)
    frames = _pictures(panorama, first, cameras, turns)
    metres = panorama.distances(header.frames)
    row: dict[str, Any] = {
        "video": f"{job.id}.mp4",
        "cameras": f"{job.id}.json",
        "caption": panorama.caption,
        "id": job.id,
    }
    row |= {"split": panorama.split or split_of_source(panorama.id), "source": panorama.id}
    if panorama.near is not None and track is not None:
        row["near"] = panorama.near
    if metres is not None:
        map = _map(metres[window], cameras, turns)
        row["radial"] = write_radial_map(map, job.folder / f"{job.id}.npz").name
    write_planes(frames, job.folder / row["video"], fps, crf=CRF, preset=PRESET)
    # The camera file comes last: where it is there with its key, so is everything else.
    said = {"shot": key, "panorama": panorama.panorama.name, "move": job.move, "row": json.dumps(row), "note": note}
    write_cameras(cameras, job.folder / row["cameras"], provenance=said)
    return note, row


def _kept(job: ShotJob, key: str) -> tuple[str, dict[str, Any]] | None:
    """The row of a clip that was taken from the same panorama in the same way, if its files are still there."""
    path = job.folder / f"{job.id}.json"
    if not is_file(path):
        return None
    try:
        said = read_json(path)["provenance"]
        row = json.loads(said["row"])
        files = [row[name] for name in ("video", "radial") if name in row]
    except (InputError, KeyError, TypeError, ValueError):
        return None
    whole = said.get("shot") == key and all(is_file(job.folder / file) for file in files)
    return (said["note"], row) if whole else None


def _turning(move: str, lens: Lens, frames: int, fps: float, yaw: float = 0.0, pitch: float = 0.0) -> Cameras:
    """A move as cameras at the origin; one that travels is refused."""
    cameras = trajectory(move, lens, frames, unit="near", near=1.0, fps=fps, yaw=yaw, pitch=pitch)
    if bool(cameras.world_from_camera[:, :3, 3].abs().max() > 0):
        fix = "A panorama is seen from one place: a clip travels where the panorama's own track does."
        raise InputError("move", "one that turns or zooms (pan, tilt, roll, zoom, static)", move, fix)
    return cameras


def _cameras(
    job: ShotJob, lens: Lens, track: Cameras | None, fps: float
) -> tuple[Cameras, Float[Tensor, "t 3 3"], str]:
    """The clip's cameras, the rotations panorama_from_camera, and what a user should know."""
    cameras = _turning(job.move, lens, job.shape.frames, fps, job.yaw, job.pitch)
    rotations = cameras.world_from_camera[:, :3, :3].double()
    if track is None:
        return cameras, rotations, ""
    poses = track.world_from_camera.double().expand(job.shape.frames, 4, 4)  # of a still, the one it has
    note, tilt = "", tilt_of(track)
    if job.level == "panorama":
        upright = _upright(poses[:, :3, 1].mean(0))
        poses = torch.cat([upright @ poses[:, :3], poses[:, 3:]], 1)
    elif tilt > TILTED:
        note = f"the track's vertical and the panorama's are {tilt:.0f} degrees apart: if the panorama is level, say so"
        note += " (--level panorama)"
    # The first frame's heading is the panorama's own, so that a yaw means the same with a track and without one.
    heading = torch.atan2(poses[0, 0, 2], poses[0, 2, 2])
    world = _about_y(heading) @ rotations
    turns = poses[:, :3, :3].mT @ world
    moved = poses.clone()
    moved[:, :3, :3] = world
    dtype = cameras.world_from_camera.dtype
    unit = "near" if not moved[:, :3, 3].diff(dim=0).any() else track.unit
    return replace(cameras, world_from_camera=moved.to(dtype), unit=unit), turns, note


def _upright(down: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """The smallest turn that makes this direction point along y."""
    a = torch.nn.functional.normalize(down, dim=0)
    b = a.new_tensor([0.0, 1.0, 0.0])
    cross, cosine = torch.linalg.cross(a, b), float(a @ b)
    if cosine < -0.999999:
        raise InputError("track", "a panorama whose down is not the world's up", "one that hangs upside down")
    k = a.new_zeros(3, 3)
    k[0, 1], k[0, 2], k[1, 2] = -cross[2], cross[1], -cross[0]
    k = k - k.mT
    return torch.eye(3, dtype=a.dtype) + k + k @ k / (1 + cosine)


def _about_y(angle: Tensor) -> Float[Tensor, "3 3"]:
    cos, sin = float(angle.cos()), float(angle.sin())
    return torch.tensor([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]], dtype=torch.float64)


def _pictures(
    panorama: Panorama, first: int, cameras: Cameras, turns: Float[Tensor, "t 3 3"]
) -> UInt8[Tensor, "t p w"]:
    """Every frame through its lens, as the encoder takes it."""
    width, height = cameras.lens.size
    frames = torch.empty(len(turns), height * 3 // 2, width, dtype=torch.uint8)
    lenses, zooms = cameras.frame_lens, bool(cameras.lens.batch_shape)
    view = View.of(lenses[0])
    images = panorama.frames(first, len(turns)) if panorama.is_video else None
    pyramid = _still_pyramid(panorama, file_fingerprint(panorama.panorama)) if images is None else None
    for index, turn in enumerate(turns):
        view = View.of(lenses[index]) if zooms and index else view
        if images is not None:
            image = next(images)
            pyramid = pyramid_of(image, *view.used(image.shape[1]), into=pyramid)
        assert pyramid is not None
        look_planes(pyramid, view, turn, frames[index])
    return frames


@lru_cache(maxsize=1)
def _still_pyramid(panorama: Panorama, made_of: str) -> Pyramid:
    """Kept, as many clips are taken from one still, one after another."""
    return pyramid_of(next(panorama.frames(0, 1)), copies=STILL_COPIES)


def _map(metres: Float[Tensor, "t h w"], cameras: Cameras, turns: Tensor) -> RadialMap:
    """Distances at a quarter of the video's size, exact along the rays of its own larger pixels."""
    width, height = (max(1, side // MAP_STEP) for side in cameras.lens.size)
    lens = cameras.frame_lens.resized(width, height)
    seen = [distances_seen(metres[min(i, len(metres) - 1)], lens[i], turn) for i, turn in enumerate(turns)]
    return RadialMap.from_metric(torch.stack(seen))


# -- all of them


def open_camera() -> Callable[[ShotJob], Shot]:
    """What a worker does with every job; nothing needs to be loaded for it."""
    return shoot_clip


def _lost(job: ShotJob, reason: str) -> Shot:
    return Shot(job.id, job.panorama.id, None, reason)


@dataclass(frozen=True)
class ShootReport:
    """What a folder of clips came to."""

    clips: int
    kept: int  # of them, those that were there before
    splits: dict[str, int]
    skipped: tuple[tuple[str, str], ...]  # name, reason
    notes: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shoot(
    jobs: Sequence[ShotJob],
    folder: Path,
    faults: Sequence[InputError] = (),
    tick: Callable[[int, int], None] = lambda done, total: None,
    engine: Engine = HERE,
) -> ShootReport:
    """Take every clip, and write the table of those that could be taken. Run again, it goes on where it stopped."""
    fix = "Wait until it has finished, or choose another folder."
    with lock_folder(folder, f"clips {folder}", fix):
        remove_leftovers(folder)
        done = count(1)
        tick(0, len(jobs))
        shots = run_jobs(jobs, open_camera, engine, done=lambda *_: tick(next(done), len(jobs)), lost=_lost)
        rows = [shot.row for shot in shots if shot.row is not None]
        if rows:
            write_table(rows, folder / "metadata.csv")
    skipped = [(error.name, str(error)) for error in faults]
    skipped += [(shot.id, shot.failure) for shot in shots if shot.failure]
    notes = {shot.source: shot.note for shot in shots if shot.note}
    splits = {name: sum(row["split"] == name for row in rows) for name in ("train", "val", "test")}
    return ShootReport(len(rows), sum(shot.kept for shot in shots), splits, tuple(skipped), tuple(notes.items()))
