"""How a command ends: a user's mistake is one sentence and exit code 2; being stopped cleans up; the rest is our bug.

0    done                                  2    a mistake, or a full device, said in one sentence
130  Ctrl-C                                143  SIGTERM; both let every `finally` and `with` clean up first
"""

import errno
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from curvedray.errors import InputError, quoted
from curvedray.extras import missing_extra

LONGEST_NOTE = 2000  # characters
MISTAKE, INTERRUPTED, TERMINATED = 2, 130, 143
FULL = (errno.ENOSPC, errno.EDQUOT)
OF_THE_MACHINE = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ELOOP, errno.EMFILE)
ARGUMENT = re.compile(r"(?<![\w-])([a-z_]+)=(True\b)?")  # near=, any_weights=True: an argument as Python has it


def run(app: typer.Typer, console: Console) -> None:
    """Run an app on `sys.argv`, and leave with a code that says how it went; `console` is where it is said."""
    options = _options(app, sys.argv[1:])
    logging.getLogger("curvedray").addHandler(_Notes(console, options))
    try:
        with _terminable():
            try:
                app(prog_name="curvedray")  # also as `python -m curvedray`: completion goes by this name
            finally:
                sys.stdout.flush()
    except InputError as error:
        _refuse(console, as_options(error, options))
    except ModuleNotFoundError as error:
        sentence = missing_extra(error)
        if sentence is None:
            raise
        _refuse(console, str(sentence))
    except BrokenPipeError:  # `curvedray cameras list | head`: nobody reads on
        _silence_stdout()
        sys.exit(1)
    except OSError as error:
        if error.errno in OF_THE_MACHINE and error.filename is not None:
            said = InputError(os.fsdecode(error.filename), "a file or folder to use", os.strerror(error.errno))
            _refuse(console, str(said))
        if error.errno not in FULL:
            raise
        _silence_stdout()
        path = error.filename or "a file or standard output"
        _refuse(
            console,
            f"{path}: expected room to write, got: {os.strerror(error.errno)}. Free some space, or write elsewhere.",
        )
    except (KeyboardInterrupt, SystemExit) as leaving:
        # Typer turns Ctrl-C into its exit code.
        code = INTERRUPTED if isinstance(leaving, KeyboardInterrupt) else leaving.code
        if code not in (INTERRUPTED, TERMINATED):
            raise
        console.print("stopped; nothing half-written was left behind")
        sys.exit(code)


class _Notes(logging.Handler):
    """What users should know and need not stop for, in the command line's words."""

    def __init__(self, console: Console, options: dict[str, str]):
        super().__init__(logging.WARNING)
        self.console, self.options = console, options

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(Text(quoted(in_options(record.getMessage(), self.options), LONGEST_NOTE)))


def as_options(error: InputError, options: dict[str, str]) -> str:
    """A mistake in the command line's words: its name, and what to do about it."""
    fix = in_options(error.fix, options)
    return str(InputError(options.get(error.name, error.name), error.expected, error.got, fix))


def in_options(advice: str, options: dict[str, str]) -> str:
    """Advice that names arguments as Python has them (near=2), in the command line's words (--near 2).

    `options` is name -> option of the command that was run. What it lacks may be a file reader's, if it has --option.
    """

    def option(found: re.Match[str]) -> str:
        name, flag = found.groups()
        if name in options:
            return options[name] if flag else f"{options[name]} "
        return f"--option {found.group()}" if "option" in options else found.group()

    return re.sub(r" +(?=[,.;:) ]|$)", "", ARGUMENT.sub(option, advice))


def _options(app: typer.Typer, words: list[str]) -> dict[str, str]:
    """name -> longest option of the command that these words run."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    named = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {parameter.name: max(parameter.opts, key=len) for parameter in named}


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM raises, as Ctrl-C does, so that temporary files are removed on the way out."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _refuse(console: Console, message: str) -> NoReturn:
    console.print(Text.assemble(("error:", "red"), " ", message))  # as text: brackets in a name are no markup
    sys.exit(MISTAKE)


def _silence_stdout() -> None:
    """What is still in its buffer can go nowhere; without this Python would complain once more on leaving."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
