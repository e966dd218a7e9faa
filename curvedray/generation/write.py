"""A recipe -> a video that carries it, and beside it its JSON, its cameras, a contact sheet, its path and its radii."""

import json
import os
import shutil
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.files import check_writable, named_file, scratch_folder
from curvedray.formats import write_cameras
from curvedray.generation.parts import Parts
from curvedray.generation.recipe import RECIPE, VideoRecipe
from curvedray.generation.sampling import Generated, film
from curvedray.generation.settings import Settings
from curvedray.inputs import MB, megabytes
from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
from curvedray.media.image import write_png
from curvedray.media.pictures import PathPlot, contact_sheet, enlarged
from curvedray.media.video import CRF, frame_rate, write_video
from curvedray.models.interface import VideoModel
from curvedray.models.open import is_embedded
from curvedray.radial.interval import RadialInterval
from curvedray.world.preview import render_caption
from curvedray.world.themes import describe_caption

ENDINGS = (".mp4", ".webm", ".gif")
CAMERAS = "-cameras.json"  # what `curvedray evaluate` looks for beside a video
PICTURES = ("-sheet.png", "-path.png", "-radii.png")
RADII = "-radii.npz"
EXACT = "-exact"  # of the video that shows the generated frames beside the exact rendering
PATH_SIZE = (640, 480)
Tick = Callable[[int, int], Any]  # tick(steps done, steps in all)


@dataclass(frozen=True)
class Files:
    """Which files a video comes with beside its recipe and its cameras, and how exactly its pixels are kept."""

    pictures: bool = True
    radii: bool = False  # as numbers
    exact: bool = False  # a video of the generated frames beside the exact rendering
    crf: int = CRF

    def beside(self, path: Path) -> list[Path]:
        """All of them but the video itself."""
        endings = [RECIPE, CAMERAS, *(PICTURES if self.pictures else ()), *([RADII] if self.radii else ())]
        endings += [EXACT + path.suffix] if self.exact else []
        return [path.with_name(path.stem + ending) for ending in endings]


USUAL = Files()


def check_output(
    path: str | Path, settings: Settings | None = None, files: Files = USUAL, inputs: Collection[str | Path] = ()
) -> Path:
    """A path whose ending, folder, neighbours and disk take a video, known before any work is done for it. None of the
    files that are written may be one of the video's own inputs."""
    path = named_file(path, ENDINGS)
    for file in (path, *files.beside(path)):
        check_no_input(file, inputs)
        check_writable(file)
    if settings is not None:
        # Encoded frames take a hundredth of their raw size to a quarter; pictures a few hundred kilobytes.
        raw = 3 * settings.frames * settings.width * settings.height * settings.zoom**2
        wanted = raw / 4 * (3 if files.exact else 1) + MB
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        free = shutil.disk_usage(folder).free
        if free < wanted:
            raise InputError(str(path), f"{megabytes(wanted)} of free disk", megabytes(free), "Make room first.")
    return path


def check_no_input(file: Path, inputs: Collection[str | Path]) -> None:
    """Refuse to write over what is read."""
    if file.resolve() in {Path(one).resolve() for one in inputs}:
        raise InputError(str(file), "a file to write", "an input of this video", "Choose another name with -o.")


def check_exact(model: str, prompt: str) -> None:
    """Refuse what cannot be rendered exactly: another model's scenes, a caption that leaves something open."""
    if not is_embedded(model):
        raise InputError("--beside-exact", "the embedded model, whose scenes can be rendered", model)
    describe_caption(prompt)


def check_files(parts: Parts, recipe: VideoRecipe, files: Files) -> None:
    """Refuse what could not be written of a video, before it is made."""
    frame_rate(recipe.shot.cameras.fps or float(parts.model.defaults.fps))
    if files.exact:
        check_exact(parts.model.name, recipe.shot.prompt)
    if files.radii and (parts.adapter is None or not parts.adapter.config.rule.predicts_radius):
        raise InputError("--save-radii", "an adapter that predicts radii", "none")


def make_video(
    parts: Parts,
    recipe: VideoRecipe,
    path: str | Path,
    *,
    tick: Tick | None = None,
    files: Files = USUAL,
    inputs: Collection[str | Path] = (),
) -> list[Path]:
    """Generate and write everything, whole or not at all; the files written, the video first. `inputs` are files that
    it was asked for with, which are never written over."""
    path = check_output(path, recipe.shot.settings, files, inputs)
    check_files(parts, recipe, files)
    if parts.base != recipe.base:
        fix = "Load the model the recipe names."
        raise InputError("model", f"the one of the recipe ({recipe.base.weights})", "another", fix)
    made = film(parts, recipe.shot, None if tick is None else _ticking(tick, recipe.shot.settings.steps))
    return write_all(made, recipe, path, files)


