"""The embedded model's transformer and diffusers' class are one: names, first weights, numbers, gradients."""

import subprocess
import sys

import pytest
import torch

from curvedray.errors import InputError
from curvedray.models.embedded.transformer import EmbeddedTransformer
from curvedray.models.interface import BaseIdentity
from curvedray.models.wan import wan_transformer

OURS = {"channels": 8, "heads": 2, "head_dim": 16, "layers": 2, "ffn": 48, "text_width": 12, "patch": 2}
THEIRS = {
    "num_attention_heads": 2,
    "attention_head_dim": 16,
    "in_channels": 8,
    "out_channels": 8,
    "text_dim": 12,
    "freq_dim": 64,
    "ffn_dim": 48,
    "num_layers": 2,
    "rope_max_seq_len": 64,
}


@pytest.fixture(params=[2, 1], ids=["patches of 2 x 2", "patches of 1"])
def twins(request):
    torch.manual_seed(0)
    ours = EmbeddedTransformer(**OURS | {"patch": request.param})
    torch.manual_seed(0)
    return ours, wan_transformer(**THEIRS, patch_size=(1, request.param, request.param))


def test_names_order_and_first_weights_are_diffusers_own(twins):
    ours, theirs = (twin.state_dict() for twin in twins)
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert BaseIdentity.of(twins[0]) == BaseIdentity.of(twins[1])


@pytest.mark.parametrize("shape", [(3, 4, 6), (1, 2, 2), (5, 6, 4)])
def test_numbers_and_gradients_are_diffusers_own(twins, shape):
    draw = torch.Generator().manual_seed(1)
    batch = {
        "hidden_states": torch.randn(2, 8, *shape, generator=draw),
        "timestep": torch.tensor([999.5, 20.25]),
        "encoder_hidden_states": torch.randn(2, 7, 12, generator=draw),
    }
    outputs = [twin(**batch, return_dict=False)[0] for twin in twins]
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-6)
    for output in outputs:
        output.square().sum().backward()
    for ours, theirs in zip(twins[0].parameters(), twins[1].parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)


def test_checkpointing_changes_no_gradient(twins):
    ours = twins[0]
    batch = (torch.randn(1, 8, 3, 4, 6), torch.tensor([500.0]), torch.randn(1, 7, 12))
    gradients = []
    for _ in range(2):
        ours.zero_grad()
        ours(*batch)[0].square().sum().backward()
        gradients.append([p.grad.clone() for p in ours.parameters()])
        ours.enable_gradient_checkpointing()
    for plain, checkpointed in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, checkpointed)


def test_a_video_beyond_its_positions_is_refused(twins):
    with pytest.raises(InputError, match="at most 64 tokens"):
        twins[0](torch.zeros(1, 8, 65, 2, 2), torch.tensor([1.0]), torch.zeros(1, 7, 12))


def test_filming_with_the_embedded_model_imports_nothing_slow():
    """Each of these takes longer to import than the film takes; diffusers as long as everything else together."""
    script = """
import sys
from curvedray.generation.generate import generate
generate("embedded", "a red ball in a snowy courtyard", "pan left 10deg", num_inference_steps=1)
slow = {"diffusers", "transformers", "torch._dynamo", "sympy", "matplotlib", "scipy"}
print(sorted(slow & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
