"""Projects: what the page keeps, as files of one folder, each written whole."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from curvedray.app.answering import Refused
from curvedray.app.names import said
from curvedray.app.requests import Asked
from curvedray.files import whole_file
from curvedray.inputs import read_json

NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9 _-]{0,62}[A-Za-z0-9_-])?")
MOST = 1000
FORMAT = 1


class Project(Asked):
    """Whatever the page keeps; only its format is known here."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, frozen=True)
    studio: int = Field(ge=FORMAT, le=FORMAT)


class Projects:
    def __init__(self, folder: Path):
        self.folder = folder

    def all(self) -> list[dict[str, Any]]:
        files = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        rows = [(file.stem, file.stat()) for file in files if NAME.fullmatch(file.stem)]
        changed = [said(datetime.fromtimestamp(found.st_mtime, UTC)) for _, found in rows]
        return [
            {"name": name, "changed": when, "bytes": found.st_size}
            for (name, found), when in zip(rows, changed, strict=True)
        ]

    def read(self, name: str) -> Any:
        return read_json(self._there(name), "a project")

    def write(self, name: str, project: Project) -> dict[str, Any]:
        file = self._file(name)
        if not file.exists() and len(self.all()) >= MOST:
            raise Refused(409, f"projects: expected at most {MOST}, got one more")
        with whole_file(file) as temporary:
            temporary.write_text(json.dumps(project.model_dump()))
        return {"name": name, "bytes": file.stat().st_size}

    def remove(self, name: str) -> None:
        self._there(name).unlink()

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise Refused(400, "name: expected letters, digits, spaces, _ and -, at most 64")
        return self.folder / f"{name}.json"

    def _there(self, name: str) -> Path:
        file = self._file(name)
        if not file.is_file():
            raise Refused(404, f"project: expected one that is there, got {name!r}")
        return file
