"""Label videos with a teacher's distances: one map per clip, resumable, each with a note of who made it.

A teacher is an estimator that answers with distances. What it does not know, or doubts, is invalid in the map.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from curvedray.cameras.named_lenses import named_lens
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.engine import HERE, Engine, model_opener, run_jobs
from curvedray.errors import InputError
from curvedray.evaluate.estimators import make_estimator
from curvedray.evaluate.estimators.protocol import Estimator, KnowsCameras, estimate_along, estimate_of
from curvedray.evaluate.matching import Job
from curvedray.evaluate.scores import Failure
from curvedray.files import whole_file
from curvedray.formats.of_video import cameras_of_video
from curvedray.inputs import read_json
from curvedray.media.video import read_video
from curvedray.radial.map import MapUnit, RadialMap, write_radial_map

TEACHERS = ("depth-anything", "unidepth", "unik3d", "colmap", "embedded")


def make_teacher(name: str, *, accept_noncommercial: bool = False, weights: str | None = None) -> Estimator:
    """The named teacher. COLMAP teaches by triangulating between known cameras, where as a judge it recovers them."""
    if name not in TEACHERS:
        raise InputError("--teacher", " or ".join(TEACHERS), name)
    if name == "colmap":
        from curvedray.evaluate.estimators.triangulation import Triangulation

        return Triangulation()
    return make_estimator(name, accept_noncommercial=accept_noncommercial, weights=weights)


@dataclass(frozen=True)
class Label:
    """What was made of one clip, as it is noted beside the map."""

    clip: str
    map: str  # the file; empty where there is none
    teacher: str
    version: str
    licence: str
    valid: float  # share of pixels
    near: float  # metres
    note: str
    failure: str
    seconds: float
    key: str


def label_videos(
    jobs: Sequence[Job],
    teacher: Estimator,
    folder: Path,
    lens: str | None = None,
    done: Callable[[Label, bool], None] = lambda label, resumed: None,
    *,
    engine: Engine = HERE,
    open_teacher: Callable[[], Estimator] | None = None,
) -> list[Label]:
    """A map of every clip in `folder`, or the reason it has none; what the same teacher labelled before is kept.

    On an engine of several workers each opens a teacher of its own by `open_teacher`; without it, `teacher` is sent.
    """
    opener = partial(open_labeller, model_opener(teacher, open_teacher, engine), folder, lens)

    def lost(job: Job, reason: str) -> tuple[Label, bool]:
        licence = str(getattr(teacher, "licence", ""))
        return Label(job.clip, "", teacher.name, teacher.version, licence, 0.0, 0.0, "", reason, 0.0, ""), False

    found = run_jobs(jobs, opener, engine, done=lambda _, made: done(*made), lost=lost, gpu=True)
    return [label for label, _ in found]


def open_labeller(
    open_teacher: Callable[[], Estimator], folder: Path, lens: str | None
) -> Callable[[Job], tuple[Label, bool]]:
    """What a worker does with every clip, its teacher opened."""
    return partial(label_once, teacher=open_teacher(), folder=folder, lens=lens)


def label_once(job: Job, teacher: Estimator, folder: Path, lens: str | None = None) -> tuple[Label, bool]:
    """A clip's label, and whether it was there: made from the same files by the same teacher."""
    note, key = folder / f"{job.file}.label.json", _key(job, teacher, lens)
    label = _kept(note, key)
    if label is not None:
        return label, True
    label = _labelled(job, teacher, folder, lens, key)
    with whole_file(note) as temporary:
        temporary.write_text(json.dumps(asdict(label), indent=1))
    return label, False


def _key(job: Job, teacher: Estimator, lens: str | None) -> str:
    cameras = None if job.cameras is None else file_fingerprint(job.cameras)
    unit = ["in the cameras' unit"] if isinstance(teacher, KnowsCameras) else []
    return fingerprint([file_fingerprint(job.video), cameras, teacher.name, teacher.version, lens, *unit])


def _kept(note: Path, key: str) -> Label | None:
    """A clip that was labelled from the same files by the same teacher, if its map is still there."""
    try:
        stored: Any = read_json(note)
        label = Label(**stored)
    except (InputError, TypeError):
        return None
    return label if label.key == key and (label.failure or (note.parent / label.map).is_file()) else None


def _labelled(job: Job, teacher: Estimator, folder: Path, lens: str | None, key: str) -> Label:
    began = time.monotonic()
    map, note, failure = None, "", ""
    try:
        map, note = label_clip(job, teacher, lens)
    except InputError as error:
        failure = str(error)
    name = "" if map is None else write_radial_map(map, folder / f"{job.file}.npz").name
    valid, near = (0.0, 0.0) if map is None else (map.valid.float().mean().item(), map.near)
    licence = str(getattr(teacher, "licence", ""))
    seconds = round(time.monotonic() - began, 2)
    return Label(job.clip, name, teacher.name, teacher.version, licence, valid, near, note, failure, seconds, key)


def label_clip(job: Job, teacher: Estimator, lens: str | None = None) -> tuple[RadialMap, str]:
    """One clip's map at the video's size, and what the teacher says of it."""
    video = read_video(job.video).frames
    count, height, width, _ = video.shape
    cameras = None if job.cameras is None else cameras_of_video(job.cameras, width, height, lens=lens)
    unit: MapUnit = "metric"
    if isinstance(teacher, KnowsCameras) and cameras is not None:
        unit = "cameras" if cameras.unit == "arbitrary" else "metric"
        answer = estimate_along(teacher, video.numpy(), cameras, job.clip)
    else:
        named = None if lens is None else named_lens(lens, width, height)
        answer = estimate_of(teacher, video.numpy(), named if cameras is None else cameras.lens, job.clip)
    if isinstance(answer, Failure):
        raise InputError(job.clip, f"distances by {teacher.name}", answer.reason)
    if answer.radial is None:
        raise InputError(teacher.name, "a teacher, who answers with distances", "an estimator that does not")
    radius = torch.from_numpy(answer.radial).float()
    if radius.shape[1:] != (height, width):  # tokens: each speaks for its patch
        radius = F.interpolate(radius[:, None], (height, width), mode="nearest-exact")[:, 0]
    if len(radius) != count:
        radius = radius[torch.linspace(0, len(radius) - 1, count).round().long()]
    map = RadialMap.from_metric(radius, unit=unit)
    if not map.valid.any():
        raise InputError(job.clip, "at least one distance", f"none that {teacher.name} knows")
    return map, answer.note
