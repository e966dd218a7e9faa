"""The same embedded model with tokens of another size, so that it can be trained coarsely first.

    python experiments/embedded/patches.py runs/embedded/base.safetensors --patch 2 -o runs/embedded/coarse.safetensors

A patch of 2 x 2 latents gives a quarter of the tokens, and a step of training takes a quarter of the time. What blocks
learn of colours, layouts and motion at that size they keep: only the first and the last layer belong to a patch.
"""

import argparse
import logging
import os
from dataclasses import replace
from pathlib import Path

import torch
from einops import rearrange, reduce, repeat
from torch import Tensor

from curvedray.data.cache import ENCODER
from curvedray.models.embedded.model import EmbeddedModel, load_embedded, save_embedded

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


def with_patch(model: EmbeddedModel, patch: int) -> EmbeddedModel:
    """A model whose tokens are patch x patch latents, exact where the latents of every patch are equal."""
    other = EmbeddedModel(replace(model.shape, patch=patch))
    weights = model.state_dict()
    embedding, head = "transformer.patch_embedding.weight", "transformer.proj_out"
    summed = reduce(weights[embedding], "d c 1 j k -> d c", "sum")  # what a patch of equal latents is embedded as
    weights[embedding] = repeat(summed / patch**2, "d c -> d c 1 j k", j=patch, k=patch)
    for name in (f"{head}.weight", f"{head}.bias"):
        weights[name] = _spread(weights[name], model.shape.patch**2, patch**2)
    other.load_state_dict(weights)
    other.card = model.card
    return other


def _spread(rows: Tensor, before: int, after: int) -> Tensor:
    """The last layer's rows for each place in a patch: the mean of what they were, for every one of the new places."""
    mean = rearrange(rows, "(place c) ... -> place c ...", place=before).mean(0)
    return torch.cat([mean] * after)


def link_latents(cache: Path, other: Path) -> None:
    """A second cache with the same clips, for the model of the other patch.

    Latents and texts do not depend on tokens. Radii do, so it serves a backbone's training, which takes none, alone.
    """
    other.mkdir(parents=True, exist_ok=True)
    for clip in cache.glob("*.safetensors"):
        if clip.name != ENCODER and not (other / clip.name).exists():
            os.link(clip, other / clip.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--patch", type=int, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--caches", type=Path, nargs=2, metavar=("FROM", "TO"), help="link a cache's latents too")
    options = parser.parse_args()
    if options.caches:
        link_latents(*options.caches)
    model = with_patch(load_embedded(options.model), options.patch)
    save_embedded(model, options.out)
    log.info("wrote %s, %d x %d latents per token", options.out, options.patch, options.patch)


if __name__ == "__main__":
    main()
