"""Score a folder of videos: match, estimate, score, one JSON per clip, so that a stopped run goes on where it was.

t frame
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.engine import HERE, Engine, model_opener, run_jobs
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate, Estimator
from curvedray.evaluate.estimators.protocol import at_stride, estimate_of
from curvedray.evaluate.matching import MARKS, Job
from curvedray.evaluate.metrics import fidelity, geometry, lens, pose
from curvedray.evaluate.results import ClipResult, saved_result, thumbnails, write_result
from curvedray.evaluate.scores import Failure, Metric, Score
from curvedray.evaluate.statistics import strata
from curvedray.inputs import first_line, input_file
from curvedray.media.video import read_video
from curvedray.radial.map import read_radial_map

PROTOCOL = 3  # raised when what is scored changes, so that old results are not mixed with new ones
METRE = 1.0  # taken for the near distance of a metric path whose scene is not known
FOUND = Metric(
    "Frames found", "share", "higher", "Share of frames that the estimator placed; the others are interpolated."
)
# These two judge the estimator's answer, not the video: neither way is good for a method.
REPROJECTION = Metric(
    "Reprojection",
    "px",
    "neither",
    "The estimator's own mean distance of matched points from where its poses put them.",
)
INLIERS = Metric(
    "Inliers", "per frame", "neither", "Mean number of matched points per frame that agree with the poses."
)
METRICS = (FOUND, REPROJECTION, INLIERS)


def score_folder(
    jobs: Sequence[Job],
    estimator: Estimator,
    stride: int,
    folder: Path,
    done: Callable[[ClipResult, bool], None] = lambda result, resumed: None,
    *,
    engine: Engine = HERE,
    open_estimator: Callable[[], Estimator] | None = None,
    **camera_options: Any,
) -> list[ClipResult]:
    """Every job's result, scored now or read from `folder` if nothing that it depends on has changed.

    On an engine of several workers each opens an estimator by `open_estimator`; without it, `estimator` is sent.
    """
    opener = partial(_scorer, model_opener(estimator, open_estimator, engine), stride, folder, camera_options)

    def lost(job: Job, reason: str) -> tuple[ClipResult, bool]:
        return ClipResult(job.clip, failure=reason), False

    found = run_jobs(jobs, opener, engine, done=lambda _, scored: done(*scored), lost=lost, gpu=True)
    return [result for result, _ in found]


def _scorer(
    open_estimator: Callable[[], Estimator], stride: int, folder: Path, options: dict[str, Any]
) -> Callable[[Job], tuple[ClipResult, bool]]:
    return partial(score_once, estimator=open_estimator(), stride=stride, folder=folder, options=options)


def score_once(
    job: Job, estimator: Estimator, stride: int, folder: Path, options: dict[str, Any]
) -> tuple[ClipResult, bool]:
    """A job's result, and whether it was there, made from the same files in the same way."""
    file = folder / "clips" / f"{job.file}.json"
    key = job_key(job, estimator, stride, options)
    saved = saved_result(file, job.clip, key)
    if saved is not None:
        return saved, True
    started = time.monotonic()
    result = replace(score_clip(job, estimator, stride, **options), key=key)
    result = replace(result, seconds=round(time.monotonic() - started, 2))
    write_result(result, file)
    return result, False


def score_clip(job: Job, estimator: Estimator, stride: int, **camera_options: Any) -> ClipResult:
    """One clip's scores, or the reason it has none. What a user's file has wrong is a reason, not a stop."""
    try:
        video = read_video(job.video).frames.numpy()
    except InputError as error:
        return ClipResult(job.clip, failure=str(error))
    pictures = thumbnails(video)
    try:
        check_stride(len(video), stride)
        if job.cameras is None and job.radial is not None:
            return _by_distances_alone(job, estimator, video, stride, camera_options, pictures)
        whole = _requested(job, video, camera_options)
        cameras, frames = _at_stride(whole, len(video), stride), np.ascontiguousarray(video[::stride])
        described = _describe(cameras)
        result = ClipResult(job.clip, lens=described, stratum=strata([float(cameras.lens.xi.max())])[0])
        shown = (video, whole.lens) if estimator.every_frame else (frames, cameras.lens)
        answer = estimate_of(estimator, *shown, job.clip)
        if isinstance(answer, Failure):
            return replace(result, failure=answer.reason, thumbnails=pictures)
        if estimator.every_frame:
            answer = _thinned(answer, len(video), stride)
        result = _scored(result, answer, cameras, _near_distance(cameras, job))
        result = replace(result, scores=result.scores + _against_files(job, answer, estimator, frames, stride))
    except InputError as error:
        return ClipResult(job.clip, failure=str(error), thumbnails=pictures)
    if not result.scores:
        reason = f"{estimator.name} recovered nothing to score this clip by"
        return replace(result, failure=reason, thumbnails=pictures)
    return replace(result, note=answer.note, suspect=answer.suspect, thumbnails=pictures)


def _thinned(answer: Estimate, frames: int, stride: int) -> Estimate:
    """Every stride-th of what an estimator says of each frame."""
    if answer.poses is not None:
        chosen = at_stride(answer.poses, frames, stride)
        found = None if answer.found is None else answer.found[chosen]
        answer = replace(answer, poses=answer.poses[chosen], found=found)
    if answer.radial is not None and len(answer.radial) == frames:
        answer = replace(answer, radial=answer.radial[::stride])
    return answer


