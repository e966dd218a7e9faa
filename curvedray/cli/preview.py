"""`curvedray preview`: what a camera would see, before anything is generated."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cli.progress import tracked
from curvedray.cli.shared import Options, file_cameras, pixels, reader_options
from curvedray.errors import InputError

if TYPE_CHECKING:
    from curvedray.cameras import Cameras
    from curvedray.world.scene import Scene


def register(app: typer.Typer) -> None:
    app.command()(preview)


def preview(
    output: Annotated[Path, typer.Option("-o", "--output", help="The video to write; a PNG goes beside it.")],
    move: Annotated[str | None, typer.Option(help='Moves in one line: "orbit left 40deg, then dolly in 0.5".')] = None,
    camera: Annotated[Path | None, typer.Option(help="A camera file of any known format, in place of a move.")] = None,
    lens: Annotated[str | None, typer.Option(help="A lens by name, such as pinhole-90 or fisheye-150.")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the move (81), or to resample the file to.")] = None,
    size: Annotated[str | None, typer.Option(help="The camera's image as WIDTHxHEIGHT (832x480).")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second (the file's, or 16).")] = None,
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
    from dataclasses import replace

    from curvedray.files import check_writable
    from curvedray.formats import detect_format
    from curvedray.media.image import write_png
    from curvedray.media.video import video_path, write_video
    from curvedray.world.preview import preview as look

    output = video_path(output)
    check_writable(output.with_suffix(".png"))
    looked_at = None if scene is None else _scene(scene)
    if camera is None:
        if option:
            raise InputError("--option", "a camera file to read", "none", "Name it with --camera.")
        cameras = _moved(move, lens, frames, size, fps, looked_at)
    else:
        if move is not None:
            raise InputError("preview", "--move or --camera", "both")
        found = detect_format(camera).name
        cameras, changed = file_cameras(camera, found, reader_options(option), lens, pixels(size), frames)
        cameras = cameras if fps is None else replace(cameras, fps=fps)
        for words in changed:
            typer.echo(f"{camera}: {words}", err=True)
    seen = look(
        cameras,
        looked_at,
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
    from curvedray.world.preview import check_pixels, scene_near

    if move is None:
        raise InputError("preview", "--move or --camera", "neither")
    image, count = pixels(size) or (832, 480), 81 if frames is None else frames
    check_pixels(count, *image)
    chosen = named_lens(USUAL_LENS if lens is None else lens, *image)
    near = scene_near(scene, chosen)
    return trajectory(move, chosen, count, fps=16.0 if fps is None else fps, near=near)


def _scene(text: str) -> "Scene":
    from curvedray.world.world import scene, scene_from_caption

    return (
        scene(int(text)) if text.isascii() and text.isdecimal() and len(text) < 19 else scene_from_caption(text)
    ).scene
