"""A film, made by the worker: the video first, then all that goes beside it, then the verdict."""

import io
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from curvedray.app.answering import collected_notes
from curvedray.app.maps import block_map, cut, distance_frames
from curvedray.app.paths import PathMade, path_of, says_metres
from curvedray.app.requests import FilmAsked
from curvedray.app.scenes import blocks_near, blocks_of
from curvedray.app.verdict import NoJudge, verdict_of
from curvedray.app.worker_models import WorkerModels, estimator, with_map
from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate, Estimator, choose_estimator
from curvedray.evaluate.estimators.protocol import estimate_of
from curvedray.evaluate.scores import Failure
from curvedray.files import scratch_folder, whole_file
from curvedray.generation.parts import Parts
from curvedray.generation.recipe import RECIPE, VideoRecipe, new_recipe
from curvedray.generation.sampling import Generated, film
from curvedray.generation.write import CAMERAS, PICTURES, write_beside, write_film
from curvedray.media.image import write_png
from curvedray.media.pictures import enlarged
from curvedray.media.pixels import frames_from_video
from curvedray.media.video import write_video
from curvedray.models.interface import VideoModel
from curvedray.models.open import is_embedded
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.world.blocks import block_scene
from curvedray.world.preview import enclosing, scene_near
from curvedray.world.raycast import render
from curvedray.world.scene import Scene
from curvedray.world.world import scene_from_caption

VIDEO, EXACT, MAP, MAP_VIDEO = "film.mp4", "exact.mp4", "film-map.npz", "film-map.mp4"
STILL, THUMBNAIL = "still.png", "thumbnail.jpg"
THUMBNAIL_WIDTH, STRIP_WIDTH = 240, 192  # pixels, about: of a thumbnail, of each frame of a step's picture
STRIP_FRAMES = 33  # at most in a step's picture


@dataclass(frozen=True, eq=False)
class Planned:
    """A film with everything resolved, before the first step."""

    asked: FilmAsked
    path: PathMade  # in metres
    near: float  # metres, by which the page's scene and the path are measured
    map: RadialMap | None
    parts: Parts
    recipe: VideoRecipe
    by_words: bool  # whether the command line can say the path and the lens


