"""The fast path of encoding.py: a compiled kernel on the CPU, else eager code in chunks. Nothing is built at import."""

from jaxtyping import Float
from torch import Tensor

from curvedray.encoding.kernels import compiled as curved
from curvedray.encoding.kernels import eager
from curvedray.encoding.view import View


def attention(
    q: Float[Tensor, "b h nq d"],
    k: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n dv"],
    view: View,
    mu: Float[Tensor, "b n"],
    sigma: Float[Tensor, "b n"],
    num: int,
) -> Float[Tensor, "b h nq dv"]:
    """encoding.reference_attention, by the fastest means that takes these tensors on this machine."""
    if curved.suits(q, k, v, view, mu, sigma) and curved.library() is not None:
        return curved.attention(q, k, v, view, mu, sigma, num)
    return eager.attention(q, k, v, view, mu, sigma, num)
