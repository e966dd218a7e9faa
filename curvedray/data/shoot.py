"""Clips taken from panoramas: any lens of ours turned any way, with exact cameras, as PanShot was made.

A panorama is seen from one place, so a clip turns, tilts, rolls and zooms; it travels only where the panorama's own
track does. With a track the camera is held level in the track's world, whose y points down; without one, in the
panorama's. Clips of one video are taken in one pass over it.

    t frame   h w rows and columns of the panorama   p x of a clip's planes, as the encoder takes them
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.layouts.metadata import write_table
from curvedray.data.panoramas import Panorama, tilt_of
from curvedray.data.shot_jobs import ShotJob, turning
from curvedray.data.sphere_pyramid import Pyramid, View, distances_seen, look_planes, pyramid_of
from curvedray.data.splits import split_of_source
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.inputs import MB, is_file, read_json
from curvedray.locks import lock_folder, remove_leftovers
from curvedray.media.video import check_size, write_planes
from curvedray.radial.map import RadialMap, write_radial_map

STILL_FPS = 16.0  # of clips taken from stills
MAP_STEP = 4  # pixels of the video per pixel of its map, whose tokens are 16 pixels wide
TILTED = 10.0  # degrees between a track's vertical and its panoramas' beyond which that is said
CRF, PRESET = 12, "ultrafast"  # no worse than superfast at 14, sooner and with more bytes: benchmarks/shoot.py
TOGETHER = 4  # clips of one video that are taken in one pass over it
HELD = 400 * MB  # of their frames, in memory; a clip that is larger is taken alone
GAP = 48  # frames between clips that are decoded and not used, before a pass begins anew


@dataclass(frozen=True)
class Shot:
    """What became of a job: a row of the folder's table, or why there is none."""

    id: str
    source: str
    row: dict[str, Any] | None
    failure: str = ""
    note: str = ""
    kept: bool = False  # it was there before


# -- one clip


