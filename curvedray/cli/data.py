"""`curvedray data`: look at a data set before training on it, and encode it once."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curvedray.cli.progress import progress_bar


def register(app: typer.Typer) -> None:
    data = typer.Typer(help="Check and cache clips to train on.", no_args_is_help=True)
    data.command()(check)
    data.command()(cache)
    data.command()(example)
    app.add_typer(data, name="data")


def check(
    folder: Annotated[str, typer.Argument(help="A folder of clips (see docs/data.md), or `world`.")],
    size: Annotated[str | None, typer.Option(help="FRAMESxHEIGHTxWIDTH to train on, such as 81x480x832.")] = None,
    clips: Annotated[int, typer.Option(help="How many clips of the world.")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Say what is wrong with every clip, and how its camera moves. Exits with 1 if anything is."""
    from curvedray.data.check import check_clips
    from curvedray.data.clips import VideoShape
    from curvedray.data.sources import open_footage

    shape = _shape(size) if size else None
    source = open_footage(folder, shape or VideoShape(17, 64, 96), clips)
    with progress_bar("clips", shown=not as_json) as tick:
        rows = []
        for row in check_clips(source, shape):
            rows.append(row)
            tick(len(rows), len(source))
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows]))
    else:
        _show(rows)
    if any(row.problems for row in rows):
        raise typer.Exit(1)


def cache(
    folder: Annotated[str, typer.Argument(help="A folder of clips, or `world`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The cache's folder.")],
    model: Annotated[
        str, typer.Option(help="`embedded`, a .safetensors of ours, a Wan folder or hub id.")
    ] = "embedded",
    size: Annotated[str | None, typer.Option(help="FRAMESxHEIGHTxWIDTH; by default the model's own.")] = None,
    clips: Annotated[int, typer.Option(help="How many clips of the world.")] = 2048,
    half: Annotated[bool, typer.Option("--half", help="Store latents and text in half precision.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was cached as JSON.")] = False,
) -> None:
    """Encode every clip once. Run again, it goes on where it stopped."""
    import torch

    from curvedray.cli import console
    from curvedray.data.cache import build_cache
    from curvedray.data.clips import VideoShape
    from curvedray.data.sources import open_footage
    from curvedray.models.open import load_model

    opened = load_model(model, device="cuda" if torch.cuda.is_available() else "cpu")
    own = opened.defaults
    shape = _shape(size) if size else VideoShape(own.frames, own.height, own.width)
    source = open_footage(folder, shape, clips)
    with progress_bar("clips", shown=not as_json) as tick:
        report = build_cache(source, opened, shape, output, dtype="float16" if half else "float32", tick=tick)
    if as_json:
        typer.echo(json.dumps(report.to_json()))
        return
    console.print(f"{report.clips} clips, {report.bytes / 2**20:.1f} MiB in {output}")
    for name, reason in report.skipped:
        console.print(f"left out {name}: {reason}", markup=False)


def example(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    clips: Annotated[int, typer.Option(help="How many clips.")] = 3,
) -> None:
    """Write a few clips of the world as a folder to train on: the layout to copy for your own."""
    from curvedray.cli import console
    from curvedray.data.clips import VideoShape
    from curvedray.data.folders import write_folder
    from curvedray.data.sources import open_footage

    with progress_bar("clips") as tick:
        write_folder(open_footage("world", VideoShape(17, 64, 96), clips), output, tick=tick)
    console.print(f"{clips} clips, and metadata.csv that names their parts, in {output}")


def _shape(size: str):  # type: ignore[no-untyped-def]
    from curvedray.data.clips import VideoShape
    from curvedray.errors import InputError

    parts = size.lower().split("x")
    if len(parts) != 3 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise InputError("--size", "FRAMESxHEIGHTxWIDTH, such as 81x480x832", size)
    return VideoShape(*(int(part) for part in parts))


def _show(rows) -> None:  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.table import Table

    table = Table("clip", "frames", "size", "poses", "turns", "travels", "lens", "radii", "problems")
    for row in rows:
        table.add_row(
            row.id,
            str(row.frames),
            f"{row.width}x{row.height}",
            str(row.poses),
            f"{row.rotation:.1f}°",
            f"{row.travel:.3g} {row.unit}",
            f"{row.hfov:.0f}° xi {row.xi:.2f}",
            "" if row.radius_known is None else f"{100 * row.radius_known:.0f} %",
            "; ".join(row.problems) or "none",
        )
    Console().print(table)
    sound = sum(not row.problems for row in rows)
    Console().print(f"{sound} of {len(rows)} clips have no problem")
