"""A folder's videos -> their quality scores. Features are kept beside them, keyed by what made them, and used again."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.errors import InputError
from curvedray.evaluate.metrics import distribution
from curvedray.evaluate.quality.extractors import METRIC_NAMES, Kind, weights_of
from curvedray.evaluate.quality.process import ClipFailure, Worker, working
from curvedray.evaluate.scores import Cell, Metric, Score, group_by
from curvedray.evaluate.statistics import Interval
from curvedray.files import whole_file
from curvedray.inputs import read_arrays
from curvedray.media.video import read_video

Tick = Callable[[int, int, str], None]
Arrays = dict[str, np.ndarray]
VIEWS = {"fvd": "stretched", "fvd-c": "cropped", "fid": "features"}  # which of a network's features a distance is of


@dataclass
class Quality:
    """What was measured: a cell per metric, a score per clip where a clip has one, and what could not be measured."""

    cells: list[Cell] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)  # metric's name -> why
    failed: dict[str, str] = field(default_factory=dict)  # file -> why a network could make nothing of it
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)  # extractor -> package and version, weights' fingerprint


@dataclass(frozen=True)
class Request:
    """The videos, what stands beside them, and where the networks are."""

    videos: Mapping[str, Path]
    folder: Path  # features are kept in it
    weights: Path | None = None
    reference: Mapping[str, Path] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    vbench_python: str = ""
    device: str = "cpu"


def measure_quality(
    request: Request, metrics: Mapping[str, Kind] | None = None, tick: Tick = lambda done, total, words: None
) -> Quality:
    """Every metric that can be measured here. One that cannot is `absent`, with what it needs in a sentence."""
    asked = METRIC_NAMES if metrics is None else metrics
    found = Quality()
    for extractor in dict.fromkeys(kind.extractor for kind in asked.values()):
        kinds = {name: kind for name, kind in asked.items() if kind.extractor == extractor}
        try:
            ready = {name: kind for name, kind in kinds.items() if _has_what_it_needs(name, kind, request, found)}
            if ready:
                MEASURES[extractor](extractor, ready, request, found, tick)
        except InputError as error:
            found.absent = {kind.metric.name: str(error) for kind in kinds.values()} | found.absent
    order = [kind.metric.name for kind in asked.values()]
    per_clip = {cell.metric: cell for cell in group_by(found.scores)}
    sets = {cell.metric: cell for cell in found.cells}
    both = per_clip | sets
    order += [name for name in both if name not in order]  # IS Std. comes with IS
    found.cells = [both[name] for name in dict.fromkeys(order) if name in both]
    found.absent |= {name: "Every clip failed." for name in order if name not in found.absent and name not in both}
    return found


def grouped(absent: Mapping[str, str]) -> dict[str, str]:
    """What could not be measured, those with the same reason in one line."""
    reasons: dict[str, list[str]] = {}
    for name, why in absent.items():
        reasons.setdefault(why, []).append(name)
    return {", ".join(names): why for why, names in reasons.items()}


def _has_what_it_needs(name: str, kind: Kind, request: Request, found: Quality) -> bool:
    missing = {
        "reference": ("reference videos", "--reference DIR", not request.reference),
        "captions": (
            "a caption of every video",
            "--captions FILE",
            not request.videos.keys() <= request.captions.keys(),
        ),
    }.get(kind.needs)
    if missing is None or not missing[2]:
        return True
    got = "none" if kind.needs == "reference" or not request.captions else "some without"
    found.absent[kind.metric.name] = str(InputError(name, missing[0], got, f"Name them with {missing[1]}."))
    return False


def _of_sets(extractor: str, kinds: Mapping[str, Kind], request: Request, found: Quality, tick: Tick) -> None:
    """FVD and FVD-C of I3D's logits, FID and IS of Inception's features: a number for all clips together."""
    compared = any(kind.needs == "reference" for kind in kinds.values())
    theirs = _counterparts(request, found) if compared else {}
    features = _features(extractor, [*request.videos.values(), *theirs.values()], request, found, tick)
    ours, others = features[: len(request.videos)], features[len(request.videos) :]
    pairs = [(a, b) for a, b in zip(ours, others, strict=False) if a is not None and b is not None]
    for name, kind in kinds.items():
        try:
            if kind.needs == "reference":
                value = _distance(VIEWS[name], pairs, kind.metric.name, found)
                found.cells.append(_cell(kind.metric, value, len(pairs)))
            else:
                seen = [one["probabilities"] for one in ours if one is not None]
                mean, spread = distribution.inception_score(np.concatenate(seen or [np.zeros((0, 1))]))
                found.cells += [_cell(kind.metric, mean, len(seen)), _cell(distribution.IS_STD, spread, len(seen))]
        except InputError as error:  # too few clips for this number, enough for another
            found.absent[kind.metric.name] = str(error)


def _distance(view: str, pairs: Sequence[tuple[Arrays, Arrays]], name: str, found: Quality) -> float:
    """The Frechet distance between both sides' features: a row per clip, or a row per frame of every clip."""
    if not pairs:
        raise InputError(name, "two clips or more on both sides", "none that could be read")
    a, b = (np.concatenate([np.atleast_2d(one[view]) for one in side]) for side in zip(*pairs, strict=True))
    rows = min(len(a), len(b))
    if len(a) != len(b):
        found.notes.append(f"{name}: of {len(a)} and {len(b)} frames the first {rows}, as numbers must be equal.")
    return distribution.frechet_distance(a[:rows], b[:rows])