def _by_distances_alone(
    job: Job, estimator: Estimator, video: np.ndarray, stride: int, options: dict[str, Any], pictures: list[str]
) -> ClipResult:
    """A clip without cameras, against its map: the lens is the one that was named, or unknown."""
    frames = np.ascontiguousarray(video[::stride])
    shown = video if estimator.every_frame else frames
    name = options.get("lens")
    known = None if name is None else named_lens(name, video.shape[2], video.shape[1])
    answer = estimate_of(estimator, shown, known, job.clip)
    result = ClipResult(job.clip, thumbnails=pictures)
    if isinstance(answer, Failure):
        return replace(result, failure=answer.reason)
    if answer.radial is None:
        reason = f"{estimator.name} recovers no distances, and there are no cameras to score the rest by"
        return replace(result, failure=reason)
    scores = _against_files(replace(job, reference=None), answer, estimator, frames, stride)
    return replace(result, scores=scores, note=answer.note, suspect=answer.suspect)


def check_stride(frames: int, stride: int) -> None:
    """One frame alone has no path: every error would be zero."""
    if stride > 1 and stride >= frames:
        raise InputError("stride", f"less than the clip's {frames} frames", stride, "Use a smaller --stride.")


def _requested(job: Job, video: np.ndarray, options: dict[str, Any]) -> Cameras:
    """The cameras that were asked for, their lens at the video's size; one per frame, or one per latent frame."""
    from curvedray.formats import cameras_of_video

    if job.cameras is None:
        raise InputError("cameras", f"a camera file named {job.clip}.json or {job.clip}{MARKS[0]}.json", "none")
    count, height, width = video.shape[:3]
    cameras = cameras_of_video(job.cameras, width, height, **options)
    if cameras.frames not in (count, (count - 1) // 4 + 1):
        raise InputError("cameras", f"{count} poses, as the video has frames (or every 4th)", cameras.frames)
    return cameras


def _at_stride(cameras: Cameras, frames: int, stride: int) -> Cameras:
    step = 1 if cameras.frames == frames else 4
    if stride % step:
        raise InputError("stride", f"a multiple of {step}, as the poses are", stride)
    return cameras[:: stride // step]


def _near_distance(cameras: Cameras, job: Job) -> float | None:
    """The scene's near distance in the path's unit: 1 in near distances, the map's in metres, else a metre."""
    if cameras.unit == "metric":
        return read_radial_map(job.radial).near if job.radial else METRE
    return 1.0 if cameras.unit == "near" else None


def _scored(result: ClipResult, answer: Estimate, cameras: Cameras, near: float | None) -> ClipResult:
    """Scores against the request: the path, and the lens."""
    if answer.poses is not None:
        truth = cameras.world_from_camera.double().numpy()
        errors = pose.pose_errors(truth, answer.poses, near=near)
        found = None if answer.found is None else float(answer.found.mean())
        told = zip(METRICS, (found, answer.reprojection, answer.inliers), strict=True)
        scores = errors.scores(result.clip) + [m.of(result.clip, value) for m, value in told if value is not None]
        requested, recovered = (
            pose.max_normalised(pose.relative_to_first(path)).round(5).tolist() for path in (truth, answer.poses)
        )
        result = replace(
            result,
            scores=result.scores + scores,
            near_static=errors.near_static,
            requested=requested,
            recovered=recovered,
        )
    if answer.view is not None:
        scores = lens.lens_scores(result.clip, answer.view.lens, cameras.lens)
        result = replace(result, scores=result.scores + scores)
    return result


def _against_files(job: Job, answer: Estimate, estimator: Estimator, frames: np.ndarray, stride: int) -> list[Score]:
    """Scores against a reference video and a supplied radial map, where there are any."""
    scores: list[Score] = []
    if job.reference:
        whole = read_video(job.reference).frames.numpy()
        reference = np.ascontiguousarray(whole[::stride])
        scores += [metric.of(job.clip, measure(frames, reference)) for metric, measure in _FIDELITY]
        if answer.view is not None:
            other = estimate_of(estimator, whole if estimator.every_frame else reference, None, job.clip)
            if isinstance(other, Failure) or other.view is None:
                reason = other.reason if isinstance(other, Failure) else "no lens"
                raise InputError("reference video", f"one that {estimator.name} can calibrate", reason)
            ours, theirs = answer.view, other.view
            up, true_up = torch.from_numpy(ours.up), torch.from_numpy(theirs.up)
            scores += lens.coefficient_scores(job.clip, ours.lens, theirs.lens)
            scores += lens.orientation_errors(up, ours.lens, true_up, theirs.lens).scores(job.clip)
    if job.radial and answer.radial is not None:
        given = read_radial_map(job.radial)
        supplied = torch.where(given.valid, given.radius, torch.nan).numpy()
        scores += geometry.adherence_scores(job.clip, supplied, answer.radial, stride)
    return scores


_FIDELITY = ((fidelity.PSNR, fidelity.psnr), (fidelity.SSIM, fidelity.ssim))


def job_key(job: Job, estimator: Estimator, stride: int, options: dict[str, Any]) -> str:
    """Everything a result depends on, in one digest: the files' bytes, the estimator, the stride, the protocol."""
    digest = hashlib.sha256(json.dumps([PROTOCOL, estimator.name, estimator.version, stride, str(options)]).encode())
    for path in (job.video, job.cameras, job.reference, job.radial):
        digest.update(b"-" if path is None else _digest(path))
    return digest.hexdigest()


def _digest(path: Path) -> bytes:
    """Of a file's bytes; of one that cannot be read, of the reason."""
    try:
        with input_file(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except (InputError, OSError) as error:
        return hashlib.sha256(first_line(error).encode("utf-8", "backslashreplace")).digest()


def _describe(cameras: Cameras) -> str:
    used = cameras.lens
    xi = f"{float(used.xi.min()):.2g}"
    if float(used.xi.std(correction=0)):
        xi += f" to {float(used.xi.max()):.2g}"
    return f"{float(used.hfov.max()):.0f} degrees, xi {xi}"
