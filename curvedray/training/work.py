"""The operations of a training step, by where they go, counted from shapes.

A product with a frozen weight needs one product in backward, for the gradient of its input; one with a trained weight
needs two. Attention needs four for its two: for the gradients of queries, keys, values and of its own weights.
"""

from dataclasses import dataclass

from torch import nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import adapter_operations, backbone_operations
from curvedray.cameras import TokenGrid
from curvedray.models.interface import self_attentions
from curvedray.training.recipe import Recipe


@dataclass(frozen=True)
class Work:
    """Multiplications and additions of one clip in one step."""

    linear: float  # the backbone's matrix products, forward
    attention: float  # its self-attention and attention to the text, forward
    adapter: float  # all of the adapter, forward
    backward: float
    again: float  # the forward pass once more, of gradient checkpointing

    @classmethod
    def of(
        cls, recipe: Recipe, transformer: nn.Module, adapter: Adapter | None, grid: TokenGrid, text_tokens: int
    ) -> "Work":
        forward = backbone_operations(transformer, grid, text_tokens)
        widths = [attention.to_q.out_features for attention in self_attentions(transformer)]
        attention = sum(4.0 * grid.tokens * (grid.tokens + text_tokens) * width for width in widths)
        added = 0.0 if adapter is None else adapter_operations(adapter, grid)
        linear = forward - attention
        backward = linear * (1 if adapter is not None else 2) + 2 * attention + 2 * added
        return cls(linear, attention, added, backward, (forward + added) * recipe.gradient_checkpointing)

    @property
    def forward(self) -> float:
        """Of the backbone alone."""
        return self.linear + self.attention

    @property
    def total(self) -> float:
        return self.forward + self.adapter + self.backward + self.again
