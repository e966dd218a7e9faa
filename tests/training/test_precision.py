"""bfloat16 is chosen where a machine multiplies it, and never where torch cannot tell."""

import pytest
import torch

from curvedray.training.precision import quick_precision

NAMES = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")


@pytest.mark.parametrize(
    ("native", "chosen"), [((False, False), "no"), ((True, False), "bf16"), ((False, True), "bf16")]
)
def test_a_cpu_that_multiplies_it_takes_it(monkeypatch, native, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name, has in zip(NAMES, native, strict=True):
        monkeypatch.setattr(torch.cpu, name, lambda has=has: has, raising=False)
    assert quick_precision() == ("bf16" if any(native) else "no")


def test_a_torch_that_cannot_tell_keeps_full_precision(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in NAMES:
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert quick_precision() == "no"
