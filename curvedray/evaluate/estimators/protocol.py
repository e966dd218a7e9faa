"""What an estimator is asked and what it answers.

t frame   s frame or latent frame   h, w pixels or tokens
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy.spatial.transform import Rotation, Slerp

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.scores import Failure
from curvedray.inputs import first_line

Frames = UInt8[np.ndarray, "t h w 3"]


@dataclass(frozen=True)
class UpAndLens:
    """A horizon and a lens: up directions in each camera's frame, and one lens for the clip."""

    up: Float[np.ndarray, "t 3"]
    lens: Radial | Lens


@dataclass(frozen=True)
class Estimate:
    """What was recovered from one video; what an estimator does not recover is None."""

    poses: Float[np.ndarray, "t 4 4"] | None = None  # camera-to-world, in a world and scale of the estimator's own
    found: Bool[np.ndarray, " t"] | None = None  # frames really estimated; the others are interpolated
    view: UpAndLens | None = None
    # Metres or no unit, NaN where unknown; a pixel each, or a token of latent frames each.
    radial: Float[np.ndarray, "s h w"] | None = None
    note: str = ""
    reprojection: float | None = None  # mean pixels between matched points and where the poses put them
    inliers: float | None = None  # matched points per frame that agree with the poses
    suspect: str = ""  # why the answer is in doubt although there is one


@runtime_checkable
class Estimator(Protocol):
    """Recovers cameras, lenses or distances from a video. A clip that it cannot read is a Failure with its reason."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def floor(self) -> str: ...

    @property
    def every_frame(self) -> bool:
        """Whether it is shown the whole video whatever the stride, its poses thinned afterwards."""
        ...

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        """`lens` is the requested one (at the video's size), for estimators that need it known."""
        ...


@runtime_checkable
class KnowsCameras(Protocol):
    """A teacher that uses the whole camera path, and not the lens alone."""

    @property
    def name(self) -> str: ...

    def along(self, video: Frames, cameras: Cameras, clip: str = "") -> Estimate | Failure:
        """Distances of a video whose cameras are known, one per frame, on its pixels."""
        ...


def at_stride(poses: Float[np.ndarray, "t 4 4"], frames: int, stride: int) -> slice:
    """Which of the poses are scored: every stride-th of one per frame, or all where there is one per scored frame."""
    scored = len(range(0, frames, stride))
    if len(poses) == frames:
        return slice(None, None, stride)
    if len(poses) == scored:
        return slice(None)
    raise InputError("recovered poses", f"{frames}, one per frame, or {scored}, one per scored frame", len(poses))


def estimate_of(estimator: Estimator, video: Frames, lens: Lens | None, clip: str) -> Estimate | Failure:
    """An estimator's answer. They are other people's programs: a clip that one breaks on must not stop the rest."""
    return _or_failure(estimator.name, clip, lambda: estimator.estimate(video, lens, clip))


def estimate_along(estimator: KnowsCameras, video: Frames, cameras: Cameras, clip: str) -> Estimate | Failure:
    """The same of one that takes the cameras too."""
    return _or_failure(estimator.name, clip, lambda: estimator.along(video, cameras, clip))


def _or_failure(name: str, clip: str, ask: Callable[[], Estimate | Failure]) -> Estimate | Failure:
    try:
        return ask()
    except InputError:
        raise
    except Exception as error:
        return Failure(f"{name} stopped: {first_line(error)}", clip)


def filled(poses: dict[int, Float[np.ndarray, "4 4"]], frames: int) -> tuple[np.ndarray, np.ndarray]:
    """A pose for every frame, and which are real: gaps are interpolated, ends hold the nearest pose."""
    known = np.array(sorted(poses))
    stack = np.stack([poses[index] for index in known]).astype(np.float64)
    found = np.isin(np.arange(frames), known)
    at = np.clip(np.arange(frames), known[0], known[-1]).astype(np.float64)
    path = np.tile(np.eye(4), (frames, 1, 1))
    rotations = Rotation.from_matrix(stack[:, :3, :3])
    path[:, :3, :3] = Slerp(known, rotations)(at).as_matrix() if len(known) > 1 else rotations.as_matrix()
    for axis in range(3):
        path[:, axis, 3] = np.interp(at, known, stack[:, axis, 3])
    return path, found
