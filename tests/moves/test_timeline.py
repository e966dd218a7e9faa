"""Keyframes edited on a timeline: through every key, straight or smooth, round and round, at an even speed."""

import numpy as np
import pytest
import torch

from curvedray.cameras import Cameras, Lens, stacked
from curvedray.errors import InputError
from curvedray.moves.timeline import Timeline
from curvedray.moves.trajectory import keyframes, look_at

LENS = Lens.from_fov(90.0, 0.5, 96, 64)
PLACES = torch.tensor([[0.0, 0, 0], [1.0, 0.2, 0.5], [1.5, -0.3, 2.0], [0.2, 0.0, 1.0]])
POSES = look_at(PLACES, torch.tensor([0.5, 0.1, 6.0]))
KEYS = Cameras(LENS, POSES, "metric")


def positions(cameras: Cameras) -> np.ndarray:
    return cameras.world_from_camera[:, :3, 3].double().numpy()


def test_at_full_smoothness_it_is_the_path_through_keyframes():
    times = torch.tensor([0.0, 1.0, 3.0, 3.5])
    made = Timeline(KEYS, (1.0, 2.0, 0.5, 9.0)).cameras(25)
    expected = keyframes(POSES, LENS, 25, times=times, unit="metric")
    torch.testing.assert_close(made.world_from_camera, expected.world_from_camera)


@pytest.mark.parametrize("smoothness", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("loop", [False, True])
def test_every_key_is_passed_at_its_frame(smoothness, loop):
    line = Timeline(KEYS, (1.0, 2.0, 1.0, 4.0), smoothness, loop)
    frames = 16 if loop else 9  # so that each key falls on a whole frame
    at = line.key_frames(frames)
    np.testing.assert_allclose(at, np.round(at), atol=1e-9)
    made = line.cameras(frames).world_from_camera
    torch.testing.assert_close(made[[round(i) for i in at]], POSES)


def test_without_smoothness_positions_lie_on_straight_lines():
    made = positions(Timeline(KEYS, (1.0, 1.0, 1.0, 1.0), 0.0).cameras(31))
    for first in (0, 10, 20):
        start, end = made[first], made[first + 10]
        along = start + np.linspace(0, 1, 11)[:, None] * (end - start)
        np.testing.assert_allclose(made[first : first + 11], along, atol=1e-6)


@pytest.mark.parametrize("constant_speed", [False, True])
def test_a_loop_goes_on_where_it_began(constant_speed):
    """Its frames are those of the same loop begun at another key; its last step leads to its first frame."""
    line = Timeline(KEYS, (1.0, 1.0, 1.0, 1.0), loop=True, constant_speed=constant_speed)
    later = Timeline(KEYS[[1, 2, 3, 0]], (1.0, 1.0, 1.0, 1.0), loop=True, constant_speed=constant_speed)
    made = positions(line.cameras(40))
    if not constant_speed:
        np.testing.assert_allclose(np.roll(made, -10, 0), positions(later.cameras(40)), atol=1e-5)
    steps = np.linalg.norm(np.diff(np.concatenate([made, made[:1]]), axis=0), axis=-1)
    assert steps[-1] < 1.5 * np.maximum(steps[-2], steps[0])


def test_at_a_constant_speed_all_steps_are_equally_long():
    straight = Cameras(LENS, look_at(PLACES[:3], PLACES[:3] + torch.tensor([0.0, 0, 1.0])), "metric")
    uneven = positions(Timeline(straight, (1.0, 5.0, 1.0)).cameras(33))
    even = positions(Timeline(straight, (1.0, 5.0, 1.0), constant_speed=True).cameras(33))
    spread = [np.ptp(np.linalg.norm(np.diff(i, axis=0), axis=-1)) for i in (uneven, even)]
    assert spread[1] < 0.003 < 0.05 < spread[0]


def test_a_lens_per_key_is_blended_and_one_key_is_a_static_camera():
    wide, narrow = Lens.from_fov(120.0, 0.8, 96, 64), Lens.from_fov(60.0, 0.0, 96, 64)
    lens = stacked([Cameras(wide, POSES[:1]), Cameras(narrow, POSES[:1])]).lens
    keys = Cameras(Lens(lens.focal[:, 0], lens.center[:, 0], lens.xi[:, 0], (96, 64)), POSES[:2])
    hfov = Timeline(keys, (1.0, 1.0)).cameras(5).frame_lens.hfov
    assert hfov[0] == pytest.approx(120, abs=1e-3)
    assert hfov[-1] == pytest.approx(60, abs=1e-3)
    assert (hfov.diff() < 0).all()
    still = Timeline(KEYS[1], (1.0,), loop=True).cameras(4).world_from_camera
    assert (still == POSES[1]).all()


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": (1.0, 0.0, 1.0, 1.0)},
        {"seconds": (1.0,)},
        {"seconds": (1.0, 1e9, 1.0, 1.0)},
        {"smoothness": 1.5},
        {"reach": float("nan")},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    with pytest.raises(InputError):
        Timeline(**({"keys": KEYS, "seconds": (1.0,) * 4} | change))
