"""`curvedray data`: look at a data set before training on it, and encode it once."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curvedray.cli.datasets import caption, describe, pose, split
from curvedray.cli.progress import progress_bar
from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine
from curvedray.cli.shoot import shoot

if TYPE_CHECKING:
    from curvedray.data.check import ClipReport
    from curvedray.data.clips import VideoShape

Clips = Annotated[int, typer.Option(min=1, max=10**9, help="How many clips of the world.")]
Labels = Annotated[
    str | None, typer.Option(help="A folder of maps of distances, CLIP.npz; those beside the clips are found.")
]
WORLD_SHAPE = (17, 64, 96)  # frames, height and width of the world's clips, where nobody says others
FOLDER_SHAPE = (81, 480, 832)  # as the paper trains: captures are cut into clips of so many frames
LONGEST_VIDEO = 100_000  # frames
COLUMNS = (("clip", 24), ("frames", 6), ("size", 9), ("turns", 8), ("travels", 15), ("lens", 13))


def register(app: typer.Typer) -> None:
    data = typer.Typer(help="Make, check and cache clips to train on.", no_args_is_help=True)
    data.command()(check)
    data.command()(cache)
    data.command()(shard)
    data.command()(example)
    data.command()(shoot)
    data.command()(pose)
    data.command()(caption)
    data.command()(split)
    data.command()(describe)
    app.add_typer(data, name="data")


def check(
    folder: Annotated[str, typer.Argument(help="A folder of clips (see docs/data.md), or `world`.")],
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT to train on, such as 832x480.")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames to train on, such as 81.")] = None,
    labels: Labels = None,
    clips: Clips = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Say what is wrong with every clip, and how its camera moves. Exits with 1 if anything is."""
    from curvedray.cli import console
    from curvedray.data.check import check_clips
    from curvedray.data.coverage import shard_reports
    from curvedray.data.folders import FolderFootage
    from curvedray.data.sources import WORLDS, open_footage

    shape = _shape(size, frames, WORLD_SHAPE if folder in WORLDS else FOLDER_SHAPE)
    source = open_footage(folder, shape, clips, labels=labels)
    if isinstance(source, FolderFootage) and not as_json:
        console.print(f"layout: {source.layout}")
    with progress_bar("clips", shown=not as_json) as tick:
        rows = []
        for row in check_clips(source, shape if size or frames else None):
            rows.append(row)
            tick(len(rows), len(source))
    shards = shard_reports(source)
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in [*rows, *shards]]))
    else:
        _show(rows, shards)
    if shards or any(row.problems for row in rows):
        raise typer.Exit(1)


def cache(
    folder: Annotated[str, typer.Argument(help="A folder of clips, or `world`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The cache's folder.")],
    model: Annotated[
        str, typer.Option(help="`embedded`, a .safetensors of ours, a Wan folder or hub id.")
    ] = "embedded",
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT; by default the model's own.")] = None,
    frames: Annotated[int | None, typer.Option(help="How many frames; by default the model's own.")] = None,
    labels: Labels = None,
    clips: Clips = 2048,
    half: Annotated[bool, typer.Option("--half", help="Store latents and text in half precision.")] = False,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete what is of no clip that is there now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was cached as JSON.")] = False,
) -> None:
    """Encode every clip once. Run again, it goes on where it stopped, and encodes what has changed."""
    from functools import partial

    from curvedray.cli import console
    from curvedray.data.cache import build_cache, remove_unused
    from curvedray.data.sources import open_footage
    from curvedray.inputs import megabytes
    from curvedray.models.open import load_on_gpu_if_any

    where = chosen_engine(engine, address, workers)
    opened = load_on_gpu_if_any(model)
    own = opened.defaults
    shape = _shape(size, frames, (own.frames, own.height, own.width))
    opened.grid_for(shape.frames, shape.height, shape.width)  # refuses what the model's strides do not divide
    source = open_footage(folder, shape, clips, labels=labels)
    with progress_bar("clips", shown=not as_json) as tick:
        report = build_cache(
            *(source, opened, shape, output),
            dtype="float16" if half else "float32",
            tick=tick,
            engine=where,
            open_model=partial(load_on_gpu_if_any, model),
        )
    removed = remove_unused(output, source) if prune else 0
    if as_json:
        typer.echo(json.dumps(report.to_json()))
        return
    console.print(
        f"{report.clips} clips ({report.made} encoded now), {megabytes(report.bytes)} in {output}", markup=False
    )
    if removed:
        console.print(f"{removed} files of clips that are no longer there were deleted")
    elif report.unused:
        console.print(f"{report.unused} files are of clips that are no longer there; --prune deletes them")
    for name, reason in report.skipped:
        console.print(f"left out {name}: {reason}", markup=False)


