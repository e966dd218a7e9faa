"""Film a list of requests: a video each, resumable; what is wrong with one is said and the rest goes on.

A request is done when its video and the JSON beside it carry the recipe that it resolves to now: the same words,
cameras, settings and weights. So another run, or another worker, makes none twice.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from curvedray.adapter.cost import Cost
from curvedray.cameras import Cameras, Lens
from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cameras.named_lenses import named_lens
from curvedray.engine import HERE, Engine, model_opener, run_jobs
from curvedray.errors import InputError
from curvedray.formats.panshot import request_cameras
from curvedray.formats.read import read_cameras
from curvedray.formats.source import Given
from curvedray.generation.parts import Parts, Source, load_parts
from curvedray.generation.recipe import RECIPE, VideoRecipe, new_recipe, read_recipe
from curvedray.generation.requests import VideoRequest
from curvedray.generation.sampling import cost_of
from curvedray.generation.write import CAMERAS, RADII, USUAL, Files, make_video
from curvedray.models.open import usual_shape
from curvedray.radial.check import checked
from curvedray.radial.map import read_radial_map


@dataclass(frozen=True)
class Filmed:
    """What became of a request."""

    name: str
    video: str  # the file; empty where there is none
    resumed: bool = False  # it was there, made as it would be made now
    failure: str = ""
    notices: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Crew:
    """What films, by its names, so that every worker can open its own: a model, an adapter, how they are loaded."""

    model: str = ""
    adapter: str | None = None
    loading: tuple[tuple[str, Any], ...] = ()  # for load_parts: device, dtype, offload ...

    def open(self) -> "OpenCrew":
        return OpenCrew(self)


class OpenCrew:
    """The model and its adapter, loaded when first needed, which then stay."""

    def __init__(self, crew: Crew):
        self.crew = crew
        self._loaded: Parts | None = None

    def parts(self, radial: str | None = None, near: float | None = None) -> Parts:
        """The parts for a video with this map or without one."""
        crew = self.crew
        if self._loaded is None:
            self._loaded = load_parts(crew.model, crew.adapter, **dict(crew.loading))
        parts = self._loaded
        if radial is None:
            return parts
        distances = checked(read_radial_map(Path(radial), near), radial)
        parts = replace(parts, radial=distances, radial_source=Source.of(radial))
        parts.check_map()
        return parts

    def recipe(self, request: VideoRequest) -> tuple[Parts, VideoRecipe]:
        """A request with everything resolved; what it has wrong is refused by its name."""
        path = self._path(request)
        near = None if is_panshots(request) else request.near  # PanShot's has divided its poses by it
        arbitrary = isinstance(path, Cameras) and path.unit == "arbitrary"
        parts = self.parts(request.radial, None if arbitrary else near)
        recipe = new_recipe(
            parts,
            request.prompt,
            path,
            lens=request.lens,
            negative=request.negative,
            near=near,
            fps=request.fps,
            fit=True,
            radial_sigma=request.radial_sigma,
            **request.settings,
        )
        return parts, recipe

    def _path(self, request: VideoRequest) -> Cameras | str:
        if request.camera is None:
            if request.x_fov is not None:
                raise InputError("x_fov", "a lens for a camera file", "one without", "Name a lens for moves: lens.")
            return request.move or "static"
        own = usual_shape(self.crew.model)
        width, height = request.width or own[2], request.height or own[1]
        lens: Lens | str | None = request.lens
        if request.x_fov is not None and request.xi is not None:
            fov, xi = torch.tensor([request.x_fov, request.xi], dtype=torch.float64)
            lens = Lens.from_fov(fov, xi, width, height)
        if not is_panshots(request):
            return read_cameras(request.camera, lens=lens)
        lens = named_lens(lens or USUAL_LENS, width, height) if not isinstance(lens, Lens) else lens
        # A list's table of near distances is for PanShot's poses whose line says none.
        listed = request.near is None and Path(request.camera).suffix.lower() == ".npy"
        said: dict[str, Any] = {"near_depth": request.near, "near_depths": request.near_depths if listed else None}
        said |= {"zero_yaw": bool(request.zero_yaw), "traj_normalization": request.traj_normalization}
        return request_cameras(Path(request.camera), Given(lens, (width, height)), **said).to(torch.float32)


def is_panshots(request: VideoRequest) -> bool:
    """Whether its camera file is read as PanShot's or RealEstate10K's poses, with what a request says of them."""
    if request.camera is None:
        return False
    said = {".npy": (request.near_depths, request.zero_yaw), ".txt": (request.traj_normalization,)}
    about = said.get(Path(request.camera).suffix.lower())
    return about is not None and any(one is not None for one in (request.x_fov, *about))


def film_requests(
    requests: Sequence[VideoRequest],
    folder: Path,
    crew: Crew,
    *,
    engine: Engine = HERE,
    opened: OpenCrew | None = None,
    files: Files = USUAL,
    done: Callable[[Filmed], None] = lambda filmed: None,
) -> list[Filmed]:
    """A video of every request in `folder`, with its cameras and its recipe beside it, in the order of the list.

    `opened` is the crew where it is open already; workers elsewhere open their own.
    """
    opener = partial(_filmer, model_opener(opened or crew.open(), crew.open, engine), folder, files)

    def lost(request: VideoRequest, reason: str) -> Filmed:
        return Filmed(request.file, "", failure=reason)

    return run_jobs(list(requests), opener, engine, done=lambda _, filmed: done(filmed), lost=lost, gpu=True)


def _filmer(open_crew: Callable[[], OpenCrew], folder: Path, files: Files) -> Callable[[VideoRequest], Filmed]:
    return partial(film_once, crew=open_crew(), folder=folder, files=files)


def film_once(request: VideoRequest, crew: OpenCrew, folder: Path, files: Files = USUAL) -> Filmed:
    """A request's video, made if it is not there."""
    began, video = time.monotonic(), folder / f"{request.file}.mp4"
    try:
        parts, recipe = crew.recipe(request)
    except InputError as error:
        return Filmed(request.file, "", failure=str(error))
    resumed = is_filmed(video, recipe, files)
    if not resumed:
        try:
            inputs = [file for file in (request.camera, request.radial) if file is not None]
            make_video(parts, recipe, video, files=files, inputs=inputs)
        except InputError as error:  # a map that does not fit, numbers that run away: the rest goes on
            return Filmed(request.file, "", failure=str(error))
    seconds = round(time.monotonic() - began, 2)
    return Filmed(request.file, str(video), resumed, notices=recipe.shot.notices, seconds=seconds)


