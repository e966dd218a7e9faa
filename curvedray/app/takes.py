"""Takes: what was asked, how it went, and its files. Each is a folder, its record written whole at every change."""

import json
import re
import shutil
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from curvedray.app.answering import Refused
from curvedray.app.names import is_name, new_name, now
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.inputs import read_json

RECORD, PROJECT = "take.json", "project.json"
FILE = re.compile(r"[a-z0-9][a-z0-9-]{0,40}\.(mp4|png|jpg|json|npz)")
State = Literal["queued", "working", "finished", "failed", "cancelled"]
LONG = ("requested", "recovered")  # of a verdict: told with one take, not in lists and events
MOST_ATTEMPTS = 2  # that a worker may stop at, before a take counts as failed


@dataclass
class Take:
    """One thing that the worker makes: a film, a score, a transfer."""

    take: str
    kind: Literal["film", "score", "transfer"]
    asked: dict[str, Any]
    state: State = "queued"
    title: str = ""
    again: str | None = None  # the take that this one varies
    made: str = field(default_factory=now)
    place: int | None = None
    left: float | None = None
    step: int = 0
    steps: int = 0
    doing: str = ""
    notes: list[str] = field(default_factory=list)
    failure: str = ""
    files: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # width, height, fps, frames, lens, moves, near, command ...
    verdict: dict[str, Any] | None = None
    scores: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    attempts: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in ("finished", "failed", "cancelled")

    def summary(self) -> dict[str, Any]:
        """For lists and events: all but the long parts."""
        record = asdict(self)
        facts = record.pop("facts")
        record.pop("attempts")
        if self.verdict is not None:
            record["verdict"] = {key: value for key, value in self.verdict.items() if key not in LONG}
        return facts | record


class Takes:
    """All takes of a studio, newest last, as they are on disk."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.all: dict[str, Take] = {}

    def load(self) -> list[Take]:
        """Read every record; those that were not over when the studio ended come back, oldest first."""
        found = sorted(i for i in self.folder.iterdir() if is_name(i.name)) if self.folder.is_dir() else []
        for folder in found:
            take = _read(folder / RECORD)
            if take is not None:
                self.all[take.take] = take
        return [take for take in self.all.values() if not take.is_over]

    def new(self, kind: Literal["film", "score", "transfer"], asked: dict[str, Any], again: str | None = None) -> Take:
        project = asked.pop("project", None)
        take = Take(new_name(), kind, asked, title=asked.get("title", ""), again=again)
        while take.take in self.all:
            take.take = new_name()
        self.keep(take)
        if project is not None:
            with whole_file(self.path(take) / PROJECT) as temporary:
                temporary.write_text(json.dumps(project))
        self.all[take.take] = take
        return take

    def keep(self, take: Take) -> None:
        """Write the record, whole."""
        with whole_file(self.path(take) / RECORD) as temporary:
            temporary.write_text(json.dumps(asdict(take)))

    def path(self, take: Take) -> Path:
        return self.folder / take.take

    def named(self, name: str) -> Take:
        if name not in self.all:
            raise Refused(404, f"take: expected one that is there, got {name[:40]!r}")
        return self.all[name]

    def whole(self, take: Take) -> dict[str, Any]:
        """Everything about a take, the page's own state among it."""
        record = take.summary() | {"verdict": take.verdict}
        project = self.path(take) / PROJECT
        if project.is_file():
            record["asked"] = take.asked | {"project": read_json(project)}
        return record

    def file(self, take: Take, name: str) -> Path:
        """One of a take's files; no other name is looked at."""
        if not FILE.fullmatch(name) or name not in take.files.values():
            raise Refused(404, f"file: expected one of the take's, got {name[:40]!r}")
        path = self.path(take) / name
        if not path.is_file():
            raise Refused(404, f"{name}: it was removed from {self.path(take)}")
        return path

    def remove(self, take: Take) -> None:
        del self.all[take.take]
        shutil.rmtree(self.path(take), ignore_errors=True)

    def newest(self, before: str | None, limit: int) -> tuple[list[Take], bool]:
        names = sorted((name for name in self.all if before is None or name < before), reverse=True)
        return [self.all[name] for name in names[:limit]], len(names) > limit


def _read(file: Path) -> Take | None:
    """A record as it was kept; one that somebody damaged is passed over, and its files are left alone."""
    try:
        record = read_json(file)
        known = {one.name for one in fields(Take)}
        return Take(**{key: value for key, value in record.items() if key in known})
    except (InputError, TypeError, AttributeError):
        return None
