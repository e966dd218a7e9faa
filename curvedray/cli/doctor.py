"""`curvedray doctor`: what is installed, what is missing for what, and the command that mends it."""

import json
from dataclasses import asdict

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(as_json: bool = typer.Option(False, "--json", help="Print the findings as JSON.")) -> None:
    """Say what is installed, what is missing for what, and the exact command that fixes it."""
    from curvedray.doctor import examine
    from curvedray.errors import quoted

    def plain(words: str) -> str:
        """Names of programs are other people's: no markup, no escape sequences."""
        return escape(quoted(words))

    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    table = Table("", "what", "found", "needed for", box=None, pad_edge=False)
    for finding in findings:
        mark = "[green]ok[/green]" if finding.ok else "[yellow]--[/yellow]"  # a plain terminal has no ticks
        table.add_row(mark, *map(plain, (finding.what, finding.found, finding.needed_for)))
    console = Console(highlight=False)
    console.print(table)
    fixes = [finding for finding in findings if finding.fix]
    for finding in fixes:
        console.print(f"\n{finding.what}, for {finding.needed_for}:", markup=False)
        console.print(f"  {quoted(finding.fix)}", markup=False, soft_wrap=True)
    if not fixes:
        console.print("\nNothing is missing.")
