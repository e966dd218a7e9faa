"""What every positional encoding of cameras is to the other rooms: an object that attends."""

from typing import Protocol, runtime_checkable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Encoding(Protocol):
    """Made once per pass from cameras and a token grid; every block then attends through it."""

    def attention(
        self,
        q: Float[Tensor, "b h nq d"],
        k: Float[Tensor, "b h n d"],
        v: Float[Tensor, "b h n dv"],
        mu: Float[Tensor, "b n"] | None = None,
        sigma: Float[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b h nq dv"]:
        """Scaled dot-product attention between tokens that know their cameras.

        mu and sigma say where along their rays the keys lie; an encoding without radii leaves them unread.
        """
        ...


class PlainEncoding:
    """No encoding: attention as torch has it."""

    def attention(
        self,
        q: Float[Tensor, "b h nq d"],
        k: Float[Tensor, "b h n d"],
        v: Float[Tensor, "b h n dv"],
        mu: Float[Tensor, "b n"] | None = None,
        sigma: Float[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b h nq dv"]:
        return F.scaled_dot_product_attention(q, k, v)
