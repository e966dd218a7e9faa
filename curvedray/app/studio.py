"""All that the studio's calls share: its folder, its takes, its worker, and who listens."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curvedray.app.answering import Threads
from curvedray.app.events import Hub
from curvedray.app.facts import Shelf
from curvedray.app.maps import Maps
from curvedray.app.projects import Projects
from curvedray.app.queue import TakeQueue
from curvedray.app.takes import Takes
from curvedray.app.uploads import Uploads
from curvedray.app.worker import work
from curvedray.files import writing
from curvedray.locks import lock_folder


class Studio:
    """One running studio. `work` is what its worker process runs; tests have others."""

    def __init__(self, folder: Path, shelf: Shelf | None = None, work: Callable[..., None] | None = work):
        self.folder, self.shelf = folder.absolute(), shelf or Shelf()
        self.threads = Threads()
        self.uploads = Uploads(self.folder / "uploads")
        self.maps = Maps(self.folder / "maps")
        self.projects = Projects(self.folder / "projects")
        self.takes = Takes(self.folder / "takes")
        self.hub = Hub()
        self.queue = TakeQueue(self.takes, self.hub, work, self.folder) if work is not None else None
        self.loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One studio per folder: two would write each other's takes."""
        fix = "Close the other one, or name another folder with --folder."
        with lock_folder(self.folder, f"studio {self.folder}", fix):
            yield

    async def start(self) -> None:
        """Read the history, start the worker, and go on with what was not finished."""
        with writing(str(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.loop = asyncio.get_running_loop()
        unfinished = self.takes.load()
        if self.queue is not None:
            self.queue.start()
            for take in unfinished:
                self.queue.resume(take)

    def leave(self) -> None:
        """End all streams: called by a signal's handler, which may only ask the loop to."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.hub.close)

    async def stop(self) -> None:
        self.hub.close()
        if self.queue is not None:
            self.queue.stop()

    @property
    def worker(self) -> dict[str, Any]:
        return self.queue.worker if self.queue is not None else {"state": "stopped", "words": ""}
