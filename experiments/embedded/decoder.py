"""Train what an embedded model's decoder adds to the linear inverse of its latents.

    python experiments/embedded/decoder.py --model runs/embedded/backbone/embedded.safetensors \
        -o runs/embedded/embedded.safetensors

It learns from the backbone's own guesses: a clip's latents are noised, the backbone says in a few steps what they were,
and the decoder paints the true clip from that. Such guesses have the errors that a sampler leaves, and are aligned with
the truth, so that edges can be learned where a guess is soft. Prints the peak signal-to-noise ratio on validation
clips, and how sharp edges are and how much of a grid is left, relative to the clips themselves.
"""

import argparse
import logging
from dataclasses import replace
from pathlib import Path

import torch
from codec import decibels, in_unit_range, rendered
from rich.progress import track
from torch import Generator, Tensor
from torch.nn.functional import l1_loss

from curvedray.evaluate.metrics.sharpness import border_energy, edge_sharpness
from curvedray.media.pixels import frames_from_video
from curvedray.models.embedded.codec import SPACE
from curvedray.models.embedded.model import EmbeddedModel, load_embedded, save_embedded
from curvedray.models.flow import noised
from curvedray.training.precision import quick_precision

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
NOISE = (0.05, 0.85)  # levels from which the backbone guesses
STEPS = 3  # at most: one guess is soft, several are as sharp as a sampler's, and as wrong at the borders of patches
CLEAN = 0.2  # share of the clips whose latents are taken as they are


def with_painter(model: EmbeddedModel, painted: int) -> EmbeddedModel:
    """The same model whose decoder ends in untrained layers on pixels; with 0, without any."""
    other = EmbeddedModel(replace(model.shape, painted=painted))
    own = other.state_dict()
    kept = {name: value for name, value in model.state_dict().items() if own.get(name, value[:0]).shape == value.shape}
    other.load_state_dict(kept, strict=False)
    other.card = model.card
    return other


@torch.no_grad()
def guesses(model: EmbeddedModel, latents: Tensor, text: Tensor, random: Generator) -> Tensor:
    """What the backbone takes noisy latents for, in one step or a few; some are left as they are."""
    level = NOISE[0] + (NOISE[1] - NOISE[0]) * torch.rand(len(latents), generator=random)
    level = level * (torch.rand(len(latents), generator=random) >= CLEAN)
    noise = torch.randn(latents.shape, generator=random)
    steps = int(torch.randint(1, STEPS + 1, (), generator=random))
    return torch.where(level.reshape(-1, 1, 1, 1, 1) > 0, guessed(model, latents, noise, level, text, steps), latents)


def guessed(
    model: EmbeddedModel, latents: Tensor, noise: Tensor, level: Tensor, text: Tensor, steps: int = 1
) -> Tensor:
    """Noised to a level, and taken back to none in equal steps."""
    found = noised(latents, noise, level)
    for step in range(steps):
        velocity = model.velocity(found, level * (1 - step / steps), text)
        found = found - level.reshape(-1, 1, 1, 1, 1) / steps * velocity.float()
    return found


def painting_loss(painted: Tensor, video: Tensor) -> Tensor:
    """Absolute error of pixels, and of their differences to the next, which is where an edge is. Differences across the
    borders of patches, an eighth of them, count as much as all the others."""
    loss = l1_loss(painted, video)
    for axis in (-1, -2):
        apart = (painted.diff(dim=axis) - video.diff(dim=axis)).abs().movedim(axis, 0)
        on_border = torch.arange(1, len(apart) + 1) % SPACE == 0
        loss = loss + apart[on_border].mean() + apart[~on_border].mean()
    return loss


def train_decoder(model: EmbeddedModel, video: Tensor, captions: list[str], options: argparse.Namespace) -> None:
    """A linear decay from 2e-3."""
    random = Generator().manual_seed(options.seed)
    text = model.encode_text(captions)
    layers = [layer for layer in (model.codec.correction, model.codec.paint) if layer is not None]
    parameters = [p for layer in layers for p in layer.requires_grad_(True).parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.01)
    quick = torch.autocast("cpu", torch.bfloat16, enabled=quick_precision() == "bf16")
    for step in track(range(options.steps), "training the decoder"):
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1, (step + 1) / 50) * (1 - step / options.steps)
        chosen = torch.randint(len(video), (options.batch,), generator=random)
        true = in_unit_range(video[chosen])
        latents = model.codec.encode(true)
        with quick:
            guess = guesses(model, latents, text[chosen], random)
            painted = model.codec.decode(guess.float())
        loss = painting_loss(painted.float(), true)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if step % 50 == 0:
            log.info("step %d, loss %.5f", step, loss.item())


@torch.no_grad()
def report(model: EmbeddedModel, video: Tensor, captions: list[str]) -> None:
    true = in_unit_range(video)
    latents, text, random = model.codec.encode(true), model.encode_text(captions), Generator().manual_seed(1)
    for level, steps in ((0.0, 1), (0.3, 1), (0.6, 1), (0.8, 3)):
        sigma, noise = torch.full((len(true),), level), torch.randn(latents.shape, generator=random)
        guess = guessed(model, latents, noise, sigma, text, steps) if level else latents
        linear, painted = model.codec.decode_linear(guess), model.codec.decode(guess)
        log.info(
            "guessed from noise %.1f in %d: linear %.2f dB, %s; decoder %.2f dB, %s",
            *(level, steps),
            *(decibels(true, linear), crispness(linear, true)),
            *(decibels(true, painted), crispness(painted, true)),
        )


def crispness(shown: Tensor, true: Tensor) -> str:
    """Edges and borders of patches relative to the true clips."""
    both = [frames_from_video(video.clamp(-1, 1)).numpy() for video in (shown, true)]
    edges = [sum(edge_sharpness(clip) for clip in clips) for clips in both]
    borders = [sum(border_energy(clip, SPACE) for clip in clips) for clips in both]
    return f"edges {edges[0] / edges[1]:.2f}, borders {borders[0] / borders[1]:.2f} of the true clips'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--painted", type=int, default=16, help="channels per pixel of the last layers; 0: none")
    parser.add_argument("--clips", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = with_painter(load_embedded(options.model), options.painted).requires_grad_(False)
    train_decoder(model, *rendered(options.clips, "train"), options)
    report(model, *rendered(64, "val"))
    save_embedded(model, options.out)
    log.info("wrote %s", options.out)


if __name__ == "__main__":
    main()
