"""Motion transfer: a source video's cameras and distances, filmed again with another prompt.

Stages: the source's cameras and lens, its map of distances, the map as the new camera sees it, the video, and how well
the video follows the map. Each leaves a file in a folder beside the video, and is used again where nothing that it is
made of has changed, by content: the source, who recovered its cameras, who saw its distances, the recipe of the film.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import Footage, VideoShape, fitted
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Estimator, KnowsCameras, estimate_of
from curvedray.evaluate.label import label_videos
from curvedray.evaluate.matching import Job, clip_name
from curvedray.evaluate.metrics.geometry import adherence
from curvedray.files import whole_file
from curvedray.formats import read_cameras, write_cameras
from curvedray.formats.of_video import cameras_of_video
from curvedray.generation.parts import Parts, Source, check_takes_maps
from curvedray.generation.recipe import new_recipe
from curvedray.generation.settings import check_near
from curvedray.generation.write import make_video
from curvedray.inputs import read_json
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.media.pictures import enlarged
from curvedray.media.video import read_video, write_video
from curvedray.moves.trajectory import fitted_to, trajectory
from curvedray.radial.carry import carried
from curvedray.radial.convert import fitted_distances
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

SHOWN_WIDTH = 320  # pixels, about, of each of the three pictures side by side
STILL = 2.0  # of 255: mean difference from the first frame that encoders leave of a still picture, and no more
CUT = 60.0  # mean change between two frames that a cut has, and motion hardly ever


@dataclass(frozen=True, eq=False)
class Transfer:
    """What was filmed, and how well it follows the source's distances."""

    files: list[Path]
    scores: dict[str, float]  # empty where the teacher could not read the new video
    carried: float | None  # share of the frame the map covers for a new camera; None with the source's own
    notes: tuple[str, ...]
    reused: tuple[str, ...] = ()  # stages whose files were there already: cameras, map, film


def transfer(
    source: Path,
    prompt: str,
    parts: Parts,
    teacher: Estimator,
    output: Path,
    *,
    cameras: Path | None = None,
    estimator: Estimator | None = None,
    lens: str | None = None,
    move: str | None = None,
    near: float | None = None,
    seed: int = 0,
    stage: Callable[[int, int, str], None] = lambda done, total, words: None,
    say: Callable[[str], None] = lambda note: None,
) -> Transfer:
    """Film a prompt with a source video's motion and layout, or with its layout and another move.

    Cameras of an unknown scale need `near`, their near distance in their own unit, as in `generate`; not beside a
    teacher who triangulates between them, as its distances are in their unit. `say` hears of what is odd at once.
    """
    check_takes_maps(parts.adapter)
    own = parts.model.defaults
    shape = VideoShape(own.frames, own.height, own.width)
    folder = output.with_name(f"{output.stem}-stages")
    stage(0, 5, "reading the source")
    video = read_video(source)
    notes, reused = _Notes(say), []
    notes.add(*_oddities(video.frames))
    file = folder / "source-cameras.json"
    key = fingerprint(["cameras", file_fingerprint(source), _cameras_from(cameras, estimator), lens])
    if _is_kept(folder, "cameras", key):
        path = read_cameras(file)
        reused.append("cameras")
    else:
        path = source_cameras(video.frames, cameras, estimator, lens, clip_name(source))
        write_cameras(path, file)
        _keep(folder, "cameras", key, [file])
    path = _at_a_known_scale(path, near, teacher)
    stage(1, 5, f"distances by {teacher.name}")
    map, before = _map_of(Job(clip_name(source), source, file), teacher, folder)
    reused += ["map"] * before
    frames, path, map = _at_the_models_shape(video.frames, path, map, shape)
    path = _in_metres(path, map.near)
    share = None
    if move is not None:
        stage(2, 5, "the map as the new camera sees it")
        wanted = trajectory(
            move, path.frame_lens[0], shape.frames, unit="metric", near=map.near, fps=path.fps or video.fps
        )
        wanted = _standing_at(wanted, path)
        map, share = carried(map, path, wanted)
        path = wanted  # as it stands in the world: the model is told where up is
        notes.add(f"the map covers {share:.0%} of the new camera's view; the rest is the model's")
    stored = write_radial_map(map, folder / "followed" / "map.npz")  # beside no clip's map, whatever a clip is called
    parts = replace(parts, radial=map, radial_source=Source.of(stored))
    stage(3, 5, "filming")
    recipe = new_recipe(parts, prompt, replace(path.scaled(map.near), fps=float(own.fps)), seed=seed)
    key = fingerprint(["film", output.name, recipe.to_json()])
    if _is_kept(folder, "film", key):
        files = _kept_files(folder, "film")
        reused.append("film")
    else:
        files = make_video(parts, recipe, output, inputs=[source, *([] if cameras is None else [cameras])])
        _keep(folder, "film", key, files)
    stage(4, 5, "scoring")
    scores, said = _scores(files[0], recipe.shot.cameras, map, teacher, folder / "result")
    notes.add(*said)
    files.append(_side_by_side(frames, map, files[0], output))
    return Transfer(files, scores, share, tuple(notes.said), tuple(reused))


