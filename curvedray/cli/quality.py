"""`curvedray quality`: do videos look real, steady, and like their captions? FVD, FID, CLIP scores, LPIPS, VBench."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(quality)


def quality(
    videos: Annotated[list[Path], typer.Argument(help="Videos, or folders of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the table; features are kept in it and used again.")
    ] = Path("quality"),
    weights: Annotated[
        Path | None, typer.Option(help="Folder of the networks' weights; docs/quality.md names each.", exists=True)
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Folder of real videos, named as yours: for FVD, FVD-C, FID and LPIPS.", exists=True),
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(
            help="Captions by clip: .json, .csv or .jsonl. Without it: the prompt that `curvedray generate` noted.",
            exists=True,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="fvd,fvd-c,fid,is,cs-t,cs-i,lpips,flicker,vbench or its dimensions; else all but flicker."),
    ] = None,
    python: Annotated[
        str, typer.Option(help="The Python of an environment that has the networks' packages.")
    ] = sys.executable,
    vbench_python: Annotated[str, typer.Option(help="The Python of VBench's environment, if it has its own.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda, or another that torch knows.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON for a script.")] = False,
) -> None:
    """Score how videos look, with public networks whose weights you give. What is missing is said, the rest is run."""
    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.errors import quoted
    from curvedray.evaluate.matching import VIDEOS, named_files, video_files
    from curvedray.evaluate.quality.captions import noted_captions, read_captions
    from curvedray.evaluate.quality.extractors import chosen_metrics
    from curvedray.evaluate.quality.measure import Request, grouped, measure_quality
    from curvedray.evaluate.quality.table import to_dict, to_markdown, write_quality
    from curvedray.files import check_writable

    check_writable(output / "quality.json")
    asked, found = chosen_metrics(metrics), video_files(videos)
    said = read_captions(captions) if captions else noted_captions(found)
    others = named_files(reference, VIDEOS, "reference videos") if reference else {}
    request = Request(found, output, weights, others, said, python, vbench_python, device)
    with progress_bar("quality") as tick:
        result = measure_quality(request, asked, tick)
    write_quality(result, output)
    for name, why in grouped(result.absent).items():
        console.print(f"{name}: not measured. {quoted(why)}", markup=False, soft_wrap=True)
    for name, why in result.failed.items():
        console.print(f"{quoted(name)}: failed, {quoted(why)}", markup=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(to_dict(result), indent=1, allow_nan=False))
    elif result.cells:
        Console(highlight=False).print(Markdown(to_markdown(result)))
        console.print(f"The table: {quoted(output / 'quality.md')}", markup=False, soft_wrap=True)
    if not result.cells or (metrics and result.absent):
        raise typer.Exit(1)
