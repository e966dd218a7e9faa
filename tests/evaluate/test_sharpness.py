"""Blur lowers sharpness, a grid raises the energy on borders, and neither measure sees the other's fault."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from curvedray.evaluate.metrics.sharpness import border_energy, edge_sharpness


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    """Grey discs on a soft ground, with edges at no place in particular."""
    random, (rows, cols) = np.random.default_rng(0), np.mgrid[:64, :96]
    frames = []
    for _ in range(20):
        frame = 60 + 0.5 * rows + 0.3 * cols
        for _ in range(6):
            inside = (rows - random.uniform(0, 64)) ** 2 + (cols - random.uniform(0, 96)) ** 2 < random.uniform(
                5, 18
            ) ** 2
            frame[inside] = random.uniform(0, 255)
        frames.append(frame)
    return np.repeat(np.stack(frames)[..., None], 3, -1).astype(np.uint8)


def test_blur_is_seen_in_proportion(clip):
    sharp = edge_sharpness(clip)
    found = [edge_sharpness(gaussian_filter(clip, (0, s, s, 0))) / sharp for s in (0.5, 1.0, 2.0)]
    assert 1 > found[0] > found[1] > found[2]
    assert found[2] < 0.6


def test_a_grid_is_seen_and_blur_is_not_taken_for_one(clip):
    real = border_energy(clip, 8)
    tiles = 8 * ((np.arange(64)[:, None] // 8 + np.arange(96) // 8) % 2)
    grid = np.clip(clip.astype(int) + tiles[None, :, :, None], 0, 255).astype(np.uint8)
    assert border_energy(grid, 8) / real > 1.5
    assert border_energy(gaussian_filter(clip, (0, 1, 1, 0)), 8) / real == pytest.approx(1, abs=0.1)


def test_a_flat_clip_has_neither():
    flat = np.full((2, 16, 16, 3), 90, np.uint8)
    assert edge_sharpness(flat) == 0
    assert border_energy(flat, 8) == 0
