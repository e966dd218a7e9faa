"""A folder that one process at a time writes in: its lock, and the temporary files that a killed writer left."""

import errno
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from curvedray.errors import InputError
from curvedray.files import LEFTOVER, surely, writing
from curvedray.inputs import exists

log = logging.getLogger(__name__)
LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # what file systems without locks answer


@contextmanager
def lock_folder(folder: Path, what: str, fix: str) -> Iterator[None]:
    """Keep everybody else from writing in a folder while the block lasts; refuse if somebody is at it.

    The operating system holds the lock for this process, so it ends with it, however that ends. On a file system
    without locks the block runs unprotected, with a warning.
    """
    handle, made = None, not folder.exists()
    try:
        with writing(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            handle = _take(folder / LOCK, what, fix)
        yield
    finally:
        try:
            surely(lambda: _leave(folder, handle is not None, made))
        finally:
            if handle is not None:
                os.close(handle)


def check_unlocked(folder: Path, what: str, fix: str) -> None:
    """Refuse a folder that somebody is writing in, before any work is done for it."""
    if exists(folder / LOCK):
        with lock_folder(folder, what, fix):
            pass


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of every writer that was killed, on this machine or another.

    Only the holder of a folder's lock may: to anybody else they may be files that are being written.
    """
    for path in folder.glob(".*"):
        if LEFTOVER.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def _take(path: Path, what: str, fix: str) -> int | None:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(handle)
            with suppress(FileNotFoundError):
                if os.fstat(handle).st_ino == path.stat().st_ino:
                    _sign(handle)
                    return handle
            os.close(handle)  # its holder removed it between our opening and our locking
        except OSError as error:
            holder = os.pread(handle, 200, 0).decode(errors="replace") if hasattr(os, "pread") else ""
            os.close(handle)
            if error.errno in NO_LOCKS:
                log.warning("%s: its file system has no locks; see to it that nothing else writes there", path.parent)
                path.unlink(missing_ok=True)
                return None
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
                raise
            raise InputError(what, "nobody else at work in it", holder or "another process", fix) from error
        except BaseException:  # stopped by a signal in between
            surely(partial(_give_up, path, handle))
            os.close(handle)
            raise


def _sign(handle: int) -> None:
    """Say in the file who holds it."""
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    with suppress(OSError):  # the lock holds on a full disk, too
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}, since {since}".encode())


def _give_up(path: Path, handle: int) -> None:
    """Remove a lock that nobody else holds."""
    with suppress(OSError):
        _lock(handle)
        _remove(path)


def _leave(folder: Path, held: bool, made: bool) -> None:
    if held:
        _remove(folder / LOCK)
    if made:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def _remove(path: Path) -> None:
    """While it is held: whoever opened it meanwhile sees that its name is gone, and opens it again."""
    with suppress(OSError):
        path.unlink()


try:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows locks bytes, and keeps others from reading them: take one far behind the text
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
