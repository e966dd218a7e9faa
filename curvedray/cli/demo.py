"""`curvedray demo`: something to look at, a minute after installing."""

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("out/demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """The embedded model films one scene through three lenses, each video beside the exact truth of its camera."""
    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.demo import demo as make
    from curvedray.generation.parts import load_parts

    console.print("filming with the embedded model, a tiny one of 96 x 64 pixels, shown four times larger")
    with progress_bar("filming") as tick:
        made = make(output, load_parts(), tick=tick)
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in made.files], "says": made.says}, indent=2))
        return
    for sentence in made.says:
        typer.echo(sentence)
    typer.echo("\nLook at:")
    for path in made.files:
        typer.echo(f"  {path}")
    typer.echo(
        '\nNext: curvedray generate "a green pillar and a white ball in a snowy courtyard" --move "dolly in 0.8"'
        " --lens fisheye-150 -o mine.mp4"
    )
