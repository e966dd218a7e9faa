"""Jobs on a Ray cluster: one actor per worker, which opens its model once; those that die are replaced.

Jobs are handed out one at a time, and only to workers that answered, so that none waits behind a worker for which the
cluster has no room. What a worker warns of is said here, as if it had run in this process.
"""

import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from curvedray.engine.engine import Engine, J, Opener, R
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import first_line

log = logging.getLogger(__name__)
STORE = 100 * 1024**2  # bytes of the object store of a cluster of our own: results are small, videos go by the disk
KNOCK = 10.0  # seconds that an address has to answer in
TOKEN = "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here as on its nodes"
PATIENCE = 30.0  # seconds without room for a worker, after which that is said


@dataclass(frozen=True)
class Answer:
    """What a worker sends back. Its own exceptions stay with it: not every one of them survives the journey."""

    kind: Literal["done", "refused", "broken"]
    value: Any  # the result; the four parts of an InputError; or what broke, in a line
    warnings: list[tuple[str, str]] = field(default_factory=list)  # logger's name, text


class Worker:
    """Lives in a process of its own, on any node. The model that `open_worker` loads stays until the process ends."""

    def __init__(self, open_worker: Callable[[], Callable[[Any], Any]], folder: str):
        with suppress(OSError):  # a node without that folder: relative paths will not be found, and that is said
            os.chdir(folder)  # so that they mean what they mean to whoever gave them
        self.open_worker = open_worker
        self.work: Callable[[Any], Any] | None = None

    def ready(self) -> int:
        """Answered as soon as the process runs; nothing is loaded yet."""
        return os.getpid()

    def run(self, job: Any) -> Answer:
        with _warnings() as heard:
            try:
                if self.work is None:
                    self.work = self.open_worker()
                return Answer("done", self.work(job), heard)
            except InputError as error:
                return Answer("refused", (error.name, error.expected, error.got, error.fix), heard)
            except Exception as error:
                log.debug("a job broke its worker\n%s", traceback.format_exc())
                return Answer("broken", f"{type(error).__name__}: {first_line(error)}", heard)


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append((record.name, record.getMessage()))


@contextmanager
def _warnings() -> Iterator[list[tuple[str, str]]]:
    """What this package warns of while the block lasts."""
    handler, logger = _Heard(), logging.getLogger("curvedray")
    logger.addHandler(handler)
    try:
        yield handler.records
    finally:
        logger.removeHandler(handler)


def run_on_ray(
    jobs: Sequence[J],
    open_worker: Opener[J, R],
    engine: Engine,
    done: Callable[[int, R], None],
    lost: Callable[[J, str], R] | None,
    gpu: bool,
) -> list[R]:
    needed("ray")
    with redirect_stdout(sys.stderr), _cluster(engine) as ray:  # Ray tells of dead workers where results are printed
        return _Run(ray, jobs, open_worker, engine, done, lost, gpu).finished()


@contextmanager
def _cluster(engine: Engine) -> Iterator[Any]:
    """Connected to the cluster that was named, or to one of this machine's own; a connection that was there is kept."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    logging.getLogger("ray").setLevel(logging.ERROR)  # it tells of its settings at every start
    import ray

    joined = ray.is_initialized()
    if not joined:
        settings: dict[str, Any] = {"address": engine.address}
        if not engine.address:
            settings = {"address": "local", "include_dashboard": False, "object_store_memory": STORE}
            settings |= {"num_cpus": engine.workers} if engine.workers else {}
        answered = False
        try:
            answered = _check_answers(engine.address)
            with _own_signals():
                ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **settings)
        except Exception as error:  # of a node that is slow to start it throws no other kind
            fix = "Start it with `ray start --head`, or leave the address out for a cluster of this machine alone."
            if not engine.address:
                fix = "The machine may be too busy to start one: try again, or run without --engine ray."
            if answered:  # Ray's exception does not tell a token that is missing from a port that is another's
                fix = f"Is it one of Ray {ray.__version__}? If it has a token, set {TOKEN} (docs/scale.md)."
            raise InputError("address", "a Ray cluster that answers", first_line(error), fix) from error
    try:
        yield ray
    finally:
        if not joined:
            ray.shutdown()


def _check_answers(address: str) -> bool:
    """Knock at HOST:PORT before Ray does, which would go on knocking for minutes; False where it is no HOST:PORT."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal() and int(port) < 2**16:
        socket.create_connection((host, int(port)), timeout=KNOCK).close()
        return True
    return False


@contextmanager
def _own_signals() -> Iterator[None]:
    """Whoever handled SIGTERM before goes on to: Ray would end the process with a code of its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _last_line(error: BaseException) -> str:
    """Ray tells what happened first and why last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


