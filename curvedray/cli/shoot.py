"""`curvedray data shoot`: clips from panoramas."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curvedray.cli.progress import progress_bar
from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine, pixels


def shoot(
    panorama: Annotated[Path, typer.Argument(help="A 360 degree video or still, or a folder of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of clips.")],
    lens: Annotated[
        list[str] | None,
        typer.Option("--lens", "--lenses", help="A lens by name, or `random`; several are taken in turn."),
    ] = None,
    move: Annotated[
        list[str] | None,
        typer.Option("--move", "--moves", help="How a clip turns (`pan left 40deg`), or `random`; several in turn."),
    ] = None,
    clips: Annotated[int, typer.Option(min=1, max=10**7, help="How many clips, evenly from all panoramas.")] = 8,
    size: Annotated[str, typer.Option(help="WIDTHxHEIGHT of a clip.")] = "832x480",
    frames: Annotated[int, typer.Option(min=1, max=100_000, help="Frames of a clip.")] = 81,
    seed: Annotated[int, typer.Option(min=0, help="What is drawn at random follows from it.")] = 0,
    projection: Annotated[
        str | None,
        typer.Option(help="equirectangular, cube-3x2, cube-6x1 or cube-cross, where the shape does not tell."),
    ] = None,
    level: Annotated[
        str, typer.Option(help="Whose vertical is gravity's: the track's `world`, or the `panorama`'s own.")
    ] = "world",
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was taken as JSON.")] = False,
) -> None:
    """Take clips from panoramas: any lens, turned any way, with exact cameras. Run again, it goes on."""
    from curvedray.cli import console
    from curvedray.data.clips import VideoShape
    from curvedray.data.panoramas import Panorama, find_panoramas
    from curvedray.data.shoot import shoot
    from curvedray.data.shot_jobs import RANDOM, plan_shots
    from curvedray.errors import InputError

    if level not in ("world", "panorama"):
        raise InputError("--level", "world or panorama", level)
    width, height = pixels(size) or (832, 480)
    found = find_panoramas(panorama, projection)
    sound = [i for i in found if isinstance(i, Panorama)]
    faults = [i for i in found if isinstance(i, InputError)]
    if not sound:
        raise faults[0]
    jobs = plan_shots(
        sound,
        clips,
        output,
        VideoShape(frames, height, width),
        lenses=lens or [RANDOM],
        moves=move or [RANDOM],
        seed=seed,
        level=level,  # type: ignore[arg-type]
    )
    with progress_bar("clips", shown=not as_json) as tick:
        report = shoot(jobs, output, faults, tick, chosen_engine(engine, address, workers))
    if as_json:
        typer.echo(json.dumps(report.to_json()))
    else:
        there = f" ({report.kept} were there)" if report.kept else ""
        sides = ", ".join(f"{count} {name}" for name, count in report.splits.items() if count)
        console.print(f"{report.clips} of {len(jobs)} clips in {output}{there}: {sides or 'none'}", markup=False)
        for name, note in report.notes:
            console.print(f"note on {name}: {note}", markup=False)
        for name, reason in report.skipped:
            console.print(f"left out {name}: {reason}", markup=False)
    if not report.clips:
        raise typer.Exit(1)
