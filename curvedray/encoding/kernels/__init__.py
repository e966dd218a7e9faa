"""The fast path: a compiled kernel on the CPU, else eager code in chunks. Nothing is built at import."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.encoding.call import Call, turned_around
from curvedray.encoding.curved import modulate
from curvedray.encoding.kernels import compiled, eager


def attention(call: Call) -> Float[Tensor, "b h nq dv"]:
    """attention.reference_attention, by the fastest means that takes these tensors on this machine.

    torch.compile is given the eager form, which it can see through.
    """
    if not torch.compiler.is_compiling() and compiled.suits(call) and compiled.library() is not None:
        if call.q.dtype != torch.float32 and call.mask is None:
            # The kernel's own precision is also the quicker one: torch's attention to bfloat16 on a CPU is slow.
            q, k, v = (x.float() for x in (call.q, call.k, call.v))
            return attention(replace(call, q=q, k=k, v=v)).to(call.q.dtype)
        radii = compiled.Radii.of(call.mu, call.sigma, call.breakpoints)
        if compiled.reaches(call.geometry, radii):
            if compiled.attends(call):
                return compiled.attention(call, radii.values)
            return turned_around(call, lambda bare: compiled.attention(bare, radii.values), turned)
    return turned_around(call, eager.attention, turned)


def turned(
    x: Float[Tensor, "b h nq d"], cos: Float[Tensor, "*b 1 nq n"], sin: Float[Tensor, "*b 1 nq n"]
) -> Float[Tensor, "b h nq d"]:
    """curved.modulate, in one pass where no gradient is wanted."""
    if not torch.compiler.is_compiling() and compiled.suits_turning(x, cos) and compiled.library() is not None:
        return compiled.turned(x, cos, sin)
    return modulate(x, cos, sin)
