"""In which precision products are quick on this machine."""

from typing import Literal

import torch


def quick_precision() -> Literal["no", "bf16"]:
    """bf16 where it is multiplied natively, on a GPU or a CPU's own instructions; elsewhere it would be far slower."""
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "no"
    return "bf16" if torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported() else "no"
