"""`curvedray cameras`: what a camera file holds, in words; one format into another; what there is to choose from."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cli.shared import Options, file_cameras, pixels, reader_options
from curvedray.errors import InputError, quoted

if TYPE_CHECKING:
    from curvedray.cameras import Cameras
    from curvedray.formats import Format

group = typer.Typer(
    help="Camera files and moves: describe, make, convert; formats and list say what there is.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of words.")]
Near = Annotated[
    float | None,
    typer.Option(help="Near distance, in the file's unit (of moves: in metres); the result is in unit `near`."),
]
Size = Annotated[str | None, typer.Option(help="Image size as WIDTHxHEIGHT (832x480); a file's lens is fitted to it.")]
LensName = Annotated[str | None, typer.Option("--lens", help="A lens by name (pinhole-90), in place of the file's.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="cameras")


@group.command()
def describe(
    file: Annotated[Path | None, typer.Argument(help="A camera file.")] = None,
    format: Annotated[str | None, typer.Option(help="Its format; found from its content if left out.")] = None,
    move: Annotated[str | None, typer.Option(help='Moves in place of a file: "orbit left 40deg".')] = None,
    lens: LensName = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the move (81), or to resample the file to.")] = None,
    size: Size = None,
    near: Near = None,
    option: Options = None,
    as_json: Json = False,
) -> None:
    """Say a trajectory in words and numbers: frames, unit, path, turning, lens, and what the move looks like."""
    from rich.console import Console

    from curvedray.moves.describe import describe as say

    found, reason = None, ""
    if move is not None:
        if file is not None or format or option:
            raise InputError("describe", "a file with its options, or --move, not both", file or format or option)
        cameras = _moved(move, lens, frames, size, near)
    else:
        cameras, found, reason = _read(file, format, option, lens, size, frames, near)
    description = say(cameras)
    if as_json:
        typer.echo(json.dumps(description.to_dict() | {"format": found}, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(str(description), markup=False)
    if found:
        console.print(f"format {found} ({reason})", markup=False)
    if description.move and description.off:
        pitch = description.off.pitch
        start = f", from a camera that looks {abs(pitch):g} degrees {'up' if pitch > 0 else 'down'}" if pitch else ""
        console.print(f'as text: "{description.move}"{start}', markup=False)


@group.command()
def make(
    move: Annotated[str, typer.Argument(help='The moves: "orbit left 40deg, then dolly in 0.5".')],
    target: Annotated[Path, typer.Argument(help="The camera file to write.")],
    target_format: Annotated[
        str | None, typer.Option("--to", help="The format to write; from the ending if left out.")
    ] = None,
    lens: LensName = None,
    frames: Annotated[int, typer.Option(help="How many frames.")] = 81,
    size: Size = None,
    near: Near = None,
    as_json: Json = False,
) -> None:
    """Write the camera file of a move."""
    from curvedray.formats import write_cameras

    cameras = _moved(move, lens, frames, size, near)
    write_cameras(cameras, target, target_format)
    _report(cameras, target, "", as_json)


@group.command()
def convert(
    source: Annotated[Path, typer.Argument(help="The camera file to read.")],
    target: Annotated[Path, typer.Argument(help="The camera file to write.")],
    source_format: Annotated[
        str | None, typer.Option("--from", "--format", help="Its format; found from its content if left out.")
    ] = None,
    target_format: Annotated[
        str | None, typer.Option("--to", help="The format to write; from the ending if left out.")
    ] = None,
    near: Near = None,
    frames: Annotated[int | None, typer.Option(help="Resample in time to this many frames.")] = None,
    relative: Annotated[bool, typer.Option("--relative", help="Put the first camera at the origin.")] = False,
    lens: LensName = None,
    size: Size = None,
    option: Options = None,
    as_json: Json = False,
) -> None:
    """Read one camera format and write another; rescaled, resampled or moved to the origin if asked."""
    from curvedray.formats import write_cameras

    cameras, found, _ = _read(source, source_format, option, lens, size, frames, near, {"relative": relative})
    write_cameras(cameras, target, target_format)
    _report(cameras, target, f"{source} ({found}) -> ", as_json)


@group.command()
def formats(
    name: Annotated[str | None, typer.Argument(help="One format, with all that it can be told.")] = None,
    as_json: Json = False,
) -> None:
    """Every format of camera files in a line each; or one of them, with its options."""
    from curvedray.formats.registry import FORMATS, format_named

    chosen = list(FORMATS.values()) if name is None else [format_named(name)]
    if as_json:
        typer.echo(json.dumps([_format_record(i) for i in chosen], indent=2))
        return
    for i in chosen:
        endings = " ".join(i.extensions) or "a folder"
        typer.echo(f"{i.name} ({endings}{'' if i.written else ', only read'}): {i.convention}")
    if name is not None:
        from curvedray.formats import GENERAL  # only here, as it loads torch

        typer.echo(f"not in the file: {chosen[0].lost}")
        groups = {"--option": chosen[0].options, "every format": GENERAL, "writing, in Python": chosen[0].write_options}
        for where, options in groups.items():
            for option in options:
                typer.echo(f"  {where}: {option.name}, {option.meaning}")


@group.command()
def blender(
    target: Annotated[Path, typer.Argument(help="The Python file to write: Blender's add-on.")],
) -> None:
    """Write the Blender add-on: camera paths in and out of Blender, fisheye lenses included."""
    from importlib.resources import files

    from curvedray.files import named_file, whole_file

    source = files("curvedray.formats").joinpath("blender_addon.py").read_text(encoding="utf-8")
    with whole_file(named_file(target, (".py",))) as temporary:
        temporary.write_text(source, encoding="utf-8")
    _say(f"{target}: in Blender, Edit > Preferences > Add-ons > Install from Disk; then File > Import and Export")


@group.command("list")
def list_all(as_json: Json = False) -> None:
    """Every move, lens and file format, with what it means."""
    from rich.console import Console
    from rich.table import Table

    tables = _tables()
    if as_json:
        typer.echo(json.dumps(tables, indent=2))
        return
    console = Console()
    for title, rows in tables.items():
        table = Table(title=title, title_justify="left", show_edge=False, expand=True)
        for column in rows[0]:
            table.add_column(
                column, overflow="fold", ratio=4 if column in ("what it does", "convention", "about") else 2
            )
        for row in rows:
            table.add_row(*(", ".join(i) if isinstance(i, list) else str(i) for i in row.values()))
        console.print(table, "\n")


def _tables() -> dict[str, list[dict[str, Any]]]:
    from curvedray.cameras.lens_table import LENSES
    from curvedray.formats.registry import FORMATS
    from curvedray.moves.move import ALIASES, KINDS

    moves = [
        {
            "move": name,
            "directions": list(kind.directions),
            "default": " ".join(str(i) for i in (kind.amount, kind.distance_word, kind.distance) if i),
            "what it does": f"{kind.meaning}. {kind.note}".strip(),
            "also called": [alias for alias, names in ALIASES.items() if name in names],
        }
        for name, kind in KINDS.items()
    ]
    lenses = [{"lens": i.name, "hFoV": i.hfov, "xi": i.xi, "about": i.about} for i in LENSES]
    return {"moves": moves, "lenses": lenses, "formats": [_format_record(i) for i in FORMATS.values()]}


def _format_record(format: "Format") -> dict[str, Any]:
    return {
        "format": format.name,
        "endings": list(format.extensions),
        "convention": format.convention,
        "not in the file": format.lost,
        "written": "yes" if format.written else "no",
    }


def _moved(move: str, lens: str | None, frames: int | None, size: str | None, near: float | None) -> "Cameras":
    from curvedray.cameras.named_lenses import named_lens
    from curvedray.moves.trajectory import trajectory

    width, height = pixels(size) or (832, 480)
    chosen = named_lens(USUAL_LENS if lens is None else lens, width, height)
    return trajectory(move, chosen, 81 if frames is None else frames, near=near)


def _read(
    file: Path | None,
    format: str | None,
    options: list[str] | None,
    lens: str | None,
    size: str | None,
    frames: int | None,
    near: float | None,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> "tuple[Cameras, str, str]":
    """The file's cameras as asked for, its format's name, and how that is known; what was changed goes to stderr."""
    import torch

    from curvedray.formats import detect_format

    if file is None:
        raise InputError("describe", "a camera file, or --move", "neither")
    # In double precision all the way, so that coordinates far from the origin keep their digits.
    said = reader_options(options) | dict(reading) | {"dtype": torch.float64}
    name, reason = (format, "as you said") if format else detect_format(file)
    cameras, changed = file_cameras(file, name, said, lens, pixels(size), frames)
    for words in changed:
        _say(f"{file}: {words}")
    if near is None:
        return cameras, name, reason
    if cameras.unit == "near":  # another division would be one too many, and nothing would show it
        fix = "If it is not, say --option unit=arbitrary."
        raise InputError("--near", "none, as the file is in near distances already", near, fix)
    return cameras.scaled(near), name, reason


def _report(cameras: "Cameras", file: Path, source: str, as_json: bool) -> None:
    """What was written: JSON on stdout, or words on stderr, so that stdout is only ever the result."""
    if as_json:
        typer.echo(json.dumps({"file": str(file), "frames": len(cameras), "unit": cameras.unit}))
        return
    count = f"{len(cameras)} camera{'s' * (len(cameras) != 1)}"
    _say(f"{source}{file}: {count}, unit {cameras.unit}")


def _say(words: str) -> None:
    """On stderr, as stdout is only ever the result."""
    typer.echo(quoted(words), err=True)
