"""What a clip is made of, in a few letters that change when anything in it changes: captions, cameras, pixels."""

import hashlib
import json
from pathlib import Path
from typing import Any

SMALL = 10**6  # bytes: a file of no more is hashed whole
END = 65_536  # bytes at both ends of a larger one


def file_fingerprint(path: Path) -> str:
    """The SHA-256 of a small file. Of a large one its size, its time of change, its beginning and its end are hashed:
    reading every video whole, each time a run starts, would take longer than the start. A folder is its files.
    """
    try:
        if path.is_dir():
            return fingerprint([[i.name, file_fingerprint(i)] for i in sorted(path.iterdir()) if i.is_file()])
        if not path.is_file():  # nothing there, or a pipe, which is not opened
            return "missing"
        found = path.stat()
        digest = hashlib.sha256()
        with path.open("rb") as file:
            if found.st_size <= SMALL:
                digest.update(file.read())
            else:
                digest.update(f"{found.st_size} {found.st_mtime_ns}".encode() + file.read(END))
                file.seek(-END, 2)
                digest.update(file.read())
        return digest.hexdigest()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return "unreadable"


def fingerprint(made_of: Any) -> str:
    """Of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
