"""The embedded model's text encoder: one vector per word of the world's small grammar, in its place and context."""

import logging
import re
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

log = logging.getLogger(__name__)
PADDING = 0  # the index that fills a caption up to its length
# Whose words a token also carries, in places of their own. A text encoder like Wan's says of every word what it belongs
# to; without that, "a red ball and a blue box" and "a red box and a blue ball" were the same to the transformer.
NEIGHBOURS = (-1, -2, 1)


class WordEncoder(nn.Module):
    """Captions -> (b, length, channels): a word and its place, then its neighbours. The empty caption is the
    unconditional one. Unknown words are left out, with a warning: `read_caption` corrects a caption beforehand.
    """

    word: Tensor
    place: Tensor  # one vector per position; files of weights know it by this name

    def __init__(self, words: Sequence[str], width: int = 64, length: int = 24, neighbours: int = len(NEIGHBOURS)):
        super().__init__()
        self.words, self.length, self.neighbours = tuple(words), length, NEIGHBOURS[:neighbours]
        self.index = {word: i for i, word in enumerate(self.words, start=PADDING + 1)}
        # Like Wan's, this encoder is never trained with the backbone: random directions are as far apart as any, and
        # the transformer's own text projection learns what they mean.
        draw = torch.Generator().manual_seed(0)
        self.register_buffer("word", torch.randn(len(self.words) + 1, width, generator=draw))
        self.register_buffer("place", torch.randn(length, width, generator=draw))

    @property
    def channels(self) -> int:
        """Of a token."""
        return (1 + len(self.neighbours)) * self.word.shape[1]

    def unknown(self, caption: str) -> list[str]:
        """Words of a caption that the model was never trained on."""
        return [word for word in split(caption) if word not in self.index]

    def forward(self, captions: Sequence[str]) -> Float[Tensor, "b length channels"]:
        rows = torch.full((len(captions), self.length), PADDING)
        for row, caption in zip(rows, captions, strict=True):
            unknown = self.unknown(caption)
            if unknown:
                log.warning("words the embedded model does not know, left out: %s", ", ".join(unknown))
            known = [self.index[word] for word in split(caption) if word in self.index]
            if len(known) > self.length:
                log.warning("the caption is longer than %d known words; the rest is left out", self.length)
            row[: len(known)] = torch.tensor(known[: self.length], dtype=torch.long)
        rows = rows.to(self.place.device)
        beyond = F.pad(rows, (self.length, self.length), value=PADDING)
        near = [self.word[beyond[:, self.length + step :][:, : self.length]] for step in self.neighbours]
        return torch.cat([self.word[rows] + self.place, *near], -1)


def split(caption: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return re.findall(r"[a-z0-9']+", caption.lower())
