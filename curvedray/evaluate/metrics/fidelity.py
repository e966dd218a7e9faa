"""How close is a video to its reference, pixel for pixel? PSNR and SSIM of uint8 videos; LPIPS is in quality/.

t, s frame   h, w, i, j pixels   3 colours
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.evaluate.scores import Array, Metric

PSNR = Metric(
    "PSNR", "dB", "higher", "Mean over frames of 10 log10(255^2 / mean square error); equal frames count 100."
)
SSIM = Metric(
    "SSIM", "-", "higher", "Mean structural similarity, Gaussian window 11 of sigma 1.5, inside the frame only."
)
LPIPS = Metric("LPIPS", "-", "lower", "Mean over frames of LPIPS 0.1 (AlexNet) between a frame and the reference's.")
METRICS = (PSNR, SSIM, LPIPS)
EQUAL_FRAMES = 100.0  # dB given to a frame without error, whose PSNR is infinite
WINDOW, SIGMA = 11, 1.5
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def psnr(video: UInt8[Array, "t h w 3"], reference: UInt8[Array, "s i j 3"]) -> float:
    """Peak signal-to-noise ratio in decibels, per frame, then the mean."""
    a, b = _pair(video, reference)
    error = ((a - b) ** 2).mean((1, 2, 3))
    decibels = [10 * math.log10(255**2 / e) if e > 0 else EQUAL_FRAMES for e in error.tolist()]
    return sum(decibels) / len(decibels)


def ssim(video: UInt8[Array, "t h w 3"], reference: UInt8[Array, "s i j 3"]) -> float:
    """Structural similarity: per colour, over windows that lie inside the frame, then the mean."""
    a, b = _pair(video, reference)
    if min(a.shape[1:3]) < WINDOW:
        raise InputError("video", f"frames of at least {WINDOW} pixels per side", tuple(a.shape[1:3]))
    return float(np.mean([_ssim_frame(x, y) for x, y in zip(a, b, strict=True)]))


def _ssim_frame(a: Float[Tensor, "h w 3"], b: Float[Tensor, "h w 3"]) -> float:
    x, y = a.permute(2, 0, 1)[:, None], b.permute(2, 0, 1)[:, None]
    mean_x, mean_y, xx, yy, xy = (_blur(z) for z in (x, y, x * x, y * y, x * y))
    var_x, var_y, cov = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
    top = (2 * mean_x * mean_y + C1) * (2 * cov + C2)
    return float((top / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))).mean())


def _blur(x: Float[Tensor, "c 1 h w"]) -> Float[Tensor, "c 1 rows cols"]:
    offsets = torch.arange(WINDOW, dtype=x.dtype) - WINDOW // 2
    weights = torch.exp(-(offsets**2) / (2 * SIGMA**2))
    weights = weights / weights.sum()
    return F.conv2d(F.conv2d(x, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))


def _pair(video: UInt8[Array, "t h w 3"], reference: UInt8[Array, "s i j 3"]) -> tuple[Tensor, Tensor]:
    a, b = (torch.as_tensor(x).double() for x in (video, reference))
    if a.shape != b.shape:
        raise InputError("reference video", f"shape {tuple(a.shape)}, as the video has", tuple(b.shape))
    return a, b
