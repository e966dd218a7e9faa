"""`curvedray generate`: a prompt and a camera in, a video out."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine

if TYPE_CHECKING:
    from curvedray.generation.recipe import VideoRecipe

EMBEDDED = (
    "the embedded model: a tiny one that knows a procedural world of coloured balls, boxes and pillars; "
    "for Wan: --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --adapter FILE"
)
MOST_SEEDS = 1000
PANEL_CAMERA, PANEL_MODEL, PANEL_SAMPLING = "Camera", "Model", "Sampling"


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    prompt: Annotated[str | None, typer.Argument(help="What the video shows.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .mp4, .webm or .gif to write.")] = None,
    move: Annotated[
        str | None,
        typer.Option(help='The camera\'s moves: "orbit left 40deg, then dolly in 0.5".', rich_help_panel=PANEL_CAMERA),
    ] = None,
    lens: Annotated[
        str | None,
        typer.Option(help="A lens by name: pinhole-70, wide-110, fisheye-160 ...", rich_help_panel=PANEL_CAMERA),
    ] = None,
    camera: Annotated[
        Path | None,
        typer.Option(help="A camera file in place of moves, fitted to the model.", rich_help_panel=PANEL_CAMERA),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            help="Near distance of the scene, in the cameras' unit; for moves and maps in metres.",
            rich_help_panel=PANEL_CAMERA,
        ),
    ] = None,
    radial: Annotated[
        Path | None,
        typer.Option(
            help="Distances to follow: a map (.npz, .npy; metres), or EXR, PNG, PFM and folders of them.",
            rich_help_panel=PANEL_CAMERA,
        ),
    ] = None,
    radial_meaning: Annotated[
        str | None,
        typer.Option(help="What other programs' distances are: `radius` or `z`.", rich_help_panel=PANEL_CAMERA),
    ] = None,
    radial_scale: Annotated[
        str | None,
        typer.Option(help="Their metres per unit, or m, cm, mm, kitti, scannet.", rich_help_panel=PANEL_CAMERA),
    ] = None,
    blocks: Annotated[
        str | None,
        typer.Option(
            help='A blocked-out scene to follow: "box 1x1x2m at left 2m ahead 4m; wall ahead 7m", or its .json.',
            rich_help_panel=PANEL_CAMERA,
        ),
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
        typer.Option(help="An adapter's .safetensors; `none` for the model alone.", rich_help_panel=PANEL_MODEL),
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
    threads: Annotated[
        int | None, typer.Option(help="Processor threads; the embedded model takes one.", rich_help_panel=PANEL_MODEL)
    ] = None,
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
    map_guidance: Annotated[
        float | None, typer.Option(help="Towards a map of distances; 1 is none.", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    block_guidance: Annotated[
        float | None,
        typer.Option(help="Away from the model without one of its blocks; 1 is none.", rich_help_panel=PANEL_SAMPLING),
    ] = None,
    left_out: Annotated[
        int | None, typer.Option(help="That block, counted from 0.", rich_help_panel=PANEL_SAMPLING)
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
    fps: Annotated[
        float | None,
        typer.Option(help="Frames per second; else the camera file's.", rich_help_panel=PANEL_SAMPLING),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Same seed, same bytes. Repeated: a video for each.", rich_help_panel=PANEL_SAMPLING),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="This many videos, of seeds 0, 1, 2 ...", rich_help_panel=PANEL_SAMPLING)
    ] = None,
    save_radii: Annotated[
        bool, typer.Option("--save-radii", help="Also write the predicted distances as arrays, NAME-radii.npz.")
    ] = False,
    beside_exact: Annotated[
        bool,
        typer.Option("--beside-exact", help="Also write the video beside the exact rendering (embedded model)."),
    ] = False,
    requests: Annotated[
        Path | None,
        typer.Option(help="Film a list, a JSON object per line (docs/generate.md); -o is a folder. Resumable."),
    ] = None,
    near_depths: Annotated[
        Path | None,
        typer.Option(help="PanShot's near distances (.jsonl), for --requests.", rich_help_panel=PANEL_CAMERA),
    ] = None,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    again: Annotated[
        Path | None, typer.Option(help="Make this video again from the recipe inside it, to the byte.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would cost, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files and the recipe as JSON.")] = False,
) -> None:
    """Generate a video that follows a camera and a lens."""
    asked = dict(locals())  # every option by its name
    from curvedray.cli import console
    from curvedray.cli.film_list import film_list
    from curvedray.cli.progress import progress_bar
    from curvedray.cli.shared import pixels
    from curvedray.cli.threads import set_threads
    from curvedray.errors import InputError, quoted
    from curvedray.formats import read_cameras
    from curvedray.generation.maps import MapForVideo, MapRequest, video_shape
    from curvedray.generation.parts import NO_ADAPTER, load_parts
    from curvedray.generation.recipe import RECIPE, new_recipe, read_recipe, relocated
    from curvedray.generation.sampling import cost_of
    from curvedray.generation.write import Files, check_files, check_output, make_video
    from curvedray.models.open import is_embedded, token_stride

    where = chosen_engine(engine, address, workers)
    if requests is not None:
        set_threads(threads, small=is_embedded(model or ""))
        film_list(requests, output, where, asked)
        return
    if near_depths is not None or where.kind != "here":
        raise InputError("--near-depths" if near_depths else "--engine", "with --requests", "without")
    if (prompt is None) == (again is None):
        raise InputError("generate", "a prompt, or --again with a video", "neither" if prompt is None else "both")
    if prompt is not None and not prompt.strip():
        raise InputError("prompt", "what the video shows", "no words")
    if move is not None and camera is not None:
        raise InputError("camera", "--move or --camera", "both")
    chosen_seeds = _seeds(seed, seeds)
    if output is None and not dry_run:
        if again is None:
            raise InputError("-o", "the name of the video to write", "none", "Add -o out.mp4.")
        output = again
        if again.suffix.lower() == ".json":
            output = again.with_name(again.name.removesuffix(RECIPE).removesuffix(".json") + ".mp4")
    outputs = [] if output is None else _outputs(output, chosen_seeds)
    asked_for = Files(radii=save_radii, exact=beside_exact)
    written_out = blocks if blocks is not None and blocks.strip().lower().endswith(".json") else None
    inputs = [file for file in (camera, radial, adapter, written_out) if file is not None]
    for path in outputs:
        check_output(path, files=asked_for, inputs=inputs)
    wanted = None if again is not None else MapRequest.of(radial, radial_meaning, radial_scale, blocks)
    made_map = None
    loading: dict[str, Any] = {"device": device, "offload": offload, "tiling": tiling, "any_weights": any_weights}
    recipes: list[VideoRecipe] = []
    if again is not None:
        _refuse_with_again(
            {"--move": move, "--camera": camera, "--lens": lens, "--near": near, "--negative": negative}
            | {"--steps": steps, "--guidance": guidance, "--camera-guidance": camera_guidance, "--shift": shift}
            | {"--drop-text": drop_text, "--sampler": sampler, "--frames": frames, "--size": size, "--zoom": zoom}
            | {"--fps": fps, "--seed": seed, "--seeds": seeds, "--radial-sigma": radial_sigma, "--blocks": blocks}
            | {"--dtype": None if dtype == "auto" else dtype}
            | {"--block-guidance": block_guidance, "--left-out": left_out}
            | {"--map-guidance": map_guidance, "--radial-meaning": radial_meaning, "--radial-scale": radial_scale}
        )
        recipe = relocated(read_recipe(again), adapter, None if radial is None else str(radial))
        name = recipe.model if model is None else model
        set_threads(threads, small=is_embedded(name))
        files = [None if part is None else part.path for part in (recipe.adapter, recipe.radial)]
        loading |= {"dtype": recipe.dtype, "near": recipe.near}
        parts = load_parts(name, files[0] or NO_ADAPTER, files[1], **loading)
        recipes = [recipe]
    else:
        assert prompt is not None
        set_threads(threads, small=is_embedded(model or ""))
        width, height = pixels(size) or (None, None)
        path_given = read_cameras(camera, lens=lens) if camera is not None else move or "static"
        unit = "near" if isinstance(path_given, str) else path_given.unit
        loading |= {"dtype": dtype, "near": None if unit == "arbitrary" else near}
        if wanted is None:
            parts = load_parts(model or "", adapter, **loading)
        else:
            shape, rate = video_shape(model or "", frames, height, width, fps)
            made_map = MapForVideo.make(
                wanted, path_given, lens, shape, loading["near"], rate, output, token_stride(model or ""), inputs
            )
            for note in made_map.notes:
                console.print(quoted(note), markup=False)
            parts = made_map.into(lambda file: load_parts(model or "", adapter, file, **loading))
        first = new_recipe(
            parts,
            prompt,
            path_given,
            lens=lens,
            negative=negative,
            near=near,
            fps=fps,
            fit=True,
            frames=frames,
            width=width,
            height=height,
            steps=steps,
            guidance=guidance,
            camera_guidance=camera_guidance,
            map_guidance=map_guidance,
            block_guidance=block_guidance,
            left_out=left_out,
            drop_text=drop_text,
            sampler=sampler,
            shift=shift,
            seed=chosen_seeds[0],
            radial_sigma=radial_sigma,
            zoom=zoom,
        )
        recipes = [with_seed(first, number) for number in chosen_seeds]
    settings = recipes[0].shot.settings
    check_files(parts, recipes[0], asked_for)
    if not parts.model.name:
        console.print(EMBEDDED, markup=False)
    for notice in recipes[0].shot.notices:
        console.print(quoted(notice), markup=False)
    if settings.zoom > 1:
        console.print(f"{settings.width} x {settings.height} pixels, written {settings.zoom} times larger")
    cost = cost_of(parts, recipes[0].shot)
    console.print(str(cost), markup=False)
    reports = []
    for number, recipe in enumerate(recipes):
        written: list[Path] = []
        if not dry_run:
            with progress_bar("denoising") as tick:
                written = make_video(parts, recipe, outputs[number], tick=tick, files=asked_for, inputs=inputs)
            if made_map is not None and number == 0:
                written += made_map.keep()
            if not as_json:
                console.print("wrote " + ", ".join(quoted(file) for file in written), markup=False)
        files = [str(file) for file in written]
        notices = list(recipe.shot.notices)
        reports.append({"files": files, "cost": asdict(cost), "notices": notices, "recipe": recipe.to_json()})
    if as_json:
        typer.echo(json.dumps(reports[0] if len(reports) == 1 else {"videos": reports}, indent=2))


def _seeds(seed: list[int] | None, seeds: int | None) -> list[int]:
    """The seeds that `--seed` names, or as many as `--seeds` counts."""
    from curvedray.errors import InputError

    if seed and seeds is not None:
        raise InputError("seed", "--seed or --seeds", "both")
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise InputError("--seeds", f"1 to {MOST_SEEDS} videos", seeds)
    if seed and len(set(seed)) < len(seed):
        raise InputError("--seed", "each seed once", ", ".join(map(str, seed)))
    return list(range(seeds)) if seeds is not None else seed or [0]


def _outputs(output: Path, seeds: list[int]) -> list[Path]:
    """One name per seed: orbit.mp4, or orbit-1.mp4, orbit-2.mp4 ..."""
    if len(seeds) == 1:
        return [output]
    return [output.with_name(f"{output.stem}-{seed}{output.suffix}") for seed in seeds]


def with_seed(recipe: "VideoRecipe", seed: int) -> "VideoRecipe":
    return replace(recipe, shot=replace(recipe.shot, settings=replace(recipe.shot.settings, seed=seed)))


def _refuse_with_again(options: dict[str, Any]) -> None:
    """A recipe says all of these: one that would be ignored in silence is refused."""
    from curvedray.errors import InputError

    if given := [name for name, value in options.items() if value not in (None, [])]:
        raise InputError("--again", "the recipe's own settings", given[0], "Leave it out, or generate a new video.")
