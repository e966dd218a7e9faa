"""Names of takes, uploads and maps: when they were made and a digit of chance, so that they sort and hardly clash."""

import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from curvedray.app.answering import Refused
from curvedray.app.requests import ID


def new_name() -> str:
    """To the microsecond, in five digits to the base of 16, and one of chance."""
    moment = datetime.now(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{moment.microsecond:05x}{secrets.choice('0123456789abcdef')}"


def is_name(text: str) -> bool:
    return re.fullmatch(ID, text) is not None


def folder_named(parent: Path, name: str, what: str) -> Path:
    """The folder of that name; whatever is no name, or not there, is 404."""
    folder = parent / name if is_name(name) else None
    if folder is None or not folder.is_dir():
        raise Refused(404, f"{what}: expected one that is there, got {name[:40]!r}")
    return folder


def now() -> str:
    return said(datetime.now(UTC))


def said(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
