"""Cameras for videos that have none: found out by an estimator, each with a confidence, and which clips to drop.

A camera file is written for every clip that the estimator could follow; the report says how far to trust each, and is
written as clips are finished, so that a run which is killed goes on. Cameras to drop lie under a name of their own,
which no reader of a data set takes. Nothing but the video is known, so positions have a unit of their own, and the lens
is the one that was said or assumed.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.folders import FolderFootage
from curvedray.data.layouts.frames import image_records
from curvedray.data.layouts.metadata import write_table
from curvedray.data.pictures import VideoPart, image_files, read_masks, read_pictures
from curvedray.data.records import DROPPED, ClipRecord, FileCameras, NoCameras, dropped_file
from curvedray.data.tables import table_rows
from curvedray.data.tracks import camera_problems
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.evaluate.estimators.colmap import FEWEST_INLIERS, GOOD_PIXELS, SUSPECT_PIXELS, Colmap
from curvedray.evaluate.estimators.protocol import Estimate, Estimator, estimate_of
from curvedray.evaluate.matching import VIDEOS, video_files
from curvedray.evaluate.scores import Failure
from curvedray.files import plain_name, whole_file
from curvedray.formats import write_cameras
from curvedray.inputs import is_file, is_folder, read_json
from curvedray.locks import lock_folder

log = logging.getLogger(__name__)
ASSUMED = "pinhole-65"  # where nobody says the lens: what most phones and film lenses are near to
KEPT_FROM = 0.5  # confidence
REPORT = "poses.json"
TOLD = ("frames", "confidence", "drop", "note", "key")  # of `Posed`, in the camera file itself
COLUMNS = ("video", "cameras", "id")  # of the table of clips to keep
ON_A_GPU = ("vipe",)  # COLMAP runs on processors, and must not wait for a card
CUT = ("miradata",)  # layouts whose clips, cut from one video, have camera files of their own
POSED = (Path, tuple, VideoPart)  # what a clip's pictures may be
FEW, PAUSE = 1000, 10.0  # rows up to which the report is written after every clip; beyond, seconds between


@dataclass(frozen=True)
class PoseJob:
    """One clip whose cameras are wanted. Plain values, so that a job can be sent to another process."""

    clip: str
    pictures: Path | tuple[Path, ...] | VideoPart
    output: Path  # the camera file
    lens: str | None
    moving: tuple[Path, ...] = ()  # masks of what moves by itself, which tells nothing of the camera
    video: Path | None = None  # what a table calls the clip: its file, or the folder of its frames

    def key(self, estimator: Estimator) -> str:
        pictures, part = self.pictures, list[int]()
        if isinstance(pictures, VideoPart):
            part = [pictures.first, pictures.count]
            pictures = pictures.path
        files = [pictures] if isinstance(pictures, Path) else [*pictures]
        made_of = [file_fingerprint(path) for path in (*files, *self.moving)]
        return fingerprint(["pose-2", made_of, *part, self.lens, estimator.name, estimator.version])

    def read(self) -> UInt8[Tensor, "t h w 3"]:
        return self.pictures.read() if isinstance(self.pictures, VideoPart) else read_pictures(self.pictures)


@dataclass(frozen=True)
class Posed:
    """What was found out about one clip."""

    clip: str
    cameras: str  # the file, seen from the report's folder; empty where there is none
    frames: int
    confidence: float  # 0: nothing was found; 1: every frame, by many matches that agree
    drop: str  # why the clip had better not be trained on; empty: keep it
    note: str
    key: str


# -- what there is to do


def find_pose_jobs(
    path: Path, output: Path | None, lens: str | None, frames: int | None = None
) -> tuple[list[PoseJob], Path]:
    """The clips of a video, a folder of videos or images, or a data set without cameras; and the report's folder.

    `frames` cuts the long videos of a data set as they are cut when they are trained on. Clips that were posed before
    are among them, to be told again; those that have cameras of their own are not.
    """
    if not is_folder(path):
        folder = output or path.parent
        return _of_videos(path, folder, "-cameras.json", lens), folder
    folder = output or path / "cameras"
    clips, layout = _of_a_layout(path, frames)
    if not clips and any(file.suffix.lower() in VIDEOS for file in path.iterdir()):
        return _of_videos(path, folder, ".json", lens), folder
    if not clips and not layout:
        layout, clips = "frames", [i for i in image_records(path, None) if isinstance(i, ClipRecord)]
        if not clips:
            image_files(path)  # which says what is expected
    return [_of_clip(one, layout, output, lens) for one in clips if isinstance(one.pictures, POSED)], folder


def _of_clip(clip: ClipRecord, layout: str, output: Path | None, lens: str | None) -> PoseJob:
    """Its camera file goes where the data set's reader looks for it, unless a folder was named."""
    pictures = clip.pictures
    assert isinstance(pictures, POSED)
    file = _camera_file(clip) if output is None else output / f"{plain_name(clip.id, 'id')}.json"
    assert file is not None
    video = pictures if isinstance(pictures, Path) else None
    if isinstance(pictures, tuple) and layout == "frames":
        video = pictures[0].parent
    return PoseJob(clip.id, pictures, file, lens, clip.moving, video)


