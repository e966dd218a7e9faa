"""The fast path takes tensors however they lie in memory, and frequencies of 0."""

import pytest
import torch
from scenes import noise, orbit, tokens

from curvedray.cameras import TokenGrid
from curvedray.encoding.attention import curved_ray_attention
from curvedray.encoding.curved import default_frequencies
from curvedray.encoding.kernels import compiled

GRID = TokenGrid(2, 3, 4)
DIM = 40


def apart(x):
    """The same numbers with tokens, not channels, side by side in memory."""
    return x.detach().transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_(x.requires_grad)


def result(inputs, backend, learned=True, **options):
    """The output, and the gradients where they are wanted, for a gradient that lies apart too."""
    inputs = [i.detach().requires_grad_(learned) for i in inputs]
    out = curved_ray_attention(*inputs[:3], orbit(GRID), GRID, *inputs[3:], backend=backend, **options)
    weight = apart(noise(*out.shape, seed=99).to(out.dtype))
    return [out.detach(), *(torch.autograd.grad(out, inputs, weight) if learned else ())]


@pytest.mark.skipif(compiled.library() is None, reason="no compiled kernel on this machine")
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("values", [False, True])
def test_channels_need_not_be_neighbours(values, queries, masked, learned):
    """torch's attention on the CPU reads channels as neighbours, and was called past the check that sees to it.

    Gradients were wrong by several times their size, and with a mask outputs were infinite or not numbers.
    """
    inputs = [i.float() for i in tokens(GRID, DIM, batch=2, heads=2)]
    options = {"learned": learned, "is_causal": masked, "query_rotation": queries, "value_rotation": values}
    exact = result([i.double() for i in inputs], "reference", **options)
    for which in ((0,), (1,), (2,), (0, 1, 2)):
        given = [apart(x) if i in which else x for i, x in enumerate(inputs)]
        ours = result(given, "fast", **options)
        for mine, true in zip(ours, exact, strict=True):
            torch.testing.assert_close(mine.double(), true, rtol=1e-4, atol=1e-4 * float(true.abs().max()))


@pytest.mark.skipif(compiled.library() is None, reason="no compiled kernel on this machine")
def test_channels_of_half_precision_need_not_be_neighbours():
    """With a mask the gradient of such bfloat16 tokens was a RuntimeError of torch's."""
    inputs = [i.bfloat16() if i.ndim == 4 else i.float() for i in tokens(GRID, DIM)]
    plain, ours = (result([*map(lay, inputs[:3]), *inputs[3:]], "fast", is_causal=True) for lay in (torch.clone, apart))
    for mine, true in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, true)


@pytest.mark.parametrize("backend", ["fast", "reference"])
@pytest.mark.parametrize("learned", [False, True])
def test_a_frequency_of_zero_turns_nothing(backend, learned):
    """Its phase is 0 all along a ray, and the eager code without gradients divided 0 by 0: NaN."""
    frequencies = default_frequencies(GRID, DIM, 3, 3)
    frequencies[:, 0] = 0.0
    inputs = tokens(GRID, DIM)
    out = result(inputs, backend, learned, frequencies=frequencies)
    frequencies[:, 0] = 1e-12
    for mine, limit in zip(out, result(inputs, backend, learned, frequencies=frequencies), strict=True):
        torch.testing.assert_close(mine, limit, rtol=1e-9, atol=1e-9)
