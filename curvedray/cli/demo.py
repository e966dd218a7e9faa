"""`curvedray demo`: something to look at, a minute after installing."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("out/demo"),
    threads: Annotated[int | None, typer.Option(help="Processor threads; one is the quickest here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """The embedded model films a court through three lenses, in two layouts, a motion transfer, and five moves."""
    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.cli.threads import set_threads
    from curvedray.demo import demo as make
    from curvedray.errors import quoted
    from curvedray.files import check_writable
    from curvedray.generation.parts import load_parts

    check_writable(output / "moves.png")
    set_threads(threads, small=True)
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
        typer.echo(f"  {quoted(path)}")
    command = command_name()
    typer.echo(
        f"\nNext, a video of your own:\n"
        f'  {command} generate "a green pillar and a white ball in a snowy courtyard" --move "dolly in 0.8"'
        f" --lens fisheye-150 -o mine.mp4\n"
        f"and how well these obey their cameras:\n"
        f"  {command} evaluate {shlex.quote(str(output))} -o report"
    )


def command_name() -> str:
    """`curvedray` as this shell can run it: by name where it is on the PATH, else by the path it was started with."""
    if shutil.which("curvedray"):
        return "curvedray"
    started = Path(sys.argv[0])
    if started.name == "curvedray" and started.is_file():
        here = Path.cwd()
        return shlex.quote(str(started.relative_to(here) if started.is_relative_to(here) else started))
    return f"{shlex.quote(sys.executable)} -m curvedray"
