"""Tables that people write by hand or with a script: rows of a csv, jsonl or json, and values of the right kind.

A row that is wrong is told apart from a table that is wrong: one bad clip must not stop the others.
"""

import csv
import io
import math
from pathlib import Path
from typing import Any

from curvedray.errors import InputError
from curvedray.inputs import parsed_json, read_json, read_text

Row = dict[Any, Any]


def table_rows(path: Path) -> list[Row | InputError]:
    """The rows of a .csv or .jsonl by column; one that cannot be read is the error that says why."""
    text = read_text(path, "a table with a row per clip")
    rows = _csv_rows(text, path) if path.suffix == ".csv" else _jsonl_rows(text, path)
    if not rows:
        raise InputError(str(path), "at least one row", "none", "A header alone names no clip.")
    return rows


def _csv_rows(text: str, path: Path) -> list[Row | InputError]:
    table = csv.DictReader(io.StringIO(text, newline=""))
    rows: list[Row | InputError] = []
    try:
        columns = len(table.fieldnames or ())
        for number, row in enumerate(table, 1):
            extra = row.pop(None, None)
            if extra:
                fix = 'Put quotes around text with a comma: "a hill, at dusk".'
                got = f"{columns + len(extra)} values, the last {extra[-1]!r}"
                rows.append(InputError(f"{path.name} row {number}", f"{columns} values", got, fix))
            else:
                rows.append(row)
    except csv.Error as error:
        raise InputError(str(path), "a table with a row per clip", f"{error} at line {table.line_num}") from error
    return rows


def _jsonl_rows(text: str, path: Path) -> list[Row | InputError]:
    rows: list[Row | InputError] = []
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        where = f"{path.name} row {number}"
        try:
            row = parsed_json(line, where, "a JSON object on one line")
            if not isinstance(row, dict):
                raise InputError(where, "a JSON object: names and values", type(row).__name__)
            rows.append(row)
        except InputError as error:
            rows.append(error)
    return rows


def loose_rows(path: Path) -> list[Row]:
    """The JSON objects of a file, one, a list or one per line; a file that holds none is somebody else's."""
    try:
        text = read_text(path)
        if path.suffix == ".json":
            parsed = parsed_json(text, str(path))
        else:
            parsed = [parsed_json(line, str(path)) for line in text.split("\n") if line.strip()]
    except InputError:
        return []
    return [row for row in (parsed if isinstance(parsed, list) else [parsed]) if isinstance(row, dict)]


def named_captions(path: Path) -> dict[str, str]:
    """Captions by a file's name, with or without its ending; a list of captions gives its first. None: no such file."""
    if not path.is_file():
        return {}
    stored = read_json(path, "a JSON object of captions by name")
    if not isinstance(stored, dict):
        raise InputError(str(path), "a JSON object of captions by name", type(stored).__name__)
    first = {key: value[0] if isinstance(value, list) and value else value for key, value in stored.items()}
    said = {key: text_value(value, f"{path}: {key}") for key, value in first.items()}
    return {Path(key).stem: value for key, value in said.items()} | said


def text_value(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(where, "text", f"{type(value).__name__} {value!r}")
    return value


def number_value(value: object, where: str) -> float:
    """A finite number, also written as text, as it is in a csv."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise InputError(where, "a number", repr(value)) from error
    if not math.isfinite(number):
        raise InputError(where, "a finite number", repr(value))
    return number
