"""`curvedray radial`: make, look at, check and change maps of distances, for `generate --radial`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cli.progress import tracked
from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine, pixels
from curvedray.errors import InputError

if TYPE_CHECKING:
    from curvedray.radial.map import RadialMap
    from curvedray.world.blocks import Block

MapFile = Annotated[Path, typer.Argument(help="A map: .npz with `radius` in metres (frames, height, width), or .npy.")]
Rate = Annotated[
    float,
    typer.Option("--fps", help="Frames per second, for moves in seconds; 8 is the embedded model's, 16 Wan2.1's."),
]
EMBEDDED_FPS = 8.0


def register(app: typer.Typer) -> None:
    radial = typer.Typer(help="Make, show, check and change maps of distances.", no_args_is_help=True)
    for command in (block, convert, label, edit, show, check):
        radial.command()(command)
    app.add_typer(radial, name="radial")


def block(
    output: Annotated[Path, typer.Option("-o", "--output", help="The map to write, .npz.")],
    scene: Annotated[
        str | None,
        typer.Argument(help='"box 1x1x2m at left 2m ahead 4m; wall ahead 7m; ball 0.5m at right 1m ahead 3m".'),
    ] = None,
    file: Annotated[Path | None, typer.Option("--scene", help="A scene as JSON, in place of text.")] = None,
    move: Annotated[str, typer.Option(help='The camera\'s moves: "orbit left 40deg".')] = "static",
    lens: Annotated[str, typer.Option(help="A lens by name, such as pinhole-70 or fisheye-150.")] = USUAL_LENS,
    frames: Annotated[int, typer.Option(help="Frames of the video; 17 is the embedded model's, 81 Wan's.")] = 17,
    size: Annotated[str, typer.Option(help="WIDTHxHEIGHT of the map, shaped as the video is.")] = "96x64",
    fps: Rate = EMBEDDED_FPS,
    eye: Annotated[float, typer.Option(help="Metres of the first camera above the ground.")] = 1.5,
    preview: Annotated[Path | None, typer.Option(help="Also write a video: the scene in grey beside its map.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was understood as JSON.")] = False,
) -> None:
    """Block a scene out in grey boxes and write the exact distances that a camera sees of it."""
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.files import check_writable
    from curvedray.media.video import video_path, write_video
    from curvedray.radial.map import write_radial_map
    from curvedray.world.block_map import film_blocks
    from curvedray.world.blocks import blocks_to_json

    check_writable(output)
    if preview is not None:
        video_path(preview)
    blocks = _blocks(scene, file)
    width, height = pixels(size) or (96, 64)
    image = named_lens(lens, width, height)
    made = film_blocks(
        blocks, move, image, frames, eye, fps=fps, progress=lambda work: tracked(work, "casting rays", frames)
    )
    write_radial_map(made.map, output)
    if preview is not None:
        write_video(made.preview(), preview, made.cameras.fps or fps)
    if as_json:
        found = {"blocks": blocks_to_json(blocks), "near": made.map.near, "valid": made.map.valid.float().mean().item()}
        typer.echo(json.dumps(found | {"map": str(output)}, indent=2))
        return
    for one in blocks:
        typer.echo(f"  {one}")
    typer.echo(_says(made.map))
    typer.echo(f"wrote {output}" + (f" and {preview}" if preview else ""))


def convert(
    source: Annotated[Path, typer.Argument(help="A .npz/.npy, .exr, 16-bit .png, .pfm, or a folder of frames.")],
    output: Annotated[Path, typer.Option("-o", "--output", help=".npz; or .ply, or a folder for --to exr|png.")],
    meaning: Annotated[
        str | None, typer.Option(help="`radius` from the camera, or `z` along its axis. Never guessed.")
    ] = None,
    scale: Annotated[str, typer.Option(help="Metres per stored unit, or m, cm, mm, kitti, scannet.")] = "m",
    lens: Annotated[str | None, typer.Option(help="The lens by name; needed for `z`, and for a point cloud.")] = None,
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT of the video; the map is cropped as it is.")] = None,
    frames: Annotated[int | None, typer.Option(help="Take so many frames, evenly in time.")] = None,
    near: Annotated[float | None, typer.Option(help="Near distance in metres (5th percentile).")] = None,
    channel: Annotated[str | None, typer.Option(help="An EXR's channel, where several could be meant.")] = None,
    move: Annotated[str | None, typer.Option(help="The camera's moves, for a point cloud.")] = None,
    fps: Rate = EMBEDDED_FPS,
    to: Annotated[str | None, typer.Option(help="exr or png: write frames into a folder instead.")] = None,
) -> None:
    """Turn depth of other programs into a map, or a map into EXR, 16-bit PNG or a point cloud (.ply)."""
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.moves.trajectory import trajectory
    from curvedray.radial.convert import convert as read
    from curvedray.radial.convert import write_frames, write_ply
    from curvedray.radial.map import read_radial_map, write_radial_map

    ending = output.suffix.lower()
    if to is None and ending in (".exr", ".png"):
        fix = f"Frames go into a folder: --to {ending[1:]} -o {output.with_suffix('')}."
        raise InputError("--output", ".npz, .ply, or a folder of frames", output, fix)
    if to is None and ending == ".ply" and lens is None:
        raise InputError("--lens", "the lens, to place the points", "none", "Add --lens, and --move if it moves.")
    own = source.suffix.lower() == ".npz" and meaning is None
    if own:
        _check_as_it_is(size, frames, scale, channel)
        found = read_radial_map(source, near)
    else:
        if meaning not in ("radius", "z"):
            fix = "Blender's depth pass and most depth cameras store z; a panorama's or lidar's distance is a radius."
            raise InputError("--meaning", "radius or z", meaning or "nothing", fix)
        image = pixels(size)
        shaped = None if lens is None else named_lens(lens, *(image or (96, 64)))
        if lens is not None and image is None:
            raise InputError("--size", "the video's WIDTHxHEIGHT, as a lens is given", "none")
        converted = read(
            *(source, meaning), scale=scale, lens=shaped, frames=frames, size=image, near=near, channel=channel
        )
        found = converted.map
        for note in converted.notes:
            typer.echo(note)
    if to is not None:
        written = write_frames(found, output, to)
    elif ending == ".ply":
        assert lens is not None, "checked before any work"
        _, height, width = found.radius.shape
        sized = named_lens(lens, width, height)
        cameras = trajectory(move or "static", sized, len(found.radius), unit="metric", near=found.near, fps=fps)
        written = [write_ply(found, cameras, output)]
    else:
        written = [write_radial_map(found, output)]
    typer.echo(f"{_says(found)}\nwrote {written[0]}" + (f" and {len(written) - 1} more" if len(written) > 1 else ""))


def label(
    videos: Annotated[list[Path], typer.Argument(help="Videos, or folders of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of maps; a second run resumes in it.")],
    teacher: Annotated[
        str, typer.Option(help="depth-anything, unidepth, unik3d, colmap or embedded.")
    ] = "depth-anything",
    cameras: Annotated[Path | None, typer.Option(help="Camera files, named as the videos, or one for all.")] = None,
    lens: Annotated[str | None, typer.Option(help="A lens by name, where no camera file says it.")] = None,
    weights: Annotated[str | None, typer.Option(help="The teacher's weights: a folder or a hub id.")] = None,
    accept_noncommercial: Annotated[
        bool, typer.Option("--accept-noncommercial", help="Accept a non-commercial licence.")
    ] = False,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Label videos with a teacher's distances: one map per clip, with a note of who made it."""
    from dataclasses import asdict
    from functools import partial

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.evaluate.label import Label, label_videos, make_teacher
    from curvedray.evaluate.matching import Job, match, video_files

    where = chosen_engine(engine, address, workers)
    if cameras is None:
        jobs = [Job(clip, path, None) for clip, path in sorted(video_files(videos).items())]
    else:
        jobs = match(videos, cameras)
    open_teacher = partial(make_teacher, teacher, accept_noncommercial=accept_noncommercial, weights=weights)
    opened = open_teacher()
    console.print(f"{teacher} {opened.version}, licence {getattr(opened, 'licence', '') or 'Apache-2.0'}", markup=False)
    with progress_bar("labelling") as tick:
        made: list[Label] = []

        def done(one: Label, resumed: bool) -> None:
            made.append(one)
            if one.failure:
                console.print(f"{one.clip}: no map, {one.failure}", markup=False)
            tick(len(made), len(jobs), f"labelled {one.clip}" + (" (as before)" if resumed else ""))

        tick(0, len(jobs))
        label_videos(jobs, opened, output, lens, done, engine=where, open_teacher=open_teacher)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in made], indent=1))
    else:
        good = sum(not one.failure for one in made)
        typer.echo(f"{good} of {len(made)} clips have a map in {output}; each says in its .label.json who made it")
    if not any(not one.failure for one in made):
        raise typer.Exit(1)


