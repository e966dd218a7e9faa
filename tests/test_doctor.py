"""The doctor tells the truth about this environment and gives a command for what is missing."""

import json
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from curvedray import doctor
from curvedray.cli import app


def test_what_the_test_run_needs_is_found():
    findings = {finding.what: finding for finding in doctor.examine()}
    assert findings["Python"].ok
    assert findings["torch"].ok
    assert findings["extra: dev"].ok
    assert not findings["extra: dev"].fix


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


@pytest.mark.parametrize("asked", ["no-such-compiler -O3", "g++ '", "'", "\x1b[31m[/b]"])
def test_a_compiler_that_is_no_program_is_reported_and_printed_plainly(asked, monkeypatch):
    monkeypatch.setenv("CXX", asked)
    finding = doctor._compiler()
    assert not finding.ok
    assert finding.fix == "unset CXX"
    said = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert said.exit_code == 0
    assert "which is no program" in said.stdout
    assert "\x1b[31m" not in said.stdout


def test_a_build_without_cuda_beside_a_gpu_gets_the_command_that_replaces_it(monkeypatch):
    monkeypatch.setattr(doctor.torch.version, "cuda", None)
    monkeypatch.setattr(doctor, "_has_nvidia", lambda: False)
    assert doctor._torch().ok
    assert "for CPUs" in doctor._torch().found
    monkeypatch.setattr(doctor, "_has_nvidia", lambda: True)
    assert not doctor._torch().ok
    assert doctor._torch().fix.endswith("-m pip install --force-reinstall torch")


def test_more_threads_than_cores_is_reported(monkeypatch):
    monkeypatch.setattr(doctor.torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(doctor, "_cores", lambda: 2)
    assert doctor._threads().fix == "export OMP_NUM_THREADS=2"
    monkeypatch.setattr(doctor, "_cores", lambda: 8)
    assert doctor._threads().ok


def test_a_full_disk_is_reported(monkeypatch):
    assert doctor._disk().found.endswith("GiB")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=2**20))
    assert not doctor._disk().ok
    assert doctor._disk().fix


def test_the_command_speaks_words_and_json():
    said = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert {"what", "ok", "found", "needed_for", "fix"} <= set(said[0])
    words = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"}).stdout
    assert all(finding["what"] in words and finding["fix"] in words for finding in said)


def test_every_teacher_is_known():
    from curvedray.evaluate.label import TEACHERS

    lines = {finding.what: finding for finding in doctor.examine()}
    assert {f"teacher: {name}" for name in TEACHERS} <= lines.keys()
    assert lines["teacher: embedded"].fix == ""
