"""The call that takes the place of plain attention: its frequencies, its masks, and mistakes that it names."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scenes import DOUBLE, kinds_of_mask, lens, noise, orbit, poses, tokens

from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding.attention import CurvedEncoding, curved_ray_attention
from curvedray.encoding.curved import default_frequencies, modulate
from curvedray.errors import InputError

GRID = TokenGrid(3, 2, 3)
FREQUENCIES = torch.tensor([[1.0, 7.0], [2.0, 9.0], [0.5, 3.0]], dtype=DOUBLE)


def reference(*inputs, **options):
    return curved_ray_attention(*inputs, backend="reference", **options)


# -- frequencies and mistakes


@pytest.fixture
def unchecked(monkeypatch):
    """The call past the test run's own shape checks, as a user's call is."""
    between = CurvedEncoding.between.__func__.__wrapped__
    monkeypatch.setattr(CurvedEncoding, "between", classmethod(between))
    monkeypatch.setattr(CurvedEncoding, "attention", CurvedEncoding.attention.__wrapped__)
    return curved_ray_attention.__wrapped__


def test_default_frequencies_fill_the_head():
    omega = default_frequencies(TokenGrid(21, 30, 52), 192)
    periods = 2 * math.pi / omega
    assert omega.shape == (3, 10)
    torch.testing.assert_close(periods[:, 0], torch.tensor([8.0, 8.0, 80.0]))
    torch.testing.assert_close(periods[:, -1], torch.tensor([2 / 52, 2 / 30, 2.0]))
    assert default_frequencies(TokenGrid(1, 4, 4), 96, coordinates=4).shape == (4, 4)
    assert default_frequencies(TokenGrid(1, 4, 4), 12, rays=1).shape == (3, 2)


def test_channels_beyond_the_pairs_pass_through():
    x, theta = noise(4, 10), noise(4, 3)
    out = modulate(x, theta.cos(), theta.sin())
    turned = torch.complex(x[:, :3], x[:, 3:6]) * torch.exp(1j * theta)
    torch.testing.assert_close(out, torch.cat([turned.real, turned.imag, x[:, 6:]], -1))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"k": torch.zeros(1, 1, 17, 40)}, "k"),
        ({"mu": torch.zeros(1, 17)}, "mu"),
        ({"cameras": orbit(TokenGrid(2, 2, 3))}, "cameras"),
        ({"cameras": Cameras(lens(), poses(4, 3))}, "cameras"),
        ({"query_grid": TokenGrid(2, 2, 3)}, "query_cameras"),
        ({"query_grid": TokenGrid(3, 2, 2)}, "q"),
        ({"breakpoints": 0}, "breakpoints"),
        ({"backend": "gpu"}, "backend"),
        ({"rays": 4}, "rays"),
        ({"frequencies": torch.ones(2, 2)}, "frequencies"),
        ({"frequencies": torch.ones(3, 3)}, "frequencies"),
    ],
)
def test_mistakes_are_named(change, name, unchecked):
    q, k, v, mu, sigma = tokens(GRID)
    right = {"q": q, "k": k, "v": v, "cameras": orbit(GRID), "grid": GRID, "mu": mu, "sigma": sigma}
    with pytest.raises(InputError) as error:
        unchecked(**(right | change))
    assert error.value.name == name


def test_a_head_too_narrow_for_one_frequency_is_refused():
    with pytest.raises(InputError, match="head width"):
        default_frequencies(GRID, 16)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"mu": [0.0] * 18}, "mu"),
        ({"frequencies": "log"}, "frequencies"),
        ({"cameras": torch.eye(4).expand(3, 4, 4)}, "cameras"),
        ({"cameras": "fisheye-160"}, "cameras"),
        ({"query_cameras": np.eye(4)}, "query_cameras"),
        ({"grid": (3, 2, 3)}, "grid"),
        ({"q": torch.zeros(1, 0, 18, 40)}, "q"),
        ({"q": torch.zeros(18, 40)}, "q"),
        ({"q": "tokens"}, "q"),
        ({"attn_mask": torch.ones(3, 18)}, "attn_mask"),
        ({"attn_mask": torch.ones(18, 18, dtype=torch.long)}, "attn_mask"),
        ({"attn_mask": torch.ones(18, 18), "is_causal": True}, "attn_mask"),
        ({"frequencies": torch.ones(3, 0)}, "frequencies"),
    ],
)
def test_other_peoples_types_are_named_too(change, name, unchecked):
    """Zero heads would crash inside torch's own kernel."""
    test_mistakes_are_named(change, name, unchecked)


def test_numpys_numbers_are_taken_for_tensors(unchecked):
    q, k, v, mu, sigma = (i.float() for i in tokens(GRID))
    ours = unchecked(q, k, v, orbit(GRID), GRID, mu.double().numpy(), sigma.numpy(), frequencies=FREQUENCIES.numpy())
    theirs = unchecked(q, k, v, orbit(GRID), GRID, mu, sigma, frequencies=FREQUENCIES)
    torch.testing.assert_close(ours, theirs)


def test_one_encoding_serves_many_layers_and_is_the_drop_in_call():
    cameras, frequencies = orbit(GRID), FREQUENCIES.float()
    encoding = CurvedEncoding.between(cameras, GRID, frequencies, breakpoints=3, query_rotation=True)
    for seed in (5, 15):
        q, k, v, mu, sigma = (i.float() for i in tokens(GRID, seed=seed))
        options = {"breakpoints": 3, "frequencies": frequencies, "query_rotation": True}
        whole = curved_ray_attention(q, k, v, cameras, GRID, mu, sigma, **options)
        torch.testing.assert_close(encoding.attention(q, k, v, mu, sigma), whole)
    with pytest.raises(InputError, match="need radii"):
        encoding.attention(q, k, v)


# -- masks


def test_a_mask_is_that_of_plain_attention():
    """With one camera that stands still and no frequency a phase can tell, curved rays are plain attention."""
    still = Cameras(lens(), torch.eye(4, dtype=DOUBLE).expand(3, 4, 4))
    q, k, v, mu, sigma = tokens(GRID, batch=2, heads=2)
    for options in kinds_of_mask(GRID.tokens, GRID.tokens):
        ours = reference(q, k, v, still, GRID, mu, sigma, frequencies=0 * FREQUENCIES, **options)
        torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, **options))


def test_a_masked_key_has_no_say():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    kept = torch.ones(GRID.tokens, dtype=torch.bool)
    kept[4] = False
    other = k.clone()
    other[:, :, 4] += 10
    a, b = (reference(q, i, v, cameras, GRID, mu, sigma, attn_mask=kept[None]) for i in (k, other))
    torch.testing.assert_close(a, b)
    assert (a - reference(q, k, v, cameras, GRID, mu, sigma)).abs().max() > 1e-3
