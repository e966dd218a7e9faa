"""What every benchmark needs: interleaved medians, one thread or many, a process's peak memory, and a table."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from curvedray.tables import markdown_table


@dataclass(frozen=True)
class Measurement:
    """One number, and what it was meant to be."""

    what: str
    value: float
    unit: str = "x"
    target: float | None = None
    at_least: bool = False  # else at most

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each function, called in turn `rounds` times after one call to warm up, so that noise meets all.

    On one thread `time.process_time` leaves out what a busy machine gave to others.
    """
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
    return times


def ratio(times: Mapping[str, list[float]], name: str, base: str) -> float:
    """Median over rounds of one function's time over another's in the same round."""
    return statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_growth(function: Callable[[], object]) -> float | None:
    """MiB by which this process grows, at its largest, while the function runs. Linux only; else None."""
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from now
    except OSError:
        return None

    def size(field: str) -> float:
        line = next(line for line in status.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024

    before = size("VmRSS")
    function()
    return size("VmHWM") - before


def hardware() -> str:
    """The machine in one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux: the platform's own name will do
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"{model}, {os.cpu_count()} cores, {capability}, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}"
    )


def load() -> str:
    """How busy the machine was: numbers from a busy machine deserve less trust."""
    return f"{os.getloadavg()[0]:.1f} processes wanted to run, over the last minute"


def markdown(title: str, command: str, measurements: list[Measurement]) -> str:
    """A results file: command, date, hardware, and the table."""
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    rows = [(m.what, f"{shown(m.value)} {m.unit}", target(m), verdict(m)) for m in measurements]
    head = f"# {title}\n\n`{command}`, {date}\n\n{hardware()}; {load()}\n\n"
    return head + markdown_table(["what", "measured", "target", "met"], rows) + "\n"


def shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e-2 or abs(value) >= 1e4 else f"{value:.4g}"


def target(m: Measurement) -> str:
    return "" if m.target is None else f"{'>=' if m.at_least else '<='} {m.target:g}"


def verdict(m: Measurement) -> str:
    return {None: "", True: "yes", False: "no"}[m.met]
