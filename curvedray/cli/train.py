"""`curvedray train`: a recipe and clips in, an adapter out."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(train)


def train(
    name: Annotated[str | None, typer.Argument(help="A recipe: quick, embedded, wan_1b, wan_1b_k3 ...")] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes of it: steps=500 adapter.breakpoints=3")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The run's folder (runs/NAME).")] = None,
    data: Annotated[str | None, typer.Option(help="A folder of clips, or `world`.")] = None,
    model: Annotated[str | None, typer.Option(help="A Wan folder or hub id, or a .safetensors of ours.")] = None,
    resume: Annotated[str | None, typer.Option(help="`latest`: go on from the newest whole checkpoint.")] = None,
    tracker: Annotated[str | None, typer.Option(help="Any that accelerate knows: tensorboard, wandb ...")] = None,
    list_recipes: Annotated[bool, typer.Option("--list", help="Name every recipe, and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the recipe and what it takes, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a camera adapter, or the embedded model. For several processes: accelerate launch -m curvedray train ..."""
    from curvedray.errors import InputError
    from curvedray.training.recipes import recipe_names

    if list_recipes:
        names = recipe_names()
        typer.echo(json.dumps(names) if as_json else "\n".join(names))
        return
    if name is None:
        raise InputError("recipe", "a name", "none", "See `curvedray train --list`.")
    if resume not in (None, "latest"):
        raise InputError("--resume", "latest", resume)

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.data.sources import open_clips, validation_clips, video_shape
    from curvedray.models.open import load_model
    from curvedray.training.estimate import estimate
    from curvedray.training.loop import train as run
    from curvedray.training.process import Process
    from curvedray.training.recipes import recipe, with_overrides

    changes = [f"data.source={data}"] if data else []
    changes += [f"model={model}"] if model else []
    chosen = with_overrides(recipe(name), [*changes, *(overrides or [])])
    out = output or Path("runs") / chosen.name
    process = Process(chosen, out, tracker)
    opened = load_model(chosen.model, device=process.device)
    expected = estimate(chosen, opened, video_shape(chosen.data, opened), process)
    if dry_run:
        found = {"recipe": chosen.to_json(), "estimate": expected.to_json()}
        typer.echo(json.dumps(found, indent=None if as_json else 1))
        if not as_json:
            console.print(str(expected))
        return
    if process.is_first:
        console.print(f"{chosen.name}: {expected}")

    with progress_bar("clips into the cache", shown=process.is_first and chosen.data.cache != "off") as tick:
        share = (process.rank, process.count)
        clips, report = open_clips(
            chosen.data, opened, out, held_out=chosen.validation_clips, share=share, wait=process.wait, tick=tick
        )
    if report is not None and report.skipped:
        console.print(f"{len(report.skipped)} clips were left out; the first: {': '.join(report.skipped[0])}")
    held_out = (
        validation_clips(chosen.data, opened, chosen.validation_clips)
        if chosen.every.validate and process.is_first
        else []
    )
    result = run(chosen, opened, clips, out, process, resume=resume is not None, validation=held_out)
    if not process.is_first:
        return
    if as_json:
        record = {**result.__dict__, "weights": None if result.weights is None else str(result.weights)}
        typer.echo(json.dumps(record))
    elif result.weights is not None:
        console.print(f"done: {result.weights}, loss {result.loss:.4f}, {result.seconds:.0f} s")
    if result.weights is None:
        sys.exit(130)
