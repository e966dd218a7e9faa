"""All that the studio's calls share: its folder, its threads, what was uploaded."""

from pathlib import Path

from curvedray.app.calls import Threads
from curvedray.app.facts import Shelf
from curvedray.app.uploads import Uploads
from curvedray.files import writing


class Studio:
    """One running studio."""

    def __init__(self, folder: Path, shelf: Shelf | None = None):
        self.folder, self.shelf = folder, shelf or Shelf()
        self.threads = Threads()
        self.uploads = Uploads(folder / "uploads")

    async def start(self) -> None:
        with writing(str(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)

    def leave(self) -> None:
        """Called in a signal handler."""

    async def stop(self) -> None:
        pass

    @property
    def worker(self) -> dict[str, str]:
        return {"state": "loading", "model": "embedded"}
