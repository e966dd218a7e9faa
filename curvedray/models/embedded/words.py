"""The embedded model's text encoder: one vector per word of the world's small grammar, plus one for its position."""

import logging
import re
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

log = logging.getLogger(__name__)
PADDING = 0  # the index that fills a caption up to its length


class WordEncoder(nn.Module):
    """Captions -> (b, length, width). The empty caption is the unconditional one. Unknown words are left out, with a
    warning: `known.read_caption` corrects a caption before it comes here.
    """

    word: Tensor
    place: Tensor  # one vector per position; files of weights know it by this name

    def __init__(self, words: Sequence[str], width: int = 64, length: int = 24):
        super().__init__()
        self.words, self.length = tuple(words), length
        self.index = {word: i for i, word in enumerate(self.words, start=PADDING + 1)}
        # Like Wan's, this encoder is never trained with the backbone: random directions are as far apart as any, and
        # the transformer's own text projection learns what they mean.
        draw = torch.Generator().manual_seed(0)
        self.register_buffer("word", torch.randn(len(self.words) + 1, width, generator=draw))
        self.register_buffer("place", torch.randn(length, width, generator=draw))

    def unknown(self, caption: str) -> list[str]:
        """Words of a caption that the model was never trained on."""
        return [word for word in split(caption) if word not in self.index]

    def forward(self, captions: Sequence[str]) -> Float[Tensor, "b length width"]:
        rows = torch.full((len(captions), self.length), PADDING)
        for row, caption in zip(rows, captions, strict=True):
            unknown = self.unknown(caption)
            if unknown:
                log.warning("words the embedded model does not know, left out: %s", ", ".join(unknown))
            known = [self.index[word] for word in split(caption) if word in self.index]
            if len(known) > self.length:
                log.warning("the caption is longer than %d known words; the rest is left out", self.length)
            row[: len(known)] = torch.tensor(known[: self.length], dtype=torch.long)
        return self.word[rows.to(self.place.device)] + self.place


def split(caption: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return re.findall(r"[a-z0-9']+", caption.lower())