def write_all(made: Generated, recipe: VideoRecipe, path: Path, files: Files) -> list[Path]:
    """Every file is finished in a folder of its own before any takes its place, the recipe the last: it says that all
    are there."""
    with scratch_folder(path) as inside:
        write_film(made, recipe, inside / path.name, files.crf)
        write_beside(made, recipe, inside / path.name, pictures=files.pictures)
        if files.exact:
            seen = enlarged(made.frames, recipe.shot.settings.zoom)
            both = torch.cat([seen, exact_frames(recipe, seen.shape[2], seen.shape[1])], 2)
            write_video(both, inside / f"{path.stem}{EXACT}{path.suffix}", made.fps)
        if files.radii:
            write_radii(made, recipe.near, inside / (path.stem + RADII))
        names = [file.name for file in inside.iterdir()]
        names.sort(key=lambda name: (name != path.name, name.endswith(RECIPE), name))
        for name in names:
            os.replace(inside / name, path.parent / name)
    return [path.parent / name for name in names]


def write_film(made: Generated, recipe: VideoRecipe, path: Path, crf: int = CRF) -> Path:
    """The video alone, its recipe inside."""
    notes = {"recipe": json.dumps(recipe.to_json(), sort_keys=True)}
    return write_video(enlarged(made.frames, recipe.shot.settings.zoom), path, made.fps, metadata=notes, crf=crf)


def write_beside(made: Generated, recipe: VideoRecipe, path: Path, pictures: bool = True) -> None:
    """What goes beside a video: its recipe as JSON, its cameras, pictures of it, its path and its radii."""
    beside = {"recipe": recipe.to_json(), "cost": asdict(made.cost)}
    path.with_name(path.stem + RECIPE).write_text(json.dumps(beside, indent=1, sort_keys=True) + "\n")
    write_cameras(made.cameras, path.with_name(path.stem + CAMERAS), "curvedray")
    if pictures:
        _write_pictures(made, recipe.shot.settings.zoom, path.parent, path.stem)


def exact_frames(recipe: VideoRecipe, width: int, height: int) -> UInt8[Tensor, "t h w 3"]:
    """A court that the prompt asks for, ray-cast through the same cameras; where its things stand is its own choice."""
    cameras = recipe.shot.cameras
    fine = type(cameras)(cameras.lens.sized(width, height), cameras.world_from_camera, cameras.unit)
    return render_caption(recipe.shot.prompt, fine).frames


def _write_pictures(made: Generated, zoom: int, folder: Path, stem: str) -> None:
    """Frames of the video, the camera's path, and the radii that its adapter predicted."""
    sheet, path, radii = (folder / (stem + ending) for ending in PICTURES)
    chosen = _spread(len(made.frames), 8)
    seen = enlarged(made.frames[chosen], zoom)
    write_png(contact_sheet(seen, labels=[f"frame {i}" for i in chosen]), sheet)
    write_png(PathPlot.of(made.cameras, PATH_SIZE).at(), path)
    if made.radii and made.radii[-1]:
        write_png(radii_sheet(made.radii, made.grid), radii)


def write_radii(made: Generated, near: float | None, path: Path) -> None:
    """The radii that the adapter predicted in the last step, per curved block, on the token grid (t, y, x).

    `radius` and `sigma` (of its logarithm) are (block, t, y, x), in near distances; `blocks` are their numbers, and
    `near` is in metres, NaN where no map gave one.
    """
    if not made.radii or not made.radii[-1]:
        raise InputError("--save-radii", "an adapter that predicts radii", "none")
    last, grid = made.radii[-1], made.grid
    blocks = sorted(last)
    shape = (len(blocks), grid.frames, grid.rows, grid.cols)
    radius, sigma = (
        torch.stack([getattr(last[block], name)[0] for block in blocks]).float().reshape(shape).numpy()
        for name in ("radius", "sigma")
    )
    metres = np.float64(torch.nan if near is None else near)
    with path.open("wb") as file:
        np.savez_compressed(file, radius=radius, sigma=sigma, blocks=np.array(blocks), near=metres)


def radii_sheet(radii: list[dict[int, RadialInterval]], grid: TokenGrid) -> UInt8[Tensor, "h w 3"]:
    """Predicted radii of the middle latent frame, with their scale: a row per step, a column per curved block."""
    steps, blocks = _spread(len(radii), 4), [sorted(radii[-1])[i] for i in _spread(len(radii[-1]), 4)]
    maps = torch.stack(
        [radii[step][block].pictures(grid)[0][0, grid.frames // 2] for step in steps for block in blocks]
    )
    limits = distance_limits(maps)
    zoom = max(1, round(208 / grid.cols))
    pictures = radial_picture(maps, limits=limits).repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    labels = [f"step {step + 1}, block {block}" for step in steps for block in blocks]
    return with_scale(contact_sheet(pictures, len(blocks), labels), limits, "near distances")


def _spread(count: int, most: int) -> list[int]:
    """Up to `most` indices from the first to the last."""
    return sorted({round(i) for i in torch.linspace(0, count - 1, min(count, most)).tolist()})


def _ticking(tick: Tick, steps: int) -> Callable[[VideoModel, int, float, dict[str, Tensor]], None]:
    def after_step(model: VideoModel, step: int, timestep: float, tensors: dict[str, Tensor]) -> None:
        tick(step + 1, steps)

    return after_step
