"""Muon in float32: momentum, made orthogonal, for the matrices of a transformer (Jordan et al. 2024).

torch's own works in bfloat16, which is slow on CPUs without it.
"""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.training.sharding import split_like, whole

QUINTIC = (3.4445, -4.7750, 2.0315)  # of the iteration; chosen for speed near zero, so values end in [0.7, 1.2]


def orthogonal(matrix: Float[Tensor, "rows cols"], rounds: int = 5) -> Float[Tensor, "rows cols"]:
    """Nearly U V^T of a matrix U S V^T, by Newton-Schulz on its shorter side."""
    a, b, c = QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.mT if tall else matrix) / (matrix.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum made orthogonal. Steps are scaled to AdamW's usual size: one learning rate fits both."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float = 1e-3, momentum: float = 0.95, weight_decay: float = 0.0
    ):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None, "the loop computes gradients itself"
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                momentum = state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
                # Orthogonality is of a whole matrix: one that is split over processes is gathered for it.
                update = orthogonal(whole(parameter.grad.lerp(momentum, group["momentum"])))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(split_like(update, parameter), alpha=-group["lr"] * 0.2 * max(parameter.shape) ** 0.5)
