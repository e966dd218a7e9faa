"""Attention masks as scaled_dot_product_attention takes them, cut into the rows of a few queries at a time.

b batch   h head   nq query token   n key token
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.errors import InputError


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys a query may attend to (a bool), or what is added to its scores (floats); causal if there is none."""

    given: Bool[Tensor, "mb mh nq n"] | Float[Tensor, "mb mh nq n"] | None
    keys: int

    def rows(self, first: int, last: int, device: torch.device) -> Tensor:
        """The mask of the queries from `first` up to `last`."""
        if self.given is not None:
            return self.given[:, :, first:last]
        query, key = torch.arange(first, last, device=device), torch.arange(self.keys, device=device)
        return (key <= query[:, None])[None, None]

    @property
    def requires_grad(self) -> bool:
        return self.given is not None and self.given.requires_grad


def mask_of(attn_mask: Tensor | None, is_causal: bool, q: Tensor, k: Tensor) -> Mask | None:
    """What scaled_dot_product_attention's two arguments say; None where every query attends to every key."""
    if attn_mask is None:
        return Mask(None, k.shape[-2]) if is_causal else None
    if is_causal:
        raise InputError("attn_mask", "none beside is_causal=True", "both", "Put the triangle into the mask.")
    if attn_mask.dtype != torch.bool and not attn_mask.is_floating_point():
        raise InputError("attn_mask", "bools, or floats to add to the scores", attn_mask.dtype)
    whole = (*q.shape[:-1], k.shape[-2])
    if attn_mask.ndim > 4 or any(i not in (1, n) for i, n in zip(attn_mask.shape[::-1], whole[::-1], strict=False)):
        raise InputError("attn_mask", f"a shape that broadcasts to {whole}", tuple(attn_mask.shape))
    given = attn_mask if attn_mask.dtype == torch.bool else attn_mask.to(q.dtype)
    given = given[(None,) * (4 - given.ndim)]
    return Mask(given.expand(-1, -1, *whole[-2:]), k.shape[-2])
