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

    from curvedray.evaluate.paper import ITEMS

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

    from curvedray.evaluate.paper import item
    from curvedray.evaluate.paper_tables import papers_table

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
    scale: Annotated[
        str, typer.Option(help="Which model: `embedded` runs on a laptop; `wan` needs its weights.")
    ] = "embedded",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the run, resumed if it is there.")
    ] = None,
) -> None:
    """Run a table's experiment: train every row alike, generate, score, and print it beside the paper's."""
    from curvedray.evaluate.paper import run as run_experiment

    raise typer.Exit(run_experiment(name, scale, output))
