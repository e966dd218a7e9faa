"""The doctor tells the truth about this environment and gives a command for what is missing."""

import json
import re
import sys
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from curvedray import doctor
from curvedray.cli import app


def test_what_the_test_run_needs_is_found():
    findings = {finding.what: finding for finding in doctor.examine()}
    assert findings["Python"].ok
    assert findings["torch"].ok
    assert findings["extra: dev"].ok
    assert not findings["extra: dev"].fix


def test_the_extras_are_those_that_can_be_installed():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for extra, (_, packages) in doctor.EXTRAS.items():
        declared = {re.split(r"[^\w.-]", wanted)[0] for wanted in project["optional-dependencies"][extra]}
        assert set(packages) <= declared, extra
    assert doctor.EXTRAS.keys() == project["optional-dependencies"].keys()


def test_a_missing_extra_gets_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no_such_package_here").mkdir()  # a folder of that name is not the package
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": ("flying", ("torch", "no_such_package_here"))})
    (finding,) = doctor._extras()
    assert not finding.ok
    assert finding.found == f"torch {doctor.importlib.metadata.version('torch')}; missing no_such_package_here"
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