class _Run:
    """One list of jobs on its way over the workers."""

    def __init__(
        self,
        ray: Any,
        jobs: Sequence[Any],
        open_worker: Opener[Any, Any],
        engine: Engine,
        done: Callable[[int, Any], None],
        lost: Callable[[Any, str], Any] | None,
        gpu: bool,
    ):
        self.ray, self.jobs, self.engine, self.done, self.lost = ray, jobs, engine, done, lost
        there = ray.cluster_resources()
        gpus = 1 if gpu and there.get("GPU", 0) >= 1 else 0
        room = int(there["GPU"]) if gpus else int(there.get("CPU", 1))
        self.workers = max(1, min(engine.workers or room, len(jobs)))
        self.actor = ray.remote(num_cpus=0 if gpus else 1, num_gpus=gpus, max_restarts=0)(Worker)
        self.opener = ray.put(open_worker)
        self.waiting = deque(range(len(jobs)))
        self.results: dict[int, Any] = {}
        self.given: Counter[int] = Counter()  # how many workers each job broke
        self.starting: dict[Any, Any] = {}  # promise of an answer -> worker
        self.running: dict[Any, tuple[Any, int]] = {}  # promise of a result -> worker and its job's number
        self.failed_starts = 0
        self.said_to_wait = False
        self.unfinished: list[tuple[int, str]] = []

    def finished(self) -> list[Any]:
        try:
            while self.waiting or self.running:
                self._fill()
                self._hear()
        finally:
            for worker in [*self.starting.values(), *(worker for worker, _ in self.running.values())]:
                self.ray.kill(worker)
        if self.unfinished:
            number, reason = self.unfinished[0]
            got = f"{len(self.unfinished)} that broke every worker they were given to; number {number}: {reason}"
            raise InputError("jobs", f"{len(self.jobs)} that can be done", got, "The others are done and are kept.")
        return [self.results[number] for number in range(len(self.jobs))]

    def _fill(self) -> None:
        """As many workers as there is work for."""
        wanted = min(self.workers, len(self.waiting) + len(self.running))
        while len(self.starting) + len(self.running) < wanted:
            worker = self.actor.remote(self.opener, os.getcwd())
            self.starting[worker.ready.remote()] = worker

    def _hear(self) -> None:
        """Wait for one answer, and give the worker that gave it the next job."""
        heard, _ = self.ray.wait([*self.starting, *self.running], num_returns=1, timeout=PATIENCE)
        if not heard and not self.running and not self.said_to_wait:
            self.said_to_wait = True
            log.warning("waiting for the cluster to have room for a worker")
        for promise in heard:
            if promise in self.starting:
                self._started(promise, self.starting.pop(promise))
            else:
                self._answered(promise, *self.running.pop(promise))

    def _started(self, promise: Any, worker: Any) -> None:
        try:
            self.ray.get(promise)
        except self.ray.exceptions.RayError as error:
            self.failed_starts += 1
            if self.failed_starts > self.engine.retries:
                fix = "Is curvedray installed on every node, in the version that runs here?"
                raise InputError("workers", "processes that start", _last_line(error), fix) from error
            return
        self.failed_starts = 0
        self._give(worker)

    def _give(self, worker: Any) -> None:
        if not self.waiting:
            self.ray.kill(worker)  # its place is free for others
            return
        number = self.waiting.popleft()
        self.running[worker.run.remote(self.jobs[number])] = worker, number

    def _answered(self, promise: Any, worker: Any, number: int) -> None:
        try:
            answer: Answer = self.ray.get(promise)
        except self.ray.exceptions.RayError as error:
            self._broke(number, f"its worker died ({first_line(error)})")
            return
        for name, text in answer.warnings:
            logging.getLogger(name).warning("%s", text)
        if answer.kind == "refused":
            self.ray.kill(worker)
            raise InputError(*answer.value)
        if answer.kind == "broken":
            self.ray.kill(worker)  # a GPU that failed once fails again in the same process
            self._broke(number, answer.value)
            return
        self._keep(number, answer.value)
        self._give(worker)

    def _broke(self, number: int, reason: str) -> None:
        self.given[number] += 1
        if self.given[number] <= self.engine.retries:
            log.warning("job %d goes to another worker: %s", number, reason)
            self.waiting.appendleft(number)
        elif self.lost is None:
            self.unfinished.append((number, reason))
        else:
            self._keep(number, self.lost(self.jobs[number], reason))

    def _keep(self, number: int, result: Any) -> None:
        self.results[number] = result
        self.done(number, result)
