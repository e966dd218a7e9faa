"""Other people's depth as a radial map: metres, along the ray, cropped and sized as the video is. And back out.

t frame   h w pixels
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.files import named_file, whole_file
from curvedray.inputs import is_file, is_folder, read_array_headers, read_arrays
from curvedray.radial.depth_files import ENDINGS, read_frame, write_exr, write_png16
from curvedray.radial.map import LARGEST_MAP, MapUnit, RadialMap, near_and_unit

SCALES = {"kitti": 1 / 256, "scannet": 1 / 1000, "mm": 1 / 1000, "cm": 1 / 100, "m": 1.0}  # metres per stored unit
WIDEST_Z = 170.0  # degrees; beyond it a distance along the axis says next to nothing at the edge
SUSPICIOUS = 60.0  # metres of a median distance


@dataclass(frozen=True, eq=False)
class Converted:
    """A map, and what a user should know of how it came about."""

    map: RadialMap
    notes: tuple[str, ...]


def convert(
    path: str | Path,
    meaning: str,
    *,
    scale: str | float = "m",
    lens: Lens | None = None,
    frames: int | None = None,
    size: tuple[int, int] | None = None,
    near: float | None = None,
    channel: str | None = None,
) -> Converted:
    """A file or a folder of frames as a radial map.

    `meaning` is never guessed: `radius` is the distance from the camera, `z` the one along its axis, which needs the
    lens. `scale` is metres per stored unit, or one of SCALES. `size` (width, height) is the video's: the map is cropped
    in the middle to its shape, as videos are, and averaged over what is known. `frames` takes so many, evenly in time.
    A map of ours that is read as radii in its own unit keeps the near distance and the unit that its file says.
    """
    stored = read_sequence(path, channel)
    notes: list[str] = []
    metres = stored * metres_per_unit(scale)
    if frames is not None and frames != len(metres):
        chosen = torch.linspace(0, len(metres) - 1, frames).round().long()
        notes.append(f"{frames} of {len(metres)} frames, evenly in time")
        metres = metres[chosen]
    known = torch.isfinite(metres)
    if not known.any():
        raise InputError(str(path), "at least one distance", "none that is finite and positive")
    as_stored = meaning == "radius" and metres_per_unit(scale) == 1.0
    own_near, unit = _near_and_unit(Path(path)) if as_stored else (None, "metric")
    if unit == "metric":  # nobody knows how many metres others are
        _check_unit(path, metres[known], scale)
    if size is not None:
        metres, said = fitted_distances(metres, *size)
        notes += said
    if meaning == "radius":
        near = own_near if near is None else near
        return Converted(RadialMap.from_metric(metres, near=near, unit=unit), tuple(notes))
    if meaning != "z":
        raise InputError("meaning", "radius (from the camera) or z (along its axis)", meaning)
    return Converted(RadialMap.from_depth(metres, _z_lens(lens, metres), near), tuple(notes))


def metres_per_unit(scale: str | float) -> float:
    try:
        value = SCALES[scale] if scale in SCALES else float(scale)
    except (TypeError, ValueError) as error:
        raise InputError("scale", f"metres per stored unit, or {', '.join(SCALES)}", scale) from error
    if not 1e-9 < value < 1e9:
        raise InputError("scale", "a positive number of metres per stored unit", scale)
    return value


def read_sequence(path: str | Path, channel: str | None = None) -> Float[Tensor, "t h w"]:
    """The frames of a folder in the order of their numbers, one file, or a whole .npy / .npz; NaN where unknown."""
    path = Path(path)
    if path.suffix.lower() in (".npy", ".npz") and is_file(path):
        return _array_frames(path)
    files = _frame_files(path) if is_folder(path) else [path]
    pictures = [read_frame(file, channel) for file in files]
    odd = next(
        (file for file, picture in zip(files, pictures, strict=True) if picture.shape != pictures[0].shape), None
    )
    if odd is not None:
        raise InputError(str(odd), f"a picture of {pictures[0].shape[1]} x {pictures[0].shape[0]}", "another size")
    return torch.from_numpy(np.stack(pictures))


def _array_frames(path: Path) -> Float[Tensor, "t h w"]:
    """The frames of a .npy or .npz; what a `valid` of their shape says is not to be believed is unknown."""
    arrays = read_arrays(path, "distances", LARGEST_MAP)
    named = [name for name in ("radius", "depth", "depths", "array") if name in arrays]
    if len(arrays) > 1 and not named:
        raise InputError(str(path), "an array called radius or depth", ", ".join(arrays))
    stored, trusted = arrays[named[0] if named else next(iter(arrays))], arrays.get("valid")
    if trusted is not None and (trusted.shape != stored.shape or trusted.dtype.kind not in "biu"):
        trusted = None  # it is about something else
    stored = stored[None] if stored.ndim == 2 else stored
    if stored.ndim != 3 or stored.dtype.kind not in "fiu" or not stored.size:
        raise InputError(str(path), "numbers of shape (frames, height, width)", f"{stored.dtype} {stored.shape}")
    values = torch.from_numpy(stored.astype(np.float32))
    known = torch.isfinite(values) & (values > 0)
    if trusted is not None:
        known &= torch.from_numpy(trusted.astype(bool))
    return torch.where(known, values, torch.nan)


def _near_and_unit(path: Path) -> tuple[float | None, MapUnit]:
    """What a map of ours says beside its radii; other files say neither."""
    if path.suffix.lower() != ".npz" or not is_file(path) or "radius" not in read_array_headers(path):
        return None, "metric"
    return near_and_unit(path, read_arrays(path, "a radial map", LARGEST_MAP, ("near", "unit")))


def _frame_files(folder: Path) -> list[Path]:
    """Pictures of one kind, sorted by the numbers in their names; KITTI's and ScanNet's folders are such."""
    found = [file for file in folder.iterdir() if file.suffix.lower() in ENDINGS and not file.name.startswith(".")]
    kinds = {file.suffix.lower() for file in found}
    if len(kinds) != 1:
        got = f"a mixture of {', '.join(sorted(kinds))}" if kinds else "none"
        raise InputError(str(folder), f"frames of one kind ({', '.join(ENDINGS)})", got)
    return sorted(found, key=lambda file: [int(i) if i.isdigit() else i for i in re.split(r"([0-9]+)", file.name)])


def _check_unit(path: str | Path, metres: Tensor, scale: str | float) -> None:
    """Refuse what cannot be metres: millimetres or centimetres taken for them, or a picture scaled to 0..1."""
    middle, largest = metres.median().item(), metres.max().item()
    if middle > SUSPICIOUS:
        fix = "Say the unit: --scale cm, --scale mm, or a number of metres per unit."
        raise InputError(str(path), f"distances whose median is below {SUSPICIOUS:g} m", f"{middle:.4g} m", fix)
    if largest <= 1.0 and scale in ("m", 1.0):
        fix = "A disparity or a picture scaled to 0..1 is no distance; if it is metres indeed, say --scale 1.000001."
        raise InputError(str(path), "distances beyond one metre", f"{largest:.3g} at most", fix)


def fitted_distances(metres: Float[Tensor, "t h w"], width: int, height: int) -> tuple[Tensor, list[str]]:
    """Cropped in the middle to the video's shape, then averaged (or repeated) to its size over what is known."""
    _, rows, cols = metres.shape
    tall, wide = min(rows, round(cols * height / width)), min(cols, round(rows * width / height))
    top, left = (rows - tall) // 2, (cols - wide) // 2
    metres = metres[:, top : top + tall, left : left + wide]
    notes = [f"cropped from {cols} x {rows} to {wide} x {tall}"] if (tall, wide) != (rows, cols) else []
    if (tall, wide) == (height, width):
        return metres, notes
    known = torch.isfinite(metres)[:, None].float()
    mode = "area" if tall >= height and wide >= width else "nearest-exact"
    share = F.interpolate(known, (height, width), mode=mode)[:, 0]
    total = F.interpolate(torch.nan_to_num(metres, 0.0)[:, None], (height, width), mode=mode)[:, 0]
    notes.append(f"resized from {wide} x {tall} to {width} x {height}")
    return torch.where(share >= 0.5, total / share.clamp_min(1e-6), torch.nan), notes


