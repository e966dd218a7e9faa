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
    """Every table and figure: what it needs, what it costs, what runs here."""
    from rich.console import Console
    from rich.table import Table

    from curvedray.paper.items import ITEMS

    if as_json:
        rows = [
            {"name": i.name, "kind": i.kind, "title": i.title, "needs": list(i.needs), "cost": i.cost, "here": i.status}
            | {"scales": list(i.scales), "numbers": i.values is not None, "notes": list(i.notes)}
            for i in ITEMS
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table("name", "what", "needs", "costs", "here", box=None, pad_edge=False)
    for entry in ITEMS:
        what = f"{entry.title} ({entry.kind})"
        table.add_row(entry.name, what, ", ".join(entry.needs) or "-", entry.cost, entry.status)
    Console(highlight=False).print(table)


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
        str, typer.Option(help="Which model: `embedded` runs on a laptop; `wan` needs its weights.")
    ] = "embedded",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the run (runs/NAME); resumed if it is there.")
    ] = None,
    clips: Annotated[
        int | None, typer.Option(help="Test clips, in place of the experiment's own number.", min=1)
    ] = None,
    estimator: Annotated[str, typer.Option(help="Who recovers the cameras: embedded, colmap.")] = "embedded",
) -> None:
    """Run a table's experiment: train every row alike, generate, score, and print it beside the paper's."""
    from dataclasses import replace

    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.evaluate.estimators import make_estimator
    from curvedray.paper.experiment import check_ready, load
    from curvedray.paper.items import item
    from curvedray.paper.run import run_experiment

    found = load(name, scale)
    if estimator == "embedded":
        check_ready(name)
    experiment = found.changed(overrides or [])
    experiment = replace(experiment, clips=clips or experiment.clips)
    quiet = Console(stderr=True, highlight=False)
    engine = make_estimator(estimator)
    page = run_experiment(item(name), experiment, engine, output or Path("runs") / name, lambda line: quiet.print(line))
    Console(highlight=False).print(Markdown(page))
