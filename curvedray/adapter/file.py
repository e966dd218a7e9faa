"""An adapter on disk: one safetensors file whose header says what it is and which transformer it belongs to."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter, check_base
from curvedray.adapter.config import AdapterConfig
from curvedray.adapter.ucpe import is_ucpe, ucpe_adapter
from curvedray.configs import config_of
from curvedray.errors import InputError
from curvedray.files import write_tensors
from curvedray.inputs import parsed_json, read_tensors
from curvedray.models.interface import BaseIdentity

FORMAT = 1
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
PICKLES = (".pt", ".pth", ".ckpt", ".bin")
CONVERT = (
    "Pickled files can run code, so they are never opened here. Where you trust the file, convert it: "
    'tensors = torch.load("{0}", weights_only=True); '
    'safetensors.torch.save_file(tensors.get("state_dict", tensors), "{1}")'
)


@dataclass(frozen=True)
class Header:
    """What the file says of itself, as JSON under the name `curvedray`."""

    format: int
    config: AdapterConfig
    base: BaseIdentity
    accepts_radial_maps: bool
    notes: dict[str, Any]


def save_adapter(adapter: Adapter, path: str | Path) -> Path:
    """Write the adapter's weights and identity, whole or not at all."""
    header = {
        "format": FORMAT,
        "config": adapter.config.to_json(),
        "base": adapter.base.to_json(),
        "accepts_radial_maps": adapter.accepts_radial_maps,
        "notes": adapter.notes,
    }
    # A safetensors file may be without tensors, as the adapter of method `none` is.
    return write_tensors(path, adapter.state_dict(), {"curvedray": json.dumps(header, sort_keys=True)})


def load_adapter(path: str | Path, transformer: nn.Module, *, any_weights: bool = False) -> Adapter:
    """The adapter of a file, made for this transformer and not yet attached to it. UCPE's weights are one, too."""
    name = f"adapter {path}"
    header, weights = read_adapter(path)
    if header is None:
        return ucpe_adapter(weights, transformer, name)
    check_base(header.base, BaseIdentity.of(transformer), any_weights)
    adapter = Adapter(transformer, header.config, base=header.base)
    _fill(adapter, weights, name)
    adapter.accepts_radial_maps, adapter.notes = header.accepts_radial_maps, header.notes
    return adapter


def read_adapter(path: str | Path) -> tuple[Header | None, dict[str, Tensor]]:
    """The header and the weights of an adapter file; no header for UCPE's, whose tensors are known by their names."""
    path = Path(path)
    if path.suffix.lower() in PICKLES:
        fix = CONVERT.format(path.name, path.with_suffix(".safetensors").name)
        raise InputError(f"adapter {path}", "a .safetensors file", f"a {path.suffix} file", fix)
    weights, entries = read_tensors(path, "an adapter's .safetensors file")
    _check_weights(weights, f"adapter {path}")
    if "curvedray" not in entries:
        if is_ucpe(weights):
            return None, weights
        got = f"weights without one: {next(iter(weights), 'none at all')}"
        raise InputError(f"adapter {path}", "a header of curvedray's, or UCPE's keys", got)
    return parsed_header(entries["curvedray"], f"adapter {path}"), weights


def parsed_header(text: str, name: str) -> Header:
    record = parsed_json(text, f"{name}: header", "an adapter's header")
    if not isinstance(record, dict):
        raise InputError(name, "a header with names and values", type(record).__name__)
    if record.get("format") != FORMAT:
        fix = "Update curvedray, or save the adapter with this version."
        raise InputError(name, f"format {FORMAT}", record.get("format"), fix)
    return config_of(Header, record, name)


def _check_weights(weights: dict[str, Tensor], name: str) -> None:
    """Weights are numbers of one precision that a transformer computes in."""
    for key, tensor in weights.items():
        if tensor.dtype not in DTYPES:
            raise InputError(f"{name}: {key}", "float32, bfloat16 or float16", tensor.dtype)
        if not tensor.isfinite().all():
            raise InputError(
                f"{name}: {key}", "finite numbers", "infinite ones or NaN", "Did the training run diverge?"
            )
    kinds = {str(tensor.dtype) for tensor in weights.values()}
    if len(kinds) > 1:
        raise InputError(name, "weights of one precision", " and ".join(sorted(kinds)))


def _fill(adapter: Adapter, weights: dict[str, Tensor], name: str) -> None:
    """Load every weight by name; a missing, extra or misshapen one is refused."""
    own = adapter.state_dict()
    missing, extra = sorted(set(own) - set(weights)), sorted(set(weights) - set(own))
    if missing or extra:
        got = "; ".join(f"{what} {names[0]}" for what, names in (("no", missing), ("an extra", extra)) if names)
        expected = f"the {len(own)} weights of method {adapter.config.method}"
        raise InputError(name, expected, got, "The file is not whole, or not of this version.")
    for key, tensor in weights.items():
        if tensor.shape != own[key].shape:
            raise InputError(f"{name}: {key}", f"shape {tuple(own[key].shape)}", tuple(tensor.shape))
    with torch.no_grad():
        for key, parameter in adapter.named_parameters():
            parameter.data = weights[key].to(parameter.device)
