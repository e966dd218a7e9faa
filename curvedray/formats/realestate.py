"""RealEstate10K text: a URL line (or a blank, or none), then `timestamp fx fy cx cy 0 0` and a 3x4 camera_from_world.

Times are microseconds; intrinsics are divided by the width and height of the video they were measured on.
"""

import torch

from curvedray.cameras import Cameras, inverse_pose
from curvedray.errors import InputError
from curvedray.formats.build import any_rotation, frame_rate, gather
from curvedray.formats.lenses import checked_size, gather_lens, given_lens, image_size, lens_numbers
from curvedray.formats.source import Source, complete, is_url

COLUMNS = 19


def detect(source: Source) -> str | None:
    rows = source.sample(COLUMNS) if source.columns() == COLUMNS else []
    found = any_rotation([[row[7:10], row[11:14], row[15:18]] for row in rows])
    return f"rows of {COLUMNS} numbers with a rotation" if found else None


def read(source: Source, *, source_size: tuple[int, int] | None = None) -> Cameras:
    """`source_size`, if given, is the video that the numbers were measured on: the image is that video scaled to cover
    the size given and cropped at its centre; without it, stretched to that size."""
    lines: list[str] = []
    rows: list[list[float]] = []
    for line, words in source.rows():
        if not rows and is_url(words):
            continue
        if len(words) != COLUMNS:
            source.fail(f"line {line}", f"{COLUMNS} numbers", len(words), "Is the file cut short, or another format?")
        lines.append(f"line {line}")
        rows.append(source.numbers(line, words))
    if not rows:
        source.fail("", f"rows of {COLUMNS} numbers", "none")
    width, height = image_size(source)
    wide, high = float(width), float(height)
    if source_size is not None:
        wide, high = checked_size(source_size)
        grow = max(width / wide, height / high)
        wide, high = wide * grow, high * grow
    left, top = (wide - width) / 2, (high - height) / 2
    numbers = [(fx * wide, fy * high, cx * wide - left, cy * high - top, 0.0) for _, fx, fy, cx, cy, *_ in rows]
    camera_from_world = complete(torch.tensor([row[7:] for row in rows], dtype=torch.float64).reshape(-1, 3, 4))
    poses = inverse_pose(camera_from_world)
    # Whole microseconds may each be one off; steps as short as that are frame numbers, not times.
    fps = frame_rate([row[0] / 1e6 for row in rows], tolerance=1.5e-6)
    lens = given_lens(source, (width, height)) or gather_lens(source, lines, numbers, (width, height))
    return gather(source, lines, poses, lens, "arbitrary", fps)


def write(cameras: Cameras, *, url: str = "") -> bytes:
    """`url` is the first line, blank if left out."""
    if url and not is_url(url.split()):
        raise InputError("url", "one address such as https://example.com/video", url)
    (width, height), step = cameras.lens.size, 1.0 if cameras.fps is None else 1e6 / cameras.fps
    camera_from_world = inverse_pose(cameras.world_from_camera.double())
    lines = [url]
    for i, (lens, pose) in enumerate(zip(lens_numbers(cameras).tolist(), camera_from_world, strict=True)):
        fx, fy, cx, cy, _ = lens
        numbers = [fx / width, fy / height, cx / width, cy / height, 0.0, 0.0, *pose[:3].reshape(-1).tolist()]
        lines.append(" ".join([str(round(i * step)), *(repr(number) for number in numbers)]))
    return ("\n".join(lines) + "\n").encode()
