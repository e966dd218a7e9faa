"""`curvedray evaluate`: score anybody's videos against the cameras that were asked for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine

if TYPE_CHECKING:
    from curvedray.evaluate.matching import Job


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
    videos: Annotated[list[Path], typer.Argument(help="Videos, or folders of them.")],
    cameras: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the requested camera files, named as the videos; or one file for all. "
            "Without it: NAME-cameras.json beside each video, as `curvedray generate` writes it.",
            exists=True,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the report; a second run resumes in it.")
    ] = Path("report"),
    estimator: Annotated[
        str | None,
        typer.Option(
            help="Who recovers the cameras: colmap, embedded, oracle, vipe, geocalib, unik3d, unidepth, "
            "depth-anything. Without it: embedded "
            "for videos of the embedded model, else colmap."
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            help="Score the first and every N-th frame; sums depend on it. Without it: 1; embedded and geocalib 4.",
            min=1,
        ),
    ] = None,
    recovered: Annotated[
        Path | None,
        typer.Option(help="Folder of poses recovered before: camera files (oracle) or ViPE's results.", exists=True),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Folder of reference videos: adds PSNR, SSIM and GeoCalib's errors.", exists=True),
    ] = None,
    radial: Annotated[
        Path | None,
        typer.Option(
            help="Supplied distance maps (.npz, .npy) named as the videos, or one for all: adds adherence; needs no "
            "cameras.",
            exists=True,
        ),
    ] = None,
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", help="Each folder is a method: one table and page for all of them.")
    ] = False,
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
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON for a script.")] = False,
) -> None:
    """Score videos: does the camera move as it was asked to? Writes scores.json, table.md, table.tex and index.html."""
    from dataclasses import replace
    from functools import partial

    from rich.console import Console
    from rich.markdown import Markdown

    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.errors import InputError, quoted
    from curvedray.evaluate.estimators import choose_estimator, make_estimator, usual_stride
    from curvedray.evaluate.html_page import template, write_report
    from curvedray.evaluate.matching import match
    from curvedray.evaluate.report import Report, compare, to_dict, to_markdown
    from curvedray.evaluate.results import ClipResult
    from curvedray.evaluate.run import score_folder
    from curvedray.evaluate.side_by_side import method_names, shared_tables, write_side_by_side
    from curvedray.evaluate.side_by_side import to_markdown as side_by_side_table
    from curvedray.files import check_writable

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    where = chosen_engine(engine, address, workers)
    template()  # what is missing, and a folder that cannot be written to, are said before hours of scoring
    check_writable(output / "index.html")
    methods = method_names(videos) if side_by_side else {"": None}
    if side_by_side and against is not None:
        raise InputError("--against", "one method", "--side-by-side")
    jobs_of = {
        name: match(
            videos if place is None else [place],
            *(cameras, reference, radial),
            lambda video: say(f"not scored, no cameras or map for it: {quoted(video)}"),
        )
        for name, place in methods.items()
    }
    if estimator is None:
        every = [job for jobs in jobs_of.values() for job in jobs]
        estimator = choose_estimator([job.video for job in every], recovered is not None)
        say(f"cameras recovered by {estimator}; --estimator names another")
    open_estimator = partial(make_estimator, estimator, recovered, vipe_command, accept_noncommercial)
    judge = open_estimator()
    stride = stride or usual_stride(estimator)
    named = {"format": camera_format, "lens": lens}
    options: dict[str, Any] = {name: value for name, value in named.items() if value is not None}

    def report_of(name: str, jobs: "list[Job]") -> Report:
        with progress_bar(f"scoring {name}".strip()) as tick:
            scored = 0

            def done(result: ClipResult, resumed: bool) -> None:
                nonlocal scored
                scored += 1
                if result.failure:
                    say(f"{quoted(result.clip)}: failed, {quoted(result.failure)}")
                if result.suspect:
                    say(f"{quoted(result.clip)}: suspicious, {quoted(result.suspect)}")
                tick(scored, len(jobs), f"scored {quoted(result.clip)}" + (" (as before)" if resumed else ""))

            tick(0, len(jobs))
            found = (jobs, judge, stride, output / name, done)
            results = score_folder(*found, engine=where, open_estimator=open_estimator, **options)
        report = Report(results, judge.name, judge.version, judge.floor, stride)
        if against:
            report = replace(report, against=str(against), differences=compare(report, against))
        write_report(report, output / name, {job.clip: job for job in jobs})
        return report

    reports = {name: report_of(name, jobs) for name, jobs in jobs_of.items()}
    if side_by_side:
        write_side_by_side(reports, output)
        if as_json:
            typer.echo(json.dumps(shared_tables(reports), indent=1))
        else:
            Console(highlight=False).print(Markdown(side_by_side_table(reports)))
            say(f"The page: {quoted(output / 'index.html')}")
        return
    report = reports[""]
    if as_json:
        content = to_dict(report)
        del content["clips"]
        typer.echo(json.dumps(content, indent=1))
    else:
        Console(highlight=False).print(Markdown(to_markdown(report)))
        say(f"The page: {quoted(output / 'index.html')}")
    if not report.scored:
        raise typer.Exit(1)
