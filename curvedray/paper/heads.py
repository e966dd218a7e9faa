"""What the backbone's blocks and an adapter's radial head know of a test clip, at one noise level of it.

b clip   n token   d channel   t y x latent frame, row, column
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from curvedray.adapter.file import load_adapter
from curvedray.data.clips import Batch, Footage, batch_of, encoded
from curvedray.files import write_tensors
from curvedray.generation.sampling import noise_for
from curvedray.inputs import is_file, read_tensors
from curvedray.media.video import read_video
from curvedray.models.flow import noised
from curvedray.models.interface import VideoModel, self_attentions
from curvedray.paper.clips import TestClip, TestClips
from curvedray.paper.film import middle_of
from curvedray.paper.listener import Listener
from curvedray.paper.setting import Setting, key_of, weights_key

LEVEL = 0.8  # of noise: where a clip's layout is decided, and its content still to be guessed
NOISE_SEED = 10_000  # of the noise that test clips are hidden in


@dataclass(frozen=True, eq=False)
class HeadReading:
    """One clip's predicted intervals in the middle curved block, and its true radii, in near distances."""

    mu: Float[np.ndarray, "t y x"]
    sigma: Float[np.ndarray, "t y x"]
    target: Float[np.ndarray, "t y x"]  # log radius
    known: Bool[np.ndarray, "t y x"]


def encoded_clips(setting: Setting, model: VideoModel, tests: TestClips, clips: Sequence[TestClip]) -> Batch:
    """Test clips as the loss sees them: latents of the real video, cameras and radii in near distances."""
    found = []
    for clip in clips:
        video = read_video(tests.folder / "reference" / f"{clip.id}.mp4").frames
        radial = tests.map(clip) if tests.maps is not None else None
        footage = Footage(clip.id, clip.caption, video, tests.cameras(clip), radial, clip.near)
        found.append(encoded(footage, model, setting.shape))
    return batch_of(found).to(model.device)


def noise_of(setting: Setting, model: VideoModel, batch: Batch, first: int) -> Tensor:
    """The noise that a batch of test clips is hidden in, the same for every adapter and block."""
    noise = [noise_for(model, setting.grid, NOISE_SEED + first + i) for i in range(len(batch))]
    return torch.stack(noise).to(model.device)


def hidden(setting: Setting, model: VideoModel, batch: Batch, first: int, level: float) -> tuple[Tensor, Tensor]:
    """A batch's latents in noise of a level."""
    sigma = torch.full((len(batch),), level, device=model.device)
    return noised(batch.latents, noise_of(setting, model, batch, first), sigma), sigma


@contextmanager
def block_inputs(transformer: nn.Module) -> Iterator[deque[Float[Tensor, "b n d"]]]:
    """What each block's self-attention, and the adapter beside it, is given in the last pass of this block."""
    seen: deque[Tensor] = deque(maxlen=len(self_attentions(transformer)))

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append((args[0] if args else kwargs["hidden_states"]).detach().float())

    hooks = [i.register_forward_pre_hook(note, with_kwargs=True) for i in self_attentions(transformer)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def read_heads(
    setting: Setting, weights: Path, tests: TestClips, hears: Listener, level: float = LEVEL
) -> dict[str, HeadReading]:
    """The radial head's intervals of every test clip, read now or before."""
    made_of = [weights_key(weights), setting.model_key, tests.key, level]
    path = setting.folder("heads", f"{key_of(made_of)}.safetensors")
    if not is_file(path):
        model = setting.open_model()
        adapter = load_adapter(weights, model.transformer).eval().requires_grad_(False).to(model.device)
        adapter.attach(model.transformer)
        block = middle_of(adapter.supervised_blocks)
        assert block is not None, "a method that predicts radii"
        tensors: dict[str, Tensor] = {}
        size, grid = setting.scale.together, setting.grid
        for first in range(0, len(tests.clips), size):
            hears.tick(first, len(tests.clips), "reading radial heads")
            some = tests.clips[first : first + size]
            batch = encoded_clips(setting, model, tests, some)
            with adapter.viewing(batch.cameras, grid=grid):
                model.velocity(*hidden(setting, model, batch, first, level), batch.text)
            predicted = adapter.predictions[block]
            columns = (predicted.mu, predicted.sigma, batch.log_radius, batch.radius_known)
            for index, clip in enumerate(some):
                for name, column in zip(("mu", "sigma", "target", "known"), columns, strict=True):
                    tensors[f"{clip.id}/{name}"] = column[index].reshape(grid.frames, grid.rows, grid.cols)
        write_tensors(path, tensors)
    stored, _ = read_tensors(path)
    names = ("mu", "sigma", "target", "known")
    return {
        clip.id: HeadReading(*(stored[f"{clip.id}/{name}"].cpu().numpy() for name in names)) for clip in tests.clips
    }
