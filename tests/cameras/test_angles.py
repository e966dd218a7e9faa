"""Angles: what a rotation was made with is read back, in torch and in NumPy alike; small ones keep their digits."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from curvedray.cameras.angles import direction_angle, rotation_angle, rotation_of, rotation_vector, yaw_pitch_roll


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.5, 2.0, 3.0])
def test_the_angle_of_a_rotation_is_the_one_it_was_made_with(angle):
    base = Rotation.random(20, random_state=0)
    axes = np.random.default_rng(1).normal(size=(20, 3))
    turned = base * Rotation.from_rotvec(angle * axes / np.linalg.norm(axes, axis=-1, keepdims=True))
    a, b = base.as_matrix(), turned.as_matrix()
    np.testing.assert_allclose(rotation_angle(a, b), angle, rtol=1e-6, atol=1e-14)
    torch.testing.assert_close(
        rotation_angle(torch.from_numpy(a), torch.from_numpy(b)), torch.from_numpy(rotation_angle(a, b))
    )


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.5, 3.0, np.pi])
def test_the_angle_between_directions(angle):
    a = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    b = torch.tensor([np.cos(angle), np.sin(angle), 0.0], dtype=torch.float64)
    assert direction_angle(a, b).item() == pytest.approx(angle, rel=1e-9, abs=1e-15)


def test_yaw_pitch_and_roll_are_read_back():
    angles = np.random.default_rng(0).uniform([-3, -1.5, -3], [3, 1.5, 3], (50, 3))
    np.testing.assert_allclose(yaw_pitch_roll(Rotation.from_euler("YXZ", angles).as_matrix()), angles, atol=1e-9)
    np.testing.assert_allclose(rotation_of(angles), Rotation.from_euler("YXZ", angles).as_matrix(), atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-4, 0.5, 3.0, np.pi - 1e-7])
def test_a_rotation_vector_is_the_one_it_was_made_with(angle):
    axes = np.random.default_rng(2).normal(size=(20, 3))
    made = angle * axes / np.linalg.norm(axes, axis=-1, keepdims=True)
    np.testing.assert_allclose(rotation_vector(Rotation.from_rotvec(made).as_matrix()), made, rtol=1e-7, atol=1e-15)
    assert rotation_vector(np.zeros((0, 3, 3))).shape == (0, 3)


@pytest.mark.parametrize("axis", range(3))
def test_half_a_turn_has_one_of_its_two_axes(axis):
    turned = rotation_vector(2 * np.outer(np.eye(3)[axis], np.eye(3)[axis]) - np.eye(3))
    np.testing.assert_allclose(np.abs(turned), np.pi * np.eye(3)[axis], atol=1e-15)
