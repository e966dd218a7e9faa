"""Clips of the procedural world as latents of the embedded model, and what is true of them: the estimator's lessons.

Rendered once, in parts that are kept, so that a stopped run goes on where it was. Latents depend on the codec's
components only, which are fitted before anything is trained.

    n clip   c latent channel   t latent frame   y x latent pixel or token   s place in the caption
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import torch
from rich.progress import track
from safetensors.torch import load_file, save_file
from scipy.spatial.transform import Rotation
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.evaluate.estimators.clip_reader import GRID, PLACES
from curvedray.files import whole_file
from curvedray.media.pixels import video_from_frames
from curvedray.models.embedded.model import EmbeddedModel
from curvedray.radial.map import RadialMap
from curvedray.world.scene import Kind
from curvedray.world.themes import COLOURS, THEMES
from curvedray.world.world import Split, WorldClip, WorldScene, world_clip

KINDS = get_args(Kind)
PART = 500  # clips a file


@dataclass(frozen=True, eq=False)
class Truths:
    """What is shown and what is true of it, row by row."""

    latents: Tensor  # n c t y x
    turn: Tensor  # n t 3: rotation vector of each latent frame's camera from the first
    shift: Tensor  # n t 3: metres
    fov: Tensor  # radians
    xi: Tensor
    log_radius: Tensor  # n t y x, on the token grid, metres
    known: Tensor  # which of those are
    theme: Tensor
    colour: Tensor  # n s; the class after the last is "nothing there"
    kind: Tensor

    def __getitem__(self, rows: Tensor | slice) -> "Truths":
        return Truths(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.latents)


def rendered_truths(model: EmbeddedModel, first: int, count: int, split: Split, folder: Path) -> Truths:
    """Clips first .. first + count of a split."""
    codec = hashlib.sha256(b"".join(b.numpy().tobytes() for b in model.codec.buffers())).hexdigest()[:8]
    parts = []
    for start in track(range(first, first + count, PART), f"rendering {split}"):
        number = min(PART, first + count - start)
        path = folder / f"{split}-{start}-{number}-{codec}.safetensors"
        if not path.exists():
            save([rendered(world_clip(index, split), model) for index in range(start, start + number)], path)
        parts.append(load(path))
    return joined(parts)


def joined(parts: Sequence[Truths]) -> Truths:
    return Truths(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Truths)))


def save(rows: Sequence[tuple[Tensor, ...]], path: Path) -> None:
    columns = dict(zip((field.name for field in fields(Truths)), zip(*rows, strict=True), strict=True))
    with whole_file(path) as temporary:
        save_file({name: torch.stack(column) for name, column in columns.items()}, temporary)


def load(path: Path) -> Truths:
    return Truths(**load_file(path))


def rendered(clip: WorldClip, model: EmbeddedModel) -> tuple[Tensor, ...]:
    video = video_from_frames(clip.video)[None]
    return truth_of(model.encode(video)[0], clip.world, clip.cameras, *radii_of(clip))


def radii_of(clip: WorldClip) -> tuple[Tensor, Tensor]:
    """Log metres on the token grid, and which of them are known."""
    interval, known = RadialMap.from_metric(clip.radius, clip.valid, near=1.0).on(GRID)
    shape = (GRID.frames, GRID.rows, GRID.cols)
    return interval.mu.reshape(shape), known.reshape(shape)


def classes_of(world: WorldScene) -> tuple[int, list[int], list[int]]:
    """The numbers of the theme, and of the colour and kind at each place; after the last is "nothing there"."""
    nouns = world.description.nouns
    colour = [list(COLOURS).index(noun.colour) for noun in nouns] + [len(COLOURS)] * (PLACES - len(nouns))
    kind = [KINDS.index(noun.kind) for noun in nouns] + [len(KINDS)] * (PLACES - len(nouns))
    return list(THEMES).index(world.theme), colour, kind


def truth_of(
    latents: Tensor, world: WorldScene, cameras: Cameras, log_radius: Tensor, known: Tensor
) -> tuple[Tensor, ...]:
    poses = cameras.latent_frames(GRID).relative_to_first().world_from_camera
    turn = torch.from_numpy(Rotation.from_matrix(poses[:, :3, :3].double().numpy()).as_rotvec()).float()
    theme, colour, kind = classes_of(world)
    return (
        latents.half(),
        turn,
        poses[:, :3, 3].contiguous(),
        torch.deg2rad(cameras.lens.hfov),
        cameras.lens.xi,
        log_radius,
        known,
        torch.tensor(theme),
        torch.tensor(colour),
        torch.tensor(kind),
    )
