"""Cameras for videos that have none: found out by an estimator, each with a confidence, and which clips to drop.

A camera file is written for every clip that the estimator could follow; the report says how far to trust each. Nothing
but the video is known, so positions have a unit of their own, and the lens is the one that was said or assumed.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.check import LONGEST_STEP, motion
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.data.folders import FolderFootage
from curvedray.data.layouts.metadata import write_table
from curvedray.data.records import ClipRecord, NoCameras, image_files, read_masks, read_pictures
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.evaluate.estimators.colmap import FEWEST_INLIERS, GOOD_PIXELS, SUSPECT_PIXELS, Colmap
from curvedray.evaluate.estimators.protocol import Estimate, Estimator
from curvedray.evaluate.matching import VIDEOS, clip_name, video_files
from curvedray.evaluate.scores import Failure
from curvedray.files import plain_name, whole_file
from curvedray.formats import write_cameras
from curvedray.inputs import is_file, is_folder, read_json

ASSUMED = "pinhole-65"  # where nobody says the lens: what most phones and film lenses are near to
KEPT_FROM = 0.5  # confidence
REPORT = "poses.json"


@dataclass(frozen=True)
class PoseJob:
    """One clip whose cameras are wanted. Plain values, so that a job can be sent to another process."""

    clip: str
    pictures: Path | tuple[Path, ...]
    output: Path  # the camera file
    lens: str | None
    moving: tuple[Path, ...] = ()  # masks of what moves by itself, which tells nothing of the camera

    def key(self, estimator: Estimator) -> str:
        files = [self.pictures] if isinstance(self.pictures, Path) else [*self.pictures]
        made_of = [file_fingerprint(path) for path in (*files, *self.moving)]
        return fingerprint(["pose-1", made_of, self.lens, estimator.name, estimator.version])


@dataclass(frozen=True)
class Posed:
    """What was found out about one clip."""

    clip: str
    cameras: str  # the file; empty where there is none
    frames: int
    confidence: float  # 0: nothing was found; 1: every frame, by many matches that agree
    drop: str  # why the clip had better not be trained on; empty: keep it
    note: str
    key: str


def find_pose_jobs(path: Path, output: Path | None, lens: str | None) -> tuple[list[PoseJob], Path]:
    """The clips of a video, a folder of videos or images, or a data set without cameras; and the report's folder."""
    if not is_folder(path):
        found = video_files([path])
        folder = output or path.parent
        return [PoseJob(name, file, folder / f"{name}-cameras.json", lens) for name, file in found.items()], folder
    waiting = _of_a_layout(path)
    if waiting:
        folder = output or path / "cameras"
        jobs = [
            PoseJob(one.id, one.pictures, folder / f"{one.id}.json", lens, one.moving)
            for one in waiting
            if isinstance(one.pictures, Path | tuple) and plain_name(one.id, "id")
        ]
        return jobs, folder
    folder = output or path / "cameras"
    if any(file.suffix.lower() in VIDEOS for file in path.iterdir()):
        found = video_files([path])
        return [PoseJob(name, file, folder / f"{name}.json", lens) for name, file in sorted(found.items())], folder
    images = tuple(image_files(path))
    name = clip_name(path.resolve())
    return [PoseJob(name, images, folder / f"{name}.json", lens)], folder


def _of_a_layout(path: Path) -> list[ClipRecord]:
    """The clips of a data set that is known to have no cameras of its own."""
    try:
        records = FolderFootage(path).records
    except InputError:
        return []
    return [i for i in records if isinstance(i, ClipRecord) and isinstance(i.cameras, NoCameras)]


def pose_videos(
    jobs: Sequence[PoseJob],
    folder: Path,
    estimator: Estimator,
    done: Callable[[Posed], None] = lambda posed: None,
    engine: Engine = HERE,
) -> list[Posed]:
    """A camera file per clip, and the report; what the same estimator found before is kept.

    Clips that are one video each, and worth keeping, are also listed in a metadata table, to be trained on.
    """
    before = _before(folder / REPORT)
    opener = partial(_poser, estimator, before)
    found = run_jobs(jobs, opener, engine, done=lambda _, posed: done(posed), lost=_lost)
    with whole_file(folder / REPORT) as temporary:
        temporary.write_text(json.dumps([asdict(posed) for posed in found], indent=1))
    kept = [(job, posed) for job, posed in zip(jobs, found, strict=True) if not posed.drop]
    rows = [
        {"video": _relative(job.pictures, folder), "cameras": posed.cameras, "id": posed.clip}
        for job, posed in kept
        if isinstance(job.pictures, Path) and job.output.parent == folder
    ]
    if rows and not (folder / "metadata.jsonl").exists():
        write_table(rows, folder / "metadata.csv")
    return found


def _relative(path: Path, folder: Path) -> str:
    """A path as a table in `folder` names it, so that both can be moved together."""
    return os.path.relpath(path.resolve(), folder.resolve())


def _before(report: Path) -> dict[str, Posed]:
    try:
        stored: Any = read_json(report)
        return {row["key"]: Posed(**row) for row in stored}
    except (InputError, TypeError, KeyError):
        return {}


def _poser(estimator: Estimator, before: dict[str, Posed]) -> Callable[[PoseJob], Posed]:
    return partial(pose_once, estimator=estimator, before=before)


def _lost(job: PoseJob, reason: str) -> Posed:
    return Posed(job.clip, "", 0, 0.0, reason, "", "")


def pose_once(job: PoseJob, estimator: Estimator, before: dict[str, Posed]) -> Posed:
    """One clip's cameras; what is wrong with it is in the answer."""
    key = job.key(estimator)
    if key in before and (not before[key].cameras or is_file(job.output)):
        return before[key]
    try:
        video = read_pictures(job.pictures)
        height, width = video.shape[1:3]
        lens = named_lens(job.lens or ASSUMED, width, height)
        if job.moving and isinstance(estimator, Colmap):
            estimator = replace(estimator, moving=read_masks(job.moving, width, height).numpy())
        answer = estimator.estimate(video.numpy(), lens, job.clip)
    except InputError as error:
        return Posed(job.clip, "", 0, 0.0, str(error), "", key)
    if isinstance(answer, Failure) or answer.poses is None:
        reason = answer.reason if isinstance(answer, Failure) else "the estimator gives no poses"
        return Posed(job.clip, "", len(video), 0.0, reason, "", key)
    cameras = Cameras(lens, torch.from_numpy(answer.poses).float(), "arbitrary").relative_to_first()
    said = {"estimator": f"{estimator.name} {estimator.version}", "lens": job.lens or f"{ASSUMED}, assumed"}
    trust = confidence(answer)
    write_cameras(cameras, job.output, provenance=said | {"confidence": f"{trust:.2f}"})
    drop = why_drop(answer, cameras, trust)
    note = answer.note if job.lens else "; ".join(filter(None, [answer.note, f"lens not known: {ASSUMED} was assumed"]))
    return Posed(job.clip, job.output.name, len(video), round(trust, 3), drop, note, key)


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
    if answer.suspect:
        return answer.suspect
    turn, _ = motion(cameras)
    if len(turn) and float(turn.max()) > LONGEST_STEP:
        return f"turns {float(turn.max()):.0f} degrees at frame {int(turn.argmax()) + 1}: a cut, or lost track"
    return f"confidence {trust:.2f}, below {KEPT_FROM:g}" if trust < KEPT_FROM else ""
