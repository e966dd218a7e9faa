"""The first numbered example runs, cut short; the docs run the others."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_the_drop_in_prints_a_row_for_every_encoding():
    rows = [line.split() for line in run("01_drop_in.py", "--steps", "2").splitlines()]
    assert [row[0] for row in rows] == ["encoding", "none", "relative-ray", "endpoint", "curved"]
    assert all(0 < float(row[1]) < 3 for row in rows[1:])
