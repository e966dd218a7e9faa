"""The doctor tells the truth about this environment and gives a command for what is missing."""

import json
import sys

from typer.testing import CliRunner

from curvedray import doctor
from curvedray.cli import app


def test_what_the_test_run_needs_is_found():
    findings = {finding.what: finding for finding in doctor.examine()}
    assert findings["Python"].ok
    assert findings["torch"].ok
    assert findings["extra: dev"].ok
    assert not findings["extra: dev"].fix


def test_a_missing_extra_gets_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": ("flying", ("json", "no_such_package_here"))})
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: "1.0")
    (finding,) = doctor._extras()
    assert not finding.ok
    assert "no_such_package_here" in finding.found
    assert finding.fix == f"{sys.executable} -m pip install 'curvedray[moon]'"


def test_no_compiler_is_reported_with_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    finding = doctor._compiler()
    assert not finding.ok
    assert finding.fix


def test_the_command_speaks_words_and_json():
    said = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert {"what", "ok", "found", "needed_for", "fix"} <= set(said[0])
    words = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"}).stdout
    assert all(finding["what"] in words and finding["fix"] in words for finding in said)
