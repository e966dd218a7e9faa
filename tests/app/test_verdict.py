"""A path that was followed is called obeyed, and one that was not is not, in degrees and in words."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from curvedray.app.verdict import verdict_of
from curvedray.cameras.named_lenses import named_lens
from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.scores import Failure
from curvedray.moves.trajectory import trajectory

NEAR = 3.0
LENS = named_lens("fisheye-150", 96, 64)


@dataclass(frozen=True)
class Judge:
    name: str = "embedded"
    version: str = "1"
    floor: str = "none"
    every_frame: bool = True

    def estimate(self, video, lens=None, clip=""):
        raise AssertionError("the answer is given")


def path(moves, pitch=0.0):
    return trajectory(moves, LENS, 17, unit="metric", near=NEAR, pitch=pitch)


def judged(asked, found, judge=None, pitch=0.0):
    poses = path(found).world_from_camera.double().numpy()
    return verdict_of(path(asked, pitch), NEAR, Estimate(poses), judge or Judge())


@pytest.mark.parametrize("moves", ["orbit left 40deg", "dolly in 1", "pan right 30deg", "static", "roll cw 20deg"])
def test_a_path_that_is_followed_is_obeyed(moves):
    verdict = judged(moves, moves)
    assert verdict.obeyed
    assert verdict.degrees == pytest.approx(0, abs=1e-4)
    assert verdict.turned == pytest.approx(verdict.asked_turn, abs=1e-3)
    assert verdict.went == pytest.approx(verdict.asked_way, abs=1e-6)


def test_the_words_say_how_far_it_turned_and_went():
    assert judged("pan right 40deg", "pan right 38deg").words.startswith("turned 38 of 40 degrees; stayed in its place")
    assert "went 0.60 of 1.00 near distances, 0 degrees off" in judged("dolly in 1", "dolly in 0.6").words
    assert "kept its direction within 0.0 degrees" in judged("dolly in 1", "dolly in 1").words


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("pan right 40deg", "static"),
        ("pan right 40deg", "pan left 40deg"),
        ("static", "pan left 20deg"),
        ("dolly in 1", "truck left 1"),
        ("dolly in 1", "dolly out 1"),
        ("dolly in 1", "dolly in 0.4"),
        ("static", "dolly in 0.4"),
        ("orbit left 30deg", "orbit right 30deg"),
    ],
)
def test_a_path_that_is_not_followed_is_not_obeyed(asked, found):
    assert judged(asked, found).obeyed is False


def test_the_recovered_path_stands_at_the_first_requested_camera():
    verdict = judged("orbit left 40deg", "orbit left 40deg", pitch=-20.0)
    requested, recovered = (np.array(i).reshape(-1, 4, 4) for i in (verdict.requested, verdict.recovered))
    np.testing.assert_allclose(recovered[0], requested[0], atol=1e-6)


def test_an_estimator_without_a_scale_judges_the_direction_alone():
    verdict = judged("dolly in 1", "dolly in 7", replace(Judge(), name="colmap"))
    assert verdict.went is None
    assert verdict.obeyed
    ends = [np.array(i).reshape(-1, 4, 4)[-1, :3, 3] for i in (verdict.requested, verdict.recovered)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)


def test_what_cannot_be_recovered_is_unknown_and_not_obeyed():
    verdict = verdict_of(path("pan left 10deg"), NEAR, Failure("too few features"), Judge())
    assert verdict.obeyed is None
    assert verdict.words == "nobody can tell: too few features"
    assert verdict.recovered == []
