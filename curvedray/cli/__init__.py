"""The `curvedray` command: parse, call, show. Each command is a file beside this one; none has numbers of its own.

In: words of a command line. Out: what a command prints and writes, and its exit code. It knows every room; no room may
know it: what takes long reports to a callback, and only `progress` draws bars.

Command files import what they call inside the function, so that `curvedray --help` stays quick.
"""

import importlib

import typer
from rich.console import Console

import curvedray

# Help is listed in this order. A command's file has its name and defines `register(app)`.
COMMANDS = (
    "demo",
    "generate",
    "transfer",
    "preview",
    "cameras",
    "radial",
    "data",
    "train",
    "evaluate",
    "quality",
    "paper",
    "bench",
    "app",
    "doctor",
)

app = typer.Typer(
    name="curvedray",
    help="Camera-controlled video generation: a trajectory and a lens, from pinhole to fisheye.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        typer.echo(f"curvedray {curvedray.__version__}")
        raise typer.Exit


FILES = {"app": "studio"}  # a module named app would hide the variable

for _name in COMMANDS:
    importlib.import_module(f"curvedray.cli.{FILES.get(_name, _name)}").register(app)

console = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command line; see `leaving` for how it ends."""
    from curvedray.cli.exits import run

    run(app, console)