def _of_videos(path: Path, folder: Path, ending: str, lens: str | None) -> list[PoseJob]:
    found = sorted(video_files([path]).items())
    return [PoseJob(name, file, folder / f"{name}{ending}", lens, video=file) for name, file in found]


def _of_a_layout(path: Path, frames: int | None) -> tuple[list[ClipRecord], str]:
    """The clips of a data set that have no cameras but those that were found out before, and its layout if known."""
    try:
        source = FolderFootage(path)
        if source.layout in CUT:
            source = FolderFootage(path, frames=frames)
    except InputError:
        return [], ""
    clips = [record for record in source.records if isinstance(record, ClipRecord)]
    return [i for i in clips if isinstance(i.cameras, NoCameras) or _said_in(_camera_file(i))], source.layout


def _camera_file(clip: ClipRecord) -> Path | None:
    """Where the reader of its data set looks for a clip's cameras."""
    if isinstance(clip.cameras, NoCameras):
        return clip.cameras.looked_for
    return clip.cameras.path if isinstance(clip.cameras, FileCameras) else None


def _kept_name(file: str) -> str:
    return f"{file.removesuffix(DROPPED)}.json" if file.endswith(DROPPED) else file


# -- the run


def pose_videos(
    jobs: Sequence[PoseJob],
    folder: Path,
    estimator: Estimator,
    done: Callable[[Posed], None] = lambda posed: None,
    engine: Engine = HERE,
) -> list[Posed]:
    """A camera file per clip, and the report; what the same estimator found before is kept, of other clips too.

    Clips that are one video or folder of frames each, and worth keeping, are also listed in a metadata table, to be
    trained on. A table that somebody else wrote is left alone.
    """
    if not jobs:
        return []
    with lock_folder(folder, f"cameras in {folder}", "Wait for the other `curvedray data pose`, or name -o."):
        report = _Report(folder)
        before = dict(report.rows)

        def heard(number: int, posed: Posed) -> None:
            report.keep(posed)
            done(posed)

        opener = partial(_poser, estimator, {job.clip: before[job.clip] for job in jobs if job.clip in before}, folder)
        found = run_jobs(jobs, opener, engine, done=heard, lost=_lost, gpu=estimator.name in ON_A_GPU)
        report.write()
        _write_table(jobs, found, folder, before)
    return found


