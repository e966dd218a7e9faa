"""Whether cameras can be those of a video: as many as it has frames, without a cut and without a jump.

What cannot be is not trained on: a clip of another video's poses teaches nothing but mistakes.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.cameras.angles import rotation_angle

LONGEST_STEP = 30.0  # degrees per frame: a cut, or poses that are not this video's
LONGEST_JUMP = 20.0  # times the usual step around it
LEAST_OF_THE_WAY = 0.05  # of a whole path that a jump is: less is the noise of a camera that stands
AROUND = 4  # steps on either side that say what is usual


def motion(cameras: Cameras) -> tuple[Float[Tensor, " steps"], Float[Tensor, " steps"]]:
    """How far the camera turns, in degrees, and moves, in its unit, from each frame to the next."""
    poses = cameras.world_from_camera.double()
    turn = rotation_angle(poses[:-1, :3, :3], poses[1:, :3, :3])
    return torch.rad2deg(turn), poses[:, :3, 3].diff(dim=0).norm(dim=-1)


def count_problems(cameras: int, frames: int) -> Iterator[str]:
    if cameras != frames:
        yield f"{cameras} poses for {frames} frames"


def turn_problems(turn: Float[Tensor, " steps"]) -> Iterator[str]:
    if len(turn) and turn.max() > LONGEST_STEP:
        yield f"turns {turn.max():.0f} degrees at frame {int(turn.argmax()) + 1}: a cut, or another video's poses"


def jump_problems(travel: Float[Tensor, " steps"]) -> Iterator[str]:
    """A step far beyond those around it, and no small part of the way: a track that was lost, or a cut.

    Beyond those around it, not beyond the clip's usual ones: a camera that stands and then trucks does not jump. The
    largest step around it may be the way back from one pose that is wrong, so the second largest says what is usual.
    """
    steps = travel.double().numpy()
    if len(steps) <= 2 or not np.isfinite(steps).all():
        return
    for index in np.argsort(-steps, kind="stable"):
        step = steps[index]
        if step <= LEAST_OF_THE_WAY * steps.sum():
            return
        beside = np.delete(steps[max(0, index - AROUND) : index + AROUND + 1], min(index, AROUND))
        usual = float(np.sort(beside)[-2])
        if step > LONGEST_JUMP * usual:
            far = f"{step / usual:.0f} times as far as usual" if usual > 0 else f"by {step:.3g}, and stands else"
            yield f"jumps at frame {index + 1}, {far}: a cut, or a lost track"
            return


def camera_problems(cameras: Cameras) -> list[str]:
    """Why a path can be no camera's; empty where it can."""
    turn, travel = motion(cameras)
    return [*turn_problems(turn), *jump_problems(travel)]