def film_take(models: WorkerModels, folder: Path, asked_json: dict[str, Any]) -> None:
    asked = FilmAsked.model_validate(asked_json)
    channel = models.channel
    with collected_notes() as said:
        plan = planned(models, folder, asked)
    shot = plan.recipe.shot
    channel.say("news", doing="denoising", facts=facts(plan), notes=[*plan.path.notes, *shot.notices, *said])

    def after_step(model: VideoModel, step: int, timestep: float, tensors: dict[str, Tensor]) -> None:
        channel.check()
        picture, frames = step_picture(model, tensors["clean"])
        channel.say("step", step=step + 1, steps=shot.settings.steps, picture=picture, frames=frames)
        channel.check()

    made = film(plan.parts, shot, after_step)
    channel.check()
    write_film(made, plan.recipe, folder / VIDEO)
    seen = enlarged(made.frames, shot.settings.zoom)
    write_thumbnail(seen[len(seen) // 2], folder / THUMBNAIL)
    channel.say("news", doing="drawing", files={"video": VIDEO, "thumbnail": THUMBNAIL})
    channel.say("news", doing="judging", files=_write_rest(plan, made, seen, folder))
    channel.check()
    verdict, notes = _judged(plan, made, folder / VIDEO)
    channel.say("news", verdict=verdict, notes=notes)


def planned(models: WorkerModels, folder: Path, asked: FilmAsked) -> Planned:
    """Resolve what was asked as `curvedray generate` does, so that the command makes the same bytes."""
    near = asked.path.near
    has_blocks = asked.scene is not None and asked.scene.is_blocks and bool(blocks_of(asked.scene))
    if has_blocks and asked.map is not None:
        raise InputError("distances", "a blocked-out scene or a map", "both")
    path = path_of(asked.path, models.uploads)
    map: RadialMap | None = None
    if has_blocks:
        assert asked.scene is not None
        near = blocks_near(block_scene(blocks_of(asked.scene), asked.scene.eye), path.cameras.frame_lens[0])
        path = path_of(asked.path.model_copy(update={"near": near}), models.uploads)
        map = block_map(asked.scene, path.cameras)
    elif asked.map is not None:
        map = read_radial_map(models.maps.file(asked.map))
        near = map.near
        path = path_of(asked.path.model_copy(update={"near": near}), models.uploads)
    elif asked.cuts:
        raise InputError("cuts", "a map or a blocked-out scene to cut regions from", "neither")
    parts = models.parts_for(asked.model, asked.adapter)
    if map is not None:
        map, parts = _kept(cut(map, asked.cuts), parts, folder)
    by_words = path.step is not None and path.lens_name is not None
    return Planned(asked, path, near, map, parts, _recipe(asked, path, near, parts, by_words), by_words)


def _kept(map: RadialMap, parts: Parts, folder: Path) -> tuple[RadialMap, Parts]:
    """The map as it is written beside the video, and read from there: a recipe holds its digest."""
    file = write_radial_map(map, folder / MAP)
    map = read_radial_map(file)
    return map, with_map(parts, map, file, MAP)


def _recipe(asked: FilmAsked, path: PathMade, near: float, parts: Parts, by_words: bool) -> VideoRecipe:
    own = parts.model.defaults
    cameras: Cameras | str = str(path.step) if by_words else path.cameras.scaled(near)
    named_near = near if by_words and path.step is not None and says_metres(path.step) else None
    return new_recipe(
        parts,
        asked.prompt,
        cameras,
        lens=path.lens_name if by_words else None,
        negative=asked.negative,
        near=named_near if parts.radial is None else None,
        fps=asked.path.fps if by_words and asked.path.fps != own.fps else None,
        fit=True,
        frames=asked.path.frames,
        width=asked.path.width,
        height=asked.path.height,
        steps=asked.steps,
        guidance=asked.guidance,
        camera_guidance=asked.camera_guidance,
        seed=asked.seed,
        radial_sigma=asked.radial_sigma,
    )


def command_of(plan: Planned) -> tuple[str, list[str]]:
    """The command line that makes the same video to the byte, and the take's files that it needs beside it."""
    asked, own, settings = plan.asked, plan.parts.model.defaults, plan.recipe.shot.settings
    words: list[Any] = ["curvedray", "generate", asked.prompt]
    needs = []
    if plan.by_words:
        words += ["--move", str(plan.path.step), "--lens", plan.path.lens_name]
        if plan.map is None and plan.path.step is not None and says_metres(plan.path.step):
            words += ["--near", repr(plan.near)]
        if asked.path.fps != own.fps:
            words += ["--fps", f"{asked.path.fps:g}"]
    else:
        words += ["--camera", VIDEO.replace(".mp4", CAMERAS)]
        needs.append(VIDEO.replace(".mp4", CAMERAS))
    if plan.map is not None:
        words += ["--radial", MAP]
        needs.append(MAP)
    if (settings.frames, settings.width, settings.height) != (own.frames, own.width, own.height):
        words += ["--frames", settings.frames, "--size", f"{settings.width}x{settings.height}"]
    given: dict[str, Any] = {"steps": asked.steps, "guidance": asked.guidance, "camera-guidance": asked.camera_guidance}
    given |= {"negative": asked.negative, "radial-sigma": asked.radial_sigma, "adapter": asked.adapter}
    given |= {"model": plan.parts.model.name or None, "seed": asked.seed or None}
    for name, value in given.items():
        if value is not None:
            words += [f"--{name}", repr(value) if isinstance(value, float) else value]
    return shlex.join([*map(str, words), "-o", VIDEO]), needs


def facts(plan: Planned) -> dict[str, Any]:
    settings = plan.recipe.shot.settings
    command, needs = command_of(plan)
    return {
        "width": settings.width * settings.zoom,
        "height": settings.height * settings.zoom,
        "frames": settings.frames,
        "fps": plan.recipe.shot.cameras.fps or float(plan.parts.model.defaults.fps),
        "lens": plan.path.lens_name,
        "moves": None if plan.path.step is None else str(plan.path.step),
        "near": plan.near,
        "command": command,
        "command_needs": needs,
    }


@torch.no_grad()
def step_picture(model: VideoModel, clean: Tensor) -> tuple[bytes, int]:
    """What a film looks like so far: its frames in one row, as JPEG. A large model's first frame must do."""
    shown = clean if is_embedded(model.name) else clean[:, :, :1]
    frames = frames_from_video(model.decode(shown))[0].cpu()[:STRIP_FRAMES]
    frames = enlarged(frames, max(1, round(STRIP_WIDTH / frames.shape[2])))
    return jpeg(torch.cat(list(frames), 1)), len(frames)


def jpeg(picture: UInt8[Tensor, "h w 3"]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture.contiguous().numpy()).save(stream, "JPEG", quality=85)
    return stream.getvalue()


def write_thumbnail(picture: UInt8[Tensor, "h w 3"], path: Path) -> None:
    image = Image.fromarray(picture.contiguous().numpy())
    image.thumbnail((THUMBNAIL_WIDTH, THUMBNAIL_WIDTH))
    with whole_file(path) as temporary:
        image.save(temporary, "JPEG", quality=85)


def _write_rest(plan: Planned, made: Generated, seen: UInt8[Tensor, "t h w 3"], folder: Path) -> dict[str, str]:
    """Everything beside the video, finished before any of it is seen; what there is, by name."""
    stem = Path(VIDEO).stem
    names = {"recipe": stem + RECIPE, "cameras": stem + CAMERAS, "still": STILL}
    names |= dict(zip(("sheet", "path", "radii"), (stem + ending for ending in PICTURES), strict=True))
    with scratch_folder(folder / VIDEO) as inside:
        write_beside(made, plan.recipe, inside / VIDEO)
        write_png(seen[len(seen) // 2], inside / STILL)
        truth = exact_world(plan)
        if truth is not None:
            scene, cameras, _ = truth
            lens = cameras.lens.sized(seen.shape[2], seen.shape[1])
            write_video(render(scene, replace(cameras, lens=lens)).frames, inside / EXACT, made.fps)
            names["exact"] = EXACT
        if plan.map is not None:
            write_video(distance_frames(plan.map), inside / MAP_VIDEO, made.fps)
            names |= {"map": MAP, "map_video": MAP_VIDEO}
        for file in inside.iterdir():
            os.replace(file, folder / file.name)
    return {key: name for key, name in names.items() if (folder / name).is_file()}


def exact_world(plan: Planned) -> tuple[Scene, Cameras, float] | None:
    """What the video should show, through which cameras in metres, and its near distance.

    The blocks, or the world's scene of the same caption, which has a near distance of its own; None for other prompts.
    """
    asked, cameras = plan.asked.scene, plan.path.cameras
    if asked is not None and asked.is_blocks and plan.map is not None:
        return block_scene(blocks_of(asked), asked.eye), cameras, plan.near
    if not is_embedded(plan.parts.model.name):
        return None
    try:
        scene = scene_from_caption(plan.recipe.shot.prompt).scene
    except InputError:
        return None
    near = scene_near(scene, cameras.frame_lens[0])
    poses = cameras.world_from_camera.clone()
    poses[:, :3, 3] *= near / plan.near
    cameras = replace(cameras, world_from_camera=poses)
    return enclosing(scene, cameras), cameras, near


def _judged(plan: Planned, made: Generated, video: Path) -> tuple[dict[str, Any], list[str]]:
    """The recovered path beside the requested one, both in the page's metres, and what is to be noted of that.

    The film is there by now: where no judge can be had, or one refuses, it is unknown whether the camera was obeyed.
    """
    name, notes = choose_estimator([video]), list[str]()
    judge: Estimator | NoJudge = NoJudge(name)
    try:
        judge = estimator(name)
        answer = _recovered(plan, made, judge)
    except InputError as error:
        answer = Failure(str(error), "take")
        notes.append(f"the film is made, but {name} could not judge it")
    return verdict_of(plan.path.cameras, plan.near, answer, judge).to_json(), notes


def _recovered(plan: Planned, made: Generated, judge: Estimator) -> Estimate | Failure:
    """What a judge recovers, knowing the lens of every frame, in the page's metres."""
    shown = enlarged(made.frames, plan.recipe.shot.settings.zoom).numpy()
    lens = plan.path.cameras.lens.sized(shown.shape[2], shown.shape[1])
    answer = estimate_of(judge, shown, lens, "take")
    truth = exact_world(plan)
    if truth is None or not isinstance(answer, Estimate) or answer.poses is None:
        return answer
    poses = answer.poses.copy()
    poses[:, :3, 3] *= plan.near / truth[2]
    return replace(answer, poses=poses)
