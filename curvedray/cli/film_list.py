"""`curvedray generate --requests`: what a list holds, what it will take, a bar, what became of every line."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from curvedray.engine import Engine


# Options of the command that say nothing of a list, and those by which a model is loaded; lines may say the others.
REFUSED = ("prompt", "again", "seeds", "radial", "radial_meaning", "radial_scale", "blocks", "beside_exact")
LOADING = ("device", "dtype", "offload", "tiling", "any_weights")


def film_list(requests: Path, folder: Path | None, engine: "Engine", asked: dict[str, Any]) -> None:
    """Film a list into a folder; `asked` are the command's options by name. Exits with 1 if no video is there then."""
    from curvedray.adapter.cost import duration
    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.errors import InputError, quoted
    from curvedray.files import check_writable
    from curvedray.generation.filming import Crew, Filmed, cost_of_requests, film_requests
    from curvedray.generation.requests import read_video_requests
    from curvedray.generation.write import Files

    dry_run = asked["dry_run"]
    for name in REFUSED:
        if asked[name] not in (None, False):
            got = name if name == "prompt" else f"--{name.replace('_', '-')}"
            raise InputError("--requests", "a list, whose lines say what they show", got, "Say it in the lines.")
    if folder is None and not dry_run:
        raise InputError("-o", "the folder of the videos", "none", "Add -o FOLDER.")
    if folder is not None:
        check_writable(folder / "video.mp4")

    def say(text: str) -> None:
        console.print(quoted(text), markup=False)

    found, bad = read_video_requests(requests, _shared(asked))
    for line in bad:
        say(f"left out: {line.reason}")
    films: list[Filmed] = []
    heard: list[Filmed] = []
    crew = Crew(asked["model"] or "", asked["adapter"], tuple((name, asked[name]) for name in LOADING))
    if found and (dry_run or engine.kind == "here"):
        opened = crew.open()
        cost = cost_of_requests(found, opened)
        if cost is not None:
            say(f"{len(found)} videos; the first: {cost}")
    else:
        opened = None
    if found and not dry_run:
        assert folder is not None
        with progress_bar("filming") as tick:
            tick(0, len(found))

            def done(film: Filmed) -> None:
                heard.append(film)
                if film.failure:
                    say(f"{film.name}: left out, {film.failure}")
                for notice in () if film.resumed else film.notices:
                    say(f"{film.name}: {notice}")
                tick(len(heard), len(found), f"filmed {film.name}" + (" (as before)" if film.resumed else ""))

            files = Files(radii=asked["save_radii"])
            films = film_requests(found, folder, crew, engine=engine, opened=opened, files=files, done=done)
    failed = [film for film in films if film.failure]
    counts = {"requests": len(found) + len(bad), "filmed": len(films) - len(failed), "bad_lines": len(bad)}
    counts |= {"failed": len(failed), "resumed": sum(film.resumed for film in films)}
    if asked["as_json"]:
        typer.echo(
            json.dumps(counts | {"videos": [asdict(i) for i in films], "bad": [asdict(i) for i in bad]}, indent=1)
        )
    else:
        took = sum(film.seconds for film in films if not film.resumed)
        left_out = len(bad) + len(failed)
        said = f"{counts['filmed']} videos in {folder}" if not dry_run else f"{len(found)} requests can be read"
        said += f", {counts['resumed']} of them as before" if counts["resumed"] else ""
        said += f"; {left_out} of {counts['requests']} left out" if left_out else ""
        typer.echo(quoted(said + (f"; {duration(took)} of work" if took else "")))
    if not dry_run and not counts["filmed"]:
        raise typer.Exit(1)


def _shared(asked: dict[str, Any]) -> dict[str, Any]:
    """What the options say for every line that says nothing else, by a request's names."""
    from curvedray.cli.shared import pixels
    from curvedray.errors import InputError
    from curvedray.generation.requests import VideoRequest

    width, height = pixels(asked["size"]) or (None, None)
    seed = asked["seed"] or [None]
    if len(seed) > 1:
        raise InputError("--seed", "one for the whole list", f"{len(seed)}", "Say it in the lines.")
    named = {field.name: asked[field.name] for field in fields(VideoRequest) if field.name in asked}
    paths = {name: str(asked[name]) for name in ("camera", "near_depths") if asked[name] is not None}
    return {**named, **paths, "prompt": None, "radial": None, "seed": seed[0], "width": width, "height": height}
