"""Jobs for tests of the engine, in a module of their own so that workers find them."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def open_squares(folder: Path, slow: int = -1) -> Callable[[int], int]:
    """A worker that writes squares as files, done once each; every opening and every piece of work is noted.

    The job `slow` waits the first time until somebody kills its worker.
    """
    opened = folder / f"opened-{os.getpid()}"
    opened.touch()

    def work(number: int) -> int:
        file = folder / f"{number}.txt"
        if not file.exists():
            with (folder / "worked").open("a") as notes:
                notes.write(f"{number} {os.getpid()}\n")
            if number == slow and not (folder / "held").exists():
                (folder / "held").write_text(str(os.getpid()))
                time.sleep(600)
            time.sleep(0.05)
            temporary = folder / f".{number}-{os.getpid()}"
            temporary.write_text(str(number**2))
            os.replace(temporary, file)
        return int(file.read_text())

    return work


def open_deadly(folder: Path, deadly: int) -> Callable[[int], int]:
    """A worker that one job kills, whoever takes it."""

    def work(number: int) -> int:
        if number == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    return work


def open_refusing() -> Callable[[int], int]:
    from curvedray.errors import InputError

    raise InputError("weights", "a file", "none", "Name it.")


def open_warning() -> Callable[[int], int]:
    import logging

    def work(number: int) -> int:
        logging.getLogger("curvedray.somewhere").warning("number %d is odd", number)
        return number

    return work


def open_broken() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 1:
            raise RuntimeError("an illegal memory access")
        return number

    return work