class _Notes:
    """What is odd, said at once and kept."""

    def __init__(self, say: Callable[[str], None]):
        self.say, self.said = say, list[str]()

    def add(self, *notes: str) -> None:
        for note in notes:
            self.say(note)
            self.said.append(note)


def _cameras_from(file: Path | None, estimator: Estimator | None) -> list[str]:
    """Where cameras come from: a file's content, or an estimator and its version."""
    if file is not None:
        return [file_fingerprint(file)]
    return [] if estimator is None else [estimator.name, estimator.version]


def _map_of(job: Job, teacher: Estimator, folder: Path) -> tuple[RadialMap, bool]:
    """The map that a teacher sees of a video, and whether it was made before."""
    before: list[bool] = []
    (label,) = label_videos([job], teacher, folder, done=lambda label, resumed: before.append(resumed))
    if label.failure:
        raise InputError(str(job.video), "distances of the source", label.failure)
    return read_radial_map(folder / label.map), before[0]


def _at_a_known_scale(path: Cameras, near: float | None, teacher: Estimator) -> Cameras:
    """Refuse poses of a scale nobody knows beside a map in metres, or take them at the scale that `near` says."""
    if path.unit != "arbitrary":
        if near is not None:
            raise InputError("near", f"none, as the cameras are in unit {path.unit}", f"{near:g}")
        return path
    if isinstance(teacher, KnowsCameras):  # its distances are in the cameras' own unit, whatever that is
        if near is not None:
            raise InputError("near", f"none, as {teacher.name} measures in the cameras' own unit", f"{near:g}")
        return path
    if near is not None:
        check_near(near)
        return path.scaled(near)
    fix = "Give their near distance in their own unit (near): `curvedray radial label --teacher colmap` tells it."
    raise InputError("cameras", "poses in metres, as the teacher's distances are", "an unknown scale", fix)


STAGES = "stages.json"


def _stages(folder: Path) -> dict[str, Any]:
    """What was made here before, stage by stage; nothing, where that cannot be read."""
    try:
        content = read_json(folder / STAGES)
    except InputError:
        return {}
    return content if isinstance(content, dict) else {}


def _keep(folder: Path, stage: str, key: str, files: list[Path]) -> None:
    """Note what a stage was made from and what it wrote."""
    made = {os.path.relpath(file, folder): file_fingerprint(file) for file in files}
    with whole_file(folder / STAGES) as temporary:
        temporary.write_text(json.dumps(_stages(folder) | {stage: {"key": key, "files": made}}, indent=1))


def _is_kept(folder: Path, stage: str, key: str) -> bool:
    """Whether a stage was made from the same before, and its files are there as it left them."""
    with suppress(TypeError, AttributeError, KeyError, ValueError):
        made = _stages(folder)[stage]
        return made["key"] == key and all(file_fingerprint(folder / name) == i for name, i in made["files"].items())
    return False


def _kept_files(folder: Path, stage: str) -> list[Path]:
    return [Path(os.path.normpath(folder / name)) for name in _stages(folder)[stage]["files"]]


def source_cameras(
    frames: UInt8[Tensor, "t h w 3"], file: Path | None, estimator: Estimator | None, lens: str | None, clip: str
) -> Cameras:
    """The source's cameras on its own pixels: of a file, or recovered by an estimator through a known lens."""
    _, height, width, _ = frames.shape
    if file is not None:
        path = cameras_of_video(file, width, height, lens=lens)
        return path if path.frames == len(frames) else fitted_to(path, len(frames), width, height)[0]
    if estimator is None:
        raise InputError("cameras", "a camera file, or an estimator", "neither", "Add --cameras or --estimate.")
    known = None if lens is None else named_lens(lens, width, height)
    answer = estimate_of(estimator, frames.numpy(), known, clip)
    if not isinstance(answer, Estimate) or answer.poses is None:
        reason = answer.note if isinstance(answer, Estimate) else answer.reason
        raise InputError(clip, f"cameras by {estimator.name}", reason or "none", "Give a camera file with --cameras.")
    through = known or (answer.view.lens if answer.view is not None else None)
    if not isinstance(through, Lens):
        raise InputError("lens", "the source's lens", "none", "Name it with --lens.")
    unit = "metric" if estimator.name == "embedded" else "arbitrary"
    return Cameras(through.to(torch.float32), torch.from_numpy(answer.poses).float(), unit)  # type: ignore[arg-type]


