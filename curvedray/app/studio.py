"""All that the studio's calls share: its folder and its threads."""

from pathlib import Path

from curvedray.app.calls import Threads


class Studio:
    """One running studio."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.threads = Threads()

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def leave(self) -> None:
        """Called in a signal handler."""

    async def stop(self) -> None:
        pass
