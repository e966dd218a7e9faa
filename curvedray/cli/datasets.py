"""`curvedray data pose`, `caption`, `split` and `describe`: what a data set lacks, and what it is like."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curvedray.cli.progress import progress_bar
from curvedray.cli.shared import Address, EngineKind, Workers, chosen_engine

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Frames = Annotated[int, typer.Option(min=1, max=100_000, help="How long captures are cut, as they are trained on.")]
Folder = Annotated[Path, typer.Argument(help="A folder of clips in any layout (docs/datasets.md).")]


def pose(
    videos: Annotated[
        Path, typer.Argument(help="A video, a folder of videos or of images, or a data set without cameras.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder of camera files.")] = None,
    lens: Annotated[str | None, typer.Option(help="The lens by name; else pinhole-65 is assumed, and said.")] = None,
    estimator: Annotated[str, typer.Option(help="colmap, or vipe where it is installed.")] = "colmap",
    frames: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="How long the videos of MiraData are cut, as for training.")
    ] = None,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Find out the cameras of videos that have none, with a confidence each, and which clips to drop."""
    from dataclasses import asdict

    from curvedray.cli import console
    from curvedray.errors import InputError
    from curvedray.evaluate.estimators import make_estimator
    from curvedray.evaluate.pose import Posed, find_pose_jobs, pose_videos, read_report

    if estimator not in ("colmap", "vipe"):
        raise InputError("--estimator", "colmap or vipe", estimator)
    opened = make_estimator(estimator)
    jobs, folder = find_pose_jobs(videos, output, lens, frames)
    before = read_report(folder)
    found: list[Posed] = []
    with progress_bar("posing", shown=not as_json) as tick:

        def done(one: Posed) -> None:
            found.append(one)
            tick(len(found), len(jobs), one.clip)

        tick(0, len(jobs))
        rows = pose_videos(jobs, folder, opened, done, chosen_engine(engine, address, workers))
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
    elif not rows:
        console.print(f"every clip of {videos} has cameras: there is nothing to find out", markup=False)
    else:
        for row in rows:
            kept = f"drop: {row.drop}" if row.drop else "keep"
            console.print(f"{row.clip}: confidence {row.confidence:.2f}, {kept}", markup=False)
            if row.note:
                console.print(f"    {row.note}", markup=False)
        console.print(f"{sum(not row.drop for row in rows)} of {len(rows)} clips to keep, in {folder}", markup=False)
        if all(before.get(row.clip) == row for row in rows):
            console.print("everything was posed before; nothing has changed since", markup=False)
    if rows and all(row.drop for row in rows):
        raise typer.Exit(1)


def caption(
    folder: Folder,
    model: Annotated[
        str, typer.Option(help="`estimate`, or an image captioner of transformers: a folder or a hub id.")
    ] = "estimate",
    prompt: Annotated[str, typer.Option(help="Words the captioner is given beside the picture.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Also caption clips that have a caption.")] = False,
    frames: Frames = 81,
    engine: EngineKind = None,
    address: Address = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Caption the clips that have no caption, into captions.json beside them."""
    from dataclasses import asdict
    from functools import partial

    from curvedray.cli import console
    from curvedray.data.folders import FolderFootage
    from curvedray.evaluate.caption import ESTIMATE, Captioned, caption_folder, open_estimate
    from curvedray.evaluate.estimators.captioner import load_captioner

    source = FolderFootage(folder, frames=frames)
    opener = open_estimate if model == ESTIMATE else partial(load_captioner, model, prompt)
    total = len(source) if again else sum(not record.caption for record in source.records)
    made: list[Captioned] = []
    with progress_bar("captions", shown=not as_json) as tick:

        def done(one: Captioned) -> None:
            made.append(one)
            tick(len(made), total)

        where = chosen_engine(engine, address, workers)
        rows = caption_folder(source, opener, again=again, done=done, engine=where, gpu=model != ESTIMATE)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
        return
    console.print(f"{sum(bool(row.caption) for row in rows)} captions in {folder / 'captions.json'}", markup=False)
    for row in rows:
        if row.failure:
            console.print(f"left out {row.clip}: {row.failure}", markup=False)


def split(
    folder: Folder,
    val: Annotated[float, typer.Option(min=0, max=1, help="Share of the sources for validation.")] = 0.05,
    test: Annotated[float, typer.Option(min=0, max=1, help="Share of the sources for test.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another split.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Split clips by what they were taken from, into splits.json beside them."""
    from collections import Counter

    from curvedray.cli import console
    from curvedray.data.folders import FolderFootage
    from curvedray.data.splits import SPLITS, write_splits

    records = FolderFootage(folder).records
    sources = [record.source or record.id for record in records]
    splits = write_splits(folder, sources, seed, val, test)
    counts = Counter(splits[source] for source in sources)
    if as_json:
        typer.echo(json.dumps({name: counts[name] for name in SPLITS}))
        return
    console.print(", ".join(f"{counts[name]} {name}" for name in SPLITS) + f" clips of {len(splits)} sources")
    for name, share in (("val", val), ("test", test)):
        if share and not counts[name]:
            console.print(f"no clip is for {name}: there are few sources; raise --{name} or try another --seed")


def describe(
    folder: Annotated[str, typer.Argument(help="A folder of clips in any layout, or `world`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the description.")],
    clips: Annotated[int, typer.Option(min=1, max=10**9, help="How many clips of the world.")] = 16,
    frames: Frames = 81,
    as_json: AsJson = False,
) -> None:
    """Describe a data set in pictures: lenses, motion, a sheet of clips, and what is unusual."""
    from curvedray.cli import console
    from curvedray.data.clips import VideoShape
    from curvedray.data.describe import describe_set
    from curvedray.data.sources import WORLDS, open_footage

    shape = VideoShape(17, 64, 96) if folder in WORLDS else VideoShape(frames, 480, 832)
    source = open_footage(folder, shape, clips)
    with progress_bar("clips", shown=not as_json) as tick:
        found = describe_set(source, output, tick)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    console.print(f"{found.readable} of {found.clips} clips can be read; description.md and pictures in {output}")
    for clip, why in found.unusual:
        console.print(f"unusual: {clip}: {why}", markup=False)
    if found.problems:
        console.print(f"{len(found.problems)} problems, listed in {output / 'description.md'}", markup=False)
