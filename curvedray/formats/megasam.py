"""MegaSaM's .npz: `cam_c2w` (T, 4, 4) world_from_camera, `intrinsic` (3, 3) in pixels of `images` (T, H, W, 3).

Only poses and lens are unpacked; images and depths may be gigabytes.
"""

import numpy as np

from curvedray.cameras import Cameras
from curvedray.formats.build import gather, npz
from curvedray.formats.lenses import centred_size, gather_lens, given_lens, intrinsics, lens_numbers, matrix_of
from curvedray.formats.source import Source


def detect(source: Source) -> str | None:
    return "arrays cam_c2w and intrinsic" if source.has_arrays("cam_c2w", "intrinsic") else None


def read(source: Source) -> Cameras:
    arrays = source.arrays("cam_c2w", "intrinsic")
    poses = source.pose_array(arrays["cam_c2w"], "array 'cam_c2w'")
    where = [f"frame {i}" for i in range(len(poses))]
    matrix = arrays["intrinsic"].astype(np.float64)
    if matrix.shape != (3, 3):
        source.fail("array 'intrinsic'", "one 3x3 matrix", f"shape {matrix.shape}")
    numbers = intrinsics(source, "array 'intrinsic'", matrix.tolist())
    size = _image_size(source, numbers)
    lens = given_lens(source, size) or gather_lens(source, where, [numbers] * len(poses), size)
    return gather(source, where, poses, lens, "arbitrary", exact=True)


def _image_size(source: Source, numbers: list[float]) -> tuple[int, int]:
    """Of the images, else of the depths in the file, else twice the lens's centre."""
    for name in ("images", "depths"):
        if name in source.array_headers and len(source.array_headers[name].shape) >= 3:
            height, width = source.array_headers[name].shape[1:3]
            if width and height:
                return width, height
    return centred_size(source, numbers[2:4])


def write(cameras: Cameras) -> bytes:
    matrix = np.array(matrix_of(lens_numbers(cameras)[0].tolist()))
    return npz(cam_c2w=cameras.world_from_camera.numpy(), intrinsic=matrix)
