"""UniDepthV2: metric depth of pinhole pictures with a confidence, the paper's alternate teacher.

t frame   h, w pixels
"""

from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.perspective import Perspective

INSTALL = "Install it with: pip install git+https://github.com/lpiccinelli-eth/UniDepth"
NOTICE = "UniDepth and its weights are CC BY-NC 4.0: for non-commercial use only."
WEIGHTS = "lpiccinelli/unidepth-v2-vitl14"
DOUBTED = 0.1  # share of a picture's pixels, the least confident, that are not believed


def load_unidepth(accept_noncommercial: bool = False, weights: str = WEIGHTS) -> Perspective:
    """The ViT-L weights, which UniDepth itself fetches on first use, for those who accept the licence."""
    if not accept_noncommercial:
        fix = f"{NOTICE} Add --accept-noncommercial."
        raise InputError("unidepth", "its licence accepted", "it was not", fix)
    try:
        from unidepth.models import UniDepthV2  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise InputError("unidepth", "the package unidepth", "it is not installed", INSTALL) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UniDepthV2.from_pretrained(weights).to(device).eval()

    def depth(frames: UInt8[Tensor, "t h w 3"], lens: Lens) -> Float[Tensor, "t h w"]:
        return torch.stack(
            [read_result(model.infer(frame.movedim(-1, 0).to(device), matrix(lens))) for frame in frames]
        )

    return Perspective(depth, "unidepth", weights, "CC BY-NC 4.0", f"not measured here. {NOTICE}")


def matrix(lens: Lens) -> Float[Tensor, "3 3"]:
    """The pinhole's intrinsics, which UniDepth takes where they are known."""
    fx, fy = lens.focal.tolist()
    cx, cy = lens.center.tolist()
    return torch.tensor([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])


def read_result(result: dict[str, Any]) -> Float[Tensor, "h w"]:
    """UniDepth's `depth` (1, 1, H, W); NaN where it is not positive, and where its `confidence` is lowest."""
    depth = result["depth"][0, 0].float().cpu()
    known = torch.isfinite(depth) & (depth > 0)
    if "confidence" in result:
        confidence = result["confidence"].float().cpu().reshape(depth.shape)
        known &= confidence >= confidence.quantile(DOUBTED)
    return torch.where(known, depth, torch.nan)
