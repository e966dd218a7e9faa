"""Score a folder of videos: match, estimate, score, one JSON per clip, so that a stopped run goes on where it was.

t frame
"""

import base64
import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate, Estimator
from curvedray.evaluate.estimators.protocol import at_stride
from curvedray.evaluate.matching import Job
from curvedray.evaluate.metrics import fidelity, geometry, lens, pose
from curvedray.evaluate.scores import Failure, Metric, Score
from curvedray.evaluate.statistics import strata
from curvedray.files import whole_file
from curvedray.media.video import read_video
from curvedray.radial.map import read_radial_map

PROTOCOL = 1  # raised when a score's definition changes, so that old results are not mixed with new ones
FOUND = Metric(
    "Frames found", "share", "higher", "Share of frames that the estimator placed; the others are interpolated."
)
THUMBNAILS, THUMBNAIL_WIDTH = 5, 208


@dataclass(frozen=True)
class ClipResult:
    """What the page and the tables know of one clip."""

    clip: str
    scores: list[Score] = field(default_factory=list)
    failure: str = ""
    lens: str = ""
    stratum: str = ""
    near_static: bool = False
    note: str = ""
    requested: list[list[list[float]]] = field(default_factory=list)  # (t, 3, 4), relative, largest translation 1
    recovered: list[list[list[float]]] = field(default_factory=list)
    thumbnails: list[str] = field(default_factory=list)  # JPEG, base64
    seconds: float = 0.0
    key: str = ""

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ClipResult":
        return cls(**content | {"scores": [Score(**score) for score in content["scores"]]})


def score_folder(
    jobs: Sequence[Job],
    estimator: Estimator,
    stride: int,
    folder: Path,
    done: Callable[[ClipResult, bool], None] = lambda result, resumed: None,
    **camera_options: Any,
) -> list[ClipResult]:
    """Every job's result, scored now or read from `folder` if nothing that it depends on has changed."""
    results = []
    for job in jobs:
        saved = folder / "clips" / f"{job.clip}.json"
        key = job_key(job, estimator, stride, camera_options)
        result = _saved(saved, key)
        if result is None:
            started = time.monotonic()
            result = replace(score_clip(job, estimator, stride, **camera_options), key=key)
            result = replace(result, seconds=round(time.monotonic() - started, 2))
            with whole_file(saved) as temporary:
                temporary.write_text(json.dumps(asdict(result)))
            done(result, False)
        else:
            done(result, True)
        results.append(result)
    return results


def score_clip(job: Job, estimator: Estimator, stride: int, **camera_options: Any) -> ClipResult:
    """One clip's scores, or the reason it has none. What a user's file has wrong is a reason, not a stop."""
    try:
        video = read_video(job.video).frames.numpy()
    except InputError as error:
        return ClipResult(job.clip, failure=str(error))
    thumbnails = _thumbnails(video)
    try:
        whole = _requested(job, video, camera_options)
        cameras, frames = _at_stride(whole, len(video), stride), np.ascontiguousarray(video[::stride])
        described = _describe(cameras)
        result = ClipResult(job.clip, lens=described, stratum=strata([float(cameras.lens.xi.max())])[0])
        shown = (video, whole.lens) if estimator.every_frame else (frames, cameras.lens)
        answer = estimator.estimate(*shown, job.clip)
        if isinstance(answer, Failure):
            return replace(result, failure=answer.reason, thumbnails=thumbnails)
        if answer.poses is not None and estimator.every_frame:
            chosen = at_stride(answer.poses, len(video), stride)
            found = None if answer.found is None else answer.found[chosen]
            answer = replace(answer, poses=answer.poses[chosen], found=found)
        result = _scored(result, answer, cameras)
        result = replace(result, scores=result.scores + _against_files(job, answer, estimator, frames, stride))
    except InputError as error:
        return ClipResult(job.clip, failure=str(error), thumbnails=thumbnails)
    if not result.scores:
        return replace(
            result, failure=f"{estimator.name} recovered nothing to score this clip by", thumbnails=thumbnails
        )
    return replace(result, note=answer.note, thumbnails=thumbnails)


def _requested(job: Job, video: np.ndarray, options: dict[str, Any]) -> Cameras:
    """The cameras that were asked for, their lens at the video's size; one per frame, or one per latent frame."""
    from curvedray.formats import cameras_of_video

    if job.cameras is None:
        raise InputError("cameras", f"a camera file named {job.clip}", "none")
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


def _scored(result: ClipResult, answer: Estimate, cameras: Cameras) -> ClipResult:
    """Scores against the request: the path, and the lens."""
    if answer.poses is not None:
        truth = cameras.world_from_camera.double().numpy()
        errors = pose.pose_errors(truth, answer.poses)
        scores = result.scores + errors.scores(result.clip)
        if answer.found is not None:
            scores = [*scores, FOUND.of(result.clip, float(answer.found.mean()))]
        drawn = (pose.max_normalised(pose.relative_to_first(path)).round(5).tolist() for path in (truth, answer.poses))
        requested, recovered = drawn
        result = replace(
            result, scores=scores, near_static=errors.near_static, requested=requested, recovered=recovered
        )
    if answer.view is not None:
        glass = cameras.lens[0] if cameras.lens.batch_shape else cameras.lens
        result = replace(result, scores=result.scores + lens.lens_scores(result.clip, answer.view.lens, glass))
    return result


def _against_files(job: Job, answer: Estimate, estimator: Estimator, frames: np.ndarray, stride: int) -> list[Score]:
    """Scores against a reference video and a supplied radial map, where there are any."""
    scores: list[Score] = []
    if job.reference:
        whole = read_video(job.reference).frames.numpy()
        reference = np.ascontiguousarray(whole[::stride])
        scores += [metric.of(job.clip, measure(frames, reference)) for metric, measure in _FIDELITY]
        if answer.view is not None:
            other = estimator.estimate(whole if estimator.every_frame else reference, None, job.clip)
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
        digest.update(b"-" if path is None else hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _saved(path: Path, key: str) -> ClipResult | None:
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    return ClipResult.from_json(content) if content.get("key") == key else None


def _describe(cameras: Cameras) -> str:
    glass = cameras.lens
    xi = f"{float(glass.xi.min()):.2g}" + (
        f" to {float(glass.xi.max()):.2g}" if float(glass.xi.std(correction=0)) else ""
    )
    return f"{float(glass.hfov.max()):.0f} degrees, xi {xi}"


def _thumbnails(video: UInt8[np.ndarray, "t h w 3"]) -> list[str]:
    chosen = np.linspace(0, len(video) - 1, min(THUMBNAILS, len(video))).round().astype(int)
    pictures = []
    for index in chosen:
        picture = Image.fromarray(video[index])
        picture = picture.resize((THUMBNAIL_WIDTH, max(1, round(THUMBNAIL_WIDTH * picture.height / picture.width))))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=82)
        pictures.append(base64.b64encode(buffer.getvalue()).decode())
    return pictures
