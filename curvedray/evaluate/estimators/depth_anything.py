"""Depth Anything V2 through transformers: metric depth of pinhole pictures; its small weights are Apache-2.0.

t frame   h, w pixels   y, x pixels as the network sees them
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.perspective import Perspective
from curvedray.extras import needed
from curvedray.inputs import reading

WEIGHTS = "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf"
LICENCE = "Apache-2.0"
SIDE = 518  # pixels of the shorter side, as the weights were trained
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 4


def load_depth_anything(weights: str = WEIGHTS, side: int = SIDE) -> Perspective:
    """From a folder in transformers' layout, or a hub id while online. Only safetensors are read."""
    needed("transformers")
    from transformers import AutoModelForDepthEstimation

    expected = "Depth Anything's weights, a folder or a hub id"
    fix = f"Download {WEIGHTS} while online, and pass its folder with --weights."
    with reading(f"depth-anything {weights}", expected, fix):
        model = AutoModelForDepthEstimation.from_pretrained(weights, use_safetensors=True).eval()
    if getattr(model.config, "depth_estimation_type", None) != "metric":
        got = f"{getattr(model.config, 'depth_estimation_type', 'another')} depth, which has no unit"
        raise InputError(f"depth-anything {weights}", "metric weights", got, f"Use {WEIGHTS}.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    commit = getattr(model.config, "_commit_hash", None)
    version = f"{Path(weights).name}{f' {commit[:12]}' if commit else ''}"

    def depth(frames: UInt8[Tensor, "t h w 3"], lens: Lens) -> Float[Tensor, "t h w"]:
        return torch.cat([depth_of(model, some, side) for some in frames.split(BATCH)])

    return Perspective(depth, "depth-anything", version, LICENCE)


def depth_of(model: Any, frames: UInt8[Tensor, "t h w 3"], side: int = SIDE) -> Float[Tensor, "t h w"]:
    """Metres along the axis; NaN where the network says nothing positive."""
    _, height, width, _ = frames.shape
    patch = model.config.patch_size or model.config.backbone_config.patch_size
    scale = side / min(height, width)
    size = tuple(max(patch, round(i * scale / patch) * patch) for i in (height, width))
    pixels = F.interpolate(frames.movedim(-1, 1).float() / 255, size, mode="bicubic", antialias=True).clamp(0, 1)
    mean, deviation = (pixels.new_tensor(i)[:, None, None] for i in (MEAN, DEVIATION))
    device = next(model.parameters()).device
    seen = model(pixel_values=((pixels - mean) / deviation).to(device)).predicted_depth.float().cpu()
    depth = F.interpolate(seen[:, None], (height, width), mode="bilinear", align_corners=False)[:, 0]
    return torch.where(torch.isfinite(depth) & (depth > 0), depth, torch.nan)
