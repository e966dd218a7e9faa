"""The benchmark's own arithmetic and its door; what it measures is not a test."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from curvedray.bench import suites
from curvedray.bench.harness import Measurement, interleaved, markdown, ratio
from curvedray.cli import app
from curvedray.errors import InputError


def fake(quick):
    yield Measurement("a ratio", 1.04, target=1.06)
    yield Measurement("a gain", 0.5, target=0.95, at_least=True)
    yield Measurement("quick" if quick else "long", 3.0, "s")


def test_functions_take_turns_and_the_first_call_is_not_timed():
    calls = []
    times = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3
    assert [len(t) for t in times.values()] == [2, 2]
    assert ratio({"a": [1.0, 4.0, 9.0], "b": [1.0, 2.0, 3.0]}, "a", "b") == 2.0


def test_peak_growth_sees_what_was_freed_again():
    # In a process of its own: a system may take a large one's idle memory away meanwhile, which hides the growth.
    count = "[peak_growth(lambda: len(bytearray(64 * 2**20))) for _ in range(3)]"
    words = f"import json; from curvedray.bench.harness import peak_growth; print(json.dumps({count}))"
    run = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    counts = json.loads(run.stdout)
    if None in counts:
        pytest.skip("this system does not count a process's peak")
    assert 50 < max(counts) < 200


def test_a_results_file_has_command_hardware_and_verdicts():
    text = markdown("Benchmark", "curvedray bench", list(fake(False)))
    assert "`curvedray bench`" in text
    assert "torch" in text
    assert "| a ratio | 1.04 x | <= 1.06 | yes |" in text
    assert "| a gain | 0.5 x | >= 0.95 | no |" in text


def test_the_command_prints_writes_and_refuses(monkeypatch, tmp_path):
    monkeypatch.setitem(suites.SUITES, "attention", fake)
    result = CliRunner().invoke(app, ["bench", "--quick", "--json", "-o", str(tmp_path / "r.md")])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)["measurements"]
    assert [row["met"] for row in rows] == [True, False, None]
    assert rows[2]["what"] == "quick"
    assert "a ratio" in (tmp_path / "r.md").read_text()
    assert "a gain" in CliRunner().invoke(app, ["bench", "attention"]).stdout
    with pytest.raises(InputError, match="attention or adapter or training"):
        CliRunner().invoke(app, ["bench", "speed"], standalone_mode=False, catch_exceptions=False)
