"""Files written whole or not at all, and disks that are full or may not be written to, said in one sentence."""

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from curvedray.errors import InputError
from curvedray.inputs import first_line

if TYPE_CHECKING:
    from torch import Tensor

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def writing(what: str, fix: str = "Make room and run the same command again.") -> Iterator[None]:
    """Turn what goes wrong on a disk in this block into an InputError that says so, and what to do."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # safetensors tells the system's error by its number in words; it is asked by name, so as not to be imported.
        if not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        full = getattr(error, "errno", None) in FULL or any(f"os error {number}" in str(error) for number in FULL)
        got = "a full disk" if full else first_line(error)
        raise InputError(what, "room on the disk and leave to write", got, fix) from error


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its name when the block ends well, and vanishes when it does not.

    A link is followed, so that what it points to is replaced and not the link. A full disk is said in a sentence.
    """
    path = Path(path)
    check_writable(path)
    with writing(str(path)):
        path = path.resolve() if path.is_symlink() else path
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem[:100]}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with writing(str(path)):
            yield temporary
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)  # mkstemp's files are private; what we hand over is not
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def write_tensors(path: str | Path, tensors: Mapping[str, "Tensor"], header: Mapping[str, str] | None = None) -> Path:
    """A safetensors file, whole or not at all. One header entry at most: several are written in any order."""
    from safetensors.torch import save_file

    assert header is None or len(header) <= 1, "equal contents are to be equal bytes"
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as temporary:
        save_file(stored, temporary, dict(header) if header else None)
    return Path(path)


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written to before any work is done for it; nothing is made."""
    try:
        if path.is_dir():
            raise InputError(str(path), "the name of a file to write", "a folder")
        if path.exists() and not path.is_file():
            raise InputError(str(path), "the name of a file to write", "a pipe or a device")
        folder = next(folder for folder in path.absolute().parents if folder.exists())
    except (OSError, ValueError) as error:  # too long, or with a NUL
        if isinstance(error, InputError):
            raise
        raise InputError(str(path), "a file that can be written", first_line(error)) from error
    if not folder.is_dir():
        raise InputError(str(path), "a folder to write in", f"a file, {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(str(path), "a folder that can be written in", f"{folder}, which cannot")


def named_file(path: str | Path, endings: tuple[str, ...]) -> Path:
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise InputError(str(path), f"a name that ends in {' or '.join(endings)}", path.suffix or "no ending")
    return path
