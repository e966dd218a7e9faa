"""Cameras that only turn: rotations between pairs of frames from matched bearings, then averaged over the clip.

Structure from motion needs parallax; a pan, a tilt or a tripod has none. Two frames that share a centre see the same
bearings, one set turned against the other, and that turn is Kabsch's.

    n match   t frame
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

TRIALS = 200


@dataclass(frozen=True)
class Pair:
    """Two frames, the pure rotation that explains most of their matches, how many it explains, how many it does not."""

    i: int
    j: int
    i_from_j: Float[np.ndarray, "3 3"]
    explained: int
    parallax: int
    residual: float = 0.0  # mean radians by which the explained ones miss it
    flat: bool = False  # a plane explains the matches too, so the pair alone cannot tell it from its twisted twin


def pair_of(
    i: int,
    j: int,
    bearings_i: Float[np.ndarray, "n 3"],
    bearings_j: Float[np.ndarray, "n 3"],
    tolerance: float,
    flat: bool = False,
) -> Pair:
    """A pair from its matched unit bearings; a match within `tolerance` radians of the rotation is explained by it."""
    rotation, agree = robust_rotation(bearings_i, bearings_j, tolerance)
    missed = _chords(bearings_i, bearings_j @ rotation.T)[agree]
    residual = float(missed.mean()) if len(missed) else 0.0
    return Pair(i, j, rotation, int(agree.sum()), int((~agree).sum()), residual, flat)


def kabsch(a: Float[np.ndarray, "*trial n 3"], b: Float[np.ndarray, "*trial n 3"]) -> Float[np.ndarray, "*trial 3 3"]:
    """The rotation R that brings b onto a, least squares of |a - R b|."""
    u, _, vt = np.linalg.svd(np.swapaxes(a, -1, -2) @ b)
    u[..., :, 2] *= np.linalg.det(u @ vt)[..., None]
    return u @ vt


def robust_rotation(
    a: Float[np.ndarray, "n 3"], b: Float[np.ndarray, "n 3"], tolerance: float, seed: int = 0
) -> tuple[Float[np.ndarray, "3 3"], Bool[np.ndarray, " n"]]:
    """Kabsch inside RANSAC: two matches fix a rotation, `tolerance` (radians) says which matches agree with it."""
    first = np.random.default_rng(seed).integers(0, len(a), TRIALS)
    second = (first + np.random.default_rng(seed + 1).integers(1, len(a), TRIALS)) % len(a)
    samples = np.stack([first, second], 1)
    trials = kabsch(a[samples], b[samples])
    agreeing = _chords(a, b @ np.swapaxes(trials, -1, -2)) < 2 * np.sin(tolerance / 2)
    best = agreeing[agreeing.sum(1).argmax()]
    rotation = kabsch(a[best], b[best])
    return rotation, _chords(a, b @ rotation.T) < 2 * np.sin(tolerance / 2)


def rotation_share(pairs: list[Pair]) -> float:
    """How much of the matching a pure rotation explains, in the pairs where it explains least (lower quartile)."""
    return float(np.percentile([pair.explained / (pair.explained + pair.parallax) for pair in pairs], 25))


def average_rotations(pairs: list[Pair], frames: int, rounds: int = 30) -> dict[int, Float[np.ndarray, "3 3"]]:
    """world_from_camera rotations of every frame that matches reach, the first of them at the identity.

    Frames are reached one by one along the pair with most agreeing matches, from the best pair of all: a first frame
    that is black or blurred is left out. Then each is set to the mean of what its neighbours say, weighted by their
    matches, until the whole path agrees.
    """
    edges: dict[int, list[tuple[float, int, np.ndarray]]] = {i: [] for i in range(frames)}
    for pair in pairs:
        if pair.explained >= 8:
            edges[pair.j].append((float(pair.explained), pair.i, pair.i_from_j))
            edges[pair.i].append((float(pair.explained), pair.j, pair.i_from_j.T))
    anchor = max(pairs, key=lambda pair: pair.explained).i if any(edges.values()) else 0
    world = {anchor: np.eye(3)}
    while True:
        reachable = [
            (weight, frame, world[other] @ other_from_frame)
            for frame in range(frames)
            if frame not in world
            for weight, other, other_from_frame in edges[frame]
            if other in world
        ]
        if not reachable:
            break
        _, frame, rotation = max(reachable, key=lambda edge: edge[0])
        world[frame] = rotation
    for _ in range(rounds):
        for frame in sorted(world.keys() - {anchor}):
            votes = [weight * world[other] @ turn for weight, other, turn in edges[frame] if other in world]
            u, _, vt = np.linalg.svd(np.sum(votes, axis=0))
            world[frame] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    first = world[min(world)]
    return {frame: first.T @ rotation for frame, rotation in sorted(world.items())}


def _chords(a: Float[np.ndarray, "n 3"], b: Float[np.ndarray, "*trial n 3"]) -> Float[np.ndarray, "*trial n"]:
    """|a - b| of unit vectors: twice the sine of half their angle."""
    return np.linalg.norm(a - b, axis=-1)
