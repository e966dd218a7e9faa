"""In which precision products are quick on this machine."""

from typing import Literal

import torch


def quick_precision() -> Literal["no", "bf16"]:
    """bf16 where it is multiplied natively, on a GPU or a CPU's own instructions; elsewhere it would be far slower."""
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "no"
    # Torch has no public name for this, and older ones none at all: full precision is always right.
    asked = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return "bf16" if any(native is not None and native() for native in asked) else "no"
