"""Train the decoder's correction of an embedded model, on the noisy latents a sampler may leave.

    python experiments/embedded/decoder.py --model runs/embedded/base.safetensors -o runs/embedded/decoder.safetensors

Latents do not depend on it, so it may be trained before or after the transformer. Prints the decoder's peak
signal-to-noise ratio on validation clips: of the linear inverse, and with the correction.
"""

import argparse
import logging
from pathlib import Path

import torch
from codec import decibels, rendered
from rich.progress import track
from torch import Tensor
from torch.nn.functional import mse_loss

from curvedray.models.embedded.model import EmbeddedModel, load_embedded, save_embedded

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
LARGEST_NOISE = 0.25  # on latents, in training


def train_correction(model: EmbeddedModel, video: Tensor, steps: int, batch: int, seed: int) -> None:
    """Squared error on noisy latents, a linear decay from 2e-3."""
    generator = torch.Generator().manual_seed(seed)
    latents = model.codec.encode(video)
    parameters = list(model.codec.correction.requires_grad_(True).parameters())
    optimiser = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.01)
    for step in track(range(steps), "training the decoder"):
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * (1 - step / steps)
        chosen = torch.randint(len(video), (batch,), generator=generator)
        level = torch.rand(batch, 1, 1, 1, 1, generator=generator) * LARGEST_NOISE
        noise = torch.randn(latents[chosen].shape, generator=generator)
        loss = mse_loss(model.codec.decode(latents[chosen] + level * noise), video[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            log.info("step %d, loss %.5f", step, loss.item())


@torch.no_grad()
def report(model: EmbeddedModel, held_out: Tensor) -> None:
    latents = model.codec.encode(held_out)
    noise = torch.randn(latents.shape, generator=torch.Generator().manual_seed(1))
    for level in (0.0, 0.15):
        noisy = latents + level * noise
        log.info(
            "noise of %.2f on the latents: linear %.2f dB, with the correction %.2f dB",
            level,
            decibels(held_out, model.codec.decode_linear(noisy)),
            decibels(held_out, model.codec.decode(noisy)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--clips", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    model = load_embedded(options.model)
    train_correction(model, rendered(options.clips, "train"), options.steps, options.batch, options.seed)
    report(model, rendered(64, "val"))
    save_embedded(model, options.out)
    log.info("wrote %s", options.out)


if __name__ == "__main__":
    main()
