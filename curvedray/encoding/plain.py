"""Plain attention in the form that is quickest where it runs.

b batch   h head   n m query, key   d channel
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def plain_attention(
    q: Float[Tensor, "b h n d"], k: Float[Tensor, "b h m d"], v: Float[Tensor, "b h m dv"]
) -> Float[Tensor, "b h n dv"]:
    """Torch's scaled dot-product attention; but in bfloat16 on a CPU two products, which take half its time there."""
    if v.dtype != torch.bfloat16 or v.device.type != "cpu":
        return F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v)
    with torch.autocast("cpu", enabled=False):
        scores = (q * q.shape[-1] ** -0.5).to(v.dtype) @ k.to(v.dtype).transpose(-1, -2)
        return scores.softmax(-1) @ v
