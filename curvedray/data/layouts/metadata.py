"""A metadata table: `metadata.csv` or `metadata.jsonl` with the columns of `Record`; paths in it are relative to it."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from curvedray.cameras import Unit
from curvedray.data.records import HELD_OUT, NUMBERS, PATHS, AnyRecord, FaultyRecord, Record
from curvedray.data.tables import Row, number_value, table_rows, text_value
from curvedray.errors import InputError
from curvedray.files import plain_name, whole_file


def metadata_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """`metadata.csv` or `metadata.jsonl`: a row per clip, its columns the fields of `Record`."""
    found = [path for path in (folder / "metadata.jsonl", folder / "metadata.csv") if path.is_file()]
    if len(found) > 1:
        raise InputError(f"data {folder}", "one table", "both metadata.jsonl and metadata.csv", "Remove one of them.")
    return [
        _record_or_fault(row, f"{path.name} row {number}", folder)
        for path in found
        for number, row in enumerate(table_rows(path), 1)
    ]


def _record_or_fault(row: Row | InputError, where: str, folder: Path) -> AnyRecord:
    if isinstance(row, InputError):
        return FaultyRecord(where, row)
    try:
        return record_of_row(row, where, folder)
    except InputError as error:
        return FaultyRecord(where, error)


def record_of_row(row: Row, where: str, folder: Path) -> Record:
    """A row of a metadata table, checked; its paths start at `folder`."""
    known = {field.name for field in fields(Record)}
    row = {key: value for key, value in row.items() if value is not None and value != ""}
    unknown = sorted(set(row) - known)
    if unknown:
        raise InputError(where, f"columns among {', '.join(sorted(known))}", ", ".join(unknown))
    for name in ("video", "cameras"):
        if name not in row:
            raise InputError(where, f"a column {name}", "none, or an empty one")
    for name in NUMBERS:
        if name in row:
            row[name] = number_value(row[name], f"{where}: {name}")
    for name in set(row) - set(NUMBERS):
        row[name] = text_value(row[name], f"{where}: {name}")
    if row.get("near", 1.0) <= 0:
        raise InputError(f"{where}: near", "a positive number", row["near"])
    if row.get("split", "") not in ("", "train", *HELD_OUT):
        raise InputError(f"{where}: split", "train, val or test", row["split"])
    if row.get("poses", "") not in ("", "first"):
        raise InputError(f"{where}: poses", "first, or nothing", row["poses"])
    if row.get("unit") not in (None, *get_args(Unit)):
        raise InputError(f"{where}: unit", " or ".join(get_args(Unit)), row["unit"])
    for name in PATHS:
        if name in row:
            row[name] = folder / row[name]
    row.setdefault("id", row["video"].stem)
    plain_name(row["id"], f"{where}: id")
    return Record(**row)


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """A metadata table, whole or not at all; a column for everything that any row says."""
    columns = [field.name for field in fields(Record) if any(field.name in row for row in rows)]
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)
    return path
