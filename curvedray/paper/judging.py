"""The two short steps of a row: estimate what its videos show, and score that against what was asked for.

s latent frame   y x token
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimator, make_estimator
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.matching import Job, match
from curvedray.evaluate.metrics.geometry import SSI_L1, mean_ssi_l1, pooled_to
from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.run import score_folder
from curvedray.evaluate.scores import Failure, Metric, Score
from curvedray.media.video import read_video
from curvedray.paper.clips import TestClips
from curvedray.paper.experiment import Experiment
from curvedray.paper.film import head_radii
from curvedray.paper.kept_estimates import KeptEstimates
from curvedray.paper.listener import Listener
from curvedray.paper.needs import NEEDS, Places, require
from curvedray.paper.setting import Setting, key_of

WORDS = Metric(
    "Words", "share", "higher", "Share of a caption's places, colours and things that the estimator reads in the video."
)
SELF = Metric(SSI_L1.name, SSI_L1.unit, SSI_L1.better, "The radial head's distances against those seen in its video.")
LITTLE_WORDS = {*"a an and with behind in the courtyard moving left right of".split()}  # noqa: SIM905


@dataclass(frozen=True)
class Scored:
    """A row's clips as all judges scored them, and who could not judge which clip, a sentence each."""

    results: list[ClipResult]
    failures: list[str]


@dataclass(frozen=True)
class Judges:
    """Who can judge here, and what is missing of who should."""

    present: tuple[KeptEstimates, ...]
    missing: tuple[str, ...]  # a sentence each


def open_judges(setting: Setting, names: Sequence[str]) -> Judges:
    """The estimators of a scale. Those that are not here are named; without any, the first missing one is refused."""
    present, missing = [], []
    for name in names:
        reason = NEEDS[name].missing(setting.places) if name in NEEDS else ""
        if reason:
            missing.append(f"{NEEDS[name].says}: {reason}. To bring it: {NEEDS[name].brings}.")
            continue
        present.append(KeptEstimates(make_judge(name, setting.places), setting.folder("estimates")))
    if not present:
        require(names[0], setting.places)
    return Judges(tuple(present), tuple(missing))


def make_judge(name: str, places: Places) -> Estimator:
    """An estimator by name, or an embedded one by its file."""
    if name.endswith(".safetensors"):
        return Embedded.load(Path(name))
    place = places.get(name, name)
    if name == "vipe":
        return (
            make_estimator(name, recovered=Path(place)) if Path(place).is_dir() else make_estimator(name, command=place)
        )
    return make_estimator(name, accept_noncommercial=place == "accept-noncommercial")


def score_row(
    setting: Setting, experiment: Experiment, videos: Path, tests: TestClips, judges: Judges, hears: Listener
) -> Scored:
    """Every clip's scores by every judge, made now or before."""
    found: dict[str, ClipResult] = {}
    failures: list[str] = []
    stride = experiment.stride_at(setting.scale)
    for judge in judges.present:
        jobs = match(
            [videos], tests.folder / "cameras", tests.folder / "reference", tests.maps if experiment.maps else None
        )
        wanted = {clip.id for clip in tests.clips}
        jobs = [job for job in jobs if job.clip in wanted]
        failures += [f"{clip}: no video" for clip in sorted(wanted - {job.clip for job in jobs})]
        key = key_of([str(videos.resolve()), judge.name, judge.version, stride, tests.key, experiment.maps])
        for done, job in enumerate(jobs):
            hears.tick(done, len(jobs), f"scoring with {judge.name}")
            result = score_folder([job], judge, stride, setting.folder("scores", key))[0]
            failures += [f"{job.clip}: {judge.name}"] if result.failure else []
            found[job.clip] = merged(found.get(job.clip), with_own_scores(result, job, judge, tests, experiment.radii))
    return Scored(list(found.values()), sorted(set(failures)))


def merged(before: ClipResult | None, now: ClipResult) -> ClipResult:
    """One clip as two judges scored it; it failed where both failed, and nobody's number is counted twice."""
    if before is None or before.failure:
        return now
    if now.failure:
        return before
    known = {score.metric for score in before.scores}
    return replace(before, scores=before.scores + [score for score in now.scores if score.metric not in known])


def with_own_scores(result: ClipResult, job: Job, judge: KeptEstimates, tests: TestClips, radii: bool) -> ClipResult:
    """What a paper's experiment scores beyond `curvedray evaluate`: words, and the radial head by its own video."""
    if result.failure:
        return result
    scores: list[Score] = []
    caption = next(clip.caption for clip in tests.clips if clip.id == job.clip)
    if result.note.startswith("reads as "):
        scores.append(WORDS.of(job.clip, share_of_words(caption, result.note)))
    if radii and (predicted := head_radii(job.video)) is not None:
        scores += self_consistency(job, judge, predicted, tests)
    return replace(result, scores=result.scores + scores)


def share_of_words(caption: str, reading: str) -> float:
    """Of the caption's words that name something, how many the reading has."""
    asked = [word for word in re.findall(r"[a-z]+", caption.lower()) if word not in LITTLE_WORDS]
    seen = set(re.findall(r"[a-z]+", reading.lower()))
    return sum(word in seen for word in asked) / len(asked) if asked else 1.0


def self_consistency(
    job: Job, judge: KeptEstimates, predicted: Float[np.ndarray, "s y x"], tests: TestClips
) -> list[Score]:
    """SSI-L1 of a clip: the head's radii in the last step against distances estimated from the finished video."""
    video = read_video(job.video).frames.numpy()
    clip = next(clip for clip in tests.clips if clip.id == job.clip)
    height, width = video.shape[1:3]
    answer = judge.estimate(video, tests.cameras(clip).lens.sized(width, height), job.clip)
    if isinstance(answer, Failure) or answer.radial is None:
        return []
    frames = len(predicted)
    step = max(1, (len(answer.radial) - 1) // max(1, frames - 1))
    seen = answer.radial[::step][:frames]
    if seen.shape[0] != frames:
        raise InputError(f"clip {job.clip}", f"distances of {frames} latent frames", len(answer.radial))
    return [SELF.of(job.clip, mean_ssi_l1(predicted, pooled_to(seen, *predicted.shape[1:])))]
