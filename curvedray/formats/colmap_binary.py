"""Do a COLMAP binary file's counts agree with its length? pycolmap trusts them, and a damaged file can hang it."""

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from curvedray.formats.source import Source


class Cursor:
    """A position in a file's bytes that never passes the end. They are mapped, not read: points may be gigabytes."""

    def __init__(self, source: Source, content: mmap.mmap):
        self.source, self.content, self.at = source, content, 0

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.content):
            self.source.fail(f"byte {self.at - size}", f"{size} more bytes", "the end", "Is the file cut short?")

    def take(self, layout: str) -> tuple:
        start = self.at
        self.skip(struct.calcsize("<" + layout))
        return struct.unpack_from("<" + layout, self.content, start)

    def take_text(self) -> str:
        end = self.content.find(b"\0", self.at)
        start, length = self.at, (end if end >= 0 else len(self.content)) - self.at
        self.skip(length + 1)
        try:
            return self.content[start : start + length].decode()
        except UnicodeDecodeError:
            self.source.fail(f"byte {start}", "an image's name", "bytes that are not text")


def check(folder: Path, colmap: ModuleType) -> None:
    """InputError for the first binary file of a model that ends too early or too late."""
    readers: dict[str, Callable[[Cursor], None]] = {
        "cameras": lambda cursor: _camera(cursor, colmap),
        "images": _image,
        "points3D": _point,
        "rigs": _rig,
        "frames": _frame,
    }
    for name, reader in readers.items():
        path = folder / f"{name}.bin"
        if path.is_file():
            source = Source.open(path)
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                cursor = Cursor(source, content)
                (count,) = cursor.take("Q")
                for _ in range(count):
                    reader(cursor)
                if (rest := len(content) - cursor.at) > 0:
                    source.fail("", f"{count} entries", f"{rest} bytes more")


def _camera(cursor: Cursor, colmap: ModuleType) -> None:
    start = cursor.at
    _, model, width, height = cursor.take("IiQQ")
    known = {int(value): value for value in colmap.CameraModelId.__members__.values() if int(value) >= 0}
    if model not in known or not 0 < width < 1_000_000 or not 0 < height < 1_000_000:
        cursor.source.fail(f"byte {start}", "a camera model and a size", f"{model}, {width} x {height}")
    cursor.skip(8 * len(colmap.Camera(model=known[model]).params_info.split(",")))


def _image(cursor: Cursor) -> None:
    cursor.take("I7dI")
    cursor.take_text()
    (points,) = cursor.take("Q")
    cursor.skip(24 * points)


def _point(cursor: Cursor) -> None:
    *_, track = cursor.take("Q3d3BdQ")
    cursor.skip(8 * track)


def _rig(cursor: Cursor) -> None:
    _, sensors = cursor.take("II")
    if sensors:
        cursor.skip(8)
    for _ in range(sensors - 1):
        _, _, has_pose = cursor.take("iIB")
        cursor.skip(56 if has_pose else 0)


def _frame(cursor: Cursor) -> None:
    *_, data = cursor.take("II7dI")
    cursor.skip(16 * data)
