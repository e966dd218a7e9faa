"""`curvedray demo`: something to look at, a minute after installing."""

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("out/demo"),
    frames: Annotated[int, typer.Option(help="Frames of each video.")] = 49,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """One scene and one move through three lenses: videos, contact sheets, distances and camera files."""
    from curvedray.cli.shared import progress
    from curvedray.demo import demo as make

    made = make(output, frames=frames, progress=lambda work, lens: progress(work, f"rendering {lens}", frames))
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in made.files], "says": made.says}, indent=2))
        return
    for sentence in made.says:
        typer.echo(sentence)
    typer.echo("\nLook at:")
    for path in made.files:
        typer.echo(f"  {path}")
    typer.echo('\nNext: curvedray preview --move "dolly in 1, then pan right 30deg" --lens fisheye-150 -o mine.mp4')
