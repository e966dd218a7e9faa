"""`curvedray paper`: every table and figure of the paper; what it needs, what it says, and what runs here."""

import json
from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(help="The paper's tables and figures: list, show, run.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A short name from `curvedray paper list`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="paper")


@group.command("list")
def list_items(as_json: Json = False) -> None:
    """Every table and figure: what runs here, what the others need, what they cost."""
    from rich.console import Console
    from rich.padding import Padding

    from curvedray.paper.items import ITEMS

    if as_json:
        rows = [
            {"name": i.name, "kind": i.kind, "title": i.title, "needs": list(i.needs), "cost": i.cost, "here": i.status}
            | {"scales": list(i.scales), "numbers": i.values is not None, "notes": list(i.notes)}
            for i in ITEMS
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    screen = Console(highlight=False)
    for entry in ITEMS:
        screen.print(f"[bold]{entry.name}[/bold]  {entry.title} ({entry.kind})", soft_wrap=True)
        runs = f"runs here: curvedray paper run {entry.name} --scale {entry.scales[0]}" if not entry.missing else ""
        whole = f"in full: {', '.join(entry.needs)}; {entry.cost}" if entry.needs else "nothing to run"
        for line in (runs, whole):
            if line:
                screen.print(Padding(line, (0, 0, 0, 4)), style="" if line == runs else "dim")


@group.command()
def show(name: Name, as_json: Json = False) -> None:
    """The paper's own numbers, the best in bold, and what is known to be odd about them."""
    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.paper.items import item
    from curvedray.paper.tables import papers_table

    entry = item(name)
    table = papers_table(entry)
    if as_json:
        assert entry.values is not None
        columns, rows = entry.values
        content = {row: dict(zip(columns, numbers, strict=True)) for row, numbers in rows.items()}
        typer.echo(json.dumps({"name": name, "rows": content, "notes": list(entry.notes)}, indent=1))
        return
    Console(highlight=False).print(Markdown(f"**{entry.title}**\n\n{table}"))


@group.command()
def run(
    name: Name,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes of every row alike: steps=100 data.clips=64")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Which model: `embedded` runs on a laptop, in hours; `wan` needs its weights.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the run (runs/NAME); resumed if it is there.")
    ] = None,
    clips: Annotated[
        int | None, typer.Option(help="Test clips, in place of the experiment's own number.", min=1)
    ] = None,
    estimator: Annotated[str, typer.Option(help="Who recovers the cameras: embedded, colmap.")] = "embedded",
) -> None:
    """Run a table's experiment: train every row alike, generate, score, and print it beside the paper's.

    It takes hours and asks for --scale; it says what it will do and where, and goes on where it stopped.
    """
    from dataclasses import replace

    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.errors import InputError
    from curvedray.evaluate.estimators import make_estimator
    from curvedray.paper.experiment import check_ready, load, plan
    from curvedray.paper.items import item
    from curvedray.paper.run import run_experiment

    entry, folder = item(name), output or Path("runs") / name
    found = load(name, scale or next(iter(entry.scales), "embedded"))
    if estimator == "embedded":
        check_ready(name)
    experiment = found.changed(overrides or [])
    experiment = replace(experiment, clips=clips or experiment.clips)
    if scale is None:
        fix = f"{plan(experiment, folder)} To start it, add --scale {' or --scale '.join(entry.scales)}."
        raise InputError("--scale", "which model to run it with", "nothing", fix)
    engine = make_estimator(estimator)
    console.print(plan(experiment, folder), markup=False)
    with progress_bar(name) as tick:
        page = run_experiment(entry, experiment, engine, folder, lambda line: console.print(line, markup=False), tick)
    Console(highlight=False).print(Markdown(page))
