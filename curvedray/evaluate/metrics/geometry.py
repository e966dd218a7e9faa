"""Does the video have the geometry it was given, and does it hold still? Scores on maps of distance.

g is the supplied map, p the one re-estimated from the video; a pixel counts where both are valid (finite and
positive). Pixel level is the map as it is, token level after 16 x 16 average pooling over valid pixels.

    t, s frame   h, w, i, j pixels or tokens
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Num

from curvedray.errors import InputError
from curvedray.evaluate.scores import Array, Metric, Score, as_float64

SILOG = Metric("SILog", "log", "lower", "Mean over frames of std(log p - log g) over shared valid pixels.")
ABS_REL = Metric("AbsRel", "-", "lower", "Mean over frames of mean |s p - g| / g, with s = mean(g) / mean(p).")
DELTA_1 = Metric("delta_1", "share", "higher", "Mean over frames of the share with max(sp/g, g/sp) < 1.25, s as above.")
JITTER = Metric("Scale Jitter", "-", "lower", "Median over frames of |s_t+1 - s_t|, linear.")
SSI_L1 = Metric("SSI-L1", "-", "lower", "Mean absolute difference after removing each map's median and mean deviation.")
METRICS = (SILOG, ABS_REL, DELTA_1, JITTER)
VALIDITY = (
    "A distance counts where both maps have one: finite, positive, and in the supplied map within 20 m and marked "
    "valid; a token's is the mean of its valid pixels, and an estimate of another size is brought to the map's."
)
LATENT, TOKEN = 4, 16  # video frames and pixels that a token of Wan stands for
FINEST_TOKEN = 8  # pixels of the smallest token of any model: the embedded one's
STATISTICS = ("median", "q1", "q3", "iqr")
STABILITY = tuple(
    Metric(f"Stability {name}", "log", "lower", f"Median over frames of |change of the {name} of log p|.")
    for name in STATISTICS
)
DRIFT = Metric("Drift", "log", "lower", "Median over frames of |change of the median of log p - that of log g|.")


@dataclass(frozen=True)
class Adherence:
    """How one clip's re-estimated distances follow the supplied ones."""

    silog: float
    abs_rel: float
    delta_1: float
    scale_jitter: float
    frames: int  # scored; a frame without a shared valid pixel is not

    def scores(self, clip: str, level: str = "pixel") -> list[Score]:
        values = (self.silog, self.abs_rel, self.delta_1, self.scale_jitter)
        named = [Metric(f"{m.name} ({level})", m.unit, m.better, m.definition) for m in METRICS]
        return [metric.of(clip, value) for metric, value in zip(named, values, strict=True)]


def adherence(supplied: Num[Array, "t h w"], estimated: Num[Array, "s i j"]) -> Adherence:
    """SILog, AbsRel, delta_1 (each a mean over frames) and Scale Jitter of one clip."""
    g, p, valid = _pair(supplied, estimated)
    rows, scales = [], []
    for frame_g, frame_p, ok in zip(g, p, valid, strict=True):
        if not ok.any():
            continue
        a, b = frame_g[ok], frame_p[ok]
        s = a.mean() / b.mean()
        ratio = np.maximum(s * b / a, a / (s * b))
        rows.append([np.std(np.log(b) - np.log(a)), np.mean(np.abs(s * b - a) / a), np.mean(ratio < 1.25)])
        scales.append(s)
    if not rows:
        raise InputError(
            "distance maps", "at least one pixel valid in both", "none", "Count the clip as failed instead."
        )
    steps = np.abs(np.diff(scales))
    jitter = float(np.median(steps)) if len(steps) else 0.0
    silog, abs_rel, delta_1 = (float(x) for x in np.mean(rows, axis=0))
    return Adherence(silog, abs_rel, delta_1, jitter, len(rows))


