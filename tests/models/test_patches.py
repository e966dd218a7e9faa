"""A model's tokens can be made larger and smaller without losing what its blocks know."""

import importlib.util
from pathlib import Path

import torch

from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape

SCRIPT = Path(__file__).parents[2] / "experiments" / "embedded" / "patches.py"


def test_a_patch_of_equal_latents_is_embedded_as_one_latent_was_and_back():
    spec = importlib.util.spec_from_file_location("patches", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    patches = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(patches)

    fine = EmbeddedModel(EmbeddedShape(("ball",), channels=4, heads=2, head_dim=8, layers=1, ffn=16, patch=1))
    coarse = patches.with_patch(fine, 2)
    latents = torch.randn(1, 4, 2, 3, 5)
    larger = latents.repeat_interleave(2, -1).repeat_interleave(2, -2)
    embedded = coarse.transformer.patch_embedding(larger)
    assert torch.allclose(embedded, fine.transformer.patch_embedding(latents), atol=1e-6)

    again = patches.with_patch(coarse, 1).state_dict()
    assert all(torch.allclose(value, again[name], atol=1e-6) for name, value in fine.state_dict().items())
