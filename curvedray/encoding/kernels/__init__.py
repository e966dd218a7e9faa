"""The fast path: a compiled kernel on the CPU, else eager code in chunks. Nothing is built at import."""

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.encoding.geometry import Geometry
from curvedray.encoding.kernels import compiled, eager
from curvedray.encoding.masks import Mask


def attention(
    q: Float[Tensor, "b h nq d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n dv"],
    geometry: Geometry,
    mu: Float[Tensor, "b n"],
    sigma: Float[Tensor, "b n"],
    num: int,
    mask: Mask | None = None,
    turn_values: bool = False,
) -> Float[Tensor, "b h nq dv"]:
    """attention.reference_attention, by the fastest means that takes these tensors on this machine.

    torch.compile is given the eager form, which it can see through.
    """
    if not torch.compiler.is_compiling() and compiled.suits(q, k, v, geometry, mu, mask):
        radii = compiled.radii_of(mu, sigma, num)
        if compiled.reaches(geometry, radii) and compiled.library() is not None:
            return compiled.attention(q, k, v, geometry, mu, sigma, num, mask, turn_values, radii)
    return eager.attention(q, k, v, geometry, mu, sigma, num, mask, turn_values)
