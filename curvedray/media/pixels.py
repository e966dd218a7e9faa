"""Bytes of an image <-> the numbers in [-1, 1] that networks see.

t frame   h w row, column   3 red, green, blue
"""

import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from torch import Tensor

HALF_RANGE = 127.5


def video_from_frames(frames: UInt8[Tensor, "*b t h w 3"]) -> Float[Tensor, "*b 3 t h w"]:
    """0..255 -> [-1, 1], channels first."""
    return rearrange(frames, "... t h w c -> ... c t h w").float() / HALF_RANGE - 1


def frames_from_video(video: Float[Tensor, "*b 3 t h w"]) -> UInt8[Tensor, "*b t h w 3"]:
    """[-1, 1] -> 0..255, channels last; what lies beyond the range is clipped."""
    pixels = ((video.float() + 1) * HALF_RANGE).round().clamp(0, 255).to(torch.uint8)
    return rearrange(pixels, "... c t h w -> ... t h w c")
