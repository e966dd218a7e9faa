"""The `curvedray` command: parse, call, show. Each command is a file beside this one; none has numbers of its own.

Command files import what they call inside the function, so that `curvedray --help` stays quick.
"""

import importlib
import sys
from importlib.util import find_spec

import typer
from rich.console import Console

import curvedray
from curvedray.errors import InputError

# Help is listed in this order. A command file defines `register(app)`.
COMMANDS = ("demo", "generate", "preview", "cameras", "data", "train", "evaluate", "paper", "bench", "app", "doctor")

STOPPED = 130  # the exit code of a command that Ctrl-C ended

app = typer.Typer(
    name="curvedray",
    help="Camera-controlled video generation: a trajectory and a lens, from pinhole to fisheye.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def _root(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        typer.echo(f"curvedray {curvedray.__version__}")
        raise typer.Exit


for _name in COMMANDS:
    if find_spec(f"curvedray.cli.{_name}"):
        importlib.import_module(f"curvedray.cli.{_name}").register(app)

console = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2, Ctrl-C is 130, anything else is our bug."""
    try:
        app()
    except InputError as error:
        console.print(f"[red]error:[/red] {_escaped(error)}")
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as leaving:
        # Typer turns Ctrl-C into this exit code.
        if isinstance(leaving, SystemExit) and leaving.code != STOPPED:
            raise
        console.print("stopped; nothing half-written was left behind")
        sys.exit(STOPPED)


def _escaped(error: Exception) -> str:
    return str(error).replace("[", r"\[")
