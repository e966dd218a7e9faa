"""The queue: takes wait, one worker makes them one by one, and whatever befalls it no take is lost.

Everything here runs in the event loop's thread; only `_listen` is a thread, which hands on what the worker says.
"""

import asyncio
import logging
import multiprocessing
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from curvedray.app.answering import Refused
from curvedray.app.events import Hub
from curvedray.app.limits import MOST_WAITING
from curvedray.app.takes import MOST_ATTEMPTS, Take, Takes
from curvedray.errors import InputError

log = logging.getLogger(__name__)
PATIENCE = 15.0  # seconds that a cancelled take has to stop by itself; several of its own steps, if those are longer
MOST_DEATHS, WITHIN = 3, 60.0  # a worker that stops so often within so many seconds is not started again by itself
GOODBYE = 3.0  # seconds that the worker has to leave in
FIRST_GUESS = 10.0  # seconds of a take, before one was made


class TakeQueue:
    """Takes that wait for the one worker."""

    def __init__(self, takes: Takes, hub: Hub, work: Callable[..., None], folder: Path):
        self.takes, self.hub, self.work, self.folder = takes, hub, work, folder
        self.waiting: deque[Take] = deque()
        self.current: Take | None = None
        self.pictures: dict[str, bytes] = {}  # the latest of the take that is being made
        self.state, self.words = "loading", ""
        self.pace = FIRST_GUESS  # seconds per take
        self.began = self.stepped = 0.0
        self.slowest_step = 0.0
        self.deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self.process: Any = None
        self.connection: Connection | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.cancelling: asyncio.TimerHandle | None = None
        self.leaving = False

    # -- the worker's life

    def start(self) -> None:
        """Start a worker. It must not hear Ctrl-C: it inherits that the signal is ignored while it is started."""
        self.loop = asyncio.get_running_loop()
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=self.work, args=(theirs, self.folder), name="curvedray-worker", daemon=True
        )
        in_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
        try:
            process.start()
        finally:
            if in_main:
                signal.signal(signal.SIGINT, before)
        theirs.close()
        self.process, self.connection = process, ours
        threading.Thread(target=self._listen, args=(ours, self.loop), daemon=True).start()

    def _listen(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Hand on what the worker says, until it is gone."""
        with suppress(RuntimeError), connection:  # RuntimeError: the loop is closed, the studio has ended
            try:
                while True:
                    message = connection.recv()
                    loop.call_soon_threadsafe(self._heard, connection, message)
            except (EOFError, OSError):
                loop.call_soon_threadsafe(self._lost, connection)

    def _lost(self, connection: Connection) -> None:
        """The worker is gone. What it was making is made again, once, unless nobody wants it any more."""
        if connection is not self.connection or self.leaving:
            return
        self._end_cancelled()
        self._bury()
        self.deaths.append(time.monotonic())
        take, self.current = self.current, None
        if take is not None:
            if take.is_over:
                pass
            elif take.attempts < MOST_ATTEMPTS:
                take.state, take.step, take.doing = "queued", 0, ""
                take.notes.append("the worker stopped while making this; it is made again")
                self.waiting.appendleft(take)
            else:
                self._end(take, "failed", "The worker stopped twice while making this: is there enough memory?")
        if len(self.deaths) == MOST_DEATHS and self.deaths[-1] - self.deaths[0] < WITHIN:
            self._stand_still("The worker stopped several times in a row; the next take starts it again.")
        else:
            self._say("restarting", "The worker stopped and is started again; no take is lost.")
            self.start()
        self._tell_places()

    def _stand_still(self, words: str) -> None:
        """No worker can be had: nothing waits for one, and the next take that is asked for starts one again."""
        waiting, self.waiting = list(self.waiting), deque()
        for take in waiting:
            self._end(take, "failed", words)
        self.deaths.clear()
        self._say("stopped", words)

    def _bury(self) -> None:
        if self.cancelling is not None:
            self.cancelling.cancel()
            self.cancelling = None
        if self.process is not None:
            self.process.kill()
            self.process.join(GOODBYE)
        self.process = self.connection = None  # the thread that listens closes it, when it ends

    def stop(self) -> None:
        """End the worker; what waits goes on when the studio is opened again."""
        self.leaving = True
        self._end_cancelled()
        self._bury()

    def _end_cancelled(self) -> None:
        """A worker that ends before it answers a cancel will never say so: the take is over all the same."""
        if self.cancelling is not None and self.current is not None and not self.current.is_over:
            self._end(self.current, "cancelled")

    # -- what is asked

    def check_room(self, count: int = 1) -> None:
        if len(self.waiting) + count > MOST_WAITING:
            later = {"Retry-After": str(max(1, round(self.pace)))}
            raise Refused(429, f"The queue is full: {len(self.waiting)} takes wait. Cancel some, or wait.", later)

    def add(self, take: Take) -> None:
        self.waiting.append(take)
        if self.process is None and not self.leaving:
            self._say("restarting", "The worker is started again.")
            self.start()
        self._next()
        self._tell_places()

    def resume(self, take: Take) -> None:
        """A take that was not over when the studio ended last."""
        if take.state == "working":
            take.notes.append("the studio ended while making this; it is made again")
        take.state, take.step, take.doing = "queued", 0, ""
        self._keep(take)
        self.add(take)

    def cancel(self, take: Take) -> None:
        """A take that waits is cancelled now, one that is being made at its next step, or the worker is ended."""
        if take in self.waiting:
            self.waiting.remove(take)
            self._end(take, "cancelled")
            self._tell_places()
        elif take is self.current and self.cancelling is None and self.connection is not None and self.loop is not None:
            self._send({"cancel": take.take})
            take.doing = "stopping"
            patience = max(PATIENCE, 3 * self.slowest_step)
            self.cancelling = self.loop.call_later(patience, self._give_up_on, take)
            self.hub.tell("take", take.summary())

    def _give_up_on(self, take: Take) -> None:
        if take is self.current and self.process is not None:
            self._end(take, "cancelled")
            self.deaths.clear()  # this one was ours
            self.process.kill()

    # -- what the worker says

    def _heard(self, connection: Connection, message: dict[str, Any]) -> None:
        if connection is not self.connection:
            return
        if message["event"] == "ready":
            self._say("ready", "")
            self._next()
            return
        if message["event"] == "broken":
            self._bury()
            self._stand_still(message["words"])
            return
        take = self.current
        if take is None or message["take"] != take.take:
            return
        getattr(self, f"_on_{message['event']}")(take, message)

    def _on_step(self, take: Take, message: dict[str, Any]) -> None:
        now = time.monotonic()
        take.step, take.steps = message["step"], message["steps"]
        if take.step == 1:
            take.seconds["first_picture"] = round(now - self.began, 3)
        else:
            self.slowest_step = max(self.slowest_step, now - self.stepped)
        self.stepped = now
        each = (now - self.began) / take.step
        take.left = round(each * (take.steps - take.step) + 2 * each, 1)
        self.pictures = {take.take: message["picture"]} if message["picture"] else {}
        picture = f"/api/takes/{take.take}/step.jpg?n={take.step}" if message["picture"] else None
        told = {"take": take.take, "step": take.step, "steps": take.steps, "left": take.left}
        self.hub.tell("step", told | {"frames": message["frames"], "picture": picture})

    def _on_news(self, take: Take, message: dict[str, Any]) -> None:
        """Parts of a take that are done: files, facts, notes, a verdict."""
        take.doing = message.get("doing", take.doing)
        take.files.update(message.get("files", {}))
        take.facts.update(message.get("facts", {}))
        take.notes += message.get("notes", [])
        take.verdict = message.get("verdict", take.verdict)
        take.scores = message.get("scores", take.scores)
        if "video" in message.get("files", {}):
            take.seconds["video"] = round(time.monotonic() - self.began, 3)
        self._keep(take)
        self.hub.tell("take", take.summary())

    def _on_finished(self, take: Take, message: dict[str, Any]) -> None:
        took = time.monotonic() - self.began
        self.pace = 0.5 * self.pace + 0.5 * took
        self._leave_current(take, "finished")

    def _on_failed(self, take: Take, message: dict[str, Any]) -> None:
        self._leave_current(take, "failed", message["words"])

    def _on_cancelled(self, take: Take, message: dict[str, Any]) -> None:
        self._leave_current(take, "cancelled")

    def _leave_current(self, take: Take, state: Any, failure: str = "") -> None:
        if self.cancelling is not None:
            self.cancelling.cancel()
            self.cancelling = None
        self.current = None
        self._end(take, state, failure)
        self._say("ready", "")
        self._next()
        self._tell_places()

    # -- whose turn it is

    def _next(self) -> None:
        """Give the worker the next take, if both are ready."""
        if self.state != "ready" or self.current is not None or not self.waiting or self.connection is None:
            return
        take = self.current = self.waiting.popleft()
        take.state, take.attempts, take.place = "working", take.attempts + 1, 0
        self.began = self.stepped = time.monotonic()
        self.slowest_step = 0.0
        self._keep(take)
        self._say("working", "")
        self._send({"do": take.take, "kind": take.kind, "asked": take.asked})
        self.hub.tell("take", take.summary())

    def _send(self, message: dict[str, Any]) -> None:
        assert self.connection is not None
        with suppress(OSError):  # it is gone, which `_listen` finds out
            self.connection.send(message)

    def _keep(self, take: Take) -> None:
        """A disk that is full, for a while, must not stop the queue."""
        try:
            self.takes.keep(take)
        except InputError as error:
            log.warning("take %s is not on disk: %s", take.take, error)

    def _end(self, take: Take, state: Any, failure: str = "") -> None:
        take.state, take.failure = state, failure
        take.place = take.left = None
        take.doing = ""
        if take is self.current or self.current is None:
            self.pictures.pop(take.take, None)
        take.seconds["all"] = round(time.monotonic() - self.began, 3) if take.attempts else 0.0
        self._keep(take)
        self.hub.tell("take", take.summary())

    def _tell_places(self) -> None:
        """Tell those whose place in the queue has changed."""
        for place, take in enumerate(self.waiting, 1):
            if take.place != place:
                take.place = place
                take.left = round((place + (self.current is not None)) * self.pace, 1)
                self.hub.tell("take", take.summary())

    def _say(self, state: str, words: str) -> None:
        if (state, words) != (self.state, self.words):
            self.state, self.words = state, words
            self.hub.tell("worker", self.worker)

    @property
    def worker(self) -> dict[str, str]:
        return {"state": self.state, "words": self.words}
