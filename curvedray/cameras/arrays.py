"""What a caller may hand us where a tensor or a whole number is meant: NumPy arrays, lists, numbers."""

import operator
from typing import Any

import torch
from torch import Tensor

from curvedray.errors import InputError


def as_tensor(name: str, value: Any, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    """A tensor, array, list or number as a tensor, of a dtype if one is given; else whole ones become floating."""
    if isinstance(value, Tensor) and dtype is None and value.is_floating_point():
        return value
    try:
        tensor = torch.as_tensor(value, dtype=dtype, device=device)
        return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(name, "a tensor, an array or a list of numbers", kind_of(value)) from error


def as_whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number, of Python or NumPy, of at least `least`."""
    try:
        whole = operator.index(value)
    except TypeError as error:
        raise InputError(name, "a whole number", f"{value!r}, {kind_of(value)}") from error
    if isinstance(value, bool) or whole < least:
        raise InputError(name, f"a whole number of at least {least}", repr(value))
    return whole


def as_size(name: str, value: Any) -> tuple[int, int]:
    """A width and a height in whole pixels."""
    try:
        width, height = value
    except (TypeError, ValueError) as error:
        raise InputError(name, "a width and a height in pixels", repr(value)) from error
    return as_whole(f"width of {name}", width), as_whole(f"height of {name}", height)


def kind_of(value: Any) -> str:
    """`a str`, `an ndarray`: what something is, for a message."""
    word = type(value).__name__
    return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"
