"""The radial loss: what a predicted interval pays for missing the distance a teacher saw.

b clip   n token, in the grid's order (t y x)
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.radial.interval import LARGEST_SPREAD, SMALLEST_SPREAD, RadialInterval, straight_through_clamp


def radial_loss(
    predicted: RadialInterval,
    target: Float[Tensor, "b n"],
    valid: Bool[Tensor, "b n"],
    alpha: float = 1.0,
    floor: float = SMALLEST_SPREAD,
) -> Float[Tensor, " b"]:
    """|r - r_hat| / s + alpha log s, averaged over each clip's valid tokens; a clip with none gives zero.

    `predicted` is the head's own interval, never a substituted one; `target` is r_hat in near distances. Averaging a
    clip at a time keeps the loss the same however a batch is split over processes. s is at least `floor`: where sigma
    passes zero, the paper's 1e-3 lets a token's gradient grow to 1e5 times the others', a wider one does not.
    """
    spread = straight_through_clamp(predicted.spread.float(), floor, LARGEST_SPREAD)
    valid = valid & torch.isfinite(target)
    target = torch.where(valid, target, 1.0)  # else a NaN that nobody looks at would still spoil the gradient
    loss = (predicted.radius.float() - target).abs() / spread + alpha * spread.log()
    return torch.where(valid, loss, 0.0).sum(-1) / valid.sum(-1).clamp_min(1)


def supervised(rank: Float[Tensor, " b"], noisiest: float = 0.03) -> Bool[Tensor, " b"]:
    """Which clips of a batch the radial loss sees: all but the noisiest 3 % of timestep draws.

    `rank` is the uniform number a noise level was drawn from: 0.97 and over are the noisiest 3 %.
    """
    return rank < 1 - noisiest
