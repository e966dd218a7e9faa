"""What every way of computing curved-ray attention is handed."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from curvedray.encoding.geometry import Geometry
from curvedray.encoding.masks import Mask


@dataclass(frozen=True, eq=False)
class Call:
    """One attention call: tokens, where along their rays the keys lie, and the cameras between them."""

    q: Float[Tensor, "b h nq d"]
    k: Float[Tensor, "b h n d"]
    v: Float[Tensor, "b h n dv"]
    mu: Float[Tensor, "b n"]
    sigma: Float[Tensor, "b n"]
    geometry: Geometry
    breakpoints: int  # K
    mask: Mask | None = None
    turn_values: bool = False  # as keys are turned