class _Report:
    """What is known of every clip that was ever posed into a folder, on disk as soon as it is known."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows = read_report(folder)
        self.written = -PAUSE

    def keep(self, posed: Posed) -> None:
        self.rows[posed.clip] = posed
        # Writing a long report after each of many clips would take longer than to pose again what a kill may lose.
        if len(self.rows) <= FEW or time.monotonic() - self.written > PAUSE:
            self.write()

    def write(self) -> None:
        with whole_file(self.folder / REPORT) as temporary:
            temporary.write_text(json.dumps([asdict(self.rows[clip]) for clip in sorted(self.rows)], indent=1))
        self.written = time.monotonic()


def read_report(folder: Path) -> dict[str, Posed]:
    """What was found out before, by clip; nothing where there is no report. Another's file of its name is refused."""
    path = folder / REPORT
    if not is_file(path):
        return {}
    stored: Any = read_json(path)
    try:
        return {str(row["clip"]): Posed(**row) for row in stored}
    except (TypeError, KeyError) as error:
        fix = "Move it away, or name another folder with -o."
        raise InputError(str(path), "no file, or a report of `curvedray data pose`", "something else", fix) from error


def _write_table(jobs: Sequence[PoseJob], found: Sequence[Posed], folder: Path, before: dict[str, Posed]) -> None:
    """The clips to keep, this run's and those of runs before, if the table is ours to write."""
    tabled = [
        (job.video, posed)
        for job, posed in zip(jobs, found, strict=True)
        if job.video is not None and job.output.parent == folder
    ]
    rows = [
        {"video": _relative(video, folder), "cameras": posed.cameras, "id": posed.clip}
        for video, posed in tabled
        if not posed.drop
    ]
    table = folder / "metadata.csv"
    there = next((path for path in (folder / "metadata.jsonl", table) if os.path.lexists(path)), None)
    if there is not None:
        earlier = _own_rows(there, before)
        if earlier is None:
            if rows:
                files = ", ".join(row["cameras"] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
                log.warning(
                    "%s is not of this command and was left alone; the cameras are in %s (%s)", there, folder, files
                )
            return
        again = {posed.clip for _, posed in tabled}
        rows += [row for row in earlier if row["id"] not in again]
    if rows:
        write_table(sorted(rows, key=lambda row: row["id"]), table)
    elif there is not None:
        there.unlink()  # a table without a row is none


def _own_rows(table: Path, before: dict[str, Posed]) -> list[dict[str, str]] | None:
    """The rows of a table that this command wrote: those of clips it posed, as it writes them. Else None."""
    ours = {(row.clip, _kept_name(row.cameras)) for row in before.values()}
    try:
        rows = table_rows(table)
    except InputError:
        return None
    own = [
        {name: str(row[name]) for name in COLUMNS}
        for row in rows
        if isinstance(row, dict) and tuple(row) == COLUMNS and (row["id"], row["cameras"]) in ours
    ]
    return own if len(own) == len(rows) and table.suffix == ".csv" else None


def _relative(path: Path, folder: Path) -> str:
    """A path as a file in `folder` names it, so that both can be moved together."""
    return os.path.relpath(path.resolve(), folder.resolve())


def _poser(estimator: Estimator, before: dict[str, Posed], folder: Path) -> Callable[[PoseJob], Posed]:
    return partial(pose_once, estimator=estimator, before=before, folder=folder)


def _lost(job: PoseJob, reason: str) -> Posed:
    return Posed(job.clip, "", 0, 0.0, reason, "", "")


# -- one clip


def pose_once(job: PoseJob, estimator: Estimator, before: dict[str, Posed], folder: Path) -> Posed:
    """One clip's cameras; what is wrong with it is in the answer."""
    key = job.key(estimator)
    dropped = dropped_file(job.output)
    known = before.get(job.clip)
    if known and known.key == key and (not known.cameras or is_file(job.output) or is_file(dropped)):
        return known
    for file in (job.output, dropped):
        written = _of_file(file, job.clip, folder)
        if written and written.key == key:
            return written
    try:
        _check_own(job.output)
        video = job.read()
        height, width = video.shape[1:3]
        lens = named_lens(job.lens or ASSUMED, width, height)
        if job.moving and isinstance(estimator, Colmap):
            estimator = replace(estimator, moving=read_masks(job.moving, width, height).numpy())
        answer = estimate_of(estimator, video.numpy(), lens, job.clip)
    except InputError as error:
        return _lost(job, str(error))  # without a key: tried again, as what was wrong may be mended
    if isinstance(answer, Failure) or answer.poses is None:
        reason = answer.reason if isinstance(answer, Failure) else "the estimator gives no poses"
        _remove(job.output, dropped)
        return Posed(job.clip, "", len(video), 0.0, reason, "", key)
    cameras = Cameras(lens, torch.from_numpy(answer.poses).float(), "arbitrary").relative_to_first()
    trust = confidence(answer)
    drop = why_drop(answer, cameras, trust)
    note = answer.note if job.lens else "; ".join(filter(None, [answer.note, f"lens not known: {ASSUMED} was assumed"]))
    file, other = (dropped, job.output) if drop else (job.output, dropped)
    posed = Posed(job.clip, _relative(file, folder), len(video), round(trust, 3), drop, note, key)
    said = {"estimator": f"{estimator.name} {estimator.version}", "lens": job.lens or f"{ASSUMED}, assumed"}
    said |= {name: str(getattr(posed, name)) for name in TOLD if getattr(posed, name) != ""}
    write_cameras(cameras, file, provenance=said)
    _remove(other)
    return posed


def _of_file(file: Path, clip: str, folder: Path) -> Posed | None:
    """What a camera file tells of itself: a run that was killed may have written it and not the report."""
    said = _said_in(file)
    try:
        numbers = int(said["frames"]), float(said["confidence"])
        return Posed(clip, _relative(file, folder), *numbers, said.get("drop", ""), said.get("note", ""), said["key"])
    except (KeyError, ValueError):
        return None


def _said_in(file: Path | None) -> dict[str, str]:
    """What this command noted in a camera file; nothing where somebody else wrote it, or nobody."""
    if file is None or file.suffix != ".json" or not is_file(file):
        return {}
    try:
        stored = read_json(file)
    except InputError:
        return {}
    said = stored.get("provenance") if isinstance(stored, dict) else None
    return {str(name): str(i) for name, i in said.items()} if isinstance(said, dict) and "estimator" in said else {}


def _check_own(file: Path) -> None:
    """Refuse to replace a camera file that somebody else wrote: it may be all that is known of a clip."""
    if is_file(file) and not _said_in(file):
        fix = "Move it away, or name another folder with -o."
        raise InputError(str(file), "no file, or one of `curvedray data pose`", "a file of another origin", fix)


def _remove(*files: Path) -> None:
    """What an earlier run found out, and this one did not."""
    for file in files:
        file.unlink(missing_ok=True)


def confidence(answer: Estimate) -> float:
    """The share of frames that were found, less what their matches leave in doubt: reprojection, and how few they are.

    1 up to the error of a good reconstruction, 0 at twice that of a suspect one, straight between; and likewise 1 from
    three times the fewest matches on that a model may hang on.
    """
    trust = 1.0 if answer.found is None else float(answer.found.mean())
    if answer.reprojection is not None:
        trust *= min(1.0, max(0.0, (2 * SUSPECT_PIXELS - answer.reprojection) / (2 * SUSPECT_PIXELS - GOOD_PIXELS)))
    if answer.inliers is not None:
        trust *= min(1.0, answer.inliers / (3 * FEWEST_INLIERS))
    return trust


def why_drop(answer: Estimate, cameras: Cameras, trust: float) -> str:
    """The reason a clip had better not be trained on; nothing, if there is none."""
    doubt = [f"confidence {trust:.2f}, below {KEPT_FROM:g}"] if trust < KEPT_FROM else []
    return answer.suspect or next(iter([*camera_problems(cameras), *doubt]), "")
