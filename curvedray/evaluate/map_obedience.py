"""Does a supplied map move what is seen? Clips filmed twice, without a map and with the exact map of another layout.

Caption and camera are the same both times, so whatever moves towards the map was moved by it. Errors are of log metres,
beside the floor: what the estimator makes of real clips of that layout.

    n clip   t latent frame   y x radius   s slot, one per colour
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.statistics import DRAWS, Interval, bootstrap, resamples
from curvedray.evaluate.world_truth import KnownClips


@dataclass(frozen=True, eq=False)
class LayoutObedience:
    """What was asked by a map and what is seen of it, over many clips."""

    error: Interval  # mean |log read - log asked|, with the map
    error_without: Interval  # the same clips filmed without it
    error_of_real: Interval  # the floor
    share_of_the_way: Interval  # from "without" (0) to the floor (1)
    change: Interval  # r of the change asked and seen, over radii
    change_by_chance: Interval  # the same with the next clip's map: both changes are from one film, so it is not 0
    bearing: Interval  # r of where things are asked to stand and are read: left to right
    distance: Interval  # and near to far

    def to_json(self) -> dict[str, dict[str, float]]:
        return {name: vars(value) for name, value in vars(self).items()}


def layout_obedience(asked: KnownClips, mapped: Reading, without: Reading, real: Reading) -> LayoutObedience:
    """`asked` is the truth of the layouts whose maps were given; `real` is read from clips rendered of them."""
    with_map, no_map, floor = (distance_errors(asked, said) for said in (mapped, without, real))
    others = asked.log_radius.roll(1, 0), asked.known & asked.known.roll(1, 0)
    things = asked.colour == 0
    stands, read = (positions(x.position, things) for x in (asked, mapped))
    return LayoutObedience(
        bootstrap(with_map),
        bootstrap(no_map),
        bootstrap(floor),
        share_of_the_way(with_map, no_map, floor),
        correlation_by_clip(*_changes(asked.log_radius, asked.known, mapped, without)),
        correlation_by_clip(*_changes(*others, mapped, without)),
        *(correlation_by_clip([x[:, i] for x in stands], [x[:, i] for x in read]) for i in (0, 1)),
    )


def positions(said: Tensor, things: Tensor) -> list[Float[np.ndarray, "things bearing_and_distance"]]:
    """Clip by clip, where its things are."""
    return [one[there].double().numpy() for one, there in zip(said, things, strict=True)]


def distance_errors(asked: KnownClips, said: Reading) -> Float[np.ndarray, " n"]:
    """Each clip's mean absolute error of log radii, over those that are known."""
    known = asked.known.double()
    missed = (said.log_radius.double() - asked.log_radius.double()).abs() * known
    return (missed.sum((1, 2, 3)) / known.sum((1, 2, 3)).clamp_min(1)).numpy()


def share_of_the_way(
    with_map: Float[np.ndarray, " n"], without: Float[np.ndarray, " n"], floor: Float[np.ndarray, " n"]
) -> Interval:
    """(without - with) / (without - floor) of the mean errors; its interval draws clips for all three at once."""
    drawn = resamples(len(with_map), DRAWS)
    a, b, c = (np.concatenate([[x.mean()], x[drawn].mean(1)]) for x in (with_map, without, floor))
    shares = (b - a) / np.where(np.abs(b - c) > 1e-9, b - c, np.nan)
    low, high = np.nanpercentile(shares[1:], [2.5, 97.5]) if np.isfinite(shares[1:]).any() else (np.nan, np.nan)
    return Interval(float(shares[0]), float(low), float(high))


def _changes(
    asked: Float[Tensor, "n t y x"], known: Bool[Tensor, "n t y x"], mapped: Reading, without: Reading
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per clip, over its known radii: how far a map is from what is seen without it, and how far the video went."""
    before = without.log_radius.double()
    wanted, seen = asked.double() - before, mapped.log_radius.double() - before
    rows = [(w[k].numpy(), s[k].numpy()) for w, s, k in zip(wanted, seen, known, strict=True)]
    return [w for w, _ in rows], [s for _, s in rows]


def correlation_by_clip(asked: list[np.ndarray], found: list[np.ndarray]) -> Interval:
    """Pearson's r over all of what clips have; the interval draws whole clips, whose own values belong together."""
    sums = np.array([(len(a), a.sum(), b.sum(), a @ a, b @ b, a @ b) for a, b in zip(asked, found, strict=True)])
    drawn = np.concatenate([np.arange(len(asked))[None], resamples(len(asked), DRAWS)])
    n, a, b, aa, bb, ab = sums[drawn].sum(1).T
    size = np.sqrt(np.maximum(aa - a * a / n, 0) * np.maximum(bb - b * b / n, 0))
    r = np.where(size > 1e-12, (ab - a * b / n) / np.maximum(size, 1e-12), np.nan)
    low, high = np.nanpercentile(r[1:], [2.5, 97.5]) if np.isfinite(r[1:]).any() else (np.nan, np.nan)
    return Interval(float(r[0]), float(low), float(high))
