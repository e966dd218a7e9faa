"""`curvedray paper`: every table and figure of the paper; what it says, what it needs, and running it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine

group = typer.Typer(help="The paper's tables and figures: list, show, run.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A short name from `curvedray paper list`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]
KINDS = {"table": "Tables", "figure": "Figures", "text": "Results in the text", "ours": "Beyond the paper"}


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="paper")


@group.command("list")
def list_items(as_json: Json = False) -> None:
    """Every table, figure and result; each is run by `curvedray paper run NAME --scale embedded` or `--scale wan`."""
    from rich.console import Console

    from curvedray.paper.catalogue import ITEMS
    from curvedray.paper.scales import SCALES

    shown = [scale for scale in SCALES.values() if not scale.is_hidden]
    if as_json:
        rows = [
            {"name": i.name, "kind": i.kind, "title": i.title, "scales": [scale.name for scale in shown]}
            | {"numbers": i.values is not None, "notes": list(i.notes)}
            for i in ITEMS
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    screen = Console(highlight=False)
    for kind, title in KINDS.items():
        screen.print(f"[bold]{title}[/bold]")
        for entry in ITEMS:
            if entry.kind == kind:
                screen.print(f"  {entry.name:<20} {entry.title}", soft_wrap=True)
    screen.print("\nEach runs: curvedray paper run NAME --scale SCALE, where SCALE is")
    for scale in shown:
        screen.print(f"  {scale.name:<10} {scale.says}", soft_wrap=True)
    screen.print("Add --dry-run to see what one takes and what is missing here.")


@group.command()
def show(name: Name, as_json: Json = False) -> None:
    """The paper's own numbers, the best in bold, and what is known to be odd about them."""
    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.paper.catalogue import item
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
        list[str] | None,
        typer.Argument(help="Changes of every row alike: steps=100 data.clips=64; of filming: film.steps=20"),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="`embedded` runs on a laptop, in hours; `wan` is the paper's size.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of all items' runs; what two items share is made once.")
    ] = Path("runs/paper"),
    seeds: Annotated[
        int, typer.Option(help="Train every row with so many seeds, and say how much they decide.", min=1, max=20)
    ] = 1,
    clips: Annotated[int | None, typer.Option(help="Test clips, in place of the scale's own number.", min=1)] = None,
    use: Annotated[
        list[str] | None,
        typer.Option(help="Where something is that the package has not: wan=DIR, panshot=DIR. --dry-run names them."),
    ] = None,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it takes, what is missing here and what brings it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run an item: train every row alike, film, estimate, score, and print it beside the paper's.

    It asks for --scale; it says what it will do and where, is stopped at any moment, and goes on where it was.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.errors import InputError
    from curvedray.paper.catalogue import item
    from curvedray.paper.listener import Listener
    from curvedray.paper.needs import parsed_places
    from curvedray.paper.plan import plan_of
    from curvedray.paper.runner import runner_of, write_page
    from curvedray.paper.scales import scale_named
    from curvedray.paper.setting import Setting

    entry = item(name)
    size = scale_named(scale or "embedded")
    where = chosen_engine(engine, address, workers)
    setting = Setting(size, output / size.name, parsed_places(use or []), tuple(overrides or []), clips, seeds, where)
    folder = output / size.name / entry.name
    plan = plan_of(entry, setting, str(folder))
    if dry_run:
        typer.echo(json.dumps(plan.to_json(), indent=1)) if as_json else Console(highlight=False).print(
            Markdown(plan.to_markdown())
        )
        return
    if scale is None and (plan.work.trainings or plan.work.films):
        fix = f"{plan.sentence()} To start it, add --scale embedded, or --scale wan for the paper's size."
        raise InputError("--scale", "which model to run it with", "nothing", fix)
    console.print(plan.sentence(), markup=False)
    for line in plan.missing:
        console.print(f"missing ({line.stage}): {line.key}: {line.missing}. To bring it: {line.brings}", markup=False)
    with progress_bar(name) as tick:
        page = runner_of(entry).run(entry, setting, Listener(lambda line: console.print(line, markup=False), tick))
    write_page(page, folder)
    if as_json:
        typer.echo(json.dumps(page.record, indent=1))
    else:
        Console(highlight=False).print(Markdown(page.text))
    console.print(f"wrote {folder}", markup=False)
