"""`write_cameras`: one trajectory, whole or not at all, in any format that can hold it."""

import math
import os
from pathlib import Path
from typing import Any

import torch

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.files import scratch_folder, whole_file
from curvedray.formats.build import lens_numbers, note
from curvedray.formats.options import check_options
from curvedray.formats.table import FORMATS, Format, format_named


def write_cameras(cameras: Cameras, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write one trajectory whole or not at all, in a named format or the one that the path's ending belongs to.

    A lens that the format would falsify is refused; what it merely leaves out is noted, with how to say it again.
    """
    path = Path(path)
    chosen = format_named(format) if format else _format_of_ending(path)
    if chosen.write is None:
        raise InputError(f"format {chosen.name}", "one that can be written", "one that is only read")
    if cameras.batch_shape:
        raise InputError("cameras", "one trajectory (T, 4, 4)", f"a batch {cameras.batch_shape}", "Write one by one.")
    check_options(chosen.name, chosen.write_options, options)
    wide = cameras.world_from_camera.dtype if cameras.world_from_camera.dtype == torch.float64 else torch.float32
    cameras = cameras.to("cpu", wide)
    _check_lens(cameras, chosen)
    _put(path, chosen.write(cameras, **options))
    if lost := _lost(cameras, chosen):
        note(f"{path.name}: {chosen.name} files do not carry {'; '.join(lost)}.")


def _put(path: Path, content: bytes | dict[str, bytes]) -> None:
    """A file, or a folder of files, that appears whole or not at all."""
    if isinstance(content, bytes):
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
        return
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(str(path), "a folder that is new or empty", "one that holds something", "Name another.")
    with scratch_folder(path) as outer:
        inner = outer / path.name
        inner.mkdir()
        for name, data in content.items():
            (inner / name).write_bytes(data)
        os.replace(inner, path)


def _format_of_ending(path: Path) -> Format:
    """curvedray's own for .json; otherwise the one format with that ending."""
    able = [format for format in FORMATS.values() if path.suffix.lower() in format.extensions and format.write]
    if path.suffix.lower() == ".json":
        return FORMATS["curvedray"]
    if len(able) == 1:
        return able[0]
    names = ", ".join(format.name for format in able or FORMATS.values() if format.write)
    raise InputError(
        str(path), f"a format= ({names})", f"the ending {path.suffix or '(none)'}, which does not decide it"
    )


def _check_lens(cameras: Cameras, format: Format) -> None:
    """Refuse a lens that would be read back as another one."""
    if "focal" in format.carries and "xi" not in format.carries and cameras.lens.xi.any():
        raise InputError(
            f"{format.name} file",
            "a pinhole lens (xi 0), the only one it can hold",
            f"xi {cameras.lens.xi.max().item():.4g}",
            "Write the curvedray or colmap format, or one without a lens (kitti, tum) and keep the lens apart.",
        )


def _lost(cameras: Cameras, format: Format) -> list[str]:
    """What of these cameras the file leaves out, each with how to say it again when reading."""
    lens, (width, height) = cameras.lens, cameras.lens.size
    lost = []
    if "focal" not in format.carries:
        numbers = lens_numbers(cameras)
        changes = " that changes over time" if bool((numbers != numbers[0]).any()) else ""
        lost.append(f"the lens{changes} (read it with lens=)")
    elif "size" not in format.carries:
        lost.append(f"the image size (read it with size=({width}, {height}))")
    if "focal" in format.carries and "max_angle" not in format.carries and lens.max_angle < math.pi:
        lost.append("the lens's max_angle")
    if "unit" not in format.carries and cameras.unit != format.unit:
        lost.append(f"the unit (read it with unit={cameras.unit!r})")
    if "fps" not in format.carries and cameras.fps is not None:
        lost.append(f"the frame rate (read it with fps={cameras.fps:g})")
    return lost