def is_filmed(video: Path, recipe: VideoRecipe, files: Files = USUAL) -> bool:
    """Whether a video is there, with its cameras and the radii that are wanted, made by this very recipe. The JSON is
    written last of its files."""
    beside = [CAMERAS, RADII] if files.radii else [CAMERAS]
    if not (video.is_file() and all(video.with_name(video.stem + name).is_file() for name in beside)):
        return False
    wanted = _decides(recipe)
    try:
        stored = [_decides(read_recipe(path)) for path in (video, video.with_name(video.stem + RECIPE))]
    except InputError:
        return False
    return all(one == wanted for one in stored)


def _decides(recipe: VideoRecipe) -> str:
    """What of a recipe decides a video: the contents of its files, however their paths are spelled."""
    record = recipe.to_json() | {"model": ""}  # its weights are in `base`
    for part in ("adapter", "radial"):
        record[part] = record[part] and record[part] | {"path": ""}
    return json.dumps(record, sort_keys=True)


def cost_of_requests(requests: Sequence[VideoRequest], crew: OpenCrew) -> Cost | None:
    """What the first sound request of a list takes; None where none is sound."""
    for request in requests:
        try:
            parts, recipe = crew.recipe(request)
        except InputError:
            continue
        return cost_of(parts, recipe.shot)
    return None
