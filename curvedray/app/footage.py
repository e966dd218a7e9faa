"""A video that somebody hands over: scored against the cameras that were asked for, or filmed again by its motion."""

from pathlib import Path
from typing import Any

import torch

from curvedray.app.filming import THUMBNAIL, VIDEO, write_thumbnail
from curvedray.app.lenses import name_of
from curvedray.app.paths import path_of, understood
from curvedray.app.requests import LensAsked, ScoreAsked, TransferAsked
from curvedray.app.verdict import Verdict, verdict_of
from curvedray.app.worker_models import WorkerModels, estimator
from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate, Estimator, choose_estimator, usual_stride
from curvedray.evaluate.label import make_teacher
from curvedray.evaluate.matching import Job
from curvedray.evaluate.results import ClipResult
from curvedray.evaluate.run import score_clip
from curvedray.formats import write_cameras
from curvedray.generation.recipe import RECIPE, read_recipe
from curvedray.generation.write import CAMERAS
from curvedray.media.video import read_video
from curvedray.transfer import transfer

ASKED = "asked" + CAMERAS
# How the distances of a transfer follow its map: what each number is called, and which way is good.
FOLLOWED = {"silog": ("SILog", "lower"), "abs_rel": ("AbsRel", "lower"), "delta_1": ("delta_1", "higher")}
FOLLOWED |= {"scale_jitter": ("scale jitter", "lower")}


def score_take(models: WorkerModels, folder: Path, asked_json: dict[str, Any]) -> None:
    """Where was the camera in a video, and is that where it was asked to be?"""
    asked, channel = ScoreAsked.model_validate(asked_json), models.channel
    source = models.uploads.path(asked.upload, "video")
    video = read_video(source)
    write_thumbnail(video.frames[len(video.frames) // 2], folder / THUMBNAIL)
    frames, height, width, _ = video.frames.shape
    facts = {"width": width, "height": height, "frames": frames, "fps": video.fps, "source": source.name}
    judge = estimator(asked.estimator or choose_estimator([source]))
    channel.say("news", doing=f"recovering by {judge.name}", files={"thumbnail": THUMBNAIL}, facts=facts)
    channel.check()
    cameras = _cameras_asked(models, asked, folder, source, (frames, width, height))
    stride = usual_stride(judge.name) if asked.stride is None else asked.stride
    options = {} if asked.lens is None else {"lens": _named(asked.lens)}
    result = score_clip(Job("take", source, cameras), judge, stride, **options)
    channel.check()
    if result.failure:
        raise InputError(source.name, "a video whose camera can be recovered", result.failure)
    names = ("metric", "value", "unit", "better")
    scores = [{name: getattr(score, name) for name in names} for score in result.scores]
    notes = [words for words in (result.note, result.suspect) if words]
    channel.say("news", scores=scores, notes=notes, verdict=_verdict(result, judge))


def _cameras_asked(
    models: WorkerModels, asked: ScoreAsked, folder: Path, source: Path, shape: tuple[int, int, int]
) -> Path | None:
    """The camera file of what was asked: uploaded, made of a path, or taken from the video's own recipe."""
    if asked.cameras is not None:
        return models.uploads.path(asked.cameras, "cameras")
    if asked.path is not None:
        fitted = {"frames": shape[0], "width": shape[1], "height": shape[2]}
        write_cameras(path_of(asked.path.model_copy(update=fitted), models.uploads).cameras, folder / ASKED)
        return folder / ASKED
    try:
        write_cameras(read_recipe(source).shot.cameras, folder / ASKED)
    except InputError as error:
        fix = "Give the path on this page, or a camera file."
        raise InputError("cameras", "those that were asked for", f"none, and the video {error.got}", fix) from error
    return folder / ASKED


def _verdict(result: ClipResult, judge: Estimator) -> dict[str, Any] | None:
    """The same words as of a film; a score knows both paths without their scale."""
    if not result.recovered:
        return None
    paths = []
    for path in (result.requested, result.recovered):
        poses = torch.eye(4, dtype=torch.float64).repeat(len(path), 1, 1)
        poses[:, :3] = torch.tensor(path, dtype=torch.float64)
        if result.near_static:
            poses[:, :3, 3] = 0
        paths.append(poses)
    requested = Cameras(Lens.from_fov(90.0, 0.0, 8, 8), paths[0].float())
    verdict: Verdict = verdict_of(requested, 1.0, Estimate(paths[1].numpy()), judge, metric=False)
    return verdict.to_json()


def transfer_take(models: WorkerModels, folder: Path, asked_json: dict[str, Any]) -> None:
    """A source's motion and layout, filmed again with another prompt."""
    asked, channel = TransferAsked.model_validate(asked_json), models.channel
    source = models.uploads.path(asked.upload, "video")
    move = None if asked.moves is None else str(understood(asked.moves)[0])

    def stage(done: int, total: int, words: str) -> None:
        channel.check()
        channel.say("news", doing=words)

    channel.say("news", doing="loading", facts={"source": source.name, "moves": move})
    made = transfer(
        source,
        asked.prompt,
        models.parts_for(asked.model, asked.adapter),
        make_teacher(asked.teacher),
        folder / VIDEO,
        cameras=None if asked.cameras is None else models.uploads.path(asked.cameras, "cameras"),
        estimator=None if asked.estimate is None else estimator(asked.estimate),
        lens=None if asked.lens is None else _named(asked.lens),
        move=move,
        near=asked.near,
        seed=asked.seed,
        stage=stage,
        say=lambda note: channel.say("news", notes=[note]),
    )
    video = read_video(folder / VIDEO)
    write_thumbnail(video.frames[len(video.frames) // 2], folder / THUMBNAIL)
    files = {"video": VIDEO, "thumbnail": THUMBNAIL, "beside": made.files[-1].name}
    files["recipe"] = Path(VIDEO).stem + RECIPE
    files |= {
        "cameras": "film" + CAMERAS,
        "sheet": "film-sheet.png",
        "path": "film-path.png",
        "radii": "film-radii.png",
    }
    frames, height, width, _ = video.frames.shape
    facts = {"width": width, "height": height, "frames": frames, "fps": video.fps}
    scores = [_followed(name, value) for name, value in made.scores.items()]
    files = {key: name for key, name in files.items() if (folder / name).is_file()}
    channel.say("news", files=files, facts=facts, scores=scores)


def _followed(name: str, value: float) -> dict[str, Any]:
    metric, better = FOLLOWED.get(name, (name, "neither"))
    return {"metric": metric, "value": value, "unit": "", "better": better}


def _named(lens: LensAsked) -> str:
    name = name_of(lens)
    if name is None:
        raise InputError("lens", "one by name, or by its field of view and bend", "one that is panned or zoomed")
    return name
