"""Motion transfer: a source video's cameras and distances, filmed again with another prompt.

Stages: the source's cameras and lens, its map of distances, the map as the new camera sees it, the video, and how well
the video follows the map. Their files are kept in a folder; of them only the source's map is used again, when nothing
that it is made of has changed.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import Footage, VideoShape, fitted
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Estimator
from curvedray.evaluate.label import label_clip, label_videos
from curvedray.evaluate.matching import Job, clip_name
from curvedray.evaluate.metrics.geometry import adherence
from curvedray.formats import write_cameras
from curvedray.formats.of_video import cameras_of_video
from curvedray.generation.parts import Parts, Source, check_takes_maps
from curvedray.generation.recipe import new_recipe
from curvedray.generation.write import make_video
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.media.pictures import enlarged
from curvedray.media.video import read_video, write_video
from curvedray.moves.trajectory import fitted_to, trajectory
from curvedray.radial.carry import carried
from curvedray.radial.convert import fitted_distances
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

SHOWN_WIDTH = 320  # pixels, about, of each of the three pictures side by side
STILL = 0.5  # of 255, mean change from frame to frame below which a source has no motion
CUT = 60.0  # mean change between two frames that a cut has, and motion hardly ever


@dataclass(frozen=True, eq=False)
class Transfer:
    """What was filmed, and how well it follows the source's distances."""

    files: list[Path]
    scores: dict[str, float]  # empty where the teacher could not read the new video
    carried: float | None  # share of the frame the map covers for a new camera; None with the source's own
    notes: tuple[str, ...]


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
    seed: int = 0,
    stage: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> Transfer:
    """Film a prompt with a source video's motion and layout, or with its layout and another move."""
    check_takes_maps(parts.adapter)
    own = parts.model.defaults
    shape = VideoShape(own.frames, own.height, own.width)
    folder = output.with_name(f"{output.stem}-stages")
    stage(0, 5, "reading the source")
    video = read_video(source)
    notes = list(_oddities(video.frames))
    path = source_cameras(video.frames, cameras, estimator, lens, clip_name(source))
    if path.unit == "arbitrary":
        notes.append("the cameras' scale is not known: their unit is taken for a metre")
    stage(1, 5, f"distances by {teacher.name}")
    file = folder / "source-cameras.json"
    write_cameras(path, file)
    (label,) = label_videos([Job(clip_name(source), source, file)], teacher, folder)
    if label.failure:
        raise InputError(str(source), "distances of the source", label.failure)
    map = read_radial_map(folder / label.map)
    frames, path, map = _at_the_models_shape(video.frames, path, map, shape)
    path = _in_metres(path, map.near)
    share = None
    if move is not None:
        stage(2, 5, "the map as the new camera sees it")
        wanted = trajectory(move, path.frame_lens[0], shape.frames, unit="metric", near=map.near)
        map, share = carried(map, path, _standing_at(wanted, path))
        path = wanted
        notes.append(f"the map covers {share:.0%} of the new camera's view; the rest is the model's")
    stored = write_radial_map(map, folder / "map.npz")
    parts = replace(parts, radial=map, radial_source=Source.of(stored))
    stage(3, 5, "filming")
    recipe = new_recipe(parts, prompt, replace(path.scaled(map.near), fps=float(own.fps)), seed=seed)
    files = make_video(parts, recipe, output)
    stage(4, 5, "scoring")
    scores, said = _scores(files[0], recipe.shot.cameras, map, teacher, folder)
    notes += said
    files.append(_side_by_side(frames, map, files[0], output))
    return Transfer(files, scores, share, tuple(notes))


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
    answer = estimator.estimate(frames.numpy(), known, clip)
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
    return clip.video, clip.cameras, RadialMap.from_metric(metres, near=map.near)


def _in_metres(path: Cameras, near: float) -> Cameras:
    """A path in near distances, in metres; one of unknown scale is taken at its word."""
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
    if not len(change) or change.max() < STILL:
        return ["the source hardly changes from frame to frame: there is no motion to transfer"]
    cut = int(change.argmax())
    if change[cut] > CUT and change[cut] > 6 * change.median():
        return [f"the source seems to have a cut after frame {cut}: its two halves are different scenes"]
    return []


def _scores(
    video: Path, cameras: Cameras, map: RadialMap, teacher: Estimator, folder: Path
) -> tuple[dict[str, float], list[str]]:
    """How the distances that the teacher reads in the new video follow the map."""
    file = folder / "result-cameras.json"
    write_cameras(cameras, file)
    try:
        read, _ = label_clip(Job("result", video, file), teacher)
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
