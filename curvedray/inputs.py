"""What a user hands us, read within limits: bytes, text, JSON, arrays, tensors. Every failure is an InputError.

Anything may be wrong with a file that somebody else wrote: it may be a pipe that never ends, a number of five thousand
digits, an archive of a few kilobytes that unpacks to gigabytes. This is the one place that knows what the libraries
throw then, and that looks at what a file claims to hold before it is unpacked. Nothing is ever unpickled.
"""

import json
import math
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from curvedray.errors import InputError
from curvedray.extras import needed

if TYPE_CHECKING:
    from torch import Tensor

MB = 10**6
LARGEST_TEXT = 256 * MB
LARGEST_ARRAYS = 2000 * MB  # unpacked: the distances of 81 frames of 1080p twice over
LARGEST_TENSORS = 64_000 * MB

# What numpy, zipfile and their parsers throw at bytes that are not what they claim to be.
UNREADABLE = (
    *(ValueError, SyntaxError, TypeError, KeyError, IndexError, EOFError, OSError, MemoryError, RecursionError),
    *(OverflowError, NotImplementedError, RuntimeError, AttributeError, AssertionError),
    *(struct.error, zlib.error, zipfile.BadZipFile, tokenize.TokenError),
)
# Asked by name, so that safetensors, PyAV, pyarrow and what reaches object stores need not be imported.
FOREIGN = (
    *("SafetensorError", "FFmpegError", "ArrowException"),
    *("BotoCoreError", "ClientError", "HttpError", "AzureError"),
)


class ArrayHeader(NamedTuple):
    """What an array claims to be."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def reading(name: str, expected: str, fix: str = "") -> Iterator[None]:
    """Whatever a library throws at a damaged or foreign file in this block, as an InputError."""
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(name, expected, first_line(error), fix) from error
    except Exception as error:
        if not any(kind.__name__ in FOREIGN for kind in type(error).__mro__):
            raise
        raise InputError(name, expected, first_line(error), fix) from error


def first_line(error: BaseException) -> str:
    """What an exception says, in one line and without a full stop."""
    text = getattr(error, "strerror", None) or str(error).strip()
    return (str(text).splitlines() or [type(error).__name__])[0].rstrip(".")


def exists(path: str | Path) -> bool:
    """Whether there is anything at a path; at a name that no disk can have, there is nothing."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def is_file(path: str | Path) -> bool:
    """Whether a regular file can be seen at a path. `Path.is_file` throws at a name that is too long for the disk."""
    return exists(path) and Path(path).is_file()


def is_folder(path: str | Path) -> bool:
    return exists(path) and Path(path).is_dir()


def input_file(path: str | Path, what: str = "a file", limit: int | None = None) -> Path:
    """A regular file that is there, not empty and not larger than `limit` bytes; pipes and devices are refused."""
    path = Path(path)
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        missing = "a link to nothing" if isinstance(error, FileNotFoundError) and path.is_symlink() else "nothing there"
        got = missing if isinstance(error, FileNotFoundError) else first_line(error)
        raise InputError(str(path), what, got) from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(str(path), what, "a folder")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(str(path), what, "a pipe or a device", "Write it to a file first.")
    if found.st_size == 0:
        raise InputError(str(path), what, "an empty file")
    if limit is not None and found.st_size > limit:
        raise InputError(str(path), f"{what} of at most {megabytes(limit)}", megabytes(found.st_size))
    return path


def read_bytes(path: str | Path, what: str = "a file", limit: int = LARGEST_TEXT) -> bytes:
    path = input_file(path, what, limit)
    with reading(str(path), f"{what} that can be read"):
        return path.read_bytes()


def read_text(path: str | Path, what: str = "a text file", limit: int = LARGEST_TEXT) -> str:
    """UTF-8, with or without its byte order mark."""
    with reading(str(path), what):
        try:
            return read_bytes(path, what, limit).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(str(path), what, "bytes that are not text") from error


def read_json(path: str | Path, what: str = "a JSON file", limit: int = LARGEST_TEXT) -> Any:
    return parsed_json(read_text(path, what, limit), str(path), what)


def parsed_json(text: str, name: str, what: str = "JSON") -> Any:
    """JSON as the standard has it: finite numbers, a sane depth."""

    def refused(word: str) -> NoReturn:
        raise InputError(name, f"{what} with finite numbers", word)

    try:
        value = json.loads(text, parse_constant=refused)
    except json.JSONDecodeError as error:
        fix = "Is the file cut short?"
        raise InputError(f"{name}, line {error.lineno}", what, error.msg, fix) from error
    except RecursionError as error:
        raise InputError(name, f"{what} of a few levels", "thousands of levels") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(name, f"{what} with ordinary numbers", "a number too long to read") from error
    return value


