"""The worker: one process that owns the model and makes takes, one by one, as the desk hands them over.

It is nice to everything else, computes in one thread (two wait for each other more than they work), does not hear
Ctrl-C, and ends when the studio does, however that ends: its line breaks then.
"""

import os
import queue
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

NICENESS = 10


class Cancelled(Exception):
    """The take that is being made is not wanted any more."""


class Line:
    """What the worker and the desk say to each other."""

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


def work(connection: Connection, folder: Path) -> None:
    """Load the model, then make takes for ever. What a user got wrong fails one take, and so does a bug."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    line = Line(connection)
    import torch

    torch.set_num_threads(1)
    from curvedray.app.making import Maker, failure

    maker = Maker(folder, line)
    try:
        maker.warm_up()
    except Exception as error:
        line.say("broken", words=failure(error))
    else:
        line.say("ready")
    while True:
        job = line.next()
        try:
            maker.make(job["kind"], job["do"], job["asked"])
            line.say("finished")
        except Cancelled:
            line.say("cancelled")
        except Exception as error:
            line.say("failed", words=failure(error))
