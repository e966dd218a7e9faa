"""Files written whole or not at all, and disks that are full or may not be written to, said in one sentence."""

import errno
import os
import re
import shutil
import socket
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import first_line

if TYPE_CHECKING:
    from torch import Tensor

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LONGEST_NAME = 200  # bytes: an ending and a temporary name must fit into the 255 of most file systems


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

    A link is followed, so that what it points to is replaced and not the link. A full disk is said in a sentence. A
    process that is killed cannot tidy up: what it left is removed when the next one writes into the same folder.
    """
    path = Path(path)
    check_writable(path)
    with _folder_for(path) as path, writing(str(path)):
        handle, name = tempfile.mkstemp(prefix=_hidden_prefix(path), suffix=_short_suffix(path), dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(_mode_for(path))
            os.replace(temporary, path)
        finally:
            surely(lambda: temporary.unlink(missing_ok=True))


@contextmanager
def scratch_folder(path: str | Path) -> Iterator[Path]:
    """A hidden folder beside `path`, in which files are finished before any is seen. It goes when the block ends."""
    with _folder_for(Path(path)) as path, writing(str(path)):
        folder = Path(tempfile.mkdtemp(prefix=_hidden_prefix(path), dir=path.parent))
        try:
            yield folder
        finally:
            surely(lambda: shutil.rmtree(folder, ignore_errors=True))


def surely(tidy: Callable[[], object]) -> None:
    """Tidy up; where a signal comes in between, tidy up and then obey it."""
    try:
        tidy()
    except BaseException:
        tidy()
        raise


@contextmanager
def _folder_for(path: Path) -> Iterator[Path]:
    """The path with its link followed, its folder made; where the block fails, folders made for it go again."""
    with writing(str(path)):
        path = path.resolve() if path.is_symlink() else path
        made = [folder for folder in path.parents if not folder.exists()]
    try:
        with writing(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent.resolve(), os.getpid())
        yield path
    except BaseException:
        for folder in made:
            with suppress(OSError):  # not empty: another process writes there
                folder.rmdir()
        raise


def _mode_for(path: Path) -> int:
    """The permissions of the file that is replaced, or those that a new file would get."""
    with suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _hidden_prefix(path: Path) -> str:
    """`.NAME-MACHINE-PROCESS-`: it tells the next process whose a leftover is."""
    return f".{path.stem[:20]}-{_machine()}-{os.getpid()}-"


def _short_suffix(path: Path) -> str:
    return path.suffix if len(path.suffix) <= 20 else ""  # encoders choose the format by it; longer ones are no format


LEFTOVER = re.compile(r"\..*-([0-9a-f]{8})-([0-9]{1,10})-[a-z0-9_]{8}(\..{0,19})?", re.DOTALL)


@lru_cache
def _machine() -> str:
    """Eight digits that tell apart machines, and containers on one, whose numbers of processes mean nothing here."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    return f"{zlib.crc32(repr(parts).encode()):08x}"


@lru_cache(maxsize=1000)
def _remove_leftovers(folder: Path, process: int) -> None:
    """Remove what processes of this machine that are gone left in a folder; once per folder and process."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            found = LEFTOVER.fullmatch(entry.name)
            if found is None or found[1] != _machine() or _is_running(int(found[2])):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)


def _is_running(process: int) -> bool:
    if os.name != "posix":  # elsewhere there is no way to ask that cannot do harm
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write_tensors(path: str | Path, tensors: Mapping[str, "Tensor"], header: Mapping[str, str] | None = None) -> Path:
    """A safetensors file, whole or not at all. One header entry at most: several are written in any order."""
    needed("safetensors")
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
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(str(path), "a file that may be replaced", "one that is read-only")
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


def plain_name(name: str, what: str) -> str:
    """A name that other people chose and that becomes a file's: it must stay in the folder it is written to."""
    unfit = not name or name.startswith(".") or not name.isprintable() or any(i in name for i in '/\\:*?"<>|')
    if unfit or len(name.encode()) > LONGEST_NAME:
        expected = f"a file's name: at most {LONGEST_NAME} bytes, no / and no leading dot"
        raise InputError(what, expected, repr(name), "Give the clip another name.")
    return name
