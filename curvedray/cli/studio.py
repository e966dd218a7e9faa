"""`curvedray app`: the studio, a page on which one frames, moves and films, served to this machine alone."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command(name="app")(studio)


def studio(
    folder: Annotated[Path, typer.Option(help="Where takes, uploads and projects are kept.", file_okay=False)] = Path(
        "curvedray-studio"
    ),
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open nothing.")] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A Wan folder or hub id to offer beside the embedded model; may be repeated."),
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(help="An adapter's .safetensors to offer; may be repeated.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="The token of the address, in place of a new one.", hidden=True)
    ] = None,
) -> None:
    """Open the studio: frame, move, film, and see whether the camera was obeyed. Ctrl-C closes it."""
    from curvedray.cli import console
    from curvedray.cli.threads import set_threads
    from curvedray.extras import needed

    needed("starlette", "uvicorn")
    import threading
    import webbrowser

    from curvedray.app.facts import Shelf, facts
    from curvedray.app.server import serve
    from curvedray.app.studio import Studio

    set_threads(1, small=True)
    shelf = Shelf(tuple(model or ()), tuple(adapter or ()))
    facts(shelf, folder)  # refuses a model or an adapter that is not there, before anything is opened

    def opened(address: str) -> None:
        typer.echo(address)
        if not no_browser:
            # In a thread: a browser of the terminal's own would not return before it is closed.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    with suppress(KeyboardInterrupt):  # Ctrl-C arrives so, or as an ordinary end, by the moment it is heard
        serve(Studio(folder, shelf), port, token, opened)
    console.print("the studio is closed")