def adherence_scores(
    clip: str, supplied: Num[Array, "t h w"], estimated: Num[Array, "s i j"], stride: int
) -> list[Score]:
    """A clip's scores per pixel and per token; of an estimate that has only tokens, per token.

    An estimate of fewer frames is of every stride-th, or of one per latent frame. One of another size of the same
    shape is brought to the supplied map's: averaged over its valid pixels, or repeated.
    """
    steps = [step for step in (1, stride, LATENT) if len(supplied[::step]) == len(estimated)]
    if not steps:
        raise InputError("distance maps", f"{len(estimated)} frames, as were estimated", len(supplied))
    given = supplied[:: steps[0]]
    _check_one_shape(given, estimated)
    if estimated.shape[1] * FINEST_TOKEN <= given.shape[1]:  # an estimate of tokens
        tokens = pooled_to(given, *estimated.shape[1:]), as_float64(estimated)
        return adherence(*tokens).scores(clip, "token") + stability_scores(clip, *tokens)
    estimated = at_size(estimated, *given.shape[1:])
    tokens = pooled(given), pooled(estimated)
    pixels = [*adherence(given, estimated).scores(clip, "pixel"), SSI_L1.of(clip, mean_ssi_l1(given, estimated))]
    return pixels + adherence(*tokens).scores(clip, "token") + stability_scores(clip, *tokens)


def stability_scores(
    clip: str, supplied: Float[np.ndarray, "t h w"], estimated: Float[np.ndarray, "t h w"]
) -> list[Score]:
    """How a clip's distances change over time, and how far that is from the supplied map's change.

    None for a clip that has one frame, or no token that is valid in all of them in both maps.
    """
    always = (positive(supplied) & positive(estimated)).all(0)
    if len(estimated) < 2 or not always.any():
        return []
    ours, theirs = (np.where(always, maps, np.nan) for maps in (estimated, supplied))
    steady = temporal_stability(ours)
    scores = [metric.of(clip, steady[name]) for metric, name in zip(STABILITY, STATISTICS, strict=True)]
    return [*scores, DRIFT.of(clip, drift_disagreement(ours, theirs))]


def pooled(radius: Num[Array, "t h w"], patch: int = TOKEN) -> Float[np.ndarray, "t rows cols"]:
    """Average over the valid pixels of every patch; NaN where a patch has none. Sides need not divide by it."""
    _, height, width = radius.shape
    return pooled_to(radius, max(1, round(height / patch)), max(1, round(width / patch)))


def pooled_to(radius: Num[Array, "t h w"], rows: int, cols: int) -> Float[np.ndarray, "t rows cols"]:
    """Average over the valid pixels of rows x cols patches, which share a pixel where sides do not divide."""
    x = torch.from_numpy(as_float64(radius))
    valid = torch.from_numpy(positive(x.numpy()))
    share = F.adaptive_avg_pool2d(valid.double(), (rows, cols))
    total = F.adaptive_avg_pool2d(torch.where(valid, x, 0.0), (rows, cols))
    return torch.where(share > 0, total / share.clamp_min(1e-12), torch.nan).numpy()


def at_size(radius: Num[Array, "t h w"], height: int, width: int) -> Float[np.ndarray, "t rows cols"]:
    """A map at another size: averaged over valid pixels where it is larger, repeated where it is smaller."""
    x = as_float64(radius)
    if x.shape[1:] == (height, width):
        return x
    if x.shape[1] >= height and x.shape[2] >= width:
        return pooled_to(x, height, width)
    return F.interpolate(torch.from_numpy(x)[:, None], (height, width), mode="nearest-exact")[:, 0].numpy()


def _check_one_shape(a: Num[Array, "t h w"], b: Num[Array, "s i j"]) -> None:
    """Sizes may differ, shapes may not: one picture would be stretched over the other."""
    (h, w), (i, j) = a.shape[1:], b.shape[1:]
    # Tokens round a side by up to half of one, which is much of a small grid.
    if abs(np.log((w / h) / (j / i))) > 0.05 + 0.5 / min(i, j):
        fix = "Crop the map as the video is cropped: curvedray radial convert --size."
        raise InputError("distance maps", f"the shape of the video, {j} x {i} at any scale", f"{w} x {h}", fix)


