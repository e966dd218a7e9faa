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
    labels: Annotated[
        str | None, typer.Option(help="A folder of maps of distances, CLIP.npz; those beside the clips are found.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A Wan folder or hub id, or a .safetensors of ours.")] = None,
    resume: Annotated[
        str | None, typer.Option(help="`latest`: go on from the newest whole checkpoint; with more steps=, extend.")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="An adapter to start from, a .safetensors.")] = None,
    tracker: Annotated[str | None, typer.Option(help="Any that accelerate knows: tensorboard, wandb ...")] = None,
    shard: Annotated[bool, typer.Option("--shard", help="Split the backbone over the processes (FSDP2).")] = False,
    list_recipes: Annotated[bool, typer.Option("--list", help="Say what every recipe is, and stop.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Count what the recipe takes on 1, 8 and 64 GPUs, and stop; opens no model.")
    ] = False,
    gpu: Annotated[str, typer.Option(help="With --plan: h100 or a100.")] = "h100",
    utilisation: Annotated[float, typer.Option(help="With --plan: the share of its peak that is reached.")] = 0.4,
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
    from curvedray.data.sources import check_source
    from curvedray.training.recipe import changed, with_overrides
    from curvedray.training.recipes import recipe
    from curvedray.training.run import Run

    def say(text: str) -> None:
        console.print(text, style="dim", markup=False)

    options = {"data.source": data, "data.labels": labels, "model": model, "start": start}
    chosen = changed(recipe(name), {key: value for key, value in options.items() if value is not None})
    chosen = with_overrides(chosen, overrides or [])
    if plan:
        from curvedray.training.plan import plan_tables

        typer.echo(plan_tables(chosen, gpu, utilisation))
        return
    if not dry_run:  # what a run would take can be asked before its footage is there
        check_source(chosen.data)
    run = Run.prepare(chosen, output or Path("runs") / chosen.name, tracker, shard)
    if dry_run:
        found = {"recipe": chosen.to_json(), "estimate": run.expected.to_json()}
        typer.echo(json.dumps(found, indent=None if as_json else 1))
        if not as_json:
            console.print(str(run.expected))
        return
    run.check_folder()
    first = run.process.is_first
    if first:
        console.print(f"{chosen.name}: {run.expected}")
    with progress_bar("clips into the cache", shown=first and chosen.data.cache != "off") as tick:
        clips, held_out = run.open_clips(tick, say)
    with progress_bar("training", shown=first) as tick:
        result = run.train(clips, held_out, resume=resume is not None, tick=tick, say=say)
    if not first:
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
