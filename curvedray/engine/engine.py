"""Where jobs run, and how a worker there gets its model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from curvedray.errors import InputError

KINDS = ("here", "ray")
MOST_WORKERS = 100_000
J = TypeVar("J")
R = TypeVar("R")
M = TypeVar("M")
Opener = Callable[[], Callable[[J], R]]


@dataclass(frozen=True)
class Engine:
    """Where jobs run: in this process, or on a Ray cluster."""

    kind: str = "here"
    address: str = ""  # of a cluster that is there; empty: one of this machine's own, which ends with the work
    workers: int = 0  # 0: as many as the cluster has processors, or GPUs for jobs that want one
    retries: int = 2  # how often a job is given to another worker after one died on it

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError("engine", " or ".join(KINDS), self.kind)
        if self.kind == "here" and (self.address or self.workers):
            got = "an address" if self.address else f"{self.workers} workers"
            raise InputError("engine", "ray, beside an address or a number of workers", got, "Add --engine ray.")
        if not 0 <= self.workers <= MOST_WORKERS:
            raise InputError("workers", f"a number from 1 to {MOST_WORKERS}, or 0 for all there is", self.workers)
        if not 0 <= self.retries <= 100:
            raise InputError("retries", "a number from 0 to 100", self.retries)


HERE = Engine()


def model_opener(model: M, reopen: Callable[[], M] | None, engine: Engine) -> Callable[[], M]:
    """How a worker gets its model: in this process the one that is here; on others `reopen`ed, or sent without it."""
    return partial(_itself, model) if engine.kind == "here" or reopen is None else reopen


def _itself(model: M) -> M:
    return model
