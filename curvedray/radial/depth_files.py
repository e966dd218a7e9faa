"""Pictures of distances as other programs write them, one frame per file: EXR, 16-bit PNG, PFM, NumPy.

Numbers come back as they are stored; what they mean (metres or millimetres, along the axis or along the ray) is the
caller's to say. A stored zero, NaN or infinity is a missing distance and comes back as NaN.
"""

import re
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.files import whole_file
from curvedray.inputs import MB, input_file, read_arrays, read_bytes, reading

Picture = Float32[ndarray, "h w"]
LARGEST_FRAME = 200 * MB
LONGEST_SIDE = 16384
DEPTH_CHANNELS = ("z", "depth", "distance", "v", "y", "r")  # the last part of a channel's name, likeliest first
ENDINGS = (".exr", ".png", ".pfm", ".npy")


def read_frame(path: str | Path, channel: str | None = None) -> Picture:
    """One frame of distances, as stored. `channel` names an EXR's; without it, the one that looks like a depth pass."""
    path = input_file(path, "a picture of distances", LARGEST_FRAME)
    readers = {".exr": lambda: _read_exr(path, channel), ".png": lambda: _read_png(path)}
    readers |= {".pfm": lambda: _read_pfm(path), ".npy": lambda: _read_npy(path)}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise InputError(str(path), f"a picture of distances ({', '.join(ENDINGS)})", path.suffix or "no ending")
    stored = read().astype(np.float32)
    return np.where(np.isfinite(stored) & (stored > 0), stored, np.float32(np.nan))


def _read_exr(path: Path, channel: str | None) -> ndarray:
    needed("openexr")
    import OpenEXR

    with reading(str(path), "an OpenEXR picture", "Is the file complete?"):
        with OpenEXR.File(str(path), header_only=True) as file:
            (left, top), (right, bottom) = file.header()["dataWindow"]
            _check_size(path, int(right) - int(left) + 1, int(bottom) - int(top) + 1)
        with OpenEXR.File(str(path), separate_channels=True) as file:
            channels = {name: np.array(one.pixels) for part in file.parts for name, one in part.channels.items()}
    if channel is not None and channel not in channels:
        raise InputError(f"channel of {path.name}", f"one of {', '.join(channels)}", channel)
    name = channel or _depth_channel(path, list(channels))
    return channels[name]


def _depth_channel(path: Path, names: list[str]) -> str:
    """Blender writes `Z`, `Depth.Z` or `ViewLayer.Depth.Z`; a picture of one channel is that one."""
    if len(names) == 1:
        return names[0]
    for wanted in DEPTH_CHANNELS[:3]:
        found = [name for name in names if name.lower().rsplit(".", 1)[-1] == wanted]
        if len(found) == 1:
            return found[0]
    fix = "Name it with --channel."
    raise InputError(str(path), "one channel of distances", ", ".join(names), fix)


def _read_png(path: Path) -> ndarray:
    needed("pillow")
    from PIL import Image

    with reading(str(path), "a 16-bit grey PNG"), Image.open(path) as picture:
        _check_size(path, *picture.size)
        if not picture.mode.startswith("I"):
            got = f"{picture.mode}, 8 bits per channel" if picture.mode in ("L", "RGB", "RGBA", "P") else picture.mode
            raise InputError(str(path), "a 16-bit grey PNG", got, "A coloured or 8-bit picture holds no distances.")
        return np.array(picture).astype(np.float32)


def _read_pfm(path: Path) -> ndarray:
    """`Pf`, width and height, a scale whose sign is the byte order; rows from the bottom up."""
    content = read_bytes(path, "a PFM picture", LARGEST_FRAME)
    header = re.match(rb"(Pf|PF)\s+([0-9]{1,6})\s+([0-9]{1,6})\s+(-?[0-9.eE+-]{1,20})\s", content)
    if header is None or header[1] == b"PF":
        raise InputError(str(path), "a grey PFM picture (Pf)", "a coloured one" if header else "something else")
    width, height = int(header[2]), int(header[3])
    _check_size(path, width, height)
    with reading(str(path), "a whole PFM picture", "Is the file complete?"):
        order = "<f4" if float(header[4]) < 0 else ">f4"
        return np.frombuffer(content, order, width * height, header.end()).reshape(height, width)[::-1]


def _read_npy(path: Path) -> ndarray:
    array = read_arrays(path, "distances", LARGEST_FRAME)["array"]
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(str(path), "numbers of shape (height, width)", f"{array.dtype} {array.shape}")
    return array


def _check_size(path: Path, width: int, height: int) -> None:
    if not (0 < width <= LONGEST_SIDE and 0 < height <= LONGEST_SIDE):
        raise InputError(str(path), f"a picture of at most {LONGEST_SIDE} pixels per side", f"{width} x {height}")


def write_exr(distances: Picture, path: str | Path) -> Path:
    """One channel, `Z`, in 32-bit numbers; what is not known is infinite, as Blender has it."""
    needed("openexr")
    import OpenEXR

    stored = np.where(np.isfinite(distances), distances, np.float32(np.inf)).astype(np.float32)
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    with whole_file(path) as temporary, OpenEXR.File(header, {"Z": stored}) as file:
        file.write(str(temporary))
    return Path(path)


def write_png16(distances: Picture, path: str | Path, scale: float = 0.001) -> Path:
    """16 bits of so many metres each (millimetres by default); zero is not known."""
    needed("pillow")
    from PIL import Image

    known = np.isfinite(distances)
    units = np.where(known, distances, 0) / scale
    if units.max(initial=0) > 65535:
        farthest = f"{65535 * scale:.3g} m"
        raise InputError(str(path), f"distances of at most {farthest} at this scale", f"{units.max() * scale:.3g} m")
    with whole_file(path) as temporary:
        Image.fromarray(np.where(known, np.maximum(np.round(units), 1), 0).astype(np.uint16)).save(temporary)
    return Path(path)
