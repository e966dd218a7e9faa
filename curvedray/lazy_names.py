"""Names that a room offers and loads when they are first asked for, so that its light parts load alone.

A room's tables are listed by commands that should answer at once; its code brings in torch.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(room: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A room's `__getattr__`: each of its names is taken from the module that has it."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{room}.{modules[name]}"), name)

    return load
