"""What a video model is to the other rooms: one small interface that Wan and the embedded model both implement.

b clip   c latent channel   t frame   lt lh lw latent frame, row, column   l text token   e text channel
Noise levels run from 0 (the video) to 1 (noise): x = (1 - sigma) clean + sigma noise, velocity = noise - clean.
Videos are floats in [-1, 1], shaped (b, 3, t, h, w).
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError

SAMPLES_PER_TENSOR = 32


@dataclass(frozen=True)
class Defaults:
    """What a model was made for: the settings generation takes when the user names none."""

    frames: int
    height: int
    width: int
    steps: int
    guidance: float
    fps: int
    negative: str = ""
    camera_guidance: float = 1.0
    drop_text: bool = False  # whether camera guidance guides towards the text too
    block_guidance: float = 1.0
    left_out: int = 9  # the block that block guidance goes without, of Wan's 30; not tried with Wan's weights
    zoom: int = 1  # how many times larger its videos are written, so that a person can see them


@runtime_checkable
class VideoModel(Protocol):
    """A text-to-video flow model with a transformer of blocks that hold an `attn1`."""

    name: str  # what `--model` was given; empty for the embedded model
    transformer: nn.Module
    shift: float  # of the noise levels its sampler visits
    text_tokens: int  # that every prompt is padded to
    defaults: Defaults

    @property
    def device(self) -> torch.device: ...

    def grid_for(self, frames: int, height: int, width: int) -> TokenGrid: ...

    def latent_shape(self, grid: TokenGrid) -> tuple[int, int, int, int]:
        """Channels, frames, rows and columns of one clip's latents."""
        ...

    def encode_text(self, prompts: list[str]) -> Float[Tensor, "b l e"]: ...

    def encode(self, video: Float[Tensor, "b 3 t h w"]) -> Float[Tensor, "b c lt lh lw"]: ...

    def decode(self, latents: Float[Tensor, "b c lt lh lw"]) -> Float[Tensor, "b 3 t h w"]: ...

    def velocity(
        self, latents: Float[Tensor, "b c lt lh lw"], sigma: Float[Tensor, " b"], text: Float[Tensor, "b l e"]
    ) -> Float[Tensor, "b c lt lh lw"]: ...

    def release(self, *, text: bool = False, vae: bool = False) -> None:
        """Free parts that are no longer needed once texts or videos are encoded; using them then is refused."""
        ...


@dataclass(frozen=True)
class BaseIdentity:
    """Which transformer an adapter belongs to: its class, its config, and a fingerprint of its weights."""

    model: str
    dim: int
    depth: int
    config: str
    weights: str | None  # None on the meta device, where there are none

    @classmethod
    def of(cls, transformer: nn.Module) -> "BaseIdentity":
        """Computed anew at every call, some milliseconds, so that a changed weight never goes unnoticed: ask once."""
        stored = dict(getattr(transformer, "config", {}))
        settings = {key: value for key, value in stored.items() if not key.startswith("_")}
        config = hashlib.sha256(json.dumps(settings, sort_keys=True, default=list).encode()).hexdigest()[:16]
        attentions = self_attentions(transformer)
        dim, weights = int(attentions[0].to_q.in_features), weights_fingerprint(transformer)
        return cls(stored.get("_class_name", type(transformer).__name__), dim, len(attentions), config, weights)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def self_attentions(transformer: nn.Module) -> list[Any]:
    """The `attn1` of every block of a transformer built as Wan's is."""
    blocks = getattr(transformer, "blocks", None)
    found = [getattr(block, "attn1", None) for block in blocks] if isinstance(blocks, nn.ModuleList) else []
    if not found or not all(isinstance(attention, nn.Module) for attention in found):
        raise InputError("transformer", "a model with `blocks` that each hold an `attn1`", type(transformer).__name__)
    return found


@contextmanager
def without_block(transformer: Any, index: int) -> Iterator[None]:
    """The transformer runs without one of its blocks while this lasts."""
    blocks = transformer.blocks
    if not 0 <= index < len(blocks):
        raise InputError("left_out", f"a block from 0 to {len(blocks) - 1}", index)
    transformer.blocks = nn.ModuleList([block for number, block in enumerate(blocks) if number != index])
    try:
        yield
    finally:
        transformer.blocks = blocks


@torch.no_grad()
def weights_fingerprint(transformer: nn.Module) -> str | None:
    """A hash of a few values of every tensor, rounded to bfloat16, so that it is one for all loading dtypes.

    It tells checkpoints apart in a moment; it is no proof that nobody tampered with them.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(transformer.state_dict().items()):
        if tensor.is_meta:
            return None
        flat = tensor.detach().reshape(-1)
        step = max(1, flat.numel() // SAMPLES_PER_TENSOR)
        sample = flat[::step][:SAMPLES_PER_TENSOR].to(torch.bfloat16).view(torch.int16).cpu()
        digest.update(f"{name}{tuple(tensor.shape)}".encode() + sample.numpy().tobytes())
    return digest.hexdigest()[:16]
