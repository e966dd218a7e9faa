"""Clips of the procedural world as latents of the embedded model, with what is true of them: the estimator's lessons.

Rendered once, in parts that are kept, so that a stopped run goes on where it was. Latents depend on the codec's
components only, which are fitted before anything is trained.

    n clip   c latent channel   t latent frame   y x latent pixel
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from rich.progress import track
from torch import Tensor

from curvedray.evaluate.estimators.clip_reader import POSITION_IN_MIRROR, SHIFT_IN_MIRROR, TURN_IN_MIRROR
from curvedray.evaluate.world_truth import KnownClips
from curvedray.files import write_tensors
from curvedray.inputs import read_tensors
from curvedray.media.pixels import video_from_frames
from curvedray.models.embedded.codec import PatchComponents
from curvedray.models.embedded.model import EmbeddedModel
from curvedray.world.world import Split, world_clip

PART = 500  # clips per file


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is shown, and what is true of it."""

    latents: Tensor  # n c t y x; kept in half precision
    truth: KnownClips

    def __getitem__(self, rows: Tensor) -> "Lessons":
        return Lessons(self.latents[rows], self.truth[rows])


def render_lessons(model: EmbeddedModel, first: int, count: int, split: Split, folder: Path) -> Lessons:
    """Clips first .. first + count of a split, rendered now or before."""
    codec = hashlib.sha256(b"".join(b.numpy().tobytes() for b in model.codec.buffers())).hexdigest()[:8]
    parts = []
    for start in track(range(first, first + count, PART), f"rendering {split}"):
        number = min(PART, first + count - start)
        path = folder / f"{split}-{start}-{number}-{codec}.safetensors"
        if not path.exists():
            write_part(path, model, range(start, start + number), split)
        parts.append(read_tensors(path)[0])
    return joined(parts)


def write_part(path: Path, model: EmbeddedModel, numbers: range, split: Split) -> None:
    clips = [world_clip(number, split) for number in numbers]
    latents = torch.stack([model.encode(video_from_frames(clip.video)[None])[0].half() for clip in clips])
    truth = KnownClips.of(clips)
    write_tensors(path, {"latents": latents} | {field.name: getattr(truth, field.name) for field in fields(truth)})


def joined(parts: Sequence[dict[str, Tensor]]) -> Lessons:
    columns = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return Lessons(columns.pop("latents"), KnownClips(**columns))


def mirrored(lessons: Lessons, codec: PatchComponents) -> Lessons:
    """The same clips in a mirror, left for right: the world has no handedness, so they are lessons too."""
    truth = lessons.truth
    return Lessons(
        codec.encode(codec.decode_linear(lessons.latents).flip(-1)),
        replace(
            truth,
            turn=truth.turn * torch.tensor(TURN_IN_MIRROR),
            shift=truth.shift * torch.tensor(SHIFT_IN_MIRROR),
            log_radius=truth.log_radius.flip(-1),
            known=truth.known.flip(-1),
            position=truth.position * torch.tensor(POSITION_IN_MIRROR),
        ),
    )
