"""ViPE's pose/*.npz: `data` (T, 4, 4) world_from_camera with OpenCV axes, `inds` the frames' numbers, in metres.

The lens is in intrinsics/<same name>.npz beside the pose folder: fx fy cx cy, and xi for its `mei` cameras.
"""

from pathlib import Path

import numpy as np
import torch

from curvedray.cameras import Cameras, Lens
from curvedray.formats.build import gather, note, npz
from curvedray.formats.lenses import checked_size, chosen_lens, gather_lens, given_lens
from curvedray.formats.source import Source


def detect(source: Source) -> str | None:
    return "an archive of arrays with data and inds" if source.has_arrays("data", "inds") else None


def read(source: Source, *, intrinsics: str | Path | None = None) -> Cameras:
    """`intrinsics` is the path of ViPE's intrinsics file; left out, the one beside the pose folder, if there is one."""
    data, inds = _arrays(source)
    if len(inds) > 1 and not (np.diff(inds) == 1).all():
        note(f"{source.name}: {len(inds)} frames of {inds[0]} to {inds[-1]}; the gaps are not kept.")
    poses = source.pose_array(data, "array 'data'")
    beside = source.path.parent.parent / "intrinsics" / source.name
    if intrinsics is None and source.given.lens is None and beside.is_file():
        note(f"{source.name}: the lens is read from {beside}.")
        intrinsics = beside
    lens = chosen_lens(source) if intrinsics is None else _lens(Source.open(Path(intrinsics), source.given), inds)
    return gather(source, [f"frame {i}" for i in inds.tolist()], poses, lens, "metric", exact=True)


def read_poses(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Poses world_from_camera (N, 4, 4) in float64, and the frame number of each."""
    source = Source.open(Path(path))
    data, inds = _arrays(source)
    poses = source.pose_array(data, "array 'data'")
    if not torch.isfinite(poses).all():
        source.fail("array 'data'", "finite numbers", "NaN or infinity")
    return poses.numpy(), inds


def _arrays(source: Source) -> tuple[np.ndarray, np.ndarray]:
    arrays = source.arrays("data", "inds")
    data, inds = arrays["data"], arrays["inds"]
    if inds.ndim != 1 or inds.dtype.kind not in "iu" or data.ndim < 2 or len(inds) != len(data) or not len(data):
        source.fail("array 'inds'", "one whole number per row of data", f"shapes {inds.shape} and {data.shape}")
    return data.astype(np.float64), inds.astype(np.int64)


def _lens(source: Source, frames: np.ndarray) -> Lens:
    data, inds = _arrays(source)
    if data.ndim != 2 or data.shape[1] not in (4, 5) or not np.isfinite(data).all():
        source.fail("array 'data'", "rows of fx fy cx cy, and xi if there is one", f"shape {data.shape}")
    rows = dict(zip(inds.tolist(), data.tolist(), strict=True))
    numbers = []
    for frame in frames.tolist():
        if frame not in rows:
            source.fail(f"frame {frame}", "a lens for every pose", "none")
        numbers.append([*rows[frame][:4], *(rows[frame][4:] or [0.0])])
    # ViPE keeps the principal point in the middle of the image, and says its size nowhere else.
    size = checked_size((max(1, round(2 * numbers[0][2])), max(1, round(2 * numbers[0][3]))))
    if (given := given_lens(source, size)) is not None:
        return given
    if source.given.size is None:
        note(f"{source.name} does not say its image size: {size}, twice its centre. Say otherwise with size=.")
    return gather_lens(source, [f"frame {i}" for i in frames.tolist()], numbers, size)


def write(cameras: Cameras) -> bytes:
    return npz(data=cameras.world_from_camera.numpy(), inds=np.arange(cameras.frames))
