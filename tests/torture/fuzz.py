"""Runs attacks in worker processes, each input within 5 seconds and 2 GB, and collects what should not have happened.

A finding is named by its target and number, from which the same input is made again:
`python -m tests.torture --only "radial maps" --number 1234`.
"""

import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NoReturn

from torture.files import Target

SECONDS, MEMORY = 5.0, 2 * 10**9  # of the processor, so that a busy machine makes no findings; and bytes
WAIT, PATIENCE = 60.0, 120.0  # seconds by the clock: for what waits, and for a worker that is deaf to both
FEWEST = 5  # inputs of a target, however little time there is
CLOCKS = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, WAIT))


@dataclass(frozen=True)
class Finding:
    """Something other than an answer or an InputError."""

    target: str
    number: int
    what: str

    @property
    def kind(self) -> str:
        """The same for every input that meets the same fault."""
        return re.sub(r"0x[0-9a-f]+|\d+", "N", self.what)[:160]


@dataclass
class Outcome:
    """Counts by target, and the findings."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (target, read or refused or found)
    findings: list[Finding] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)  # seconds, by target

    @property
    def inputs(self) -> int:
        return sum(self.counts.values())


class Hang(BaseException):
    """Raised by the clock; no library catches it as one of its own."""


def attack_all(targets: Sequence[type[Target]], inputs: int, *, seed: int = 0, seconds: float | None = None) -> Outcome:
    """So many inputs over all targets, by their shares; or as many as there is time for."""
    outcome, whole = Outcome(), sum(target.share for target in targets)
    for target in targets:
        count = max(1, round(inputs * target.share / whole))
        end = None if seconds is None else time.monotonic() + seconds * target.share / whole
        _attack_one(target, range(seed, seed + count), end, outcome)
    return outcome


def _attack_one(target: type[Target], numbers: range, end: float | None, outcome: Outcome) -> None:
    """A target's inputs, in one worker after another: each lives until it dies of an input."""
    start = _run_worker(target, numbers, end, outcome)
    while start < numbers.stop and (end is None or time.monotonic() < end):
        start = _run_worker(target, range(start, numbers.stop), end, outcome)


def _run_worker(target: type[Target], numbers: range, end: float | None, outcome: Outcome) -> int:
    """One worker's life; returns the number to go on from."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _work(target, numbers, end, writer)
    os.close(writer)
    begun: int | None = None
    heard = True
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        rest = b""
        while heard:
            heard = bool(select.select([pipe], [], [], PATIENCE)[0])
            piece = pipe.read(1 << 16) if heard else b""
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for message in map(json.loads, lines):
                begun = message.get("begin", begun)
                if "outcome" in message:
                    _note(outcome, target.name, begun, message)
                    begun = None
    if not heard:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if begun is not None:
        what = f"the process died with code {code}" if heard else "a hang that no signal ends"
        _note(outcome, target.name, begun, {"outcome": "found", "seconds": PATIENCE, "what": what})
        return begun + 1
    if code:
        raise RuntimeError(f"the worker for {target.name} could not begin: see its traceback above")
    return numbers.stop


def _note(outcome: Outcome, target: str, number: int | None, message: dict[str, Any]) -> None:
    outcome.counts[target, message["outcome"]] += 1
    outcome.slowest[target] = max(outcome.slowest.get(target, 0.0), message["seconds"])
    if message["outcome"] == "found":
        outcome.findings.append(Finding(target, -1 if number is None else number, message["what"]))


def _work(kind: type[Target], numbers: range, end: float | None, writer: int) -> NoReturn:
    """The worker: makes the target, then says before and after every input what it does."""
    code, loud = 1, os.dup(2)
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        import torch

        torch.set_num_threads(1)  # the parent's other threads are not here, and torch would wait for them for ever
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # readers warn, of thousands of files
        os.chdir(folder)
        target = kind(folder)
        limit_memory()
        for number in numbers:
            if end is not None and time.monotonic() > end and number >= numbers.start + FEWEST:
                break
            os.write(writer, json.dumps({"begin": number}).encode() + b"\n")
            os.write(writer, json.dumps(attacked(target, number)).encode() + b"\n")
        code = 0
    except BaseException:
        os.write(loud, traceback.format_exc().encode())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code)


def attacked(target: Target, number: int) -> dict[str, Any]:
    """One input, within its time: read, refused, or found, and then what."""
    from curvedray.errors import InputError

    started, what, result = time.process_time(), "", "read"
    for clock, number_of_it, seconds in CLOCKS:
        signal.signal(number_of_it, _ring)
        signal.setitimer(clock, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.attack(Random(f"{target.name} {number}"))
    except InputError as error:
        result = "refused"
        if "\x1b" in str(error) or len(str(error)) > 2000:
            result, what = "found", "a message that is too long, or that a terminal would obey"
    except BaseException as error:
        result, what = "found", _in_words(error)
    finally:
        for clock, _, _ in CLOCKS:
            signal.setitimer(clock, 0)
    return {"outcome": result, "seconds": round(time.process_time() - started, 3), "what": what}


def _ring(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang(f"not done after {SECONDS:.0f} s")


def _in_words(error: BaseException) -> str:
    """The exception, and the last line of ours that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "curvedray" in frame.filename] or frames
    place = f"{'/'.join(Path(ours[-1].filename).parts[-2:])}:{ours[-1].name}"
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__} in {place}: {first[:150]}"


def limit_memory() -> None:
    """2 GB more than the process has; what asks for more gets a MemoryError, which is an answer where it is caught."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