def _at_the_models_shape(
    frames: UInt8[Tensor, "t h w 3"], path: Cameras, map: RadialMap, shape: VideoShape
) -> tuple[Tensor, Cameras, RadialMap]:
    """Taken evenly in time where the source is longer than the model's videos, then cropped and resized together."""
    if len(frames) < shape.frames:
        raise InputError("source video", f"at least {shape.frames} frames", len(frames))
    chosen = torch.linspace(0, len(frames) - 1, shape.frames).round().long()
    path = path[chosen.tolist()]
    map = replace(map, radius=map.radius[chosen], valid=map.valid[chosen])
    clip = fitted(Footage("source", "", frames[chosen], path, map), shape)
    assert clip.radial is not None
    metres = torch.where(clip.radial.valid, clip.radial.radius, torch.nan)
    metres, _ = fitted_distances(metres, shape.width, shape.height)
    return clip.video, clip.cameras, RadialMap.from_metric(metres, near=map.near, unit=map.unit)


def _in_metres(path: Cameras, near: float) -> Cameras:
    """A path in near distances, in metres; one in its teacher's own unit keeps it, as the map is in that unit too."""
    if path.unit == "near":
        poses = path.world_from_camera.clone()
        poses[..., :3, 3] *= near
        path = replace(path, world_from_camera=poses)
    return replace(path, unit="metric")


def _standing_at(wanted: Cameras, source: Cameras) -> Cameras:
    """The new path in the source's world: it starts where the source's first camera stands."""
    first = source.world_from_camera[:1]
    return replace(wanted, world_from_camera=first @ wanted.relative_to_first().world_from_camera)


def _oddities(frames: UInt8[Tensor, "t h w 3"]) -> list[str]:
    """A cut, or no motion at all: what a transfer cannot make sense of, said before it is tried."""
    small = frames[:, ::4, ::4].float()
    change = (small[1:] - small[:-1]).abs().mean((1, 2, 3))
    if (small - small[:1]).abs().mean((1, 2, 3)).max() < STILL:
        return ["the source hardly changes from its first frame to its last: there is no motion to transfer"]
    cut = int(change.argmax())
    if change[cut] > CUT and change[cut] > 6 * change.median():
        return [f"the source seems to have a cut after frame {cut}: its two halves are different scenes"]
    return []


def _scores(
    video: Path, cameras: Cameras, map: RadialMap, teacher: Estimator, folder: Path
) -> tuple[dict[str, float], list[str]]:
    """How the distances that the teacher reads in the new video follow the map."""
    file = folder / "result-cameras.json"
    # Scores do not depend on a scale, and who triangulates takes a path in any unit but near distances.
    write_cameras(replace(cameras, unit="arbitrary") if isinstance(teacher, KnowsCameras) else cameras, file)
    try:
        read, _ = _map_of(Job("result", video, file), teacher, folder)
        supplied, found = (torch.where(i.valid, i.radius, torch.nan) for i in (map, read))
        found, _ = fitted_distances(found, map.radius.shape[2], map.radius.shape[1])
        scores = asdict(adherence(supplied.numpy(), found.numpy()))
        return {key: value for key, value in scores.items() if key != "frames"}, []
    except InputError as error:
        return {}, [f"the new video could not be scored: {error}"]


def _side_by_side(source: Tensor, map: RadialMap, video: Path, output: Path) -> Path:
    """The source, its map and the result in one video."""
    result = read_video(video)
    colours = radial_picture(map.radius, map.valid, distance_limits(map.radius, map.valid))
    zoom = max(1, round(SHOWN_WIDTH / source.shape[2]))
    size = tuple(i * zoom for i in source.shape[1:3])
    shown = torch.nn.functional.interpolate(result.frames.movedim(-1, 1).float(), size, mode="area")
    last = shown.round().to(torch.uint8).movedim(1, -1)
    three = torch.cat([enlarged(source, zoom), enlarged(colours, zoom), last], 2)
    return write_video(three, output.with_name(f"{output.stem}-transfer.mp4"), result.fps)
