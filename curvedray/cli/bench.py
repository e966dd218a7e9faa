"""`curvedray bench`: what things cost on this machine, as a table, JSON or a results file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from curvedray.errors import InputError


def register(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="[attention|adapter|training]...", help="Which; attention by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: a look, not a result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measurements as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Also write a results file (Markdown: command, date, hardware).")
    ] = None,
) -> None:
    """Measure speed, memory and digits, as medians of interleaved runs."""
    from rich.console import Console
    from rich.table import Table

    from curvedray.bench.harness import hardware, load, markdown, shown, target, verdict
    from curvedray.bench.suites import SUITES
    from curvedray.cli.progress import progress_bar
    from curvedray.files import whole_file

    names = suites or ["attention"]
    for name in names:
        if name not in SUITES:
            raise InputError("benchmark", " or ".join(SUITES), name)
    measurements = []
    with progress_bar("starting") as tick:
        for name in names:
            for measurement in SUITES[name](quick):
                measurements.append(measurement)
                tick(len(measurements), None, f"{name}: {measurement.what} {shown(measurement.value)}")
    command = " ".join(["curvedray bench", *names, *(["--quick"] if quick else [])])
    if out is not None:
        with whole_file(out) as partial:
            partial.write_text(markdown("Benchmark: " + ", ".join(names), command, measurements))
    if as_json:
        rows = [asdict(m) | {"met": m.met} for m in measurements]
        typer.echo(json.dumps({"command": command, "hardware": hardware(), "measurements": rows}, indent=2))
        return
    table = Table("what", "measured", "target", "met", box=None, pad_edge=False)
    for m in measurements:
        table.add_row(m.what, f"{shown(m.value)} {m.unit}", target(m), verdict(m))
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{hardware()}; {load()}\n", markup=False)
    console.print(table)