def read_arrays(
    path: str | Path, what: str = "arrays", limit: int = LARGEST_ARRAYS, only: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """The arrays of a .npz by name, or a .npy as `array`. Headers are looked at before anything is unpacked.

    `only` names the arrays that are wanted; the others are neither unpacked nor counted.
    """
    with _opened_arrays(path, what) as members:
        chosen = {name: member for name, member in members.items() if not only or name in only}
        _check_total(path, what, sum(header.bytes for header, _ in chosen.values()), limit)
        arrays = {}
        for name, (header, opened) in chosen.items():
            if header.dtype.hasobject:
                raise ValueError("Python objects, which are never unpacked")
            with opened() as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        return arrays


def read_array_headers(path: str | Path, what: str = "arrays") -> dict[str, ArrayHeader]:
    """What the arrays of a .npz or .npy (`array`) claim to be, by name; nothing is unpacked."""
    with _opened_arrays(path, what) as members:
        return {name: header for name, (header, _) in members.items()}


@contextmanager
def _opened_arrays(path: str | Path, what: str) -> Iterator[dict[str, tuple[ArrayHeader, Callable[[], Any]]]]:
    """Every array's header, and how its bytes are opened."""
    path = input_file(path, f"a .npy or .npz of {what}")
    with reading(str(path), f"a readable .npy or .npz of {what}", "Is the file complete?"):
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                yield {"array": (_array_header(file), partial(path.open, "rb"))}
            return
        with zipfile.ZipFile(path) as archive:
            members: dict[str, tuple[ArrayHeader, Callable[[], Any]]] = {}
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    with archive.open(member) as stream:
                        header = _array_header(stream)
                    members[member.filename.removesuffix(".npy")] = (header, partial(archive.open, member))
            if not members:
                names = ", ".join(member.filename for member in archive.infolist()[:5])
                raise InputError(str(path), f"a .npz of {what}", f"an archive of {names or 'nothing'}")
            yield members


def _array_header(file: Any) -> ArrayHeader:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"format version {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"a shape of {shape}")
    return ArrayHeader(tuple(shape), dtype)


def _check_total(path: str | Path, what: str, total: int, limit: int) -> None:
    if total > limit:
        raise InputError(str(path), f"{what} of at most {megabytes(limit)} unpacked", megabytes(total))


def read_tensors(
    path: str | Path, what: str = "a safetensors file", limit: int = LARGEST_TENSORS, only: Collection[str] = ()
) -> tuple[dict[str, "Tensor"], dict[str, str]]:
    """Every tensor of a safetensors file, or those that `only` names; and the text entries of its header."""
    needed("safetensors")
    from safetensors import safe_open

    path = input_file(path, what, limit)
    with reading(str(path), f"{what}, complete", "Copy or download the file again."), safe_open(path, "pt") as file:
        names = [name for name in file.keys() if not only or name in only]  # noqa: SIM118
        return {name: file.get_tensor(name) for name in names}, dict(file.metadata() or {})


def tensors_from_bytes(
    content: bytes, name: str, what: str = "a safetensors file"
) -> tuple[dict[str, "Tensor"], dict[str, str]]:
    """Every tensor of a safetensors file that is in memory, and the text entries of its header."""
    needed("safetensors")
    from safetensors.torch import load

    with reading(name, f"{what}, complete", "Copy or download the file again."):
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return tensors, dict(header.get("__metadata__", {}))


def read_header(path: str | Path, what: str = "a safetensors file") -> tuple[list[str], dict[str, str]]:
    """The names of a safetensors file's tensors and the text entries of its header; no tensor is read."""
    needed("safetensors")
    from safetensors import safe_open

    path = input_file(path, what, LARGEST_TENSORS)
    with reading(str(path), f"{what}, complete", "Copy or download the file again."), safe_open(path, "pt") as file:
        return list(file.keys()), dict(file.metadata() or {})


def megabytes(count: float) -> str:
    """Bytes as a person would say them."""
    if count < 0.95 * MB:
        return f"{max(count / 1000, 0.1):.1f} KB" if count < 9500 else f"{count / 1000:.0f} KB"
    if count < 950 * MB:
        return f"{count / MB:.1f} MB" if count < 9.5 * MB else f"{count / MB:.0f} MB"
    return f"{count / 1e9:.1f} GB"