def _counterparts(request: Request, found: Quality) -> dict[str, Path]:
    """As many references as videos: those of the same names, or else the first of both, which is said."""
    if request.videos.keys() <= request.reference.keys():
        return {clip: request.reference[clip] for clip in request.videos}
    count = min(len(request.videos), len(request.reference))
    found.notes.append(
        f"FVD and FID: the first {count} of {len(request.videos)} videos and {len(request.reference)} "
        "references, whose names differ; compare only equal numbers of clips."
    )
    return dict(list(request.reference.items())[:count])


def _of_clip(extractor: str, kinds: Mapping[str, Kind], request: Request, found: Quality, tick: Tick) -> None:
    """CLIP scores: of every clip, its frames' embeddings and its caption's."""
    with_text = any(kind.needs == "captions" for kind in kinds.values())
    texts = [request.captions[clip] if with_text else None for clip in request.videos]
    features = _features(extractor, list(request.videos.values()), request, found, tick, texts=texts)
    seen = {clip: one for clip, one in zip(request.videos, features, strict=True) if one is not None}
    cut = sum(bool(one["cut"]) for one in seen.values() if "cut" in one)
    if cut:
        found.notes.append(f"CS-T: captions of {cut} clips are longer than the network reads, and were cut.")
    for clip, one in seen.items():
        for kind in kinds.values():
            if kind.needs == "captions":
                value = distribution.clip_text_score(one["frames"], one["caption"])
            elif len(one["frames"]) < 2:
                found.failed[str(request.videos[clip])] = f"{kind.metric.name}: a clip of one frame has no next one"
                continue
            else:
                value = distribution.clip_image_score(one["frames"])
            found.scores.append(kind.metric.of(clip, value))


def _of_pair(extractor: str, kinds: Mapping[str, Kind], request: Request, found: Quality, tick: Tick) -> None:
    """LPIPS: of every clip that has a reference of its name."""
    shared = [clip for clip in request.videos if clip in request.reference]
    if not shared:
        raise InputError("LPIPS", "references named as the videos are", "none of the same name")
    if len(shared) < len(request.videos):
        found.notes.append(f"LPIPS: {len(shared)} of {len(request.videos)} videos have a reference of their name.")
    others = [request.reference[clip] for clip in shared]
    features = _features(extractor, [request.videos[clip] for clip in shared], request, found, tick, others=others)
    for clip, one in zip(shared, features, strict=True):
        if one is not None:
            found.scores += [kind.metric.of(clip, float(one["distance"].mean())) for kind in kinds.values()]


