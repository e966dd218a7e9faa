"""docs/findings.md is what the committed results say, and says what was not run; what is not today's is run again."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from curvedray.paper.catalogue import ITEMS, item
from curvedray.paper.experiment import Claim
from curvedray.paper.judging import open_judges
from curvedray.paper.listener import Listener
from curvedray.paper.runner import runner_of
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting

ROOT = Path(__file__).parents[2]


def script(name):
    """A file of experiments/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "experiments" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_, findings, items = script("claims"), script("findings"), script("items")


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


def test_rows_that_are_claimed_to_be_alike_are_not_said_to_lead():
    """A claim that two teachers do as well read "noisy over UniK3D *shown*"."""
    claims = (Claim("a", "b", "CamMC", alike=0.1), Claim("a", "b", "width", larger=True), Claim("a", "b", "k1"))
    told = findings.verdict_words({"verdicts": [{**vars(claim), "word": "shown"} for claim in claims]})
    assert "CamMC: a like b *shown*; width: a larger than b *shown*; k1: a over b *shown*." in told


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Writes a record of `lenses` as of today, but for what is changed in it; the setting is today's."""
    setting = Setting(EMBEDDED, tmp_path / "runs")
    rows = items.rows_of("lenses")
    steps = {key.removeprefix("lenses, "): {"steps": setting.steps(row)} for key, row in rows.items()}
    (judge,) = open_judges(setting, EMBEDDED.judges).present
    today = {"weights": setting.model_key[:12], "clips": EMBEDDED.clips, "recipes": steps}
    today |= {"judges": {judge.name: {"version": judge.version}}, "verdicts": [], "date": "", "scale": "", "seeds": 1}
    for module in (findings, items):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    (tmp_path / "lenses").mkdir()

    def write(**changes):
        (tmp_path / "lenses" / "results.json").write_text(json.dumps(today | changes))
        return setting

    return write


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": "others"}, "the model changed"),
        ({"clips": 3}, "the number of clips changed"),
        ({"judges": {"embedded": {"version": "another"}}}, "the judge changed"),
        ({"recipes": {"crepe": {"steps": 10}}}, "the number of steps changed"),
    ],
)
def test_what_another_judge_or_budget_found_is_not_todays(stored, changes, words):
    """Only the model's weights were compared, so results of a shorter training or an older estimator stayed."""
    assert items.is_done("lenses", stored())
    assert "to be run again" not in findings.told_of("lenses")
    assert not items.is_done("lenses", stored(**changes))
    assert f"{words}: to be run again" in findings.told_of("lenses")


def test_a_drawing_is_known_as_done(tmp_path, monkeypatch):
    """Its record did not say of which model it is, so it was drawn again each time."""
    setting = Setting(EMBEDDED, tmp_path)
    record = runner_of(item("method")).run(item("method"), setting, Listener()).record
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "results.json").write_text(json.dumps(record))
    monkeypatch.setattr(items, "RESULTS", tmp_path)
    assert items.is_done("method", setting)
    assert findings.told_of("method").startswith("Drawn: ")


def test_what_trains_by_its_own_means_waits_for_all_trainings(tmp_path, monkeypatch):
    """`probing` has no rows, so it was run beside the first trainings; both need the cache for themselves, and whoever
    came second died."""
    happened, trained = [], []

    def train(setting, wanted, processes, one_more):
        for name, row, _ in wanted:
            trained.append(setting.trained_file(row))
            happened.append(name.partition(",")[0])
            one_more()

    monkeypatch.setattr(items, "train_side_by_side", train)
    monkeypatch.setattr(items, "run_item", lambda name, *_: happened.append(f"run {name}"))
    monkeypatch.setattr(Path, "is_file", lambda path: path in trained)
    monkeypatch.setattr(sys, "argv", ["items.py", "--runs", str(tmp_path), "--items", "probing", "injection", "method"])
    items.main()
    assert happened[-3:] == ["run injection", "run probing", "run method"]
    assert set(happened[:-3]) == {"injection"}
