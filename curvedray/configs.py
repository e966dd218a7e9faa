"""Configs as JSON: a frozen dataclass to a record and back, in which nothing unknown, unfit or infinite passes.

A config is a frozen dataclass of numbers, words, tuples and other configs. pydantic checks the types; the laws between
values are the dataclass's own, in its `__post_init__`.
"""

import functools
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, is_dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import reading

Config = TypeVar("Config")


def record_of(config: Any) -> dict[str, Any]:
    """What JSON keeps of a config: dicts, lists, numbers and words."""
    return dict(json.loads(json.dumps(asdict(config))))


def config_of(kind: type[Config], record: object, name: str) -> Config:
    """The config a record is of. Keys it does not have and values of another type are refused, by their dotted keys.

    A typo must not train another model, and `true` is not the number 1.
    """
    needed("pydantic")
    from pydantic import ValidationError

    if not isinstance(record, dict):
        raise InputError(name, "names and values", type(record).__name__)
    check_keys(record, kind, name)
    for key, value in flattened(record).items():
        if not all(map(math.isfinite, _floats(value))):
            raise InputError(f"{name}: {key}", "finite numbers", value)
    with reading(name, "values that JSON can hold"):
        text = json.dumps(record)
    try:
        return _adapter(kind).validate_json(text, strict=True)  # JSON's lists are tuples; nothing else is converted
    except ValidationError as error:
        first = error.errors()[0]
        inner = first.get("ctx", {}).get("error")
        if isinstance(inner, InputError):  # a law of the dataclass's own
            raise inner from error
        key = ".".join(str(part) for part in first["loc"])
        expected = first["msg"].removeprefix("Input should be ").lower()
        raise InputError(f"{name}: {key}" if key else name, expected, repr(first["input"])) from error


_ADAPTERS: dict[type, Any] = {}


def _adapter(kind: type) -> Any:
    """pydantic's reader of a config, made once: making it takes longer than a hundred readings."""
    from pydantic import TypeAdapter

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def check_keys(record: dict[str, Any], kind: type, name: str, prefix: str = "") -> None:
    """Refuse keys that a config does not have, with the nearest that it has."""
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    for key, value in record.items():
        if key not in known:
            near = get_close_matches(str(key), known, n=3, cutoff=0.5)
            fix = f"Did you mean {' or '.join(prefix + i for i in near)}?" if near else ""
            raise InputError(name, f"keys among {', '.join(known)}", f"{prefix}{key}", fix)
        inner = _dataclass_in(hints[key])
        if isinstance(value, dict) and inner is not None:
            check_keys(value, inner, name, f"{prefix}{key}.")


def check_laws(config: Any, laws: Iterable[tuple[str, bool, str]], prefix: str = "") -> None:
    """Each law is a dotted key of the config, whether its value holds, and what would."""
    for key, holds, expected in laws:
        if not holds:
            raise InputError(prefix + key, expected, functools.reduce(getattr, key.split("."), config))


def whole(value: object, low: int, high: int) -> bool:
    """Whether a value is a whole number within bounds, for laws. True and False are not numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def number(value: object, low: float, high: float) -> bool:
    """Whether a value is a number within bounds, for laws; NaN is within none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def flattened(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested records as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _floats(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _floats(inner)


def _dataclass_in(hint: Any) -> type | None:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((i for i in options if is_dataclass(i) and isinstance(i, type)), None)
