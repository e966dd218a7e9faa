"""The training objective of one pass: random draws that depend on nothing but (seed, step, slot), and the losses.

    b clip of this pass   n token

A clip's slot is its number in the step's whole batch. Draws are made per slot, so neither resuming, nor the number of
processes, nor gradient accumulation changes them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.cameras import TokenGrid
from curvedray.data.clips import Batch
from curvedray.models.flow import noised, stratified_ranks, velocity_target
from curvedray.models.interface import VideoModel
from curvedray.radial.loss import radial_loss, supervised
from curvedray.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Draws:
    """What chance decides about the clips of a pass."""

    rank: Float[Tensor, " b"]  # of the noise level: 0.97 and over are the noisiest 3 %
    noise: Float[Tensor, "b c t h w"]  # of as many latent frames as the step sees
    without_text: Bool[Tensor, " b"]
    teacher: Bool[Tensor, "b n"] | None  # where MixForcing substitutes, validity aside

    def to(self, device: torch.device) -> "Draws":
        teacher = None if self.teacher is None else self.teacher.to(device)
        return Draws(self.rank.to(device), self.noise.to(device), self.without_text.to(device), teacher)


def generator_for(*numbers: int) -> torch.Generator:
    """A generator of its own for every tuple of numbers."""
    # A seed's sequence is padded with zeros: without its length, (1, 2) and (1, 2, 0) would be one stream.
    sequence = np.random.SeedSequence((len(numbers), *numbers))
    return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> 1))


def draw(recipe: Recipe, step: int, slots: Sequence[int], shape: tuple[int, ...], grid: TokenGrid) -> Draws:
    """The draws of some slots of a step's batch; `shape` is one clip's latents'."""
    of_step = generator_for(recipe.seed, step)
    rank = stratified_ranks(recipe.batch, of_step)
    without_text = torch.rand(recipe.batch, generator=of_step) < recipe.text_dropout
    teacher = None
    if recipe.mixforcing is not None:
        teacher = recipe.mixforcing.mask(step, recipe.steps, recipe.batch, grid, of_step)[list(slots)]
    seen = _frames_seen(recipe, of_step, shape[1])
    noise = [torch.randn(shape, generator=generator_for(recipe.seed, step, slot))[:, :seen] for slot in slots]
    return Draws(rank[list(slots)], torch.stack(noise), without_text[list(slots)], teacher)


def _frames_seen(recipe: Recipe, random: torch.Generator, frames: int) -> int:
    """How many latent frames of its clips a step sees, from the first on."""
    if not recipe.beginnings:
        return frames
    return min(frames, 1 + int(torch.multinomial(torch.tensor(recipe.beginnings), 1, generator=random)))


@contextmanager
def batch_in_view(
    recipe: Recipe, adapter: Adapter | None, batch: Batch, draws: Draws, grid: TokenGrid
) -> Iterator[None]:
    """The batch's cameras in the adapter's view until after backward, with the teacher's radii where forced."""
    if adapter is None:
        yield
        return
    radial = None
    if draws.teacher is not None and recipe.mixforcing is not None:
        radial = (batch.teacher(recipe.mixforcing.sigma), draws.teacher & batch.radius_known)
    with adapter.viewing(batch.cameras, grid=grid, radial=radial):
        yield


def losses(
    recipe: Recipe,
    model: VideoModel,
    adapter: Adapter | None,
    batch: Batch,
    draws: Draws,
    empty_text: Float[Tensor, "l e"],
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """Every clip's flow-matching error and radial loss; the radial one is zero where nothing supervises it."""
    sigma = recipe.timesteps.sigma(draws.rank)
    text = torch.where(draws.without_text[:, None, None], empty_text, batch.text)
    latents = batch.latents[:, :, : draws.noise.shape[2]]
    predicted = model.velocity(noised(latents, draws.noise, sigma), sigma, text)
    error = predicted.float() - velocity_target(latents, draws.noise)
    flow = error.square().flatten(1).mean(1)
    if adapter is None or not recipe.radial:
        return flow, torch.zeros_like(flow)
    target, known = batch.log_radius.exp(), batch.radius_known
    heads = [
        radial_loss(adapter.predictions[block], target, known, recipe.radial_alpha, recipe.radial_floor)
        for block in adapter.supervised_blocks
    ]
    radial = torch.stack(heads).mean(0)
    return flow, torch.where(supervised(draws.rank, recipe.noisiest), radial, 0.0)


def total_loss(flow: Float[Tensor, " b"], radial: Float[Tensor, " b"], radial_weight: float) -> Float[Tensor, ""]:
    """L = L_diff + lambda_rad L_rad, the mean over the clips of a pass."""
    return (flow + radial_weight * radial).mean()
