"""A kernel is built once, loaded only where it can be trusted, and never an error where it cannot be had."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from curvedray.encoding.kernels import build, compiled

needs_kernel = pytest.mark.skipif(compiled.library() is None, reason="no compiled kernel on this machine")
TINY = 'extern "C" int three() { return 3; }\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A fresh cache and a source of one line, past the memory of earlier builds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.SWITCH, raising=False)
    monkeypatch.delenv("CXX", raising=False)
    source = tmp_path / "tiny.cpp"
    source.write_text(TINY)
    return tmp_path


def fresh(source: Path):
    return build.compiled.__wrapped__(source, "tiny")


@needs_kernel
def test_a_binary_is_built_once_and_a_damaged_one_never_loaded(home):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh(home / "tiny.cpp").three() == 3
        (binary,) = (home / "cache/curvedray").iterdir()
        built = binary.stat().st_mtime_ns
        assert fresh(home / "tiny.cpp").three() == 3
        assert binary.stat().st_mtime_ns == built
        other = home / "cache" / "good.so"
        other.write_bytes(binary.read_bytes())
        binary.unlink()
        binary.write_bytes(other.read_bytes()[:-1] + b"x")
        assert fresh(home / "tiny.cpp").three() == 3
        assert binary.stat().st_mtime_ns != built
    (home / "tiny.cpp").write_text(TINY.replace("3", "4"))
    assert fresh(home / "tiny.cpp").three() == 4  # another source is another binary


@needs_kernel
def test_two_processes_may_build_at_once(home):
    code = f"from pathlib import Path; from curvedray.encoding.kernels.build import compiled as c; \
assert c(Path({str(home / 'tiny.cpp')!r}), 'tiny').three() == 3"
    both = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=dict(os.environ)) for _ in range(2)]
    assert [process.wait(600) for process in both] == [0, 0]
    assert all(file.suffix == ".so" for file in (home / "cache/curvedray").iterdir())


@needs_kernel
def test_a_home_that_cannot_be_written_gets_a_temporary_folder(home, monkeypatch):
    (home / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    assert fresh(home / "tiny.cpp").three() == 3


@needs_kernel
@pytest.mark.parametrize("trouble", ["writable folder", "another's folder", "link", "writable file"])
def test_what_another_user_could_have_written_is_never_loaded(home, monkeypatch, trouble):
    """Loading a library runs it. A binary of the right name that says 4 stands for an attacker's."""
    folder = home / "cache/curvedray"
    (home / "evil.cpp").write_text(TINY.replace("3", "4"))
    assert fresh(home / "tiny.cpp").three() == 3
    (binary,) = folder.iterdir()
    work = home / "work"
    work.mkdir()
    evil = build._build(build._named_compiler() or ["c++"], home / "evil.cpp", work, binary.stem.rsplit("-", 1)[0])
    binary.unlink()
    planted = folder / evil.name
    evil.rename(planted)
    if trouble == "writable folder":
        folder.chmod(0o777)
    elif trouble == "another's folder":
        monkeypatch.setattr(build.os, "getuid", lambda: os.geteuid() + 1)
    elif trouble == "link":
        folder.rename(home / "elsewhere")
        folder.symlink_to(home / "elsewhere")
    else:
        planted.chmod(0o722)
    assert fresh(home / "tiny.cpp").three() == 3


@needs_kernel
def test_a_binary_is_private(home):
    fresh(home / "tiny.cpp")
    (binary,) = (home / "cache/curvedray").iterdir()
    assert [p.stat().st_mode & 0o777 for p in (binary.parent, binary)] == [0o700, 0o700]


@pytest.mark.parametrize("trouble", ["no compiler", "broken compiler", "broken source", "a quote in CXX"])
def test_a_build_that_fails_is_one_warning_and_no_error(home, monkeypatch, trouble):
    if trouble == "no compiler":
        monkeypatch.setenv("PATH", str(home))
    elif trouble == "broken compiler":
        (home / "cxx").write_text("#!/bin/sh\nexit 7\n")
        (home / "cxx").chmod(0o755)
        monkeypatch.setenv("CXX", str(home / "cxx"))
    elif trouble == "a quote in CXX":
        monkeypatch.setenv("CXX", "g++ 'x")
    else:
        (home / "tiny.cpp").write_text("this is not C++")
    with pytest.warns(UserWarning, match=r"fast path \(tiny\) is not available.*CURVEDRAY_KERNEL=off") as caught:
        assert fresh(home / "tiny.cpp") is None
    assert len(caught) == 1


def test_the_switch_is_silent(home, monkeypatch):
    monkeypatch.setenv(build.SWITCH, "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh(home / "tiny.cpp") is None
    assert not (home / "cache").exists()


def test_nothing_is_compiled_at_import(tmp_path):
    code = "import curvedray.encoding.kernels, curvedray.encoding.attention"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert not list(tmp_path.iterdir())