def shard(
    source: Annotated[Path, typer.Argument(help="A cache of encoded clips, or a folder of clips.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The shards' folder.")],
    per_shard: Annotated[int, typer.Option(min=1, max=10**6, help="Clips per shard.")] = 256,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was packed as JSON.")] = False,
) -> None:
    """Pack a cache, or a folder of clips, into WebDataset tar shards with an index. `train --data` reads them."""
    from dataclasses import asdict

    from curvedray.cli import console
    from curvedray.data.cache import ENCODER
    from curvedray.data.folders import FolderFootage
    from curvedray.data.shards import pack_cache
    from curvedray.data.webdataset import pack_footage
    from curvedray.files import check_writable

    where = chosen_engine(engine, address, workers)
    check_writable(output / "index.json")
    with progress_bar("shards", shown=not as_json) as tick:
        if (source / ENCODER).is_file():
            report = pack_cache(source, output, per_shard, engine=where, tick=tick)
        else:
            report = pack_footage(FolderFootage(source), output, per_shard, engine=where, tick=tick)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
        return
    console.print(f"{report.clips} clips in {report.shards} shards ({report.made} written now), {output}", markup=False)
    for name, reason in report.skipped:
        console.print(f"left out {name}: {reason}", markup=False)


def example(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    clips: Clips = 3,
    panoramas: Annotated[bool, typer.Option("--panoramas", help="Panoramas of the world, for `data shoot`.")] = False,
) -> None:
    """Write a few clips (or panoramas) of the world as a folder: the layout to copy for your own."""
    from curvedray.cli import console
    from curvedray.data.example_panoramas import write_panoramas
    from curvedray.data.folders import write_folder
    from curvedray.data.sources import open_footage

    if panoramas:
        with progress_bar("panoramas") as tick:
            write_panoramas(clips, output, tick=tick)
        console.print(f"{clips} panoramas with their distances, the videos with tracks, in {output}", markup=False)
        return
    with progress_bar("clips") as tick:
        write_folder(open_footage("world", _shape(None, None, WORLD_SHAPE), clips), output, tick=tick)
    console.print(f"{clips} clips, and metadata.csv that names their parts, in {output}", markup=False)


def _shape(size: str | None, frames: int | None, own: tuple[int, int, int]) -> "VideoShape":
    """What was asked for, with a frame count, height and width of the model's own where nothing was said."""
    from curvedray.cli.shared import pixels
    from curvedray.data.clips import VideoShape
    from curvedray.errors import InputError

    if frames is not None and not 1 <= frames <= LONGEST_VIDEO:
        raise InputError("--frames", f"a number from 1 to {LONGEST_VIDEO}", frames)
    width, height = pixels(size) or (own[2], own[1])
    return VideoShape(own[0] if frames is None else frames, height, width)


def _show(rows: "list[ClipReport]", shards: "list[ClipReport]") -> None:
    """A line per clip that fits 80 columns, and under it what is wrong with it; the same of shards that are broken.

    A name that is too long for its column has a line of its own: where it is cut, clips of one capture look alike.
    """
    import shutil
    import textwrap

    from curvedray.errors import quoted

    width = max(40, shutil.get_terminal_size().columns)
    typer.echo(_line([name for name, _ in COLUMNS]))
    for row in [*rows, *shards]:
        name = quoted(row.id)
        cells = [name, str(row.frames), f"{row.width}x{row.height}", f"{row.rotation:.1f}°"]
        cells += [f"{row.travel:.3g} {row.unit}", f"{row.hfov:.0f}° xi {row.xi:.2f}"]
        if len(name) > COLUMNS[0][1] or not row.frames:
            typer.echo(name)
            cells[0] = ""
        if row.frames:
            typer.echo(_line(cells))
        notes = [f"problem: {problem}" for problem in row.problems]
        if row.radius_known is not None:
            notes.insert(0, f"distances known on {100 * row.radius_known:.0f} % of pixels")
        for note in notes:
            typer.echo(textwrap.fill(quoted(note), width, initial_indent="    ", subsequent_indent="      "))
    sound = sum(not row.problems for row in rows)
    typer.echo(f"{sound} of {len(rows)} clips have no problem")
    if shards:
        typer.echo(f"{len(shards)} shards cannot be used whole: clips of theirs are missing")


def _line(cells: list[str]) -> str:
    fitted = [
        text if len(text) <= room else f"{text[: room - 3]}..." for text, (_, room) in zip(cells, COLUMNS, strict=True)
    ]
    return " ".join(f"{text:{room}}" for text, (_, room) in zip(fitted, COLUMNS, strict=True)).rstrip()
