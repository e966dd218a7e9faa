"""A piece of work in a forked copy of this process, which may be killed at its n-th file operation or out of room.

The copy starts with everything imported, so that a hundred of them take seconds. What it printed and how it ended come
back; file operations are counted through Python's audit events, before each happens.
"""

import contextlib
import io
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate"}
LONGEST = 600  # seconds; a child that takes longer is ended and counts as a hang; a busy machine is slow


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (negative: a signal), the file operations it began, what it said."""

    code: int
    operations: int
    said: str

    @property
    def problem(self) -> str:
        """What no user should see; empty where there is none."""
        if "Traceback (most recent call last)" in self.said:
            return "a traceback: " + self.said.strip().splitlines()[-1][:200]
        if self.code == -signal.SIGALRM:
            return f"not done after {LONGEST} s"
        return "" if self.code in (0, 1, 2, 130, 143) else f"exit code {self.code}"


def in_child(
    work: Callable[[], object],
    folder: Path,
    *,
    stop_at: int | None = None,
    stop_by: int = signal.SIGKILL,
    largest_file: int | None = None,
) -> Ended:
    """Run `work` in `folder`; at file operation number `stop_at` below it the child sends itself `stop_by`."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _live(work, folder, writer, stop_at, stop_by, largest_file)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        operations, _, said = pipe.read().rpartition(b"\0")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code, operations.count(b"."), said.decode("utf-8", "replace"))


def _live(
    work: Callable[[], object],
    folder: Path,
    writer: int,
    stop_at: int | None,
    stop_by: int,
    largest_file: int | None,
) -> None:
    code, said = 1, io.StringIO()
    try:
        signal.alarm(LONGEST)
        os.chdir(folder)
        torch.set_num_threads(1)
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        _count_operations(folder.resolve(), writer, stop_at, stop_by)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                work()
                code = 0
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
            except BaseException:
                traceback.print_exc()
    finally:
        os.write(writer, b"\0" + said.getvalue().encode("utf-8", "replace")[-20_000:])
        os._exit(code)


def _count_operations(folder: Path, writer: int, stop_at: int | None, stop_by: int) -> None:
    """A dot down the pipe for every file operation below the folder, and the signal at the one that is meant."""
    count = 0
    below = str(folder) + os.sep

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "open":
            if not isinstance(arguments[2], int) or not arguments[2] & WRITES:
                return
        elif event not in EVENTS:
            return
        place = arguments[0]
        if isinstance(place, bytes):
            place = os.fsdecode(place)
        if not isinstance(place, (str, os.PathLike)) or not os.path.abspath(place).startswith(below):
            return
        count += 1
        os.write(writer, b".")
        if count - 1 == stop_at:
            os.kill(os.getpid(), stop_by)

    sys.addaudithook(hook)


def command_line(*words: str) -> Callable[[], None]:
    """`curvedray words...` as a piece of work."""

    def work() -> None:
        from curvedray.cli import main

        sys.argv = ["curvedray", *words]
        main()

    return work


def hidden_in(folder: Path) -> list[str]:
    """Everything below a folder whose name begins with a dot."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.startswith("."))


def contents(folder: Path, *, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The files below a folder, without those that end in `but`; times that JSON files note are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(but):
            data = path.read_bytes()
            found[str(path.relative_to(folder))] = _timeless(data) if path.suffix == ".json" else data
    return found


def _timeless(data: bytes) -> bytes:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if "seconds" not in key and "date" not in key}
        return [without(inner) for inner in value] if isinstance(value, list) else value

    try:
        return json.dumps(without(json.loads(data)), sort_keys=True).encode()
    except ValueError:
        return data
