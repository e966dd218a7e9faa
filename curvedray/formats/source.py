"""A camera file being read: its bytes, its text, its JSON, each able to say which line or field is wrong.

Every reader takes a `Source` and returns `Cameras` in float64; every mistake in a file becomes an InputError.
"""

import io
import json
import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from curvedray.errors import InputError

LARGEST_FILE = 1 << 30  # bytes; a camera file a thousand times smaller is already a long one
UNREADABLE_ARRAY = (
    *(ValueError, SyntaxError, TypeError, KeyError, EOFError, OSError, MemoryError, RecursionError),
    tokenize.TokenError,  # of a header that NumPy tries to read as Python 2 wrote it
)
UNREADABLE_ZIP = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, *UNREADABLE_ARRAY)


@dataclass(frozen=True)
class Source:
    """One file (or, for COLMAP, one folder) and what it holds."""

    path: Path
    content: bytes = b""
    mirrored_world: bool = False  # the reader's word that the file's world is left-handed

    @classmethod
    def open(cls, path: Path, mirrored_world: bool = False) -> "Source":
        try:
            if path.is_dir():
                return cls(path, mirrored_world=mirrored_world)
            if not path.exists():
                raise InputError(
                    _short(path), "a camera file", "nothing at that path", "Check the name and the folder."
                )
            if path.stat().st_size > LARGEST_FILE:
                raise InputError(_short(path), "a camera file", f"{path.stat().st_size} bytes", "Is it a video?")
            content = path.read_bytes()
        except OSError as error:
            raise InputError(_short(path), "a file that can be read", error.strerror) from error
        if not content.strip():
            raise InputError(_short(path), "a camera file", "an empty file")
        return cls(path, content, mirrored_world)

    @property
    def name(self) -> str:
        """The file's own name; the path where it has none, as `.` has not."""
        return self.path.name or str(self.path)

    def fail(self, where: str, expected: str, got: object, fix: str = "") -> NoReturn:
        raise InputError(f"{self.name}, {where}" if where else self.name, expected, _short(got), fix)

    @cached_property
    def is_text(self) -> bool:
        try:
            return "\0" not in self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return False

    @property
    def text(self) -> str:
        if not self.is_text:
            self.fail("", "a text file", "bytes that are not text", "Is it another format?")
        return self.content.decode("utf-8-sig")

    @property
    def is_json(self) -> bool:
        return self.is_text and self.text.lstrip()[:1] in ("{", "[")

    @cached_property
    def json(self) -> "Node":
        if not self.is_json:
            self.fail("", "JSON", "something that does not open with { or [")
        try:
            return Node(self, json.loads(self.text, parse_constant=self._no_constant), "")
        except json.JSONDecodeError as error:
            self.fail(f"line {error.lineno}", "JSON", error.msg, "Is the file cut short?")
        except RecursionError:
            self.fail("", "JSON of a few levels", "thousands of levels")
        except ValueError:  # a whole number of thousands of digits
            self.fail("", "JSON with ordinary numbers", "a number too long to read")

    def _no_constant(self, word: str) -> NoReturn:
        self.fail("", "finite numbers", word)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line number and words of every line that is not blank or a # comment."""
        for number, line in enumerate(self.text.splitlines(), 1):
            words = line.replace(",", " ").split()
            if words and not words[0].startswith("#"):
                yield number, words

    def columns(self) -> int:
        """How many numbers the first row after a URL holds; 0 where it holds anything else, or there is none."""
        if not self.is_text or self.is_json:
            return 0
        rows = (words for _, words in self.rows() if not is_url(words))
        words = next(rows, [])
        return len(words) if all(is_number(word) for word in words) else 0

    def numbers(self, line: int, words: Sequence[str]) -> list[float]:
        return [self.number(f"line {line}, column {column}", word) for column, word in enumerate(words, 1)]

    def number(self, where: str, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            self.fail(where, "a number", word)
        if not math.isfinite(value):
            self.fail(where, "a finite number", word)
        return value

    def table(self, *columns: int) -> tuple[list[int], list[list[float]]]:
        """Line numbers and rows of numbers, all of one of these lengths."""
        lines: list[int] = []
        rows: list[list[float]] = []
        for line, words in self.rows():
            if len(words) not in columns or (rows and len(words) != len(rows[0])):
                wanted = str(len(rows[0])) if rows else " or ".join(str(i) for i in columns)
                self.fail(f"line {line}", f"{wanted} numbers", len(words), "Is the file cut short, or another format?")
            lines.append(line)
            rows.append(self.numbers(line, words))
        if not rows:
            self.fail("", "at least one row of numbers", "none")
        return lines, rows

    def array(self) -> np.ndarray:
        """The array of an .npy file, never unpickled."""
        return self._parse_npy(self.content, "")

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of an .npz file, never unpickled."""
        try:
            with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > LARGEST_FILE:
                    self.fail("", "arrays of camera poses", "an archive that unpacks to over a gigabyte")
                contents = {member.filename: archive.read(member) for member in members}
        except InputError:
            raise
        except UNREADABLE_ZIP as error:
            self.fail("", "an .npz archive", error, "Is the file cut short?")
        npy = {name.removesuffix(".npy"): data for name, data in contents.items() if name.endswith(".npy")}
        return {name: self._parse_npy(data, f"array {name!r}") for name, data in npy.items()}

    def _parse_npy(self, content: bytes, where: str) -> np.ndarray:
        stream = io.BytesIO(content)
        try:
            version = np.lib.format.read_magic(stream)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(stream)
            if dtype.hasobject:
                self.fail(where, "an array of numbers", "pickled objects, which are never loaded")
            # An honest header asks for what follows; anything else would only reserve memory.
            if math.prod(shape) * dtype.itemsize != len(content) - stream.tell() or min(shape, default=1) < 0:
                self.fail(where, f"an array of shape {shape}", "another number of bytes", "Is the file cut short?")
            array = np.load(io.BytesIO(content), allow_pickle=False)
        except InputError:
            raise
        except UNREADABLE_ARRAY as error:
            self.fail(where, "a NumPy array", error)
        if array.dtype.kind not in "fiu":
            self.fail(where, "an array of real numbers", array.dtype)
        return array

    def pose_array(self, array: np.ndarray, where: str = "") -> Tensor:
        """(T, 3, 4) or (T, 4, 4) numbers -> (T, 4, 4) float64."""
        if array.ndim != 3 or array.shape[1:] not in ((3, 4), (4, 4)) or not len(array):
            self.fail(where, "poses of shape (T, 3, 4) or (T, 4, 4)", f"shape {array.shape}")
        return complete(torch.from_numpy(array.astype(np.float64)))


@dataclass(frozen=True)
class Node:
    """A JSON value that knows where it stands, so that a mistake can be named."""

    source: Source
    value: Any
    where: str

    def fail(self, expected: str, got: object, fix: str = "") -> NoReturn:
        self.source.fail(f"field {self.where}" if self.where else "", expected, got, fix)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __getitem__(self, key: str) -> "Node":
        if not isinstance(self.value, dict):
            self.fail("an object { }", self.value)
        if key not in self.value:
            self.source.fail(f"field {self._below(key)}", "to find it", "nothing", "Is the file cut short?")
        return Node(self.source, self.value[key], self._below(key))

    def get(self, key: str) -> "Node | None":
        found = key in self
        return self[key] if found else None

    def _below(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def names(self) -> list[str]:
        """The names of an object's fields."""
        if not isinstance(self.value, dict):
            self.fail("an object { }", self.value)
        return list(self.value)

    def items(self) -> list["Node"]:
        if not isinstance(self.value, list) or not self.value:
            self.fail("a list [ ] with something in it", self.value)
        return [Node(self.source, value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("text", self.value)
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("a number", self.value)
        try:
            value = float(self.value)
        except OverflowError:
            self.fail("a finite number", "a whole number of hundreds of digits")
        if not math.isfinite(value):
            self.fail("a finite number", value)
        return value

    def integer(self) -> int:
        value = self.number()
        if value != int(value) or abs(value) > 1e9:
            self.fail("a whole number", value)
        return int(value)

    def numbers(self, count: int) -> list[float]:
        if not isinstance(self.value, list) or len(self.value) != count:
            self.fail(f"a list of {count} numbers", self.value)
        return [item.number() for item in self.items()]

    def pair(self) -> tuple["Node", "Node"]:
        self.numbers(2)
        first, second = self.items()
        return first, second

    def pose(self) -> Tensor:
        """A 3x4 or 4x4 matrix, as rows or as one flat list of 12 or 16 -> 4x4 float64."""
        rows = self.items()
        if all(isinstance(row.value, list) for row in rows) and len(rows) in (3, 4):
            return complete(torch.tensor([row.numbers(4) for row in rows], dtype=torch.float64))
        if len(rows) not in (12, 16):
            self.fail("a 4x4 matrix", f"{len(rows)} entries")
        return complete(torch.tensor(self.numbers(len(rows)), dtype=torch.float64).reshape(-1, 4))


def complete(poses: Tensor) -> Tensor:
    """Poses of 3 or 4 rows -> of 4."""
    if poses.shape[-2] == 4:
        return poses
    return torch.cat([poses, poses.new_tensor([0.0, 0, 0, 1]).expand(*poses.shape[:-2], 1, 4)], -2)


def is_url(words: Sequence[str]) -> bool:
    return len(words) == 1 and "://" in words[0]


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def natural(name: str) -> list[tuple[int, str]]:
    """A sorting key by which frame_2 comes before frame_10: words and numbers alternate, a longer number is greater."""
    parts = re.split(r"([0-9]+)", name)
    return [(len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part) for i, part in enumerate(parts)]


def _short(value: object) -> str:
    try:
        text = str(value)
    except RecursionError:
        text = f"a {type(value).__name__} of hundreds of levels"
    return text if len(text) <= 200 else text[:197] + "..."
