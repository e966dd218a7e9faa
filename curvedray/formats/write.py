"""`write_cameras`: one trajectory, whole or not at all, in any format that can hold it."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.files import scratch_folder, whole_file
from curvedray.formats.build import note
from curvedray.formats.handlers import HANDLERS
from curvedray.formats.lenses import PINHOLE_XI, lens_numbers
from curvedray.formats.options import check_options
from curvedray.formats.registry import FORMATS, Format, format_named

ENDINGS = {".json": "curvedray", ".npy": "panshot", ".npz": "vipe", ".csv": "asl"}  # which format an ending means


def write_cameras(cameras: Cameras, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write one trajectory whole or not at all, in a named format or the one that the path's ending belongs to.

    A lens that the format would falsify is refused; what it merely leaves out is noted, with how to say it again.
    """
    path = Path(path)
    chosen = format_named(format) if format else _format_of_ending(path)
    write = HANDLERS[chosen.name].write
    if write is None:
        raise InputError(f"format {chosen.name}", "one that can be written", "one that is only read")
    if cameras.batch_shape:
        raise InputError("cameras", "one trajectory (T, 4, 4)", f"a batch {cameras.batch_shape}", "Write one by one.")
    check_options(chosen.name, chosen.write_options, options)
    wide = cameras.world_from_camera.dtype if cameras.world_from_camera.dtype == torch.float64 else torch.float32
    cameras = _detached(cameras.to("cpu", wide))
    _check_lens(cameras, chosen)
    _put(path, write(cameras, **options))
    if lost := _lost(cameras, chosen, options.get("near_depth")):
        note(f"{path.name}: {chosen.name} files do not carry {'; '.join(lost)}.")


def _detached(cameras: Cameras) -> Cameras:
    """As numbers alone: NumPy refuses tensors that are being learned."""
    lens, poses = cameras.lens, cameras.world_from_camera.detach()
    lens = replace(lens, focal=lens.focal.detach(), center=lens.center.detach(), xi=lens.xi.detach())
    return replace(cameras, lens=lens, world_from_camera=poses)


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
    if path.suffix.lower() in ENDINGS:
        return FORMATS[ENDINGS[path.suffix.lower()]]
    able = [format for format in FORMATS.values() if path.suffix.lower() in format.extensions and format.written]
    names = ", ".join(format.name for format in able or FORMATS.values() if format.written)
    raise InputError(
        str(path), f"a format= ({names})", f"the ending {path.suffix or '(none)'}, which does not decide it"
    )


def _check_lens(cameras: Cameras, format: Format) -> None:
    """Refuse a lens that would be read back as another one."""
    if "focal" not in format.carries:
        return
    (width, height), numbers = cameras.lens.size, lens_numbers(cameras).double()
    fx, fy, cx, cy, xi = numbers.unbind(-1)
    middle = torch.tensor([width / 2, height / 2], dtype=torch.float64)
    unlike = {  # what a format may not carry: whether this lens needs it, what the format takes instead
        "xi": (xi.max() > PINHOLE_XI, "a pinhole lens (xi 0)", f"xi {xi.max():.4g}"),
        "fy": ((fx / fy - 1).abs().max() > 1e-6, "square pixels", f"focal {fx[0]:g}, {fy[0]:g}"),
        "center": (
            (numbers[:, 2:4] - middle).abs().max() > 1e-3,
            "a lens centred on the image",
            f"centre {cx[0]:g}, {cy[0]:g} of {width} x {height}",
        ),
        "zoom": (bool((numbers != numbers[0]).any()), "one lens for all frames", "one that changes over time"),
    }
    parts = {part for part, (needed, _, _) in unlike.items() if needed}
    for part, (_, expected, got) in unlike.items():
        if part in parts - format.carries:
            others = ", ".join(i.name for i in FORMATS.values() if i.written and parts | {"focal"} <= i.carries)
            fix = f"Write {others}; or a format without a lens (kitti, tum), and keep the lens apart."
            raise InputError(f"{format.name} file", f"{expected}, the only one it can hold", got, fix)


def _lost(cameras: Cameras, format: Format, near_depth: float | None) -> list[str]:
    """What of these cameras the file leaves out, each with how to say it again when reading.

    Translations that were multiplied by a near distance are divided by it again, and then in unit `near`.
    """
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
    if near_depth is not None:
        again = "" if cameras.unit == "near" else f", unit={cameras.unit!r}"
        lost.append(f"the unit (read it with near_depth={near_depth:g}{again})")
    elif "unit" not in format.carries and cameras.unit != format.unit:
        lost.append(f"the unit (read it with unit={cameras.unit!r})")
    if "fps" not in format.carries and cameras.fps is not None:
        lost.append(f"the frame rate (read it with fps={cameras.fps:g})")
    return lost
