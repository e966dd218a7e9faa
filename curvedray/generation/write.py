"""A recipe -> an mp4 that carries it, and beside the video its JSON, a contact sheet, its path and its radii."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.generation.generate import Callback, Generated, generate
from curvedray.generation.recipe import Parts, VideoRecipe
from curvedray.media.distances import radial_picture
from curvedray.media.image import write_png
from curvedray.media.pictures import PathPlot, contact_sheet, enlarged
from curvedray.media.video import write_video
from curvedray.models.interface import BaseIdentity, VideoModel
from curvedray.radial.interval import RadialInterval


def make_video(parts: Parts, recipe: VideoRecipe, path: str | Path, *, progress: bool = True) -> list[Path]:
    """Generate and write everything, whole or not at all; the files written, the video first."""
    path = Path(path)
    if path.suffix.lower() != ".mp4":
        raise InputError(str(path), "a name that ends in .mp4", path.suffix or "no ending")
    if BaseIdentity.of(parts.model.transformer) != recipe.base:
        fix = "Load the model the recipe names."
        raise InputError("model", f"the one of the recipe ({recipe.base.weights})", "another", fix)
    with _bar(recipe.settings.steps, progress) as callback:
        made = cook(parts, recipe, callback)
    return write_all(made, recipe, path)


def cook(parts: Parts, recipe: VideoRecipe, callback: Callback | None = None) -> Generated:
    """Generate what the recipe says."""
    settings = recipe.settings
    return generate(
        parts.model,
        recipe.prompt,
        recipe.cameras,
        adapter=parts.adapter,
        radial=parts.radial,
        negative_prompt=recipe.negative,
        num_frames=settings.frames,
        height=settings.height,
        width=settings.width,
        num_inference_steps=settings.steps,
        guidance_scale=settings.guidance,
        camera_guidance=settings.camera_guidance,
        drop_text=settings.drop_text,
        radial_sigma=settings.radial_sigma,
        seed=settings.seed,
        sampler=settings.sampler,
        shift=settings.shift,
        callback_on_step_end=callback,
    )


def write_all(made: Generated, recipe: VideoRecipe, path: Path) -> list[Path]:
    """Every file is finished in a folder of its own before any takes its place."""
    record = recipe.to_json()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent)
    except OSError as error:
        raise InputError(str(path), "a place that can be written to", error.strerror or str(error)) from error
    with scratch as folder:
        inside = Path(folder)
        seen = enlarged(made.frames, recipe.settings.zoom)
        write_video(seen, inside / path.name, made.fps, metadata={"recipe": json.dumps(record, sort_keys=True)})
        beside = {"recipe": record, "cost": asdict(made.cost)}
        (inside / f"{path.stem}.json").write_text(json.dumps(beside, indent=1, sort_keys=True) + "\n")
        _pictures(made, seen, inside, path.stem)
        names = sorted((file.name for file in inside.iterdir()), key=lambda name: (name != path.name, name))
        for name in names:
            os.replace(inside / name, path.parent / name)
    return [path.parent / name for name in names]


def _pictures(made: Generated, seen: UInt8[Tensor, "t h w 3"], folder: Path, stem: str) -> None:
    """Frames of the video, the camera's path, and the radii its adapter believed in."""
    chosen = _spread(len(seen), 8)
    sheet = contact_sheet(seen[chosen], labels=[f"frame {i}" for i in chosen])
    write_png(sheet, folder / f"{stem}-sheet.png")
    write_png(PathPlot.of(made.cameras, (640, 480)).at(), folder / f"{stem}-path.png")
    if made.radii and made.radii[-1]:
        write_png(radii_sheet(made.radii, made.grid), folder / f"{stem}-radii.png")


def radii_sheet(radii: list[dict[int, RadialInterval]], grid: TokenGrid) -> UInt8[Tensor, "h w 3"]:
    """Predicted radii of the middle latent frame: a row a denoising step, a column a curved block, first to last."""
    steps, blocks = _spread(len(radii), 4), [sorted(radii[-1])[i] for i in _spread(len(radii[-1]), 4)]
    maps = torch.stack(
        [radii[step][block].pictures(grid)[0][0, grid.frames // 2] for step in steps for block in blocks]
    )
    zoom = max(1, round(208 / grid.cols))
    pictures = radial_picture(maps).repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    labels = [f"step {step + 1}, block {block}" for step in steps for block in blocks]
    return contact_sheet(pictures, len(blocks), labels)


def _spread(count: int, most: int) -> list[int]:
    """Up to `most` indices from the first to the last."""
    return sorted({round(i) for i in torch.linspace(0, count - 1, min(count, most)).tolist()})


@contextmanager
def _bar(steps: int, shown: bool) -> Iterator[Callback]:
    """Steps done, time gone and time left."""
    columns = (TextColumn("denoising"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("denoising", total=steps)

        def advance(model: VideoModel, step: int, timestep: float, tensors: dict[str, Tensor]) -> Any:
            bar.advance(task)

        yield advance
