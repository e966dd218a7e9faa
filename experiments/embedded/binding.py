"""Does the backbone know which colour goes with which kind? Its loss with the right caption and with one exchanged.

    python experiments/embedded/binding.py

The same clip in the same noise is guessed with its own caption and with changed ones: another kind for every thing,
another colour, and, where kinds differ, the kinds of its things exchanged. That last one names the same colours and the
same kinds: only a model that binds them loses by it.
"""

import argparse
import logging
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from curvedray.evaluate.report import mean_text
from curvedray.media.pixels import video_from_frames
from curvedray.models.embedded.model import WEIGHTS, EmbeddedModel, load_embedded
from curvedray.models.flow import noised, velocity_target
from curvedray.tables import markdown_table
from curvedray.world.themes import COLOURS, Kind
from curvedray.world.world import world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
KINDS: tuple[str, ...] = get_args(Kind)
LEVELS = (0.5, 0.7, 0.85)  # of noise, where shapes are decided


def with_next(caption: str, words: tuple[str, ...]) -> str:
    """Every one of these words changed to the one after it."""
    after = dict(zip(words, (*words[1:], words[0]), strict=True))
    return " ".join(after.get(word, word) for word in caption.split())


def exchanged(caption: str) -> str:
    """The kinds of a caption's things, each moved on to the next thing."""
    kinds = [word for word in caption.split() if word in KINDS]
    moved = iter([*kinds[1:], *kinds[:1]])
    return " ".join(next(moved) if word in KINDS else word for word in caption.split())


def changes_of(caption: str) -> dict[str, str]:
    """Captions that are not the clip's, by what is wrong with them."""
    changed = {"another colour": with_next(caption, tuple(COLOURS)), "another kind": with_next(caption, KINDS)}
    return changed | ({"kinds exchanged": exchanged(caption)} if exchanged(caption) != caption else {})


@torch.no_grad()
def losses(model: EmbeddedModel, latents: Tensor, captions: list[str], random: torch.Generator) -> Tensor:
    """Of one clip's latents, with each caption, the mean over noise levels."""
    noise = torch.randn(latents.shape, generator=random)
    many, text = len(captions), model.encode_text(captions)
    found = torch.zeros(many)
    for level in LEVELS:
        sigma = torch.full((many,), level)
        seen = noised(latents.expand(many, *latents.shape[1:]), noise.expand(many, *noise.shape[1:]), sigma)
        error = model.velocity(seen, sigma, text) - velocity_target(latents, noise)
        found += error.square().flatten(1).mean(1) / len(LEVELS)
    return found


def gaps(model: EmbeddedModel, clips: int) -> dict[str, np.ndarray]:
    """By change of the caption, how much more is lost with it than with the clip's own; of validation clips."""
    random, found = torch.Generator().manual_seed(0), dict[str, list[float]]()
    for number in track(range(clips), "guessing"):
        clip = world_clip(number, "val")
        changed = changes_of(clip.caption)
        latents = model.encode(video_from_frames(clip.video[None]))
        own, *others = losses(model, latents, [clip.caption, *changed.values()], random).tolist()
        for name, other in zip(changed, others, strict=True):
            found.setdefault(name, []).append(other - own)
    return {name: np.array(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    parser.add_argument("--clips", type=int, default=160)
    options = parser.parse_args()
    found = gaps(load_embedded(options.model), options.clips)
    rows = [[name, str(len(i)), mean_text(i), f"{100 * (i > 0).mean():.0f} %"] for name, i in found.items()]
    log.info(markdown_table(["caption", "clips", "loss more than with the clip's own", "its own is better"], rows))


if __name__ == "__main__":
    main()