def _z_lens(lens: Lens | None, metres: Tensor) -> Lens:
    if lens is None:
        fix = "Give it (--lens), or say that the distances are radii (--meaning radius)."
        raise InputError("lens", "the lens, to turn distances along the axis into radii", "none", fix)
    widest = max(lens.hfov.max().item(), lens.vfov.max().item())
    if widest > WIDEST_Z:
        got = f"a lens of {widest:.0f} degrees"
        fix = "Render distances from the camera instead of a z pass: the meaning is then radius."
        raise InputError("z distances", f"a lens of at most {WIDEST_Z:g} degrees", got, fix)
    return lens.sized(metres.shape[2], metres.shape[1])


def write_frames(map: RadialMap, folder: str | Path, kind: str) -> list[Path]:
    """A folder of EXR (metres) or 16-bit PNG (millimetres) frames; what is invalid is infinite, or zero."""
    if kind not in ("exr", "png"):
        raise InputError("frames", "exr or png", kind)
    write = write_exr if kind == "exr" else write_png16
    values = torch.where(map.valid, map.radius, torch.nan).numpy()
    return [write(frame, Path(folder) / f"{index:04d}.{kind}") for index, frame in enumerate(values)]


def write_ply(
    map: RadialMap,
    cameras: Cameras,
    path: str | Path,
    frames: UInt8[Tensor, "t h w 3"] | None = None,
    step: int = 1,
) -> Path:
    """A point cloud of every valid distance in the world of the first camera, in metres; one file for any viewer."""
    path = named_file(path, (".ply",))
    count, height, width = map.radius.shape
    if cameras.frames != count:
        raise InputError("cameras", f"{count} poses, one per frame of the map", cameras.frames)
    metric = cameras.relative_to_first()
    lens = metric.frame_lens.resized(width, height) if metric.lens.size != (width, height) else metric.frame_lens
    rays, exist = lens.rays()
    poses = metric.world_from_camera.double()
    scale = map.near if cameras.unit == "near" else 1.0
    points = torch.einsum("tij,thwj->thwi", poses[:, :3, :3], rays.double() * map.radius[..., None].double())
    points = points + scale * poses[:, None, None, :3, 3]
    keep = (map.valid & exist)[::step]
    chosen = points[::step][keep].float().numpy()
    if frames is None:
        colours = np.full((len(chosen), 3), 200, np.uint8)
    else:
        sized = F.interpolate(frames.movedim(-1, 1).float(), (height, width), mode="area").movedim(1, -1)
        colours = sized[::step][keep].round().to(torch.uint8).numpy()
    rows = np.empty(len(chosen), [("xyz", "<f4", 3), ("rgb", "u1", 3)])
    rows["xyz"], rows["rgb"] = chosen, colours
    names = [*(f"property float {i}" for i in "xyz"), *(f"property uchar {i}" for i in ("red", "green", "blue"))]
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}", *names, "end_header", ""]
    with whole_file(path) as temporary:
        temporary.write_bytes("\n".join(header).encode() + rows.tobytes())
    return path