def _of_folder(extractor: str, kinds: Mapping[str, Kind], request: Request, found: Quality, tick: Tick) -> None:
    """VBench: all clips at once, as it loads its networks anew for each dimension."""
    weights = weights_of(extractor, request.weights)
    files = {clip: f"{index:05}{video.suffix.lower()}" for index, (clip, video) in enumerate(request.videos.items())}
    strange = [video.name for video in request.videos.values() if video.suffix.lower() not in (".mp4", ".gif")]
    if strange:
        raise InputError("VBench", "videos as .mp4 or .gif", strange[0])
    dimensions = list(dict.fromkeys(kind.dimension for kind in kinds.values()))
    captions = {files[clip]: request.captions.get(clip, "a video") for clip in request.videos}
    made_of = [[file_fingerprint(video) for video in request.videos.values()], dimensions, captions]
    kept = _vbench_file(request.folder, made_of, weights)
    if not kept.is_file():
        with (
            TemporaryDirectory() as folder,
            working(extractor, weights, request.vbench_python or request.python, request.device) as worker,
        ):
            for clip, video in request.videos.items():
                (Path(folder) / files[clip]).symlink_to(video.absolute())
            tick(0, len(dimensions), "VBench")
            asked = {"folder": folder, "files": list(files.values()), "captions": captions, "dimensions": dimensions}
            with TemporaryDirectory() as scratch:
                fresh = Path(scratch) / "answers.npz"
                worker.ask(**asked, out=str(fresh))
                arrays: dict[str, Any] = {**read_arrays(fresh, "VBench's answers"), "version": worker.version}
        kept = _vbench_file(request.folder, made_of, weights)  # VBench fetches what it lacks: now it has it
        with whole_file(kept) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)
    answer = read_arrays(kept, "VBench's answers")
    found.versions[extractor] = f"{answer['version']}, weights {files_fingerprint(weights)[:12]}"
    for kind in kinds.values():
        for clip, value in zip(request.videos, answer[kind.dimension], strict=True):
            if np.isfinite(value):
                found.scores.append(kind.metric.of(clip, float(value)))
            else:
                found.failed[str(request.videos[clip])] = f"VBench gave no {kind.dimension}"


def _vbench_file(folder: Path, made_of: object, weights: Path) -> Path:
    """Where VBench's answers are kept. Its version is not known before it is started: it is stored with them."""
    return folder / "features" / f"vbench-{fingerprint([made_of, files_fingerprint(weights)])[:24]}.npz"


def files_fingerprint(folder: Path) -> str:
    """Of all files in a folder, also those in folders of it, in which VBench keeps each network."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return fingerprint([[path.relative_to(folder).as_posix(), file_fingerprint(path)] for path in files])


MEASURES: dict[str, Callable[[str, Mapping[str, Kind], Request, Quality, Tick], None]] = {
    "i3d": _of_sets,
    "inception": _of_sets,
    "clip": _of_clip,
    "longclip": _of_clip,
    "lpips": _of_pair,
    "vbench": _of_folder,
}


def _features(
    extractor: str,
    videos: Sequence[Path],
    request: Request,
    found: Quality,
    tick: Tick,
    others: Sequence[Path | None] = (),
    texts: Sequence[str | None] = (),
) -> list[Arrays | None]:
    """Features of every video (beside another, or a text), kept from before or computed now; None where it failed."""
    weights = weights_of(extractor, request.weights)
    made_by = file_fingerprint(weights)
    found.versions[extractor] = f"weights {made_by[:12]}"
    folder = request.folder / "features" / f"{extractor}-{made_by[:12]}"
    beside = list(others) or [None] * len(videos)
    said = list(texts) or [None] * len(videos)
    files = [
        folder / (fingerprint([file_fingerprint(video), other and file_fingerprint(other), text])[:24] + ".npz")
        for video, other, text in zip(videos, beside, said, strict=True)
    ]
    todo = [index for index, file in enumerate(files) if not file.is_file()]
    if todo:
        with TemporaryDirectory() as scratch, working(extractor, weights, request.python, request.device) as worker:
            found.versions[extractor] = f"{worker.version}, weights {made_by[:12]}"
            for done, index in enumerate(todo):
                tick(done, len(todo), f"{extractor}: {videos[index].name}")
                shown = {"video": videos[index], "other": beside[index]}
                asked: dict[str, str] = {} if (text := said[index]) is None else {"text": text}
                try:
                    for name, video in shown.items():
                        if video is not None:
                            asked[name] = _frames(video, Path(scratch) / f"{name}.npy")
                except InputError as error:
                    found.failed[str(videos[index])] = str(error)
                    continue
                try:
                    _keep(worker, files[index], **asked)
                except ClipFailure as error:
                    found.failed[str(videos[index])] = str(error)
    return [read_arrays(file, "features") if file.is_file() else None for file in files]


def _keep(worker: Worker, file: Path, **asked: object) -> None:
    with whole_file(file) as temporary:
        worker.ask(**asked, out=str(temporary.absolute()))


def _frames(video: Path, path: Path) -> str:
    np.save(path, read_video(video).frames.numpy())
    return str(path)


def _cell(metric: Metric, value: float, clips: int) -> Cell:
    """A number for a whole set has no interval over clips: resampling repeats clips, which a Frechet distance minds."""
    return Cell(metric.name, "all", metric.unit, metric.better, clips, Interval(value, float("nan"), float("nan")))