def show(
    map_file: MapFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .png of some frames, or a .mp4/.gif of all.")],
) -> None:
    """Draw a map in colour, with a scale in metres."""
    import torch

    from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
    from curvedray.media.image import write_png
    from curvedray.media.pictures import contact_sheet, enlarged
    from curvedray.media.video import write_video
    from curvedray.radial.map import read_radial_map

    found = read_radial_map(map_file)
    limits = distance_limits(found.radius, found.valid)
    pictures = enlarged(radial_picture(found.radius, found.valid, limits), max(1, round(320 / found.radius.shape[2])))
    if output.suffix.lower() == ".png":
        chosen = torch.linspace(0, len(pictures) - 1, min(8, len(pictures))).round().long().unique()
        labels = [f"frame {i}" for i in chosen.tolist()]
        write_png(with_scale(contact_sheet(pictures[chosen], min(4, len(chosen)), labels), limits), output)
    else:
        video = torch.stack([with_scale(picture, limits) for picture in pictures])
        write_video(video[:, : video.shape[1] // 2 * 2, : video.shape[2] // 2 * 2], output, 8.0)
    typer.echo(f"{_says(found)}\nwrote {output}")


def check(
    map_file: MapFile,
    lens: Annotated[str | None, typer.Option(help="The video's lens by name: distances without a ray clash.")] = None,
    model: Annotated[
        str, typer.Option(help="A Wan folder or hub id, whose tokens see the map; without it, the embedded model.")
    ] = "",
    frames: Annotated[int | None, typer.Option(help="Frames of the video; else the model's own.")] = None,
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT of the video; else the model's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what the tokens will see of a map, and what is odd about it. Exits with 1 if anything is."""
    from curvedray.cameras import TokenGrid
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.models.open import token_stride, usual_shape
    from curvedray.radial.check import check_map
    from curvedray.radial.map import read_radial_map

    count, tall, wide = usual_shape(model)
    width, height = pixels(size) or (wide, tall)
    grid = TokenGrid.from_video(count if frames is None else frames, height, width, token_stride(model))
    found = check_map(read_radial_map(map_file), grid, None if lens is None else named_lens(lens, width, height))
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        typer.echo(str(found))
    if found.problems:
        raise typer.Exit(1)


def edit(
    map_file: MapFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The changed map, .npz.")],
    push: Annotated[float | None, typer.Option(help="Add so many metres (negative: nearer).")] = None,
    scale: Annotated[float | None, typer.Option(help="Multiply distances.")] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Make them invalid, so that the model decides.")] = False,
    paste: Annotated[Path | None, typer.Option(help="Take them from this other map.")] = None,
    box: Annotated[str | None, typer.Option(help="LEFT,TOP,RIGHT,BOTTOM as shares of the frame, 0 to 1.")] = None,
    mask: Annotated[Path | None, typer.Option(help="A picture: only where it is bright.")] = None,
    frames: Annotated[str | None, typer.Option(help="FIRST-LAST frames, from 0; all by default.")] = None,
) -> None:
    """Push, scale, cut out or paste distances, in a box or a mask, over some frames."""
    from curvedray.radial.edit import Region, edited
    from curvedray.radial.map import read_radial_map, write_radial_map

    region = Region.of(box, frames, None if mask is None else _mask(mask))
    other = None if paste is None else read_radial_map(paste)
    changed, count = edited(read_radial_map(map_file), region, push=push, scale=scale, cut=cut, paste=other)
    write_radial_map(changed, output)
    typer.echo(f"{count} distances changed; {_says(changed)}\nwrote {output}")


def _check_as_it_is(size: str | None, frames: int | None, scale: str, channel: str | None) -> None:
    """A map of ours is taken as it is: what would read it otherwise is refused, rather than not done."""
    from curvedray.radial.convert import metres_per_unit

    given = {"--size": size, "--frames": frames, "--scale": None if metres_per_unit(scale) == 1.0 else scale}
    for name, value in given.items():
        if value is not None:
            fix = "Say --meaning radius to read it as numbers, which are cropped, resized and scaled."
            raise InputError(name, "none, as a map is taken as it is", value, fix)
    if channel is not None:
        raise InputError("--channel", "none, as a map has no channels", channel, "Leave it out: it is an EXR's.")


def _blocks(text: str | None, file: Path | None) -> "list[Block]":
    from curvedray.inputs import read_json
    from curvedray.world.blocks import blocks_from_json, parse_blocks

    if (text is None) == (file is None):
        raise InputError("scene", "text, or --scene with a JSON file", "both" if text else "neither")
    return blocks_from_json(read_json(file), str(file)) if file is not None else parse_blocks(text or "")


def _mask(path: Path) -> Any:
    from curvedray.media.image import read_image

    return read_image(path).float().mean(-1) > 127


def _says(found: "RadialMap") -> str:
    frames, height, width = found.radius.shape
    share = found.valid.float().mean().item()
    if not found.valid.any():
        return f"{frames} frames of {width} x {height}, nothing valid"
    values = found.radius[found.valid]
    reach = f"{values.min().item():.2f} to {values.max().item():.2f} m"
    return f"{frames} frames of {width} x {height}, {share:.0%} valid, {reach}, near distance {found.near:.2f} m"
