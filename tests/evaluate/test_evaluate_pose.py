"""Pose errors: hand-worked numbers, and what must not change them."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from curvedray.errors import InputError
from curvedray.evaluate import pose_errors
from curvedray.evaluate.metrics.pose import METRICS, umeyama_ate


def path(frames: int = 9, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (frames, 1, 1))
    poses[:, :3, :3] = Rotation.from_rotvec(rng.normal(size=(frames, 3)) * 0.4).as_matrix()
    poses[:, :3, 3] = rng.normal(size=(frames, 3))
    return poses


def rigid(seed: int) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=seed).as_matrix()
    pose[:3, 3] = np.random.default_rng(seed).normal(size=3) * 10
    return pose


def test_equal_paths_have_no_error():
    errors = pose_errors(path(), path())
    for error in (errors.rot_err, errors.trans_err, errors.cam_mc, errors.degrees_per_frame):
        assert error == pytest.approx(0, abs=1e-9)
    assert errors.ate < 1e-12
    assert not errors.near_static


def test_a_known_turn_gives_its_known_sum():
    truth = np.tile(np.eye(4), (5, 1, 1))
    truth[:, 0, 3] = range(5)
    turned = truth.copy()
    turned[1:, :3, :3] = Rotation.from_euler("y", 10, degrees=True).as_matrix()
    errors = pose_errors(truth, turned)
    assert errors.rot_err == pytest.approx(4 * np.radians(10))  # the first frame is the origin of both
    assert errors.degrees_per_frame == pytest.approx(4 * 10 / 5)
    assert errors.trans_err == pytest.approx(0)
    assert errors.cam_mc == pytest.approx(4 * 2 * np.sqrt(2) * np.sin(np.radians(5)))


def test_translations_by_hand():
    truth = np.tile(np.eye(4), (3, 1, 1))
    truth[:, :3, 3] = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    other = np.tile(np.eye(4), (3, 1, 1))
    other[:, :3, 3] = [[0, 0, 0], [0, 3, 0], [0, 6, 0]]
    # Each is divided by its own largest: (0.5, 0, 0), (1, 0, 0) against (0, 0.5, 0), (0, 1, 0).
    errors = pose_errors(truth, other)
    assert errors.trans_err == pytest.approx(0.5 * np.sqrt(2) + np.sqrt(2))
    assert errors.cam_mc == pytest.approx(errors.trans_err)
    assert errors.ate == pytest.approx(0, abs=1e-9)  # a similarity takes one line onto the other


def test_the_stride_chooses_frames():
    truth, other = path(81), path(81, seed=1)
    strided, chosen = pose_errors(truth, other, stride=4), pose_errors(truth[::4], other[::4])
    assert (strided.rot_err, strided.cam_mc) == pytest.approx((chosen.rot_err, chosen.cam_mc))
    assert strided.frames == chosen.frames == 21
    assert strided.stride == 4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(0, 999), st.floats(0.01, 100))
def test_world_frames_and_scale_do_not_matter(first, second, scale):
    truth, other = path(), path(seed=5)
    base = pose_errors(truth, other)
    scaled = other.copy()
    scaled[:, :3, 3] *= scale
    moved = pose_errors(rigid(first) @ truth, rigid(second) @ scaled)
    for name in ("rot_err", "trans_err", "cam_mc", "ate"):
        assert getattr(moved, name) == pytest.approx(getattr(base, name), abs=1e-6)


def test_rotation_and_translation_errors_are_symmetric():
    truth, other = path(), path(seed=5)
    one, two = pose_errors(truth, other), pose_errors(other, truth)
    assert one.rot_err == pytest.approx(two.rot_err)
    assert one.trans_err == pytest.approx(two.trans_err)
    assert one.cam_mc == pytest.approx(two.cam_mc)


def test_the_angle_is_the_definitions_arccos():
    truth, other = path(), path(seed=5)
    a = np.linalg.inv(truth[0]) @ truth
    b = np.linalg.inv(other[0]) @ other
    trace = np.trace(np.swapaxes(a[:, :3, :3], 1, 2) @ b[:, :3, :3], axis1=1, axis2=2)
    assert pose_errors(truth, other).rot_err == pytest.approx(np.arccos(np.clip((trace - 1) / 2, -1, 1)).sum())


def test_tensors_and_three_rows_give_the_same():
    truth, other = path(), path(seed=5)
    expected = pose_errors(truth, other)
    assert asdict(pose_errors(truth[:, :3], torch.from_numpy(other))) == pytest.approx(asdict(expected))


def test_a_static_path_is_marked_and_scored_all_the_same():
    truth = path()
    truth[:, :3, 3] = 0
    errors = pose_errors(truth, path(seed=5))
    assert errors.near_static
    assert {score.metric for score in errors.scores("a")} == {metric.name for metric in METRICS}
    truth[:, :3, 3] = 1e3 + 1e-3 * np.random.default_rng(0).uniform(
        size=(len(truth), 3)
    )  # rounding far from the origin
    assert pose_errors(truth, path(seed=5)).near_static


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_a_path_in_another_unit_is_as_static_as_it_was(unit):
    slow = path()
    slow[:, :3, 3] *= 0.004 / np.linalg.norm(slow[:, :3, 3] - slow[0, :3, 3], axis=1).max()
    slow[:, :3, 3] *= unit
    assert pose_errors(slow, path(), near=unit).near_static  # 0.4 % of the near distance
    assert not pose_errors(slow, path(), near=0.3 * unit).near_static
    assert not pose_errors(slow, path()).near_static  # whose scene nobody knows


def test_umeyama_leaves_what_a_similarity_cannot_mend():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    turned = 3 * square @ Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_matrix().T + 7
    assert umeyama_ate(square, turned) < 1e-12
    bent = square + np.array([[0, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0, -1.0]]) * 0.1
    assert umeyama_ate(bent, square) == pytest.approx(0.1, rel=1e-6)
    assert umeyama_ate(square, np.zeros((4, 3))) == pytest.approx(np.sqrt(0.5))  # one point: the spread of the truth


@pytest.mark.parametrize(
    ("truth", "other", "stride", "word"),
    [
        (path(5), path(6), 1, "frames"),
        (path(5), path(5), 0, "stride"),
        (path(5), path(5) * np.nan, 1, "finite"),
        (path(5)[:, :2], path(5), 1, "shape"),
    ],
)
def test_what_cannot_be_scored_is_said(truth, other, stride, word):
    with pytest.raises(InputError, match=word):
        pose_errors(truth, other, stride)
