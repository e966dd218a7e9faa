"""Train the `embedded` estimator: poses, lens, radii and caption from a clip of the procedural world.

    python experiments/embedded/estimator.py --base runs/embedded/base.safetensors -o runs/embedded/estimator

It sees clips as a sampler leaves them: encoded, a little noise on the latents, decoded. Resumes where it stopped.
Its training clips are numbered from --first, away from those the backbone sees. Every 200 steps its
error on validation clips is logged: the floor of what it can tell.
"""

import argparse
import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from clip_reader import PLACES, ClipReader, Reading, as_input
from rich.progress import track
from scipy.spatial.transform import Rotation
from torch import Tensor

from curvedray.cameras import TokenGrid
from curvedray.embedded import EmbeddedModel, load_embedded
from curvedray.muon import Muon
from curvedray.radial import RadialMap
from curvedray.themes import COLOURS, THEMES
from curvedray.world import Split, WorldClip, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
GRID = TokenGrid(5, 4, 6)
KINDS = ("ball", "box", "pillar")
LARGEST_NOISE = 0.25


@dataclass(frozen=True, eq=False)
class Truths:
    """Clips and what is true of them, row by row."""

    video: Tensor  # uint8
    turn: Tensor
    shift: Tensor
    fov: Tensor
    xi: Tensor
    log_radius: Tensor
    known: Tensor
    theme: Tensor
    colour: Tensor
    kind: Tensor

    def __getitem__(self, rows: Tensor) -> "Truths":
        return Truths(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def truth_of(clip: WorldClip) -> tuple[Tensor, ...]:
    cameras = clip.cameras.latent_frames(GRID).relative_to_first()
    poses = cameras.world_from_camera
    turn = torch.from_numpy(Rotation.from_matrix(poses[:, :3, :3].double().numpy()).as_rotvec()).float()
    interval, known = RadialMap.from_metric(clip.radius, clip.valid, near=1.0).on(GRID)
    nouns = clip.world.description.nouns
    colour = [list(COLOURS).index(noun.colour) for noun in nouns] + [len(COLOURS)] * (PLACES - len(nouns))
    kind = [KINDS.index(noun.kind) for noun in nouns] + [len(KINDS)] * (PLACES - len(nouns))
    return (
        clip.video,
        turn,
        poses[:, :3, 3],
        torch.deg2rad(clip.cameras.lens.hfov),
        clip.cameras.lens.xi,
        interval.mu.reshape(GRID.frames, GRID.rows, GRID.cols),
        known.reshape(GRID.frames, GRID.rows, GRID.cols),
        torch.tensor(list(THEMES).index(clip.world.theme)),
        torch.tensor(colour),
        torch.tensor(kind),
    )


def truths(first: int, count: int, split: Split, cache: Path) -> Truths:
    """Clips rendered once and kept; a million pixels each, so thousands fit in memory."""
    path = cache / f"truths-{split}-{first}-{count}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return Truths(*(torch.from_numpy(file[name]) for name in Truths.__dataclass_fields__))
    rows = [truth_of(world_clip(i, split)) for i in track(range(first, first + count), f"rendering {split}")]
    stacked = [torch.stack(column) for column in zip(*rows, strict=True)]
    cache.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp.npz")
    np.savez(temporary, **{n: x.numpy() for n, x in zip(Truths.__dataclass_fields__, stacked, strict=True)})
    os.replace(temporary, path)
    return Truths(*stacked)


def as_sampled(model: EmbeddedModel, video: Tensor, level: Tensor, generator: torch.Generator) -> Tensor:
    """Clips as the model would show them: through the codec, with a little noise."""
    latents = model.encode(as_input(video))
    noise = torch.randn(latents.shape, generator=generator)
    return model.decode(latents + level.reshape(-1, 1, 1, 1, 1) * noise)


def loss_of(reading: Reading, truth: Truths) -> Tensor:
    """Squared errors (an absolute error settles on "no motion"), each in a unit that makes it about one at first."""
    known = truth.known.float()
    names = F.cross_entropy(reading.theme, truth.theme)
    for said, true in ((reading.colour, truth.colour), (reading.kind, truth.kind)):
        names = names + F.cross_entropy(said.flatten(0, 1), true.flatten())
    radius = ((reading.log_radius - truth.log_radius).square() * known).sum() / known.sum().clamp_min(1)
    return (
        30 * F.mse_loss(reading.turn, truth.turn)
        + 3 * F.mse_loss(reading.shift, truth.shift)
        + 5 * F.mse_loss(reading.fov, truth.fov)
        + 5 * F.mse_loss(reading.xi, truth.xi)
        + 2 * radius
        + 0.1 * names
    )


@torch.no_grad()
def floor(reader: ClipReader, model: EmbeddedModel, truth: Truths, level: float = 0.0) -> dict[str, float]:
    """The estimator's own error on clips whose truth is known, shown through the codec."""
    rows, generator = [], torch.Generator().manual_seed(0)
    for part in torch.arange(len(truth.video)).split(50):
        some = truth[part]
        said = reader(as_sampled(model, some.video, torch.full((len(part),), level), generator))
        apart = Rotation.from_rotvec(said.turn.flatten(0, 1).double().numpy()).inv() * Rotation.from_rotvec(
            some.turn.flatten(0, 1).double().numpy()
        )
        degrees = torch.from_numpy(np.degrees(apart.magnitude())).reshape(len(part), -1)[:, 1:].mean(1)
        known = some.known.float()
        rows.append(
            torch.stack(
                [
                    degrees.float(),
                    (said.shift - some.shift).norm(dim=-1)[:, 1:].mean(1),
                    torch.rad2deg((said.fov - some.fov).abs()),
                    (said.xi - some.xi).abs(),
                    ((said.log_radius - some.log_radius).abs() * known).sum((1, 2, 3)) / known.sum((1, 2, 3)),
                    (said.theme.argmax(-1) == some.theme).float(),
                    (said.colour.argmax(-1) == some.colour).float().mean(-1),
                    (said.kind.argmax(-1) == some.kind).float().mean(-1),
                ],
                -1,
            )
        )
    names = ("degrees", "metres", "fov_degrees", "xi", "log_radius", "theme", "colour", "kind")
    return dict(zip(names, torch.cat(rows).mean(0).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--clips", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = load_embedded(options.base)
    train = truths(options.first, options.clips, "train", options.out)
    held_out = truths(0, 200, "val", options.out)
    reader = ClipReader(len(THEMES), len(COLOURS), len(KINDS))
    matrices = [p for n, p in reader.named_parameters() if p.ndim == 2 and "thought" in n]
    chosen = {id(p) for p in matrices}
    rest = [p for p in reader.parameters() if id(p) not in chosen]
    optimisers = [Muon(matrices, lr=2e-3), torch.optim.AdamW(rest, lr=1e-3)]
    state, first = options.out / "state.pt", 0
    if state.exists():
        saved = torch.load(state, weights_only=True)
        reader.load_state_dict(saved["reader"])
        for optimiser, tensors in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(tensors)
        first = saved["step"]
        log.info("going on from step %d", first)
    base_rates = [group["lr"] for optimiser in optimisers for group in optimiser.param_groups]
    began = time.time()
    for step in range(first, options.steps):
        generator = torch.Generator().manual_seed(options.seed * 1_000_003 + step)
        share = min(1, (step + 1) / 100) * (1 - step / options.steps)
        groups = [group for optimiser in optimisers for group in optimiser.param_groups]
        for group, rate in zip(groups, base_rates, strict=True):
            group["lr"] = rate * share
        some = train[torch.randint(options.clips, (options.batch,), generator=generator)]
        level = torch.rand(options.batch, generator=generator) * LARGEST_NOISE
        loss = loss_of(reader(as_sampled(model, some.video, level, generator)), some)
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 5.0)
        for optimiser in optimisers:
            optimiser.step()
        if (step + 1) % 200 == 0:
            found = floor(reader.eval(), model, held_out)
            reader.train()
            log.info("step %d, loss %.3f, %.0f s: %s", step + 1, loss.item(), time.time() - began, json.dumps(found))
            saved = {
                "reader": reader.state_dict(),
                "optimisers": [o.state_dict() for o in optimisers],
                "step": step + 1,
            }
            torch.save(saved, state.with_suffix(".tmp"))
            os.replace(state.with_suffix(".tmp"), state)


if __name__ == "__main__":
    main()
