"""Do the videos look like the real ones, and like their captions? Scores on features that the user supplies.

The networks (I3D, Inception, CLIP) and their weights stay outside the package; these functions take what they put out.
Compare only equal numbers of clips: the Frechet distance grows as they fall.

    n, m clip or frame   d feature   c class   t frame
"""

import numpy as np
from jaxtyping import Float, Num

from curvedray.errors import InputError
from curvedray.evaluate.scores import Array, Metric, as_float64

FVD = Metric("FVD", "-", "lower", "Frechet distance of I3D Kinetics-400 logits of whole clips, stretched to 224 x 224.")
FVD_C = Metric("FVD-C", "-", "lower", "As FVD, on the centre crop after scaling the shorter side to 224.")
FID = Metric("FID", "-", "lower", "Frechet distance of Inception features (2048) of all frames of all clips.")
IS = Metric(
    "IS", "-", "higher", "exp of the mean KL divergence of class probabilities from their mean, over 10 seeded splits."
)
IS_STD = Metric("IS Std.", "-", "neither", "Standard deviation of IS over its splits.")
CS_T = Metric(
    "CS-T", "-", "higher", "Mean over frames of 100 max(cos, 0) of frame and caption embeddings (LongCLIP-L)."
)
CS_I = Metric("CS-I", "-", "higher", "Mean over adjacent frames of 100 max(cos, 0) of their embeddings (CLIP L/14).")
METRICS = (FVD, FVD_C, FID, IS, IS_STD, CS_T, CS_I)


def frechet_distance(ours: Num[Array, "n d"], theirs: Num[Array, "m d"]) -> float:
    """|m - m'|^2 + tr(S + S' - 2 (S S')^1/2), unbiased covariances, equal numbers of rows.

    tr (S S')^1/2 is the sum of the singular values of S^1/2 S'^1/2, so no complex root of a nearly singular product.
    """
    a, b = as_float64(ours), as_float64(theirs)
    if len(a) < 2 or len(a) != len(b):
        raise InputError(
            "features", "equal numbers of rows, two or more", f"{len(a)} and {len(b)}", "Drop the surplus."
        )
    a_mean, b_mean = a.mean(0), b.mean(0)
    # S = A^T A for the triangle A of a QR decomposition, and A B^T has the singular values of S^1/2 S'^1/2.
    a_half, b_half = _triangle(a - a_mean), _triangle(b - b_mean)
    cross = np.linalg.svd(a_half @ b_half.T, compute_uv=False).sum()
    spread = (a_half**2).sum() + (b_half**2).sum()
    return max(0.0, float(((a_mean - b_mean) ** 2).sum() + spread - 2 * cross))


def inception_score(probabilities: Num[Array, "n c"], splits: int = 10, seed: int = 0) -> tuple[float, float]:
    """Mean and standard deviation over random splits of exp(mean KL(p(y|x) || p(y)))."""
    p = as_float64(probabilities)
    if len(p) < splits or (p < 0).any() or not np.allclose(p.sum(1), 1, atol=1e-3):
        raise InputError("class probabilities", f"at least {splits} rows that each sum to 1", f"shape {p.shape}")
    order = np.random.default_rng(seed).permutation(len(p))
    values = [_exp_kl(p[part]) for part in np.array_split(order, splits)]
    return float(np.mean(values)), float(np.std(values))


def clip_text_score(frames: Num[Array, "t d"], caption: Num[Array, " d"]) -> float:
    """CS-T of one clip: every frame against its caption."""
    return float(_cosines(as_float64(frames), as_float64(caption)[None]).mean())


def clip_image_score(frames: Num[Array, "t d"]) -> float:
    """CS-I of one clip: every frame against the next."""
    x = as_float64(frames)
    if len(x) < 2:
        raise InputError("frame embeddings", "two frames or more", len(x))
    return float(_cosines(x[:-1], x[1:]).mean())


def _triangle(centred: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "k d"]:
    return np.asarray(np.linalg.qr(centred / np.sqrt(len(centred) - 1), mode="r"))


def _cosines(a: Float[np.ndarray, "t d"], b: Float[np.ndarray, "#t d"]) -> Float[np.ndarray, " t"]:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    if not (lengths > 0).all():
        raise InputError("embeddings", "vectors that are not zero", "a zero vector")
    return 100 * np.maximum((a * b).sum(1) / lengths, 0)


def _exp_kl(p: Float[np.ndarray, "n c"]) -> float:
    mean = p.mean(0, keepdims=True)
    terms = np.where(p > 0, p * (np.log(np.where(p > 0, p, 1)) - np.log(np.where(mean > 0, mean, 1))), 0)
    return float(np.exp(terms.sum(1).mean()))
