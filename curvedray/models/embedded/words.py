"""The embedded model's text encoder: one vector a word of the world's small grammar, plus one for its place."""

import logging
import re
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

log = logging.getLogger(__name__)


class WordEncoder(nn.Module):
    """Captions -> (b, length, width). The empty caption is the unconditional one; unknown words are named aloud."""

    word: Tensor
    place: Tensor

    def __init__(self, words: Sequence[str], width: int = 64, length: int = 24):
        super().__init__()
        self.words, self.length = tuple(words), length
        self.index = {word: i for i, word in enumerate(self.words, start=1)}  # 0 is the silence after a caption
        # Like Wan's, this encoder is never trained with the backbone: random directions are as far apart as any, and
        # the transformer's own text projection learns what they mean.
        draw = torch.Generator().manual_seed(0)
        self.register_buffer("word", torch.randn(len(self.words) + 1, width, generator=draw))
        self.register_buffer("place", torch.randn(length, width, generator=draw))

    def unknown(self, caption: str) -> list[str]:
        """Words of a caption that the model has never heard."""
        return [word for word in split(caption) if word not in self.index]

    def forward(self, captions: Sequence[str]) -> Float[Tensor, "b length width"]:
        rows = torch.zeros(len(captions), self.length, dtype=torch.long)
        for row, caption in zip(rows, captions, strict=True):
            unknown = self.unknown(caption)
            if unknown:
                log.warning("words the embedded model does not know, and passes over: %s", ", ".join(unknown))
            known = [self.index[word] for word in split(caption) if word in self.index]
            if len(known) > self.length:
                log.warning("the caption is longer than %d known words; the rest is passed over", self.length)
            row[: len(known)] = torch.tensor(known[: self.length], dtype=torch.long)
        return self.word[rows.to(self.place.device)] + self.place


def split(caption: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return re.findall(r"[a-z0-9']+", caption.lower())
