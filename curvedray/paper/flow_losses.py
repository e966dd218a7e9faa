"""How well a row guesses real test clips out of noise, told their captions and cameras: the loss it was trained by.

Films differ from one another by what they show, too, and an estimator has its own error. Here every row guesses the
same clips in the same noise. It is no metric of the paper's.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from curvedray.adapter.file import load_adapter
from curvedray.data.clips import Batch
from curvedray.evaluate.scores import Metric
from curvedray.files import whole_file
from curvedray.inputs import is_file, read_json
from curvedray.models.flow import noised, velocity_target
from curvedray.models.interface import VideoModel
from curvedray.paper.clips import TestClips
from curvedray.paper.experiment import Row
from curvedray.paper.heads import encoded_clips, noise_of
from curvedray.paper.listener import Listener
from curvedray.paper.setting import Setting, key_of, weights_key
from curvedray.paper.teachers import taught
from curvedray.radial.interval import TEACHER_SIGMA, RadialInterval

LEVELS = (0.6, 0.8, 0.9, 0.97)  # of noise: where layout and motion are decided
FLOW_LOSS = Metric(
    "Flow loss",
    "",
    "lower",
    f"Mean square error of the velocity of the real test clip, told its caption and camera, in noise of {LEVELS}.",
)


@torch.no_grad()
def flow_losses(
    setting: Setting, row: Row, weights: Path | None, tests: TestClips, hears: Listener
) -> dict[str, float]:
    """Every test clip's loss, computed now or before. A row that is given maps is given them here, too."""
    made_of = [weights_key(weights), setting.model_key, tests.key, LEVELS, row.map, row.sigma]
    path = setting.folder("losses", f"{key_of(made_of)}.json")
    if not is_file(path):
        model = setting.open_model()
        adapter = None
        if weights is not None:
            adapter = load_adapter(weights, model.transformer).eval().requires_grad_(False).to(model.device)
            adapter.attach(model.transformer)
        found: dict[str, float] = {}
        size = setting.scale.together
        for first in range(0, len(tests.clips), size):
            hears.tick(first, len(tests.clips), "guessing test clips")
            batch = encoded_clips(setting, model, tests, tests.clips[first : first + size])
            if adapter is None:
                losses = _losses(setting, model, batch, first)
            else:
                with adapter.viewing(batch.cameras, grid=setting.grid, radial=_map_of(row, batch)):
                    losses = _losses(setting, model, batch, first)
            found |= dict(zip(batch.ids, losses.tolist(), strict=True))
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(found))
    return read_json(path)


def _losses(setting: Setting, model: VideoModel, batch: Batch, first: int) -> Tensor:
    """Of the clips of a batch, the mean over noise levels."""
    noise = noise_of(setting, model, batch, first)
    target = velocity_target(batch.latents, noise)
    errors = []
    for level in LEVELS:
        sigma = torch.full((len(batch),), level, device=model.device)
        guess = model.velocity(noised(batch.latents, noise, sigma), sigma, batch.text)
        errors.append((guess.float() - target).square().flatten(1).mean(1))
    return torch.stack(errors).mean(0)


def _map_of(row: Row, batch: Batch) -> tuple[RadialInterval, Tensor] | None:
    """What the row's teacher says of the clips' distances, where the row films with a map."""
    if not row.map:
        return None
    columns = (batch.log_radius.cpu(), batch.radius_known.cpu(), batch.ids)
    said = [taught(mu, known, batch.latents.shape[2], row.map, clip) for mu, known, clip in zip(*columns, strict=True)]
    mu, known = (torch.stack(column) for column in zip(*said, strict=True))
    sigma = TEACHER_SIGMA if row.sigma is None else row.sigma
    return RadialInterval(mu, torch.full_like(mu, sigma)), known
