"""`read_cameras`: a camera file of any known format -> Cameras."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import torch

from curvedray.cameras import Cameras, Lens, Unit
from curvedray.errors import InputError
from curvedray.formats.build import note
from curvedray.formats.detect import detected
from curvedray.formats.handlers import HANDLERS
from curvedray.formats.lenses import checked_size
from curvedray.formats.options import Option, check_options
from curvedray.formats.registry import format_named
from curvedray.formats.source import Given, Source

# Every reader can be told these.
GENERAL = (
    Option("lens", (Lens, str), "the lens, in place of the file's: a name such as fisheye-150"),
    Option("size", (tuple,), "the image's (width, height); a lens for another size of that shape is rescaled"),
    Option("unit", (str,), "metric, near or arbitrary, in place of the file's"),
    Option("fps", (float,), "frames per second, in place of the file's"),
    Option("first_frames", (int,), "read only the first so many frames"),
    Option("relative", (bool,), "put the first camera at the origin, before anything is rounded"),
    Option("mirrored_world", (bool,), "the file's world is left-handed"),
)

NOTABLE_ROUNDING = 1e-4  # of a path's extent: what float32 may take from it before a note says so


def read_cameras(
    path: str | Path,
    format: str | None = None,
    *,
    lens: Lens | str | None = None,
    size: tuple[int, int] | None = None,
    unit: str | None = None,
    fps: float | None = None,
    first_frames: int | None = None,
    relative: bool = False,
    mirrored_world: bool = False,
    lens_needed: bool = False,
    dtype: torch.dtype = torch.float32,
    **options: Any,
) -> Cameras:
    """Read a camera file of a named format, or of the one its content shows.

    `lens`, `unit` and `fps` overrule what the file says. `size` is the image's: it completes a lens without one, and
    rescales a lens for another size of the same shape. `relative` puts the first camera at the origin before positions
    are rounded to `dtype`. `mirrored_world` says that the file's world is left-handed. `lens_needed`
    refuses a file without a lens, which is otherwise read with a usual one and a note. Other options belong to a
    format (FORMATS[name].options); one that the format does not take is refused.
    """
    said = {"lens": lens, "size": size, "unit": unit, "fps": fps, "first_frames": first_frames}
    check_options("every format", GENERAL, said)
    pixels = None if size is None else checked_size(size)
    given = Given(lens, pixels, mirrored_world, lens_needed, first_frames, unit_said=unit is not None)
    cameras = read_source(Source.open(Path(path), given), format, options)
    if unit is not None and unit not in get_args(Unit):
        raise InputError("unit", " or ".join(get_args(Unit)), unit)
    cameras = cameras if unit is None else replace(cameras, unit=cast(Unit, unit))
    cameras = cameras if fps is None else replace(cameras, fps=float(fps))
    cameras = cameras if first_frames is None else _first(cameras, first_frames, Path(path).name)
    cameras = cameras.relative_to_first() if relative else cameras
    return _narrowed(cameras, dtype, Path(path).name)


def read_source(source: Source, format: str | None, options: dict[str, Any]) -> Cameras:
    """The cameras of a source in float64, by the format's own reader."""
    chosen = format_named(format or detected(source).name)
    if source.is_folder and not chosen.reads_folders:
        raise InputError(str(source.path), f"a {chosen.name} file", "a folder")
    check_options(chosen.name, (*GENERAL, *chosen.options), options)
    return HANDLERS[chosen.name].read(source, **options)


def _first(cameras: Cameras, count: int, name: str) -> Cameras:
    if not 1 <= count <= len(cameras):
        raise InputError(f"{name}: first_frames", f"1 to {len(cameras)}, all that the file has", count)
    return cameras[:count]


def _narrowed(cameras: Cameras, dtype: torch.dtype, name: str) -> Cameras:
    """In `dtype`; positions so far from the origin that rounding shows in the path are noted."""
    narrow = cameras.to(dtype)
    places = cameras.world_from_camera[:, :3, 3]
    lost = (narrow.world_from_camera[:, :3, 3].double() - places).abs().max().item()
    extent = (places - places[0]).abs().max().item()
    if lost > NOTABLE_ROUNDING * extent > 0:
        note(
            f"{name}: positions as far as {places.abs().max():.4g} from the origin lose up to {lost:.2g} to rounding, "
            f"on a path {extent:.3g} across. Read it with relative=True, or"
            " first run: curvedray cameras convert FILE NEW --relative"
        )
    return narrow
