"""Does the camera go where it was asked to? RotErr, TransErr, CamMC, and two that people read more easily.

Poses are camera-to-world. Both paths are taken relative to their first frame, and each path's translations are divided
by its own largest one: that is all the scale alignment there is, no least squares and no Umeyama. The three
errors are sums over frames, so a number without its stride means nothing.

    t, s frame   r, q rows of a pose, 3 or 4
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num

from curvedray.cameras.angles import rotation_angle
from curvedray.errors import InputError
from curvedray.evaluate.scores import Array, Metric, Score, as_float64

# A path whose largest translation is below this share of the scene's near distance hardly moves: what it is divided by
# is then noise, and so are its TransErr and CamMC. Where no near distance is known, rounding alone is told from motion.
STATIC_SHARE = 0.01
ROUNDING = 1e-5  # of the largest coordinate: what float32 and files of five digits leave of a camera that stands still

ROT_ERR = Metric("RotErr", "rad", "lower", "Sum over frames of the angle between requested and recovered rotation.")
TRANS_ERR = Metric(
    "TransErr", "-", "lower", "Sum over frames of |t - t'|, each path divided by its own largest translation."
)
CAM_MC = Metric(
    "CamMC", "-", "lower", "Sum over frames of the Frobenius norm of [R|t] - [R'|t'], translations as above."
)
DEGREES = Metric("Rotation", "deg/frame", "lower", "Mean over frames of the angle between the two rotations.")
ATE = Metric("ATE", "unit", "lower", "Root mean square distance of camera centres after Umeyama's similarity.")
METRICS = (ROT_ERR, TRANS_ERR, CAM_MC, DEGREES, ATE)
NOISE_IF_STATIC = (TRANS_ERR, CAM_MC)  # tables give their mean over all clips, and beside it over those that move


@dataclass(frozen=True)
class PoseErrors:
    """Errors of one clip's path at one stride. Rotations are compared relative to frame 0, never after aligning."""

    rot_err: float  # radians, summed over frames
    trans_err: float  # no unit, summed over frames
    cam_mc: float  # no unit, summed over frames
    degrees_per_frame: float  # mean over all frames, the first (always zero) included
    ate: float  # root mean square, in the unit of the true path
    near_static: bool  # the true path hardly moves: trans_err and cam_mc are mostly noise
    frames: int
    stride: int

    def scores(self, clip: str) -> list[Score]:
        """As records, of every clip: the paper's means count near-static ones too."""
        values = (self.rot_err, self.trans_err, self.cam_mc, self.degrees_per_frame, self.ate)
        return [metric.of(clip, value) for metric, value in zip(METRICS, values, strict=True)]


def pose_errors(
    truth: Num[Array, "t r 4"], estimate: Num[Array, "s q 4"], stride: int = 1, near: float | None = None
) -> PoseErrors:
    """Errors of an estimated path against the true one, both camera-to-world, (T, 4, 4) or (T, 3, 4).

    `stride` keeps the first and every stride-th frame: 1 scores all 81 frames of a clip, 4 scores 21. `near` is the
    scene's near distance in the unit of the true path; it decides nothing but whether that path is near-static.
    """
    if stride < 1:
        raise InputError("stride", "a whole number of at least 1", stride)
    paths = []
    for name, poses in (("true poses", truth), ("estimated poses", estimate)):
        path = as_float64(poses)
        if path.shape[0] < 1 or path.shape[1] not in (3, 4):
            raise InputError(name, "shape (T, 4, 4) or (T, 3, 4)", tuple(path.shape))
        if not np.isfinite(path).all():
            raise InputError(name, "finite numbers", "NaN or infinity", "Count the clip as failed instead.")
        paths.append(path[::stride])
    if paths[0].shape[0] != paths[1].shape[0]:
        raise InputError("estimated poses", f"{len(paths[0])} frames, as the true path has", len(paths[1]))
    true, found = (relative_to_first(path) for path in paths)
    a, b = max_normalised(true), max_normalised(found)
    angles = rotation_angle(a[:, :, :3], b[:, :, :3])
    return PoseErrors(
        rot_err=float(angles.sum()),
        trans_err=float(np.linalg.norm(a[:, :, 3] - b[:, :, 3], axis=-1).sum()),
        cam_mc=float(np.linalg.norm(a - b, axis=(1, 2)).sum()),
        degrees_per_frame=float(np.degrees(angles.mean())),
        ate=umeyama_ate(true[:, :, 3], found[:, :, 3]),
        near_static=is_near_static(paths[0], near),
        frames=len(a),
        stride=stride,
    )


def is_near_static(poses: Float[np.ndarray, "t r 4"], near: float | None = None) -> bool:
    """Whether a path hardly moves: by the near distance in its own unit, or, unknown, by the rounding of its numbers.

    Both are ratios of lengths, so a path in centimetres is judged as the same path in metres.
    """
    largest = float(np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=-1).max())
    if near is not None:
        return largest < STATIC_SHARE * near
    return largest <= ROUNDING * float(np.abs(poses[:, :3, 3]).max())


def relative_to_first(poses: Float[np.ndarray, "t r 4"]) -> Float[np.ndarray, "t 3 4"]:
    """G_0^-1 G_i, its first three rows."""
    first_from_world = poses[0, :3, :3].T
    rotation = first_from_world @ poses[:, :3, :3]
    translation = (poses[:, :3, 3] - poses[0, :3, 3]) @ first_from_world.T
    return np.concatenate([rotation, translation[:, :, None]], axis=2)


def max_normalised(path: Float[np.ndarray, "t 3 4"]) -> Float[np.ndarray, "t 3 4"]:
    """Translations divided by the path's own largest one (+1e-9, so that a static path stays at zero)."""
    scaled = path.copy()
    scaled[:, :, 3] /= np.linalg.norm(path[:, :, 3], axis=-1).max() + 1e-9
    return scaled


def umeyama_ate(truth: Float[np.ndarray, "t 3"], estimate: Float[np.ndarray, "t 3"]) -> float:
    """Root mean square distance after the best similarity (rotation, scale, shift) of the estimate onto the truth."""
    x, y = estimate - estimate.mean(0), truth - truth.mean(0)
    u, singular, vt = np.linalg.svd(y.T @ x)
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    spread = float((x**2).sum())
    scale = float(singular @ sign) / spread if spread > 0 else 0.0
    aligned = scale * x @ (u * sign @ vt).T
    return float(np.sqrt(((aligned - y) ** 2).sum(1).mean()))
