"""`curvedray generate`: a prompt and a camera in, a video out."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

EMBEDDED = (
    "the embedded model: a tiny one that knows a procedural world of coloured balls, boxes and pillars; "
    "for Wan: --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --adapter FILE"
)
PANEL_CAMERA, PANEL_MODEL, PANEL_SAMPLING = "Camera", "Model", "Sampling"


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    prompt: Annotated[str | None, typer.Argument(help="What the video shows.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .mp4 to write.")] = None,
    move: Annotated[
        str | None,
        typer.Option(help='The camera\'s moves: "orbit left 40deg, then dolly in 0.5".', rich_help_panel=PANEL_CAMERA),
    ] = None,
    lens: Annotated[
        str | None,
        typer.Option(help="A lens by name: pinhole-70, wide-110, fisheye-160 ...", rich_help_panel=PANEL_CAMERA),
    ] = None,
    camera: Annotated[
        Path | None, typer.Option(help="A camera file in place of moves.", rich_help_panel=PANEL_CAMERA)
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(help="Near distance of the scene in metres, for cameras in metres.", rich_help_panel=PANEL_CAMERA),
    ] = None,
    radial: Annotated[
        Path | None,
        typer.Option(help="Distances to follow: .npy or .npz in metres, (T, H, W).", rich_help_panel=PANEL_CAMERA),
    ] = None,
    radial_sigma: Annotated[
        float | None,
        typer.Option(help="How loosely the map is followed, in log distance (0.1).", rich_help_panel=PANEL_CAMERA),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A Wan folder or hub id; without it, the embedded model.", rich_help_panel=PANEL_MODEL),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(help="The adapter's .safetensors; `none` for the model alone.", rich_help_panel=PANEL_MODEL),
    ] = None,
    any_weights: Annotated[
        bool,
        typer.Option("--any-weights", help="Allow a finetune of the adapter's base.", rich_help_panel=PANEL_MODEL),
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps ...", rich_help_panel=PANEL_MODEL)] = None,
    dtype: Annotated[
        str, typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel=PANEL_MODEL)
    ] = "auto",
    offload: Annotated[
        bool, typer.Option("--offload", help="Keep only the working part on the GPU.", rich_help_panel=PANEL_MODEL)
    ] = False,
    tiling: Annotated[
        bool, typer.Option("--tiling", help="Decode in tiles, to save memory.", rich_help_panel=PANEL_MODEL)
    ] = False,
    negative: Annotated[
        str | None, typer.Option(help="What the video should not be.", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Denoising steps.", rich_help_panel=PANEL_SAMPLING)] = None,
    guidance: Annotated[
        float | None, typer.Option(help="Towards the prompt; 1 is none.", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    camera_guidance: Annotated[
        float | None, typer.Option(help="Towards the camera; 1 is none.", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    drop_text: Annotated[
        bool | None,
        typer.Option(
            "--drop-text/--keep-text", help="Camera guidance drops the prompt too.", rich_help_panel=PANEL_SAMPLING
        ),
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="unipc or euler.", rich_help_panel=PANEL_SAMPLING)] = None,
    shift: Annotated[
        float | None,
        typer.Option(help="Of the noise levels; larger for larger videos.", rich_help_panel=PANEL_SAMPLING),
    ] = None,
    frames: Annotated[int | None, typer.Option(help="4 n + 1 frames.", rich_help_panel=PANEL_SAMPLING)] = None,
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT in pixels.", rich_help_panel=PANEL_SAMPLING)] = None,
    zoom: Annotated[
        int | None, typer.Option(help="Write the video this many times larger.", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same bytes.", rich_help_panel=PANEL_SAMPLING)] = None,
    again: Annotated[
        Path | None, typer.Option(help="Make this video again from the recipe inside it, to the byte.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would cost, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files and the recipe as JSON.")] = False,
) -> None:
    """Generate a video that follows a camera and a lens."""
    from curvedray.adapter.cost import generation_cost
    from curvedray.cli import console
    from curvedray.cli.shared import pixels
    from curvedray.errors import InputError
    from curvedray.generation.recipe import load_parts, new_recipe, read_recipe, relocated
    from curvedray.generation.write import make_video

    if (prompt is None) == (again is None):
        raise InputError("generate", "a prompt, or --again with a video", "both" if prompt else "neither")
    if move is not None and camera is not None:
        raise InputError("camera", "--move or --camera", "both")
    if output is None and not dry_run:
        if again is None:
            raise InputError("-o", "the name of the video to write", "none", "Add -o out.mp4.")
        output = again.with_suffix(".mp4")
    loading: dict[str, Any] = {
        "device": device,
        "offload": offload,
        "tiling": tiling,
        "near": near,
        "any_weights": any_weights,
    }
    if again is not None:
        recipe = relocated(read_recipe(again), adapter, None if radial is None else str(radial))
        name = recipe.model if model is None else model
        files = [None if part is None else part.path for part in (recipe.adapter, recipe.radial)]
        parts = load_parts(name, files[0] or "none", files[1], dtype=recipe.dtype, **loading)
    else:
        assert prompt is not None
        width, height = pixels(size) or (None, None)
        parts = load_parts(model or "", adapter, radial, dtype=dtype, **loading)
        recipe = new_recipe(
            parts,
            prompt,
            camera if camera is not None else move or "static",
            lens=lens,
            negative=negative,
            near=near,
            frames=frames,
            width=width,
            height=height,
            steps=steps,
            guidance=guidance,
            camera_guidance=camera_guidance,
            drop_text=drop_text,
            sampler=sampler,
            shift=shift,
            seed=seed,
            radial_sigma=radial_sigma,
            zoom=zoom,
        )
    settings = recipe.settings
    grid = parts.model.grid_for(settings.frames, settings.height, settings.width)
    cost = generation_cost(parts.model, parts.adapter, grid, settings.steps, settings.passes)
    if not recipe.model:
        console.print(EMBEDDED, markup=False)
    if settings.zoom > 1:
        console.print(f"{settings.width} x {settings.height} pixels, written {settings.zoom} times larger")
    console.print(str(cost), markup=False)
    files_written: list[Path] = []
    if not dry_run:
        assert output is not None
        files_written = make_video(parts, recipe, output)
    if as_json:
        report = {"files": [str(file) for file in files_written], "cost": asdict(cost), "recipe": recipe.to_json()}
        typer.echo(json.dumps(report, indent=2))
    elif files_written:
        console.print("wrote " + ", ".join(str(file) for file in files_written), markup=False)
