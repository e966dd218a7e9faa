"""docs/findings.md is what the committed results say, and says what was not run."""

import importlib.util
import json
import sys
from pathlib import Path

from curvedray.paper.catalogue import ITEMS

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("findings", ROOT / "experiments" / "findings.py")
findings = importlib.util.module_from_spec(_spec)
sys.modules["findings"] = findings
_spec.loader.exec_module(findings)


def test_the_page_is_what_the_results_say():
    assert (ROOT / "docs" / "findings.md").read_text() == findings.page(), "run: python experiments/findings.py"


def test_every_item_that_could_decide_something_is_in_a_finding():
    named = {name for finding in (*findings.PAPERS, *findings.OURS) for name in finding.items}
    drawings = {"teaser", "properties", "method", "architecture"}
    assert named == {entry.name for entry in ITEMS} - drawings


def test_a_result_with_verdicts_is_told_by_them(tmp_path, monkeypatch):
    verdict = {"better": "crepe", "worse": "ucpe", "metric": "CamMC", "subset": "pinhole", "word": "contradicted"}
    record = {
        "date": "2026-01-01",
        "scale": "embedded",
        "seeds": 3,
        "verdicts": [verdict, verdict | {"word": "undecided"}],
    }
    (tmp_path / "lenses").mkdir()
    (tmp_path / "lenses" / "results.json").write_text(json.dumps(record))
    monkeypatch.setattr(findings, "RESULTS", tmp_path)
    told = findings.told_of("lenses")
    assert told.startswith("Of 2 orderings: 0 shown, 1 contradicted, 1 undecided. CamMC, pinhole: crepe over ucpe")
    assert "3 seed(s)" in told
    cell = {"clips": 64, "seeds": 1, "over_clips": {"mean": 4.654, "low": 4.2, "high": 5.11}, "over_seeds": None}
    (tmp_path / "lenses" / "results.json").write_text(
        json.dumps(record | {"cells": {"pinhole | ucpe": {"CamMC": cell}}})
    )
    assert "| pinhole, ucpe | 4.65 [4.20, 5.11] (paper 18.5) |" in findings.numbers_of("lenses")
    assert "Not run yet" in findings.told_of("overall")
