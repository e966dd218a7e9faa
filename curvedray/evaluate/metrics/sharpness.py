"""Is a picture crisp, and is a grid of patches left in it? Each is read beside the same measure of real clips.

t frame   h w pixels
"""

import numpy as np
from jaxtyping import Float, UInt8

EDGES = 0.05  # share of a frame's pixels that count as its edges: those where it changes most


def edge_sharpness(video: UInt8[np.ndarray, "t h w 3"]) -> float:
    """Mean gradient on edges, in levels per pixel: brightness changes most there, and a blurred edge changes less."""
    grey = video.astype(np.float64).mean(-1)
    down, right = np.gradient(grey, axis=(1, 2))
    steepness = np.sort(np.hypot(down, right).reshape(len(video), -1), axis=1)
    return float(steepness[:, -max(1, round(EDGES * steepness.shape[1])) :].mean())


def border_energy(video: UInt8[np.ndarray, "t h w 3"], patch: int) -> float:
    """Mean change across the borders of patches, over the mean change inside them: above a real clip's, a grid."""
    grey = video.astype(np.float64).mean(-1)
    across, inside = zip(*(_changes(grey, axis, patch) for axis in (1, 2)), strict=True)
    return float(np.concatenate(across).mean() / max(np.concatenate(inside).mean(), 1e-12))


def _changes(grey: Float[np.ndarray, "t h w"], axis: int, patch: int) -> tuple[np.ndarray, np.ndarray]:
    """Absolute differences of neighbours along an axis: those across a border, and the others."""
    change = np.abs(np.diff(np.moveaxis(grey, axis, 0), axis=0))
    on_border = np.arange(1, len(change) + 1) % patch == 0
    return change[on_border].ravel(), change[~on_border].ravel()
