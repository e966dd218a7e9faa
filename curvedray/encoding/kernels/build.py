"""Compile a C++ file beside us on first use, keep the binary in the user's cache, and load it. Never an error.

A binary's name holds a hash of what it was made from (source, flags, compiler, CPU) and one of its own bytes, so that
a stale or damaged file is never loaded, and two processes building at once do not harm each other. Loading a binary
runs it: one that another user owns or could have written is never loaded, nor is one from such a folder.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch

SWITCH = "CURVEDRAY_KERNEL"  # "off" in the environment: never compile, never load
COMPILERS = ("c++", "g++", "clang++")
COMMON_FLAGS = ("-O3", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-fPIC", "-shared")
PATIENCE = 120  # seconds a compiler may take
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@functools.cache
def compiled(source: Path, name: str) -> ctypes.CDLL | None:
    """The shared library made from `source`, or None, with one warning that says why and what it costs."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return None
    try:
        return _load_or_build(source, name)
    except (OSError, subprocess.SubprocessError, ValueError) as error:  # ValueError: a CXX that cannot be read
        warnings.warn(
            f"curvedray's fast path ({name}) is not available: {_reason(error)}. Results are the same without it, only "
            f"slower. A C++ compiler (g++ or clang++) brings it back; {SWITCH}=off silences this.",
            stacklevel=2,
        )
        return None


def _load_or_build(source: Path, name: str) -> ctypes.CDLL:
    compiler = _named_compiler() or list(filter(None, map(shutil.which, COMPILERS)))[:1]
    if not compiler:
        raise FileNotFoundError("no C++ compiler was found")
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=True, timeout=PATIENCE).stdout
    sources = [i.read_bytes() for i in sorted(source.parent.glob("*.cpp"))]  # it may include those beside it
    recipe = [*sources, version, repr((COMMON_FLAGS, _cpu_flags(), _cpu())).encode()]
    key = hashlib.sha256(b"\0".join(recipe)).hexdigest()[:20]
    folder = cache_folder()
    for candidate in sorted(folder.glob(f"{name}-{key}-*.so")):
        if is_ours_alone(candidate) and candidate.stem.rsplit("-", 1)[1] == _checksum(candidate):
            return ctypes.CDLL(str(candidate))
    return ctypes.CDLL(str(_build(compiler, source, folder, f"{name}-{key}")))


def _build(compiler: list[str], source: Path, folder: Path, stem: str) -> Path:
    """Compile with the best flags the compiler takes, then move the whole file into place under its own checksum."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        fresh = Path(work, "fresh.so")
        for flags in (*_cpu_flags(), ()):
            command = [*compiler, *COMMON_FLAGS, *flags, "-pthread", str(source), "-o", str(fresh)]
            run = subprocess.run(command, capture_output=True, timeout=PATIENCE)
            if run.returncode == 0:
                break
        else:
            complaint = (run.stderr.decode(errors="replace").splitlines() or ["it does not say why"])[0]
            raise OSError(f"{shlex.join(compiler)} could not build it ({complaint[:300]})")
        final = folder / f"{stem}-{_checksum(fresh)}.so"
        fresh.chmod(0o700)
        os.replace(fresh, final)
    return final


def _named_compiler() -> list[str]:
    """The words of CXX, which may be "ccache g++"; none where it is not set."""
    named = os.environ.get("CXX", "")
    try:
        return shlex.split(named)
    except ValueError as error:
        raise ValueError(f"CXX is {named!r}, which cannot be read: {error}") from error


def cache_folder() -> Path:
    """A folder of the user's own to keep binaries in; a temporary one where none can be had or trusted."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "curvedray")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            if is_ours_alone(folder):
                return folder
    except (OSError, RuntimeError, ValueError):  # read-only, no home at all, or no name for a folder
        pass
    return Path(_temporary_folder().name)


def is_ours_alone(path: Path) -> bool:
    """Whether this user owns it, link and all, and nobody else may write to it."""
    if not hasattr(os, "getuid"):  # Windows, whose folders of a user are that user's
        return True
    found = path.lstat()
    return found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode) and not found.st_mode & OTHERS_WRITE


@functools.cache
def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """One for this process, gone when it ends."""
    return tempfile.TemporaryDirectory(prefix="curvedray-")


def _cpu_flags() -> tuple[tuple[str, ...], ...]:
    """What to try, best first. AVX2 is named only where torch has found it."""
    capability = torch.backends.cpu.get_cpu_capability()
    wide = ("-mprefer-vector-width=512",) if capability.startswith("AVX512") else ()
    named = (("-mavx2", "-mfma"),) if capability.startswith("AVX") else ()
    return (("-march=native", *wide), ("-march=native",), *named)


@functools.cache
def _cpu() -> str:
    """The CPU's model and features: a cache may be shared by machines that differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags", "Features"))))
    except OSError:
        return f"{platform.machine()} {platform.processor()}"


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:32]


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"{error.cmd[0]} does not run (exit code {error.returncode})"
    return str(error)
