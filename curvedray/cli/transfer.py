"""`curvedray transfer`: film a prompt with the motion and layout of a source video."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curvedray.errors import InputError


def register(app: typer.Typer) -> None:
    app.command()(transfer)


def transfer(
    source: Annotated[Path, typer.Argument(help="The video whose motion and layout are taken.")],
    prompt: Annotated[str, typer.Argument(help="What the new video shows.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The video to write; stages go beside it.")],
    cameras: Annotated[Path | None, typer.Option(help="The source's camera file; else <source>-cameras.json.")] = None,
    estimate: Annotated[str | None, typer.Option(help="Who recovers the cameras: colmap or embedded.")] = None,
    lens: Annotated[str | None, typer.Option(help="The source's lens by name, where nothing else says it.")] = None,
    teacher: Annotated[
        str, typer.Option(help="Who sees the distances: depth-anything, unidepth, unik3d, colmap, embedded.")
    ] = "embedded",
    weights: Annotated[str | None, typer.Option(help="The teacher's weights: a folder or a hub id.")] = None,
    move: Annotated[str | None, typer.Option(help="Another camera move, instead of the source's.")] = None,
    near: Annotated[
        float | None,
        typer.Option(help="The scene's near distance in the cameras' own unit, where their scale is not known."),
    ] = None,
    model: Annotated[str, typer.Option(help="A Wan folder or hub id; without it, the embedded model.")] = "",
    adapter: Annotated[str | None, typer.Option(help="An adapter that was trained with maps.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same video.", min=0)] = 0,
    accept_noncommercial: Annotated[
        bool, typer.Option("--accept-noncommercial", help="Accept a non-commercial licence.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files and scores as JSON.")] = False,
) -> None:
    """Source video -> cameras and distances -> a new video with the same motion and layout."""
    from curvedray.cli import console
    from curvedray.cli.progress import progress_bar
    from curvedray.evaluate.estimators import make_estimator
    from curvedray.evaluate.label import make_teacher
    from curvedray.generation.parts import load_parts
    from curvedray.generation.write import check_output
    from curvedray.inputs import input_file, is_file
    from curvedray.transfer import transfer as run

    if cameras is not None and estimate is not None:
        raise InputError("cameras", "--cameras or --estimate", "both")
    beside = source.with_name(f"{source.stem}-cameras.json")
    cameras = beside if cameras is None and estimate is None and is_file(beside) else cameras
    input_file(source, "a video")
    check_output(output, inputs=[source, *([] if cameras is None else [cameras])])
    engine = make_teacher(teacher, accept_noncommercial=accept_noncommercial, weights=weights)
    judge = None if estimate is None else make_estimator(estimate)
    parts = load_parts(model, adapter)
    with progress_bar("transfer") as stage:
        made = run(
            *(source, prompt, parts, engine, output),
            cameras=cameras,
            estimator=judge,
            lens=lens,
            move=move,
            near=near,
            seed=seed,
            stage=stage,
            say=lambda note: console.print(note, markup=False),
        )
    if as_json:
        found = {
            "files": [str(file) for file in made.files],
            "scores": made.scores,
            "carried": made.carried,
            "reused": list(made.reused),
        }
        typer.echo(json.dumps(found | {"notes": list(made.notes)}, indent=2))
        return
    if made.reused:
        console.print(f"used again, as nothing they are made of has changed: {', '.join(made.reused)}", markup=False)
    names = {"silog": "SILog", "abs_rel": "AbsRel", "delta_1": "delta_1", "scale_jitter": "scale jitter"}
    if made.scores:
        said = ", ".join(f"{names[key]} {value:.3f}" for key, value in made.scores.items())
        typer.echo(f"distances in the new video, read by {engine.name}, against the map: {said}")
    typer.echo(f"wrote {made.files[0]}; source, map and result side by side: {made.files[-1]}")