def mean_ssi_l1(supplied: Num[Array, "t h w"], estimated: Num[Array, "s i j"]) -> float:
    """SSI-L1 of a clip: the mean over frames that have a pixel valid in both."""
    g, p, valid = _pair(supplied, estimated)
    return float(np.mean([ssi_l1(g[t], p[t]) for t in range(len(g)) if valid[t].any()]))


def ssi_l1(a: Num[Array, "h w"], b: Num[Array, "i j"]) -> float:
    """Scale- and shift-invariant L1 of two maps of one frame, over pixels valid in both."""
    x, y, valid = _pair(a[None], b[None])
    if not valid.any():
        raise InputError("distance maps", "at least one pixel valid in both", "none")
    return float(np.mean(np.abs(_shape_only(x[valid]) - _shape_only(y[valid]))))


def temporal_stability(radius: Num[Array, "t h w"]) -> dict[str, float]:
    """Median over t of |frame-to-frame change| of per-frame log-radius statistics, on tokens valid in all frames.

    Per clip; the paper takes the median over clips, our tables the mean, which one unsteady clip can move.
    """
    return {name: float(np.median(np.abs(np.diff(series)))) for name, series in log_statistics(radius).items()}


def drift_disagreement(radius: Num[Array, "t h w"], reference: Num[Array, "t h w"]) -> float:
    """Median over t of |change of the median log-radius - that of the reference|."""
    ours, theirs = (np.diff(log_statistics(x)["median"]) for x in (radius, reference))
    return float(np.median(np.abs(ours - theirs)))


def log_statistics(radius: Num[Array, "t h w"]) -> dict[str, Float[np.ndarray, " t"]]:
    """Median, quartiles and their range of z = log r in every frame, over tokens valid in all of them."""
    r = as_float64(radius)
    always = positive(r).all(0)
    if r.shape[0] < 2 or not always.any():
        raise InputError("radial maps", "two frames or more and a token valid in all of them", f"shape {r.shape}")
    z = np.log(r[:, always])
    q1, median, q3 = np.percentile(z, [25, 50, 75], axis=1)
    return dict(zip(STATISTICS, (median, q1, q3, q3 - q1), strict=True))


@dataclass(frozen=True)
class TokenGroup:
    """Agreement with the target, and predicted width, over one kind of token of a clip."""

    tokens: int
    log_mae: float
    delta_1: float
    width: float  # mean |sigma|


def dynamic_tokens(
    mu: Num[Array, "t h w"], sigma: Num[Array, "t h w"], target: Num[Array, "t h w"], moving: Num[Array, "t h w"]
) -> dict[str, TokenGroup]:
    """Dynamic tokens (at least half their pixels move) beside static ones (none does).

    `mu` and `sigma` are log-radius, `target` radius, `moving` the share of a token's pixels that move. A kind of
    which the clip has no valid token is left out; tables bootstrap over clips.
    """
    centre, width, goal, share = (as_float64(x) for x in (mu, sigma, target, moving))
    valid = positive(goal)
    groups = {}
    for name, chosen in (("dynamic", valid & (share >= 0.5)), ("static", valid & (share == 0))):
        if chosen.any():
            gap = np.abs(centre[chosen] - np.log(goal[chosen]))
            close = float(np.mean(gap < np.log(1.25)))
            groups[name] = TokenGroup(int(chosen.sum()), float(gap.mean()), close, float(np.abs(width[chosen]).mean()))
    return groups


def positive(x: Float[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
    """A distance is valid where it is finite and above zero."""
    return np.isfinite(x) & (np.nan_to_num(x) > 0)


def _shape_only(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    centred = x - np.median(x)
    deviation = np.abs(centred).mean()
    return centred / deviation if deviation > 0 else centred


def _pair(a: Num[Array, "t h w"], b: Num[Array, "s i j"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = as_float64(a), as_float64(b)
    if x.shape != y.shape:
        raise InputError("distance maps", f"one shape, {x.shape}", y.shape, "Resize the estimate to the supplied map.")
    return x, y, positive(x) & positive(y)
