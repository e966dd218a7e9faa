"""What every way of computing curved-ray attention is handed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from curvedray.encoding.geometry import Geometry
from curvedray.encoding.masks import Mask


@dataclass(frozen=True, eq=False)
class Bearings:
    """The phasors of queries' own bearings, for every head, and what they turn: queries, and outputs back again."""

    cos: Float[Tensor, "*b 1 nq n"]  # contiguous, as all of them
    sin: Float[Tensor, "*b 1 nq n"]
    sin_back: Float[Tensor, "*b 1 nq n"]  # sin negated
    turn_queries: bool
    turn_out: bool

    @property
    def batch(self) -> int:
        return self.cos.shape[0] if self.cos.ndim == 4 else 1


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
    own: Bearings | None = None


def turned_around(call: Call, attend: Callable[[Call], Tensor], turned: Callable[..., Tensor]) -> Tensor:
    """`attend`, which knows nothing of queries' own bearings, with queries turned before it and outputs after it."""
    own, bare = call.own, replace(call, own=None)
    if own is None:
        return attend(bare)
    if own.turn_queries:
        bare = replace(bare, q=turned(bare.q, own.cos, own.sin))
    out = attend(bare)
    return turned(out, own.cos, own.sin_back) if own.turn_out else out
