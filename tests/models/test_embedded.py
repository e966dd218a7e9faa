"""The embedded model meets the same interface as Wan, and its preconditioning is what it claims to be."""

import json
import random

import pytest
import torch
from safetensors.torch import load_file, save_file

from curvedray.errors import InputError
from curvedray.generation import parts
from curvedray.generation.parts import adapter_file
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, load_embedded, save_embedded
from curvedray.models.interface import VideoModel

TINY = EmbeddedShape(
    ("a", "red", "ball"), channels=6, heads=2, head_dim=12, layers=2, ffn=32, text_width=8, text_tokens=5
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return EmbeddedModel(TINY).eval()


def test_it_is_a_video_model(model):
    assert isinstance(model, VideoModel)
    grid = model.grid_for(17, 64, 96)
    assert (grid.frames, grid.rows, grid.cols) == (5, 8, 12)
    latents = model.encode(torch.zeros(1, 3, 17, 64, 96))
    assert latents.shape == (1, *model.latent_shape(grid))
    assert model.decode(latents).shape == (1, 3, 17, 64, 96)


def test_a_transformer_that_adds_nothing_leaves_the_best_linear_guess(model):
    """With the transformer's output zero, velocity is the least-squares estimate of noise - clean from the latents."""
    generator = torch.Generator().manual_seed(1)
    deviation = torch.rand(6, 2, generator=generator) + 0.2
    model.spread.copy_(deviation)
    for parameter in model.transformer.proj_out.parameters():
        parameter.data.zero_()
    per_frame = deviation[:, [0, 1, 1]][None, :, :, None, None]
    clean = torch.randn(200, 6, 3, 8, 8, generator=generator) * per_frame
    noise = torch.randn(clean.shape, generator=generator)
    sigma = torch.tensor([0.7])
    noisy = 0.3 * clean + 0.7 * noise
    guess = torch.cat([model.velocity(x[None], sigma, model.encode_text(["a"])) for x in noisy[:4]])
    slope = (noisy * (noise - clean)).mean((0, 3, 4)) / noisy.square().mean((0, 3, 4))
    assert torch.allclose(guess / noisy[:4], slope[None, :, :, None, None].expand_as(guess), atol=0.05)


def test_the_transformer_sees_unit_inputs_at_every_noise_level(model):
    seen = []
    model.transformer.patch_embedding.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].std()))
    model.spread.fill_(0.5)
    generator = torch.Generator().manual_seed(2)
    for sigma in (0.02, 0.5, 1.0):
        clean, noise = torch.randn(2, 1, 6, 5, 8, 12, generator=generator)
        noisy = (1 - sigma) * 0.5 * clean + sigma * noise
        model.velocity(noisy, torch.tensor([sigma]), model.encode_text(["red ball"]))
    assert len(seen) == 3
    assert all(abs(std - 1) < 0.05 for std in seen)


def test_it_comes_back_from_its_file(model, tmp_path):
    path = tmp_path / "model.safetensors"
    save_embedded(model, path)
    again = load_embedded(path)
    latents, sigma = torch.randn(1, 6, 5, 8, 12), torch.tensor([0.5])
    text = model.encode_text(["a red ball"])
    assert again.shape == model.shape
    assert torch.allclose(again.velocity(latents, sigma, text), model.velocity(latents, sigma, text), atol=2e-2)


def test_its_card_stays_with_it(model, tmp_path):
    """A decoder is trained after the transformer and writes the file again."""
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    save_embedded(model, first, {"recipe": {"steps": 5}})
    save_embedded(load_embedded(first), second)
    assert load_embedded(second).card == {"recipe": {"steps": 5}}


def test_a_missing_or_broken_file_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="--model with a Wan folder"):
        load_embedded(tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not weights")
    with pytest.raises(InputError, match=r"broken\.safetensors"):
        load_embedded(broken)


def test_a_package_without_weights_says_which_model_to_name(tmp_path, monkeypatch):
    """Regression: the first complaint was of the adapter's file, which nobody had asked for."""
    monkeypatch.setattr(parts, "WEIGHTS", tmp_path / "embedded.safetensors")
    with pytest.raises(InputError, match="--model with a Wan folder"):
        adapter_file("", None)


def rewritten(model, path, change):
    """The model's file with its tensors and the record of its header changed."""
    save_embedded(model, path)
    tensors = load_file(path)
    record = {"shape": {**vars(model.shape), "words": list(model.shape.words)}, "card": {}}
    header = change(tensors, record) or {"embedded": json.dumps(record)}
    save_file(tensors, path, header)
    return path


def test_odd_headers_and_tensors_are_refused_by_name(model, tmp_path):
    first = next(iter(model.state_dict()))
    changes = {
        "weights of something else": lambda tensors, record: {"other": "x"},
        "Expecting": lambda tensors, record: {"embedded": "{"},
        "a shape and a card": lambda tensors, record: {"embedded": "[1]"},
        "layers": lambda tensors, record: record["shape"].update(layers="six"),
        "whole number": lambda tensors, record: record["shape"].update(heads=10**9),
        "a list of at most": lambda tensors, record: record["shape"].update(words="red"),
        "as the header says": lambda tensors, record: record["shape"].update(layers=4096, ffn=4096),
        f"no {first}": lambda tensors, record: tensors.__delitem__(first),
        "int32": lambda tensors, record: tensors.update({first: tensors[first].int()}),
        "NaN": lambda tensors, record: tensors.update({first: tensors[first] * float("nan")}),
        "of shape": lambda tensors, record: record["shape"].update(ffn=64),
    }
    for number, (complaint, change) in enumerate(changes.items()):
        with pytest.raises(InputError, match=complaint):
            load_embedded(rewritten(model, tmp_path / f"{number}.safetensors", change))


def test_mutated_files_are_a_sentence_never_a_traceback(model, tmp_path):
    path = tmp_path / "model.safetensors"
    save_embedded(model, path)
    whole, draw, refused = path.read_bytes(), random.Random(0), 0
    length = int.from_bytes(whole[:8], "little")
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            damaged[draw.randrange(8 + length)] = draw.randrange(256)
        path.write_bytes(damaged)
        try:
            load_embedded(path)
        except InputError:
            refused += 1
    assert refused > 40
