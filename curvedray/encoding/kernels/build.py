"""Compile a C++ file beside us on first use, keep the binary in the user's cache, and load it. Never an error.

A binary's name holds a hash of what it was made from (source, flags, compiler, CPU) and one of its own bytes, so that
a stale, foreign or damaged file is never loaded, and two processes building at once do not harm each other.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch

SWITCH = "CURVEDRAY_KERNEL"  # "off" in the environment: never compile, never load
COMPILERS = ("c++", "g++", "clang++")
COMMON_FLAGS = ("-O3", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-fPIC", "-shared")
PATIENCE = 120  # seconds a compiler may take


@functools.cache
def compiled(source: Path, name: str) -> ctypes.CDLL | None:
    """The shared library made from `source`, or None, with one warning that says why and what it costs."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return None
    try:
        return _load_or_build(source, name)
    except (OSError, subprocess.SubprocessError, UnicodeError) as error:
        warnings.warn(
            f"curvedray's fast path ({name}) is not available: {_reason(error)}. Results are the same without it, only "
            f"slower. A C++ compiler (g++ or clang++) brings it back; {SWITCH}=off silences this.",
            stacklevel=2,
        )
        return None


def _load_or_build(source: Path, name: str) -> ctypes.CDLL:
    named = shlex.split(os.environ.get("CXX", ""))  # may be "ccache g++"
    compiler = named or list(filter(None, map(shutil.which, COMPILERS)))[:1]
    if not compiler:
        raise FileNotFoundError("no C++ compiler was found")
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=True, timeout=PATIENCE).stdout
    sources = [i.read_bytes() for i in sorted(source.parent.glob("*.cpp"))]  # it may include those beside it
    recipe = [*sources, version, repr((COMMON_FLAGS, _cpu_flags(), _cpu())).encode()]
    key = hashlib.sha256(b"\0".join(recipe)).hexdigest()[:20]
    folder = cache_folder()
    for candidate in sorted(folder.glob(f"{name}-{key}-*.so")):
        if candidate.stem.rsplit("-", 1)[1] == _checksum(candidate):
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
        os.replace(fresh, final)
    return final


def cache_folder() -> Path:
    """A folder of the user's own to keep binaries in; a temporary one where none can be written."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "curvedray")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # read-only, or no home at all
        return Path(_temporary_folder().name)


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
