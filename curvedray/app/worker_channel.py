"""The channel between the queue and its worker, at the worker's end: jobs, a cancel, and what is told back."""

import os
import queue
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any


class Cancelled(Exception):
    """The take that is being made is not wanted any more."""


class Channel:
    """What the worker and the queue say to each other."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.jobs: queue.Queue[dict[str, Any]] = queue.Queue()
        self.cancelled = threading.Event()
        self.take = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                message = self.connection.recv()
                if "cancel" not in message:
                    self.jobs.put(message)
                elif message["cancel"] == self.take:
                    self.cancelled.set()
        os._exit(0)  # the studio is gone; files are written whole or not at all

    def next(self) -> dict[str, Any]:
        job = self.jobs.get()
        self.cancelled.clear()
        self.take = job["do"]
        return job

    def say(self, event: str, **more: Any) -> None:
        self.connection.send({"event": event, "take": self.take, **more})

    def check(self) -> None:
        """Stop here if the take was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled
