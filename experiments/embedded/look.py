"""A look at a backbone while it trains: what its averaged weights make of a few captions, and those weights as a model.

    python experiments/embedded/look.py runs/embedded/beginnings --model runs/embedded/base.safetensors -o look.png \
        --weights begun.safetensors

No adapter, no trained decoder: latents through the linear inverse, so patches show. With `--frames 1` it is pictures.
"""

import argparse
import logging
from pathlib import Path

import torch
from torch import Tensor

from curvedray.errors import InputError
from curvedray.generation.sampling import noise_for
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet
from curvedray.media.pixels import frames_from_video
from curvedray.models.embedded.codec import TIME
from curvedray.models.embedded.model import EmbeddedModel, load_embedded, save_embedded
from curvedray.models.flow import sampling_sigmas, unipc
from curvedray.training.checkpoints import latest_checkpoint

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
CAPTIONS = (
    "a red ball and a blue box in a desert courtyard",
    "a green pillar and a white ball and a purple box in a snowy courtyard",
    "a yellow box in a garden courtyard",
    "an orange ball and a blue pillar in a night courtyard",
    "a white box and a red pillar in a seaside courtyard",
    "a purple ball in a sunset courtyard",
)
GUIDANCE, STEPS, SHIFT, ZOOM = 2.0, 20, 6.0, 3


def averaged_model(run: Path, start: Path) -> tuple[EmbeddedModel, int]:
    """The model a run trains, with the average of its weights at the newest checkpoint; and that checkpoint's step."""
    model, checkpoint = load_embedded(start), latest_checkpoint(run / "checkpoints")
    if checkpoint is None or not checkpoint.average:
        raise InputError(str(run), "a checkpoint with averaged weights", "none")
    model.transformer.load_state_dict(checkpoint.average)
    model.card = {"recipe": checkpoint.recipe, "step": checkpoint.step, "before": model.card}
    return model, checkpoint.step


@torch.no_grad()
def filmed(model: EmbeddedModel, frames: int) -> Tensor:
    """Every caption's video, from noise of its own number, guided by its text."""
    own = model.defaults
    grid = model.grid_for(1 + TIME * (frames - 1), own.height, own.width)
    noise = torch.stack([noise_for(model, grid, number) for number in range(len(CAPTIONS))])
    text, empty = model.encode_text(list(CAPTIONS)), model.encode_text([""] * len(CAPTIONS))

    def velocity(x: Tensor, level: Tensor) -> Tensor:
        sigma = level.reshape(1).expand(len(x))
        without = model.velocity(x, sigma, empty)
        return without + GUIDANCE * (model.velocity(x, sigma, text) - without)

    latents = unipc(velocity, noise, sampling_sigmas(STEPS, SHIFT))
    return frames_from_video(model.codec.decode_linear(latents).clamp(-1, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a backbone's training")
    parser.add_argument("--model", type=Path, required=True, help="what the run started from")
    parser.add_argument("--frames", type=int, default=5, help="latent frames")
    parser.add_argument("--weights", type=Path, help="also write the averaged weights as a model")
    parser.add_argument("-o", "--out", type=Path, required=True, help="the picture")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, step = averaged_model(options.run, options.model)
    shown = filmed(model, options.frames)[:, ::TIME].flatten(0, 1)
    labels = [caption if frame == 0 else "" for caption in CAPTIONS for frame in range(options.frames)]
    enlarged = shown.repeat_interleave(ZOOM, 1).repeat_interleave(ZOOM, 2)
    write_png(contact_sheet(enlarged, options.frames, labels), options.out)
    if options.weights:
        save_embedded(model, options.weights)
    log.info("step %d: %s", step, options.out)


if __name__ == "__main__":
    main()
