"""docs/paper.md names functions and tests that exist; each function says what it computes."""

import ast
import importlib
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROW = re.compile(r"^\| (.+) \| `(curvedray\.[\w.]+)` \| `(tests/[\w/]+\.py)::(\w+)` \|$")
LINES = (HERE.parent / "docs" / "paper.md").read_text().splitlines()
ROWS = [match.groups() for line in LINES if (match := ROW.match(line))]


def named(path):
    """What a dotted name stands for: a function of a module, or of a class in it."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module of {path}")


def test_every_line_of_the_table_is_read():
    assert len(ROWS) == sum(line.startswith("| ") for line in LINES) - 1  # but for its head
    assert len(ROWS) >= 20


@pytest.mark.parametrize(("equation", "function", "file", "test"), ROWS)
def test_the_function_and_its_test_exist(equation, function, file, test):
    found = named(function)
    found = found.fget if isinstance(found, property) else found
    assert callable(found), f"{equation}: {function} is no function"
    assert (found.__doc__ or "").strip(), f"{equation}: {function} does not say what it computes"
    tree = ast.parse((HERE.parent / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {test}"