@dataclass(frozen=True, eq=False)
class Take:
    """A clip that is being taken: its cameras, where they look in the panorama, and the frames to be filled."""

    job: ShotJob
    key: str
    first: int  # frame of the panorama
    cameras: Cameras
    turns: Float[Tensor, "t 3 3"]  # panorama_from_camera
    note: str
    metres: Float[Tensor, "u h w"] | None  # of the panorama's frames: one per frame of the clip, or one of a still
    travels: bool  # the panorama has a track
    frames: UInt8[Tensor, "t p x"]  # planes, as the encoder takes them
    views: list[View] = field(default_factory=list)  # one per frame of a lens that zooms, else one

    @classmethod
    def planned(cls, job: ShotJob, key: str) -> "Take":
        """Nothing is decoded yet; what is wrong with the panorama, its track or its distances is an InputError."""
        panorama, shape = job.panorama, job.shape
        header = panorama.header()
        check_size(shape.width, shape.height)
        if panorama.is_video and header.frames < shape.frames:
            raise InputError(panorama.id, f"at least {shape.frames} frames", header.frames, "Ask for fewer frames.")
        first = int(job.start * (header.frames - shape.frames + 1)) if panorama.is_video else 0
        window = slice(first, first + (shape.frames if panorama.is_video else 1))
        track = panorama.track(header.frames)
        lens = named_lens(job.lens, shape.width, shape.height)
        fps = header.fps if panorama.is_video else STILL_FPS
        cameras, turns, note = _cameras(job, lens, None if track is None else track[window], fps)
        metres = panorama.distances(header.frames)
        frames = torch.empty(shape.frames, shape.height * 3 // 2, shape.width, dtype=torch.uint8)
        known = None if metres is None else metres[window]
        return cls(job, key, first, cameras, turns, note, known, track is not None, frames)

    def view(self, index: int) -> View:
        zooms = bool(self.cameras.lens.batch_shape)
        if zooms or not self.views:
            self.views[:] = [View.of(self.cameras.frame_lens[index])]
        return self.views[0]

    def written(self) -> dict[str, Any]:
        """The clip's files, whole, and its row of the folder's table."""
        job, panorama = self.job, self.job.panorama
        row: dict[str, Any] = {
            "video": f"{job.id}.mp4",
            "cameras": f"{job.id}.json",
            "caption": panorama.caption,
            "id": job.id,
        }
        row |= {"split": panorama.split or split_of_source(panorama.id), "source": panorama.id}
        if panorama.near is not None and self.travels:
            row["near"] = panorama.near
        (job.folder / row["cameras"]).unlink(missing_ok=True)  # an old one must not stand beside a new video
        if self.metres is not None:
            map = _map(self.metres, self.cameras, self.turns)
            row["radial"] = write_radial_map(map, job.folder / f"{job.id}.npz").name
        write_planes(self.frames, job.folder / row["video"], self.cameras.fps or STILL_FPS, crf=CRF, preset=PRESET)
        # The camera file comes last: where it is there with its key, so is everything else.
        said = {"shot": self.key, "panorama": panorama.panorama.name, "move": job.move, "row": json.dumps(row)}
        write_cameras(self.cameras, job.folder / row["cameras"], provenance={**said, "note": self.note})
        return row


def shoot_clips(jobs: Sequence[ShotJob]) -> list[Shot]:
    """Take some clips of one panorama and write their files, whole; what is wrong with one is said in its result.

    A clip is the same whichever others are taken with it.
    """
    shots: dict[str, Shot] = {}
    takes: list[Take] = []

    def fail(job: ShotJob, error: InputError) -> None:
        shots[job.id] = Shot(job.id, job.panorama.id, None, str(error))

    for job in jobs:
        try:
            key = job.key()
            kept = _kept(job, key)
            if kept is not None:
                shots[job.id] = Shot(job.id, job.panorama.id, kept[1], note=kept[0], kept=True)
            else:
                takes.append(Take.planned(job, key))
        except InputError as error:
            fail(job, error)
    for together in _near_in_time(takes):
        torn = _film_or_say(together)
        for take in together:
            try:
                if take.job.id in torn:
                    raise torn[take.job.id]
                shots[take.job.id] = Shot(take.job.id, take.job.panorama.id, take.written(), note=take.note)
            except InputError as error:
                fail(take.job, error)
    return [shots[job.id] for job in jobs]


def _near_in_time(takes: Sequence[Take]) -> list[list[Take]]:
    """Takes whose frames overlap, or nearly: they are filmed in one pass."""
    groups: list[list[Take]] = []
    end = 0
    for take in sorted(takes, key=lambda take: take.first):
        if not groups or take.first > end + GAP:
            groups.append([])
        groups[-1].append(take)
        end = max(end, take.first + len(take.turns))
    return groups


def _film_or_say(takes: Sequence[Take]) -> dict[str, InputError]:
    """Film takes together, or, where the panorama is torn, each alone: those that end before it are whole."""
    try:
        _film(takes)
    except InputError as error:
        if len(takes) == 1:
            return {takes[0].job.id: error}
        return {name: reason for take in takes for name, reason in _film_or_say([take]).items()}
    return {}


def _film(takes: Sequence[Take]) -> None:
    """Fill the frames of takes of one panorama, which is decoded once."""
    panorama = takes[0].job.panorama
    if not panorama.is_video:
        made_of = file_fingerprint(panorama.panorama)
        width = _still(panorama, made_of).shape[1]
        for take in takes:
            for index, turn in enumerate(take.turns):
                view = take.view(index)
                pyramid = _still_pyramid(panorama, made_of, view.used(width))
                look_planes(pyramid, view, turn, take.frames[index])
        return
    first, last = takes[0].first, max(take.first + len(take.turns) for take in takes)
    made: dict[tuple[int, int], Pyramid] = {}
    for number, image in enumerate(panorama.frames(first, last - first), first):
        ready = set()  # clips whose lenses ask for the same copies share them
        for take in takes:
            index = number - take.first
            if 0 <= index < len(take.turns):
                view = take.view(index)
                used = view.used(image.shape[1])
                if used not in ready:
                    made[used] = pyramid_of(image, *used, into=made.get(used))
                    ready.add(used)
                look_planes(made[used], view, take.turns[index], take.frames[index])


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


def _cameras(
    job: ShotJob, lens: Lens, track: Cameras | None, fps: float
) -> tuple[Cameras, Float[Tensor, "t 3 3"], str]:
    """The clip's cameras, the rotations panorama_from_camera, and what a user should know."""
    cameras = turning(job.move, lens, job.shape.frames, fps, job.yaw, job.pitch)
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


@lru_cache(maxsize=1)
def _still(panorama: Panorama, made_of: str) -> UInt8[Tensor, "h w 3"]:
    """Kept, as many clips are taken from one still, one after another; so are its copies for the last few lenses."""
    return next(panorama.frames(0, 1))


@lru_cache(maxsize=4)
def _still_pyramid(panorama: Panorama, made_of: str, used: tuple[int, int]) -> Pyramid:
    return pyramid_of(_still(panorama, made_of), *used)


def _map(metres: Float[Tensor, "t h w"], cameras: Cameras, turns: Tensor) -> RadialMap:
    """Distances at a quarter of the video's size, exact along the rays of its own larger pixels."""
    width, height = (max(1, side // MAP_STEP) for side in cameras.lens.size)
    lens = cameras.frame_lens.resized(width, height)
    seen = [distances_seen(metres[min(i, len(metres) - 1)], lens[i], turn) for i, turn in enumerate(turns)]
    return RadialMap.from_metric(torch.stack(seen))


# -- all of them


def open_camera() -> Callable[[Sequence[ShotJob]], list[Shot]]:
    """What a worker does with clips of one panorama; nothing needs to be loaded for it."""
    return shoot_clips


def _lost(jobs: Sequence[ShotJob], reason: str) -> list[Shot]:
    return [Shot(job.id, job.panorama.id, None, reason) for job in jobs]


def in_passes(jobs: Sequence[ShotJob]) -> list[list[ShotJob]]:
    """Jobs in lists of one panorama each: a few clips of a video go together, of a still one by one."""
    passes: list[list[ShotJob]] = []
    for job in jobs:
        last = passes[-1] if passes else []
        shape = job.shape
        most = min(TOGETHER, HELD // (shape.frames * shape.height * shape.width * 3 // 2))
        if last and last[0].panorama == job.panorama and job.panorama.is_video and len(last) < most:
            last.append(job)
        else:
            passes.append([job])
    return passes


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
        done: list[Shot] = []

        def heard(number: int, taken: list[Shot]) -> None:
            done.extend(taken)
            tick(len(done), len(jobs))

        tick(0, len(jobs))
        passes = run_jobs(in_passes(jobs), open_camera, engine, done=heard, lost=_lost)
        shots = [shot for taken in passes for shot in taken]
        rows = [shot.row for shot in shots if shot.row is not None]
        if rows:
            write_table(rows, folder / "metadata.csv")
    skipped = [(error.name, str(error)) for error in faults]
    skipped += [(shot.id, shot.failure) for shot in shots if shot.failure]
    notes = {shot.source: shot.note for shot in shots if shot.note}
    splits = {name: sum(row["split"] == name for row in rows) for name in ("train", "val", "test")}
    return ShootReport(len(rows), sum(shot.kept for shot in shots), splits, tuple(skipped), tuple(notes.items()))
