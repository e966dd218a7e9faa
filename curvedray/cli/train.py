"""`curvedray train`: a recipe, its overrides, and a folder for what comes out."""

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
    resume: Annotated[
        str | None, typer.Option(help="`latest`: go on from the newest whole checkpoint; with more steps=, extend.")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="An adapter to start from, a .safetensors.")] = None,
    tracker: Annotated[str | None, typer.Option(help="Any that accelerate knows: tensorboard, wandb ...")] = None,
    list_recipes: Annotated[bool, typer.Option("--list", help="Say what every recipe is, and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the recipe and what it takes, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a camera adapter, or the embedded model.

    For several processes: python -m torch.distributed.run --nproc-per-node 2 -m curvedray train ...
    """
    from curvedray.errors import InputError
    from curvedray.training.recipes import recipe_descriptions

    if list_recipes:
        _show_recipes(recipe_descriptions(), as_json)
        return
    if name is None:
        raise InputError("recipe", "a name", "none", "See `curvedray train --list`.")
    if resume not in (None, "latest"):
        raise InputError("--resume", "latest", resume)

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.data.sources import open_clips, open_held_out, video_shape
    from curvedray.models.open import load_model
    from curvedray.training.estimate import estimate
    from curvedray.training.loop import train as run
    from curvedray.training.process import Process
    from curvedray.training.recipe import changed, with_overrides
    from curvedray.training.recipes import recipe
    from curvedray.training.start import check_run_folder

    options = {"data.source": data, "model": model, "start": start}
    chosen = changed(recipe(name), {key: value for key, value in options.items() if value is not None})
    chosen = with_overrides(chosen, overrides or [])
    out = output or Path("runs") / chosen.name
    process = Process(chosen, out, tracker)
    if process.is_first and not dry_run:
        check_run_folder(out)
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
        console.print(
            f"{len(report.skipped)} clips were left out; the first: {': '.join(report.skipped[0])}", markup=False
        )
    held_out = None
    if chosen.every.validate and process.is_first:
        held_out = open_held_out(chosen.data, opened, out, chosen.validation_clips)
    if chosen.data.cache != "off":  # all texts and videos are encoded; the decoder is for validation's videos
        opened.release(text=True, vae=held_out is None)
    with progress_bar("training", shown=process.is_first) as tick:
        result = run(
            chosen,
            opened,
            clips,
            out,
            process,
            resume=resume is not None,
            validation=held_out,
            tick=tick,
            say=lambda text: console.print(text, style="dim", markup=False),
        )
    if not process.is_first:
        return
    if as_json:
        record = {**result.__dict__, "weights": None if result.weights is None else str(result.weights)}
        typer.echo(json.dumps(record))
    elif result.weights is not None:
        loss = "" if result.loss is None else f", loss {result.loss:.4f}"
        if resume is not None and result.first == result.step:
            more = f"extend it with --resume latest steps={2 * result.step}"
            console.print(f"already finished at step {result.step}: {result.weights}{loss}; {more}", markup=False)
        else:
            console.print(f"done: {result.weights}{loss}, {result.seconds:.0f} s", markup=False)
    if result.weights is None:
        sys.exit(130)


def _show_recipes(descriptions: dict[str, str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(descriptions))
        return
    width = max(map(len, descriptions))
    for name, says in descriptions.items():
        typer.echo(f"{name:{width}}  {says}")
