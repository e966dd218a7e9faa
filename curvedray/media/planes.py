"""Frames as H.264 stores them: a plane of luma, and two of chroma at half the width and height (yuv420p, BT.709).

Whoever has frames in this form hands them to the encoder as they are (`video.write_planes`).

    t frame   h w rows and columns of the picture   p rows of all three planes together, 3/2 of h
"""

import torch
from jaxtyping import UInt8
from torch import Tensor

# Y'CbCr of BT.709 in the range of television (luma 16 to 235), in 15 bits after the point, of red, green and blue.
# data/sphere.cpp has the same numbers.
LUMA = (5983, 20127, 2032)
BLUE = (-3298, -11094, 14392)
RED = (14392, -13072, -1320)


def planes_from_rgb(frames: UInt8[Tensor, "*t h w 3"]) -> UInt8[Tensor, "*t p w"]:
    """Chroma is of the mean of four pixels, whose centre it has; width and height are even."""
    whole = frames.int()
    height, width = frames.shape[-3:-1]
    luma = ((whole * torch.tensor(LUMA)).sum(-1, dtype=torch.int32) + (33 << 14)) >> 15
    four = whole.unflatten(-3, (height // 2, 2)).unflatten(-2, (width // 2, 2)).sum((-4, -2), dtype=torch.int32)
    chroma = [((four * torch.tensor(of)).sum(-1, dtype=torch.int32) + (257 << 16)) >> 17 for of in (BLUE, RED)]
    planes = torch.cat([one.flatten(-2) for one in (luma, *chroma)], -1)
    return planes.to(torch.uint8).unflatten(-1, (height * 3 // 2, width))
