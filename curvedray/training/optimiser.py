"""The optimisers of a run and their learning rate: AdamW, or Muon for the matrices of blocks and AdamW for the rest."""

import math

import torch
from torch import nn

from curvedray.training.muon import Muon
from curvedray.training.recipe import Recipe


def build_optimisers(recipe: Recipe, names: dict[nn.Parameter, str]) -> list[torch.optim.Optimizer]:
    """AdamW for everything, or Muon for the matrices of blocks and AdamW for the rest; only matrices decay."""
    own = recipe.optimiser
    matrices = [p for p, name in names.items() if p.ndim == 2 and ".weight" in name and name.startswith("blocks.")]
    chosen = set(matrices) if own.kind == "muon" else set()
    rest = [p for p in names if p not in chosen]
    groups = [
        {"params": [p for p in rest if p.ndim >= 2], "weight_decay": own.weight_decay},
        {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW([group for group in groups if group["params"]], lr=recipe.lr, betas=own.betas)
    ]
    if chosen:
        optimisers.append(Muon(matrices, lr=recipe.lr, weight_decay=own.weight_decay))
    return optimisers


def learning_rate(recipe: Recipe, step: int) -> float:
    """Up a straight line during the warm-up, then constant, or down to zero at the end along a line or a cosine."""
    warm = min(1.0, (step + 1) / max(1, recipe.warmup))
    along = max(0.0, (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup))
    fall = {"constant": 1.0, "linear": 1 - along, "cosine": (1 + math.cos(math.pi * along)) / 2}[recipe.decay]
    return recipe.lr * warm * fall
