"""A depth video, as players show it: grey, black one distance and white another. What they are is never guessed.

t frame   h w pixels
"""

import math

from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.errors import InputError


def grey_distances(
    frames: UInt8[Tensor, "t h w 3"], black: float, white: float, *, inverse: bool = False
) -> Float[Tensor, "t h w"]:
    """Metres of a grey video, evenly between those of black and white, or with `inverse` evenly in their inverse.

    Depth is mostly drawn evenly in metres, with black near; disparity, which networks draw, evenly in 1/metres, with
    white near. A picture of 256 greys holds no more than 256 distances.
    """
    for name, metres in (("black", black), ("white", white)):
        if not (math.isfinite(metres) and metres > 0):
            raise InputError(f"distance of {name}", "a positive number of metres", metres)
    if black == white:
        raise InputError("distances of black and white", "two different ones", f"{black:g} m for both")
    colour = (frames.float().amax(-1) - frames.float().amin(-1)).mean().item()
    if colour > 12:  # of 255; compression alone leaves a few
        fix = "Colours of distances differ from program to program: write it in grey, or as EXR, PNG or NumPy."
        raise InputError("depth video", "a grey one", "one in colour", fix)
    share = frames.float().mean(-1) / 255
    if inverse:
        return 1 / (1 / black + share * (1 / white - 1 / black))
    return black + share * (white - black)
