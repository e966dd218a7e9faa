"""Plain attention: torch's own in another form, and no other numbers."""

import pytest
import torch
import torch.nn.functional as F

from curvedray.encoding.plain import plain_attention


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 0.0), (torch.bfloat16, 3e-2)])
def test_it_is_torchs_attention(dtype, close):
    """In bfloat16 within its own rounding of the exact numbers, also under autocast, with queries in full precision."""
    random = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 8, generator=random) for n in (5, 7, 7))
    exact = F.scaled_dot_product_attention(q, k, v)
    q, k, v = q, k.to(dtype), v.to(dtype)
    q = q.to(dtype) if dtype == torch.float32 else q
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        out = plain_attention(q, k, v)
    assert out.dtype == dtype
    assert (out.float() - exact).abs().max() <= close


def test_gradients_in_bfloat16_are_those_of_full_precision():
    random = torch.Generator().manual_seed(1)
    tokens = [torch.randn(1, 2, 6, 8, generator=random) for _ in range(3)]
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        leaves = [x.clone().requires_grad_(True) for x in tokens]
        plain_attention(*(x.to(dtype) for x in leaves)).float().square().sum().backward()
        found.append(torch.cat([x.grad.flatten() for x in leaves]))
    assert (found[0] - found[1]).norm() < 0.02 * found[0].norm()
