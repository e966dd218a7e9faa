"""`curvedray evaluate`: score anybody's videos against the cameras that were asked for."""

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
    videos: Annotated[list[Path], typer.Argument(help="Videos, or folders of them.", exists=True)],
    cameras: Annotated[
        Path,
        typer.Option(
            help="Folder of the requested camera files, named as the videos; or one file for all.", exists=True
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the report; a second run resumes in it.")
    ] = Path("report"),
    estimator: Annotated[
        str, typer.Option(help="Who recovers the cameras: colmap, embedded, oracle, vipe, geocalib, unik3d.")
    ] = "colmap",
    stride: Annotated[int, typer.Option(help="Score the first and every N-th frame; sums depend on it.", min=1)] = 1,
    recovered: Annotated[
        Path | None,
        typer.Option(help="Folder of poses recovered before: camera files (oracle) or ViPE's results.", exists=True),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Folder of reference videos: adds PSNR, SSIM and GeoCalib's errors.", exists=True),
    ] = None,
    radial: Annotated[
        Path | None, typer.Option(help="Folder of supplied distance maps, .npy (T, H, W): adds adherence.", exists=True)
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another report of the same clips: adds paired differences.", exists=True)
    ] = None,
    camera_format: Annotated[
        str | None, typer.Option(help="Format of the camera files; found out if left out.")
    ] = None,
    lens: Annotated[str | None, typer.Option(help="A lens by name, for camera files that carry none.")] = None,
    vipe_command: Annotated[str, typer.Option(help="ViPE's program, if it is not on the path.")] = "vipe",
    accept_noncommercial: Annotated[
        bool, typer.Option("--accept-noncommercial", help="Accept UniK3D's non-commercial licence.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON for a script.")] = False,
) -> None:
    """Score videos: does the camera move as it was asked to? Writes scores.json, table.md, table.tex and index.html."""
    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.evaluate.estimators import make_estimator
    from curvedray.evaluate.matching import match
    from curvedray.evaluate.page import write_report
    from curvedray.evaluate.report import Report, compare, to_dict, to_markdown
    from curvedray.evaluate.run import ClipResult, score_folder

    jobs = match(videos, cameras, reference, radial)
    engine = make_estimator(estimator, recovered, vipe_command, accept_noncommercial)
    named = {"format": camera_format, "lens": lens}
    options = {name: value for name, value in named.items() if value is not None}
    with progress_bar("scoring") as tick:
        scored = 0

        def done(result: ClipResult, resumed: bool) -> None:
            nonlocal scored
            scored += 1
            if result.failure:
                console.print(f"{result.clip}: failed, {result.failure}", markup=False)
            tick(scored, len(jobs), f"scored {result.clip}" + (" (as before)" if resumed else ""))

        tick(0, len(jobs))
        results = score_folder(jobs, engine, stride, output, done, **options)
    report = Report(results, engine.name, engine.version, engine.floor, stride)
    if against:
        report = Report(
            results, engine.name, engine.version, engine.floor, stride, str(against), compare(report, against)
        )
    write_report(report, output)
    if as_json:
        content = to_dict(report)
        del content["clips"]
        typer.echo(json.dumps(content, indent=1))
    else:
        Console(highlight=False).print(Markdown(to_markdown(report)))
        console.print(f"The page: {output / 'index.html'}", markup=False, soft_wrap=True)
    if not report.scored:
        raise typer.Exit(1)
