"""A backbone that is still in training can be looked at, and kept: its averaged weights as a model."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "embedded"))
from look import CAPTIONS, averaged_model, filmed

from curvedray.errors import InputError
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, load_embedded, save_embedded
from curvedray.training.checkpoints import Checkpoint, save_checkpoint
from curvedray.world.themes import WORDS

SMALL = EmbeddedShape(
    WORDS, channels=4, heads=1, layers=1, ffn=32, text_width=8, frames=5, height=16, width=24, patch=1
)


def test_the_average_of_the_newest_checkpoint_is_what_is_seen(tmp_path):
    torch.manual_seed(0)
    start, other = EmbeddedModel(SMALL), EmbeddedModel(SMALL)
    save_embedded(start, tmp_path / "base.safetensors")
    with pytest.raises(InputError, match="a checkpoint"):
        averaged_model(tmp_path, tmp_path / "base.safetensors")
    average = {name: tensor.half().float() for name, tensor in other.transformer.state_dict().items()}
    saved = Checkpoint(7, {"name": "run"}, start.transformer.state_dict(), {}, average, {})
    save_checkpoint(tmp_path / "checkpoints", saved, keep=1)
    model, step = averaged_model(tmp_path, tmp_path / "base.safetensors")
    assert (step, model.card["step"]) == (7, 7)
    save_embedded(model, tmp_path / "begun.safetensors")
    kept = load_embedded(tmp_path / "begun.safetensors").transformer.state_dict()
    assert all(torch.equal(kept[name], tensor) for name, tensor in average.items())
    assert filmed(model, 2).shape == (len(CAPTIONS), 5, 16, 24, 3)
