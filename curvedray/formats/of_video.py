"""The cameras of a video, at the video's size: the one call for whoever has a video and a camera file."""

from pathlib import Path
from typing import Any

from curvedray.cameras import Cameras, Lens
from curvedray.formats.read import read_cameras


def cameras_of_video(
    path: str | Path,
    width: int,
    height: int,
    *,
    format: str | None = None,
    lens: Lens | str | None = None,
    **options: Any,
) -> Cameras:
    """A camera file's cameras with the lens on a video's pixels.

    A lens stated for another size of the same shape (Lens.sized) is rescaled; for another shape it would be
    stretched, and is refused. A file without a lens is refused unless `lens` gives one, for a guess would be scored
    or trained on as if it were known. `options` are read_cameras's.
    """
    return read_cameras(path, format, lens=lens, size=(width, height), lens_needed=True, **options)
