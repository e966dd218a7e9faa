"""Killed at a file operation, then run again: the same bytes as a run that nobody stopped, and nothing hidden left.

`kill -9` cannot be caught, so what it leaves is tidied by the next run. SIGTERM can: after it nothing may be left.
"""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from torture.child import contents, hidden_in, in_child
from torture.jobs import Job


@dataclass
class Series:
    """How often a job was stopped, and what went wrong."""

    job: str
    operations: int = 0  # of the run that nobody stopped
    kills: int = 0
    problems: list[str] = field(default_factory=list)


def kill_and_resume(job: Job, kills: int, *, seed: int = 0, seconds: float | None = None) -> Series:
    """`kills` times: kill -9 at one of the job's file operations, each as often as the others; resume; compare."""
    end = None if seconds is None else time.monotonic() + seconds
    with fresh_folder(job) as folder:
        ended = in_child(job.run, folder)
        series = Series(job.name, ended.operations)
        if ended.code:
            series.problems.append(f"unstopped: {ended.problem or ended.said[-300:]}")
            return series
        whole = contents(folder / "out", but=job.varies)
        series.problems += [f"unstopped, it left {name}" for name in hidden_in(folder)]
    for moment in _moments(ended.operations, kills, seed, end):
        with fresh_folder(job) as folder:
            series.kills += 1
            killed = in_child(job.run, folder, stop_at=moment)
            if killed.code not in (-signal.SIGKILL, 0):
                series.problems.append(f"at operation {moment}: ended with {killed.code}, {killed.said[-200:]}")
                continue
            series.problems += [f"at operation {moment}: {problem}" for problem in _resumed(job, folder, whole)]
    return series


def _resumed(job: Job, folder: Path, whole: dict[str, bytes]) -> Iterator[str]:
    ended = in_child(job.resume, folder)
    if ended.code:
        yield f"resuming ended with {ended.code}: {ended.said.strip()[-300:]}"
        return
    got = contents(folder / "out", but=job.varies)
    for name in sorted(set(whole) | set(got)):
        if whole.get(name) != got.get(name):
            how = "is missing" if name not in got else "is left over" if name not in whole else "has other bytes"
            yield f"{name} {how}"
    yield from (f"{name} was left hidden" for name in hidden_in(folder))


def stop_by_sigterm(job: Job, stops: int, *, seed: int = 0, seconds: float | None = None) -> Series:
    """SIGTERM at file operations: it says so and leaves nothing hidden, at once and without a second run."""
    end = None if seconds is None else time.monotonic() + seconds
    with fresh_folder(job) as folder:
        series = Series(f"{job.name}, SIGTERM", in_child(job.run, folder).operations)
    for moment in _moments(series.operations, stops, seed, end):
        with fresh_folder(job) as folder:
            series.kills += 1
            ended = in_child(job.run, folder, stop_at=moment, stop_by=signal.SIGTERM)
            if ended.code not in (0, 143) or ended.problem:
                said = ended.problem or ended.said[-200:]
                series.problems.append(f"at operation {moment}: ended with {ended.code}, {said}")
            series.problems += [f"at operation {moment}: {name} was left hidden" for name in hidden_in(folder)]
    return series


def _moments(operations: int, count: int, seed: int, end: float | None) -> Iterator[int]:
    """Operations to stop at, until there were `count` or the time is over: in any order, none twice before all once."""
    chance, done = Random(seed), 0
    while operations:
        for moment in chance.sample(range(operations), operations):
            if done == count or (end is not None and time.monotonic() > end):
                return
            done += 1
            yield moment


@contextmanager
def fresh_folder(job: Job) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        job.prepare(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
