"""A camera file being read: its text, its JSON, its arrays, each able to say which line or field is wrong.

Every reader takes a `Source` and returns `Cameras` in float64; every mistake in a file becomes an InputError.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.inputs import MB, ArrayHeader, input_file, parsed_json, read_array_headers, read_arrays, read_bytes

LARGEST_FILE = 64 * MB  # of text: a hundred thousand frames; as numbers in memory it is ten times that
LARGEST_ARRAYS = 64 * MB  # of the arrays that are read: half a million poses


@dataclass(frozen=True)
class Given:
    """What the caller says about any file, beside the file."""

    lens: Lens | str | None = None  # overrules the file's
    size: tuple[int, int] | None = None  # of the image, width and height
    mirrored_world: bool = False  # the file's world is left-handed
    lens_needed: bool = False  # a file without a lens is refused, instead of read with a usual one and a note
    first_frames: int | None = None  # how many frames are wanted, from the first
    unit_said: bool = False  # the caller knows the unit, and needs no note that the file does not tell it


@dataclass(frozen=True)
class Source:
    """One file (or one folder) and what it holds, read when it is asked for."""

    path: Path
    given: Given = field(default_factory=Given)

    @classmethod
    def open(cls, path: Path, given: Given | None = None) -> "Source":
        """A folder, or a file that is there, holds something, and is neither a pipe nor a device."""
        try:
            folder = path.is_dir()
        except (OSError, ValueError):  # too long a name, or a NUL in it: input_file says so
            folder = False
        return cls(path if folder else input_file(path, "a camera file"), given or Given())

    @property
    def name(self) -> str:
        """The file's own name; the path where it has none, as `.` has not."""
        return self.path.name or str(self.path)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    def fail(self, where: str, expected: str, got: object, fix: str = "") -> NoReturn:
        raise InputError(f"{self.name}, {where}" if where else self.name, expected, _short(got), fix)

    @cached_property
    def content(self) -> bytes:
        if self.is_folder:
            self.fail("", "a file", "a folder")
        content = read_bytes(self.path, "a camera file", LARGEST_FILE)
        if not content.strip():
            self.fail("", "a camera file", "an empty file")
        return content

    @cached_property
    def head(self) -> bytes:
        """The first bytes, by which archives and arrays are known; none of a folder."""
        if self.is_folder:
            return b""
        with self.path.open("rb") as file:
            return file.read(8)

    # -- text

    @cached_property
    def is_text(self) -> bool:
        if self.is_folder or self.is_npy or self.is_npz:
            return False
        try:
            return "\0" not in self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return False

    @cached_property
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
        return Node(self, parsed_json(self.text, self.name), "")

    def first_entry(self) -> dict[str, Any]:
        """The first object of a JSON list of objects; an empty one of anything else."""
        value = self.json.value if self.is_json else None
        return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line number and words of every line that is not blank, a # comment or a table's header."""
        first = True
        for number, line in enumerate(self.text.splitlines(), 1):
            words = line.replace(",", " ").split()
            if words and not words[0].startswith("#"):
                if not (first and _is_header(line)):
                    yield number, words
                first = False

    @cached_property
    def column_names(self) -> list[str]:
        """The names that the last line before the numbers gives to the columns; none if it names another count."""
        if not self.is_text or self.is_json:
            return []
        header = ""
        for line in self.text.splitlines():
            if not line.strip():
                continue
            if not line.lstrip().startswith("#") and not _is_header(line):
                break
            header = line
        words = header.lstrip(" #").split(",") if "," in header else header.lstrip(" #").split()
        names = [re.sub(r"\[.*?\]", "", word).strip() for word in words]
        return names if len(names) == self.columns() else []

    def sample(self, columns: int) -> list[list[float]]:
        """Rows of that many finite numbers among the first fifty: what a file is known by."""
        rows = [words for _, words in islice(self.rows(), 50)]
        good = [words for words in rows if len(words) == columns and all(is_number(word) for word in words)]
        numbers = [[float(word) for word in words] for words in good]
        return [row for row in numbers if all(math.isfinite(number) and abs(number) < 1e150 for number in row)]

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

    # -- arrays

    @property
    def is_npy(self) -> bool:
        return self.head.startswith(b"\x93NUMPY")

    @property
    def is_npz(self) -> bool:
        return self.head.startswith(b"PK\x03\x04")

    @cached_property
    def array_headers(self) -> dict[str, ArrayHeader]:
        """Shapes and types of an .npz's arrays by name, or of an .npy's, as `array`; nothing is unpacked."""
        return read_array_headers(self.path, "camera poses")

    def has_arrays(self, *names: str) -> bool:
        """Whether this is an .npz with arrays of these names."""
        if not self.is_npz:
            return False
        try:
            return set(names) <= set(self.array_headers)
        except InputError:  # damaged
            return False

    def arrays(self, *names: str) -> dict[str, np.ndarray]:
        """These arrays of an .npz (`array` of an .npy), never unpickled, of real numbers."""
        for name in names:
            if name not in self.array_headers:
                self.fail(f"array {name!r}", "to find it", f"only {', '.join(self.array_headers) or 'none'}")
        arrays = read_arrays(self.path, "camera poses", LARGEST_ARRAYS, only=names)
        for name, array in arrays.items():
            if array.dtype.kind not in "fiu":
                self.fail(f"array {name!r}", "an array of real numbers", array.dtype)
        return arrays

    def array_shape(self) -> tuple[int, ...] | None:
        """The shape of an .npy's array of real numbers that is small enough to be poses; None of anything else."""
        if not self.is_npy:
            return None
        try:
            header = self.array_headers["array"]
        except InputError:  # damaged
            return None
        return header.shape if header.dtype.kind in "fiu" and header.bytes <= LARGEST_ARRAYS else None

    def array(self) -> np.ndarray:
        """The array of an .npy file."""
        if not self.is_npy:
            self.fail("", "a NumPy array (.npy)", "another kind of file")
        return self.arrays("array")["array"]

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

    def rows(self, rows: int, columns: int) -> list[list[float]]:
        """A matrix as a list of rows."""
        if not isinstance(self.value, list) or len(self.value) != rows:
            self.fail(f"{rows} rows of {columns} numbers", self.value)
        return [row.numbers(columns) for row in self.items()]

    def size(self, width: str, height: str) -> tuple[int, int]:
        """The image's size in two fields of these names."""
        sides = self[width].integer(), self[height].integer()
        if not all(1 <= side < 1_000_000 for side in sides):
            self.fail(f"{width} and {height} of at least one pixel", f"{sides[0]} x {sides[1]}")
        return sides

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


def _is_header(line: str) -> bool:
    """Whether a line with commas names columns instead of holding numbers."""
    return "," in line and not any(is_number(word) for word in line.replace(",", " ").split())


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
