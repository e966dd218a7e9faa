"""Was the camera obeyed? The recovered path beside the requested one, in degrees and in words.

t frame
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

from curvedray.app.paths import poses_json
from curvedray.cameras import Cameras
from curvedray.evaluate.estimators import Estimate, Estimator
from curvedray.evaluate.metrics.pose import pose_errors, relative_to_first
from curvedray.evaluate.scores import Failure

STILL = 2.0  # degrees that a camera which only travels may seem to turn
SHORT = 0.1  # near distances under which a path stands still
# A camera counts as obeyed within these: degrees per frame (or this share of the turn), degrees off the way, and near
# distances too far or too short (or this share of the way).
DEGREES_OFF, SHARE_OFF, WAY_OFF = 4.0, 0.15, 35.0
LENGTH_OFF, LENGTH_SHARE_OFF = 0.25, 0.5
METRIC = ("embedded",)  # estimators that answer in metres


@dataclass(frozen=True)
class Verdict:
    """How a video follows its cameras. Angles in degrees, lengths in near distances."""

    words: str
    obeyed: bool | None
    degrees: float | None  # mean angle per frame between what was asked and what was recovered
    turned: float | None
    asked_turn: float
    went: float | None  # None where the estimator knows no scale
    asked_way: float
    way_off: float | None  # degrees between the two ways
    estimator: str
    floor: str
    requested: list[list[float]]  # metres, in the scene's frame
    recovered: list[list[float]]  # from the first requested camera on

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class NoJudge:
    """An estimator that cannot be had, in its place beside its Failure."""

    name: str
    floor: str = ""


def verdict_of(
    requested: Cameras,
    near: float,
    answer: Estimate | Failure,
    estimator: Estimator | NoJudge,
    metric: bool | None = None,
) -> Verdict:
    """Judge a recovered path against the requested one, in metres; what could not be recovered is said.

    `metric` says whether the recovered path is in metres, where the estimator's name does not.
    """
    metric = estimator.name in METRIC if metric is None else metric
    truth = requested.world_from_camera.double().numpy()
    path = relative_to_first(truth)
    asked_turn, asked_way = _turns(path).max().item(), float(np.linalg.norm(path[:, :, 3], axis=-1).max()) / near
    known: dict[str, Any] = {"asked_turn": asked_turn, "asked_way": asked_way, "requested": poses_json(truth)}
    known |= {"estimator": estimator.name, "floor": estimator.floor}
    if isinstance(answer, Failure) or answer.poses is None:
        reason = answer.reason if isinstance(answer, Failure) else "it recovers no path"
        unknown: dict[str, Any] = dict.fromkeys(("obeyed", "degrees", "turned", "went", "way_off"))
        return Verdict(words=f"nobody can tell: {reason}", recovered=[], **unknown, **known)
    found = relative_to_first(answer.poses.astype(float))
    degrees = pose_errors(truth, answer.poses).degrees_per_frame
    turned = _turned(path, found)
    went, way_off = _way(path, found, near, metric, asked_way)
    scale = 1.0 if metric else _scale(path, found)
    return Verdict(
        words=_words(degrees, turned, asked_turn, went, way_off, asked_way),
        obeyed=_turn_is_obeyed(degrees, turned, asked_turn) and _way_is_obeyed(went, way_off, asked_way),
        recovered=poses_json(_standing_at(truth[0], found, scale)),
        degrees=degrees,
        turned=turned,
        went=went,
        way_off=way_off,
        **known,
    )


def _turns(path: Float[np.ndarray, "t 3 4"]) -> Float[np.ndarray, " t"]:
    """Degrees that each camera is turned from the first."""
    return np.rad2deg(Rotation.from_matrix(path[:, :, :3]).magnitude())


def _turned(path: Float[np.ndarray, "t 3 4"], found: Float[np.ndarray, "t 3 4"]) -> float:
    """Degrees of the recovered turn about the requested one's axis, where that turned farthest; else all of it."""
    farthest = int(_turns(path).argmax())
    asked, got = (Rotation.from_matrix(i[farthest, :, :3]).as_rotvec(degrees=True) for i in (path, found))
    size = float(np.linalg.norm(asked))
    return float(got @ asked) / size if size > STILL else float(_turns(found).max())


def _way(
    path: Float[np.ndarray, "t 3 4"], found: Float[np.ndarray, "t 3 4"], near: float, metric: bool, asked: float
) -> tuple[float | None, float | None]:
    """How far the camera went, in near distances, and by how many degrees it went elsewhere."""
    # Where the path is farthest from its start; a path that stands still has no such frame, so where the other is.
    leading = path if asked >= SHORT else found
    farthest = int(np.linalg.norm(leading[:, :, 3], axis=-1).argmax())
    want, got = path[farthest, :, 3], found[farthest, :, 3]
    size = float(np.linalg.norm(got))
    went = size / near if metric else None
    if asked < SHORT or size == 0:
        return went, None
    cosine = float(want @ got) / (float(np.linalg.norm(want)) * size)
    return went, float(np.rad2deg(np.arccos(np.clip(cosine, -1, 1))))


def _scale(path: Float[np.ndarray, "t 3 4"], found: Float[np.ndarray, "t 3 4"]) -> float:
    """What makes a path of unknown scale as long as the requested one."""
    want, got = (float(np.linalg.norm(i[:, :, 3], axis=-1).max()) for i in (path, found))
    return want / got if got > 0 else 1.0


def _standing_at(first: np.ndarray, found: np.ndarray, scale: float) -> np.ndarray:
    poses = np.tile(np.eye(4), (len(found), 1, 1))
    poses[:, :3] = found
    poses[:, :3, 3] *= scale
    return first @ poses


def _words(
    degrees: float, turned: float, asked_turn: float, went: float | None, way_off: float | None, asked_way: float
) -> str:
    if asked_turn > STILL:
        said = [f"turned {turned:.0f} of {asked_turn:.0f} degrees"]
    else:
        said = [f"kept its direction within {turned:.1f} degrees"]
    if way_off is not None and asked_way >= SHORT:
        far = f"went {went:.2f} of {asked_way:.2f} near distances" if went is not None else "went its way"
        said.append(f"{far}, {way_off:.0f} degrees off")
    elif asked_way < SHORT and went is not None:
        said.append(
            f"moved {went:.2f} near distances instead of staying" if went > LENGTH_OFF else "stayed in its place"
        )
    return "; ".join([*said, f"{degrees:.1f} degrees off per frame"])


def _turn_is_obeyed(degrees: float, turned: float, asked: float) -> bool:
    tolerance = max(DEGREES_OFF, SHARE_OFF * asked)
    off = abs(turned - asked) if asked > STILL else turned
    return degrees <= tolerance and off <= 2 * tolerance


def _way_is_obeyed(went: float | None, way_off: float | None, asked: float) -> bool:
    if way_off is not None and way_off > WAY_OFF:
        return False
    return went is None or abs(went - asked) <= max(LENGTH_OFF, LENGTH_SHARE_OFF * asked)
