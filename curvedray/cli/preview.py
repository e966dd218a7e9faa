"""`curvedray preview`: what a camera would see, before anything is generated."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.cli.progress import tracked
from curvedray.cli.shared import Options, pixels, reader_options
from curvedray.errors import InputError

if TYPE_CHECKING:
    from curvedray.cameras import Cameras
    from curvedray.world.raycast import Scene


def register(app: typer.Typer) -> None:
    app.command()(preview)


def preview(
    output: Annotated[Path, typer.Option("-o", "--output", help="The video to write; a PNG goes beside it.")],
    move: Annotated[str | None, typer.Option(help='Moves in one line: "orbit left 40deg, then dolly in 0.5".')] = None,
    camera: Annotated[Path | None, typer.Option(help="A camera file of any known format, in place of a move.")] = None,
    lens: Annotated[str | None, typer.Option(help="A lens by name, such as pinhole-90 or fisheye-150.")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the move (81), or to resample the file to.")] = None,
    size: Annotated[str | None, typer.Option(help="The camera's image as WIDTHxHEIGHT (832x480).")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames a second (the file's, or 16).")] = None,
    scene: Annotated[
        str | None,
        typer.Option(
            help='What to look at: a caption, "a red ball and a blue box in a desert courtyard", or a number.'
        ),
    ] = None,
    option: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the description and the files as JSON.")] = False,
) -> None:
    """Render, in seconds, what a camera would see, beside its path and its lens: a video and a PNG."""
    from curvedray.media.image import write_png
    from curvedray.media.video import video_path, write_video
    from curvedray.world.preview import preview as look

    output = video_path(output)
    place = None if scene is None else _scene(scene)
    if camera is None:
        if option:
            raise InputError("--option", "a camera file to read", "none", "Name it with --camera.")
        cameras = _moved(move, lens, frames, size, fps, place)
    else:
        if move is not None:
            raise InputError("preview", "--move or --camera", "both")
        cameras = _read(camera, reader_options(option), lens, frames, size, fps)
    seen = look(
        cameras,
        place,
        move or "",
        progress=lambda work: tracked(work, "rendering", len(cameras)),
    )
    rate = cameras.fps or 16.0
    notes = {"lens": lens or "", "move": move or "", "description": seen.description.looks_like}
    video = write_video(seen.video, output, rate, metadata=notes)
    sheet = write_png(seen.sheet, output.with_suffix(".png"))
    if as_json:
        files = {"video": str(video), "sheet": str(sheet), "metres_a_unit": seen.scale}
        typer.echo(json.dumps(seen.description.to_dict() | files, indent=2))
        return
    typer.echo(str(seen.description))
    if cameras.unit != "metric":
        typer.echo(f"drawn with one {'near distance' if cameras.unit == 'near' else 'unit'} = {seen.scale:.3g} m")
    typer.echo(f"wrote {video} and {sheet}")


def _moved(
    move: str | None, lens: str | None, frames: int | None, size: str | None, fps: float | None, scene: "Scene | None"
) -> "Cameras":
    """The cameras of a move; metres in it are metres of the scene."""
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.moves.trajectory import trajectory
    from curvedray.world.preview import scene_near

    if move is None:
        raise InputError("preview", "--move or --camera", "neither")
    glass = named_lens("pinhole-90" if lens is None else lens, *(pixels(size) or (832, 480)))
    near = scene_near(scene, glass)
    return trajectory(move, glass, 81 if frames is None else frames, fps=16.0 if fps is None else fps, near=near)


def _read(
    file: Path, said: dict[str, Any], lens: str | None, frames: int | None, size: str | None, fps: float | None
) -> "Cameras":
    """The cameras of a file. A size or lens that its format does not take changes the lens it has."""
    from dataclasses import replace
    from inspect import signature

    from curvedray.cameras.named_lenses import named_lens
    from curvedray.formats import FORMATS, detect_format, read_cameras
    from curvedray.moves.trajectory import resample

    wanted = pixels(size)
    known = signature(FORMATS[detect_format(file).name].read).parameters
    options: dict[str, Any] = {"size": wanted, "lens": lens}
    taken = {name: i for name, i in options.items() if i is not None and name in known}
    cameras = read_cameras(file, **(said | taken))
    if wanted is not None and cameras.lens.size != wanted:
        cameras = replace(cameras, lens=cameras.lens.resized(*wanted))
    if lens is not None and "lens" not in known:
        cameras = replace(cameras, lens=named_lens(lens, *cameras.lens.size))
    cameras = cameras if frames is None else resample(cameras, frames)
    return cameras if fps is None else replace(cameras, fps=fps)


def _scene(text: str) -> "Scene":
    from curvedray.world.world import scene, scene_from_caption

    return (scene(int(text)) if text.isdecimal() and len(text) < 19 else scene_from_caption(text)).scene
