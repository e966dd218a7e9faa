"""An adapter on disk: one safetensors file whose header says what it is and which transformer it belongs to."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter, check_base
from curvedray.adapter.config import AdapterConfig
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.models.interface import BaseIdentity

FORMAT = 1


def save_adapter(adapter: Adapter, path: str | Path) -> Path:
    """Write the adapter's weights and identity, whole or not at all."""
    header = {
        "format": FORMAT,
        "config": adapter.config.to_json(),
        "base": adapter.base.to_json(),
        "accepts_radial_maps": adapter.accepts_radial_maps,
        "notes": adapter.notes,
    }
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in adapter.state_dict().items()}
    with whole_file(path) as temporary:
        # A safetensors file may be without tensors, as the adapter of method `none` is.
        save_file(weights, temporary, metadata={"curvedray": json.dumps(header, sort_keys=True)})
    return Path(path)


def load_adapter(path: str | Path, transformer: nn.Module, *, any_weights: bool = False) -> Adapter:
    """The adapter of a file, made for this transformer and not yet attached to it."""
    header, weights = read_adapter(path)
    config = AdapterConfig.from_json(header["config"])
    base = BaseIdentity(**header["base"])
    check_base(base, BaseIdentity.of(transformer), any_weights)
    adapter = Adapter(transformer, config)
    adapter.base = base
    _fill(adapter, weights, path)
    adapter.accepts_radial_maps, adapter.notes = bool(header["accepts_radial_maps"]), header["notes"]
    return adapter


def read_adapter(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the weights of an adapter file, checked for what it must hold."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"adapter {path}", "a .safetensors file", "a folder" if path.is_dir() else "nothing there")
    try:
        with safe_open(path, framework="pt") as file:
            note = (file.metadata() or {}).get("curvedray")
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        header = json.loads(note) if note else None
    except (SafetensorError, OSError, ValueError) as error:
        fix = "Copy or download the file again."
        raise InputError(f"adapter {path}", "a complete safetensors file", str(error).splitlines()[0], fix) from error
    if not isinstance(header, dict):
        fix = "UCPE's released weights are read by `read_ucpe`."
        raise InputError(f"adapter {path}", "a curvedray header", "weights without one", fix)
    if header.get("format") != FORMAT:
        fix = "Update curvedray, or save the adapter with this version."
        raise InputError(f"adapter {path}", f"format {FORMAT}", header.get("format"), fix)
    wanted = {"format", "config", "base", "accepts_radial_maps", "notes"}
    identity = set(BaseIdentity.__dataclass_fields__)
    dicts = all(isinstance(header.get(name), dict) for name in ("config", "base", "notes"))
    if set(header) != wanted or not dicts or set(header["base"]) != identity:
        raise InputError(f"adapter {path}", f"a header with {', '.join(sorted(wanted))}", ", ".join(sorted(header)))
    return header, weights


def _fill(adapter: Adapter, weights: dict[str, Tensor], path: str | Path) -> None:
    """Load every weight by name; a missing, extra or misshapen one is refused."""
    own = adapter.state_dict()
    missing, extra = sorted(set(own) - set(weights)), sorted(set(weights) - set(own))
    if missing or extra:
        got = "; ".join(f"{what} {names[0]}" for what, names in (("no", missing), ("an extra", extra)) if names)
        expected = f"the {len(own)} weights of method {adapter.config.method}"
        raise InputError(f"adapter {path}", expected, got, "The file is not whole, or not of this version.")
    for name, tensor in weights.items():
        if tensor.shape != own[name].shape:
            raise InputError(f"adapter {path}: {name}", f"shape {tuple(own[name].shape)}", tuple(tensor.shape))
    with torch.no_grad():
        for name, parameter in adapter.named_parameters():
            parameter.data = weights[name].to(parameter.device)
