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

    def __init__(self, poses: Mapping[str, Float[Array, "_ 4 4"]], unreadable: Mapping[str, str] | None = None):
        self.poses = {clip: as_float64(path) for clip, path in poses.items()}
        self.unreadable = dict(unreadable or {})  # clips whose file could not be read, and why

    @property
    def version(self) -> str:
        """Changes with the poses, so that a resumed run scores new ones again."""
        digest = hashlib.sha256()
        for clip in sorted(self.poses):
            digest.update(clip.encode() + self.poses[clip].tobytes())
        digest.update(repr(sorted(self.unreadable.items())).encode())
        return f"poses {digest.hexdigest()[:12]}"

    @classmethod
    def from_folder(cls, folder: Path) -> "Oracle":
        """Recovered poses as camera files, one per clip, named as the videos are; their lenses do not matter."""
        from curvedray.evaluate.matching import camera_files
        from curvedray.formats import read_cameras

        files = camera_files(folder)
        if not files:
            raise InputError("recovered poses", "camera files named as the videos are", f"none in {folder}")
        poses, unreadable = {}, {}
        for clip, path in files.items():
            try:
                poses[clip] = read_cameras(path, lens="pinhole-90").world_from_camera
            except InputError as error:
                unreadable[clip] = str(error)
        return cls(poses, unreadable)

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        if clip in self.unreadable:
            return Failure(self.unreadable[clip], clip)
        if clip not in self.poses:
            given = ", ".join(sorted(self.poses)[:3]) or "none"
            return Failure(f"no recovered poses are named {clip} (there are some for {given})", clip)
        path = self.poses[clip]
        return Estimate(poses=path, found=np.ones(len(path), dtype=bool))
