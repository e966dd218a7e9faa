"""Files that the page hands over: streamed to disk within bounds, read only by the package's own readers."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from curvedray.app.answering import Refused
from curvedray.app.limits import LARGEST_UPLOAD, MOST_FILES, MOST_UPLOADED
from curvedray.app.names import folder_named, is_name, new_name
from curvedray.files import plain_name, writing
from curvedray.inputs import megabytes

AT_ONCE = 4


class Uploads:
    """uploads/KIND/NAME/FILE: one file, or several of one folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.under_way = 0

    def files(self, name: str, kind: str) -> list[Path]:
        """The uploaded files, the first that came first."""
        folder = folder_named(self.folder / kind, name, "upload")
        files = [file for file in folder.iterdir() if not file.name.startswith(".")]
        if not files:
            raise Refused(404, f"upload {name}: expected a file, got none that was finished")
        return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))

    def path(self, name: str, kind: str) -> Path:
        """The uploaded file, or the folder where there are several."""
        files = self.files(name, kind)
        return files[0] if len(files) == 1 else files[0].parent

    async def keep(self, kind: str, name: str, into: str | None, body: AsyncIterator[bytes], claimed: int) -> dict:
        """Write a body to disk as it comes; what is too long is refused by what it claims, and again as it comes."""
        if kind not in LARGEST_UPLOAD:
            raise Refused(404, f"upload: expected {', '.join(LARGEST_UPLOAD)}, got {kind[:40]!r}")
        plain_name(name, "name of the file")
        limit = min(LARGEST_UPLOAD[kind], MOST_UPLOADED - self.bytes_kept())
        if claimed > limit:
            raise self._too_large(limit, claimed)
        if self.under_way >= AT_ONCE:
            raise Refused(503, "Several uploads are under way. Try again in a moment.", {"Retry-After": "2"})
        self.under_way += 1
        try:
            return await self._write(kind, name, into, body, limit)
        finally:
            self.under_way -= 1

    async def _write(self, kind: str, name: str, into: str | None, body: AsyncIterator[bytes], limit: int) -> dict:
        folder = self._folder(kind, into)
        size = 0
        try:
            with writing(str(folder / name)):
                handle, temporary = tempfile.mkstemp(prefix=".", dir=folder)
                with os.fdopen(handle, "wb") as file:
                    async for part in body:
                        size += len(part)
                        if size > limit:
                            raise self._too_large(limit, size)
                        file.write(part)
                if not size:
                    raise Refused(400, f"{name}: expected a file, got no bytes")
                os.replace(temporary, folder / name)
        finally:
            for leftover in folder.glob(".*"):
                leftover.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
        return {"upload": folder.name, "kind": kind, "name": name, "bytes": size}

    def _folder(self, kind: str, into: str | None) -> Path:
        if into is not None:
            folder = folder_named(self.folder / kind, into, "upload")
            if sum(1 for _ in folder.iterdir()) >= MOST_FILES:
                raise Refused(413, f"upload: expected at most {MOST_FILES} files, got more")
            return folder
        folder = self.folder / kind / new_name()
        with writing(str(folder)):
            folder.mkdir(parents=True)
        return folder

    def remove(self, name: str) -> None:
        found = [self.folder / kind / name for kind in LARGEST_UPLOAD if is_name(name)]
        folder = next((i for i in found if i.is_dir()), None)
        if folder is None:
            raise Refused(404, f"upload: expected one that is there, got {name[:40]!r}")
        shutil.rmtree(folder)

    def bytes_kept(self) -> int:
        return sum(file.stat().st_size for file in self.folder.glob("*/*/*") if file.is_file())

    def _too_large(self, limit: int, got: int) -> Refused:
        words = f"upload: expected at most {megabytes(max(limit, 0))}, got {megabytes(got)}"
        if limit < min(LARGEST_UPLOAD.values()):
            words += f". {self.folder} is nearly full: remove old uploads."
        return Refused(413, words)
