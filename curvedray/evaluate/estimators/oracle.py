"""Poses that somebody already has: exact ones of a rendered clip, or any other tool's, read from camera files."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Frames
from curvedray.evaluate.scores import Array, Failure, as_float64


class Oracle:
    """Answers with the poses it was given for a clip. Its floor is zero: it measures only what it is handed."""

    name = "oracle"
    floor = "none: the poses are given"
    every_frame = True

    def __init__(self, poses: Mapping[str, Float[Array, "_ 4 4"]]):
        self.poses = {clip: as_float64(path) for clip, path in poses.items()}

    @property
    def version(self) -> str:
        """Changes with the poses, so that a resumed run scores new ones again."""
        digest = hashlib.sha256()
        for clip in sorted(self.poses):
            digest.update(clip.encode() + self.poses[clip].tobytes())
        return f"poses {digest.hexdigest()[:12]}"

    @classmethod
    def from_folder(cls, folder: Path) -> "Oracle":
        """Recovered poses as camera files, one per clip, named as the videos are."""
        from curvedray.evaluate.matching import camera_files
        from curvedray.formats import read_cameras

        files = camera_files(folder)
        if not files:
            raise InputError("recovered poses", "camera files named as the videos are", f"none in {folder}")
        return cls({stem: read_cameras(path).world_from_camera for stem, path in files.items()})

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        if clip not in self.poses:
            return Failure(f"no poses were given for clip {clip!r}")
        path = self.poses[clip]
        return Estimate(poses=path, found=np.ones(len(path), dtype=bool))
