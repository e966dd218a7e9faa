"""Disks that are full or may not be written to, said in one sentence."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from curvedray.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def writing(what: str, fix: str) -> Iterator[None]:
    """Turn what goes wrong on a disk in this block into an InputError that says so, and what to do."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        # safetensors tells the system's error by its number in words.
        full = getattr(error, "errno", None) in FULL or any(f"os error {number}" in str(error) for number in FULL)
        got = "a full disk" if full else error
        raise InputError(what, "room on the disk and leave to write", got, fix) from error
