"""The start of the embedded model: fit the codec's principal components to rendered clips.

    python experiments/embedded/codec.py -o runs/embedded/base.safetensors

Writes a whole embedded model whose transformer is still random: the base that the backbone's training starts from.
Prints the linear inverse's peak signal-to-noise ratio on validation clips; `decoder.py` trains what is added to it.
"""

import argparse
import logging
from pathlib import Path

import torch
from rich.progress import track
from torch import Tensor
from torch.nn.functional import mse_loss

from curvedray.media.pixels import video_from_frames
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, save_embedded
from curvedray.world.themes import WORDS
from curvedray.world.world import Split, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


def rendered(count: int, split: Split) -> tuple[Tensor, list[str]]:
    """Clips as (b 3 frames h w), bytes, and their captions."""
    clips = [world_clip(index, split) for index in track(range(count), f"rendering {split}")]
    return torch.stack([clip.video for clip in clips]).movedim(-1, 1), [clip.caption for clip in clips]


def in_unit_range(video: Tensor) -> Tensor:
    """Bytes as the model takes them, in [-1, 1]."""
    return video_from_frames(video.movedim(1, -1))


def decibels(video: Tensor, again: Tensor) -> float:
    """Peak signal-to-noise ratio of pixels in [-1, 1], over all clips at once."""
    return float(10 * torch.log10(4 / mse_loss(again.clamp(-1, 1), video)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--clips", type=int, default=1000)
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = EmbeddedModel(EmbeddedShape(WORDS, channels=options.channels))
    clips = (rendered(options.clips, "train")[0], rendered(64, "val")[0])
    video, held_out = (in_unit_range(some) for some in clips)
    model.codec.fit(video)
    model.measure(model.codec.encode(video))
    with torch.no_grad():
        log.info(
            "linear inverse: %.2f dB on 64 validation clips",
            decibels(held_out, model.codec.decode_linear(model.codec.encode(held_out))),
        )
    save_embedded(model, options.out)
    log.info("wrote %s", options.out)


if __name__ == "__main__":
    main()
