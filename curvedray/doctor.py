"""What this machine has, what is missing for what, and the exact command that mends it."""

import importlib.metadata
import os
import platform
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from curvedray.evaluate.quality.extractors import EXTRACTORS
from curvedray.extras import EXTRAS

ENOUGH_DISK = 1.0  # GiB free; a report or a short run's checkpoints take less
PIP = f"{shlex.quote(sys.executable)} -m pip install"


# Teachers of distances: the package each needs beside ours, its weights' licence, and how to get it.
TEACHERS: dict[str, tuple[str | None, str, str]] = {
    "embedded": (None, "Apache-2.0, for clips of the embedded model's world", ""),
    "depth-anything": ("transformers", "Apache-2.0, small weights from the hub", f"{PIP} 'curvedray[wan]'"),
    "colmap": ("pycolmap", "BSD-3-Clause, no weights, needs known cameras", f"{PIP} 'curvedray[sfm]'"),
    "unik3d": ("unik3d", "CC BY-NC 4.0", f"{PIP} git+https://github.com/lpiccinelli-eth/UniK3D"),
    "unidepth": ("unidepth", "CC BY-NC 4.0", f"{PIP} git+https://github.com/lpiccinelli-eth/UniDepth"),
}


@dataclass(frozen=True)
class Finding:
    """One line of the examination; `fix` is a command, empty where nothing is to be mended."""

    what: str
    ok: bool
    found: str
    needed_for: str
    fix: str = ""


def examine() -> list[Finding]:
    """Everything worth knowing before work begins, the best news first."""
    machine = [_python(), _torch(), _threads(), _accelerator(), _compiler(), _memory(), _disk()]
    return [*machine, *_extras(), *_teachers(), *_extractors()]


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("Python", ok, platform.python_version(), "everything", "" if ok else "install Python 3.11 or newer")


def _torch() -> Finding:
    """A build that cannot use the machine's GPU is worth a line."""
    build = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for CPUs"
    build = f"for ROCm {torch.version.hip}" if torch.version.hip else build
    ok = not (_has_nvidia() and torch.version.cuda is None and torch.version.hip is None)
    found = f"{torch.__version__}, built {build}" + ("" if ok else ", which cannot use this machine's GPU")
    return Finding("torch", ok, found, "everything", "" if ok else f"{PIP} --force-reinstall torch")


def _threads() -> Finding:
    threads, cores = torch.get_num_threads(), _cores()
    found = f"{threads} on {cores} core{'s' * (cores > 1)}"
    fix = "" if threads <= cores else f"export OMP_NUM_THREADS={cores}"
    return Finding("threads", threads <= cores, found, "speed; more threads than cores wait for one another", fix)


def _accelerator() -> Finding:
    if torch.cuda.is_available():
        name, memory = torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory / 2**30
        return Finding("GPU", True, f"{name}, {memory:.0f} GiB", "Wan at full size")
    if torch.backends.mps.is_available():
        return Finding("GPU", True, "Apple MPS", "Wan at full size")
    if _has_nvidia():
        return Finding("GPU", False, "one that torch cannot use", "Wan at full size", "nvidia-smi")
    return Finding("GPU", True, "none; the embedded model and all tools run without", "Wan at full size")


def _compiler() -> Finding:
    purpose = "the fast attention kernel on CPUs"
    asked = os.environ.get("CXX")
    if asked:
        found = shutil.which(_first_word(asked))
        words = asked if found else f"CXX={asked}, which is no program"
        return Finding("C++ compiler", found is not None, words, purpose, "" if found else "unset CXX")
    found = next(filter(None, (shutil.which(name) for name in ("c++", "g++", "clang++"))), None)
    fix = {"Darwin": "xcode-select --install", "Linux": "sudo apt-get install g++"}.get(
        platform.system(), "install a C++ compiler"
    )
    words = found or "none; the slower eager form is used"
    return Finding("C++ compiler", found is not None, words, purpose, "" if found else fix)


def _memory() -> Finding:
    pages = {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if pages else float("nan")
    return Finding(
        "memory", True, f"{total:.0f} GiB", "generation and training; each says what it needs before it starts"
    )


def _disk() -> Finding:
    free = shutil.disk_usage(os.getcwd()).free / 2**30
    ok = free > ENOUGH_DISK
    fix = "" if ok else "du -sh ./* | sort -h"
    return Finding("free disk here", ok, f"{free:.1f} GiB", "outputs, caches and checkpoints", fix)


def _extras() -> list[Finding]:
    findings = []
    for extra, (purpose, packages) in EXTRAS.items():
        versions = {name: _version(name) for name in packages}
        missing = [name for name, version in versions.items() if version is None]
        present = ", ".join(f"{name} {version}" for name, version in versions.items() if version is not None)
        found = "; ".join(filter(None, [present, f"missing {', '.join(missing)}" if missing else ""]))
        fix = f"{PIP} 'curvedray[{extra}]'" if missing else ""
        findings.append(Finding(f"extra: {extra}", not missing, found, purpose, fix))
    return findings


def _teachers() -> list[Finding]:
    """Who can label videos with distances here. One that is not installed is no fault: `embedded` always is."""
    purpose, findings = "curvedray radial label, transfer and evaluate --radial", []
    for name, (package, licence, how) in TEACHERS.items():
        version = None if package is None else _version(package)
        ok = package is None or version is not None
        found = f"{package} {version}" if version else "in the package" if ok else f"{package} is not installed"
        findings.append(Finding(f"teacher: {name}", True, f"{found}; {licence}", purpose, "" if ok else how))
    return findings


def _extractors() -> list[Finding]:
    """Which networks can score how videos look here. None is a fault: they may live in another environment."""
    purpose, findings = "curvedray quality, beside their weights", []
    for name, extractor in EXTRACTORS.items():
        versions = {package: _version(package) for package in extractor.packages}
        missing = [package for package, version in versions.items() if version is None]
        found = ", ".join(f"{package} {version}" for package, version in versions.items() if version is not None)
        words = f"{', '.join(missing)} not installed here" if missing else found
        fix = extractor.install(shlex.quote(sys.executable)) if missing else ""
        findings.append(Finding(f"quality: {name}", True, f"{words}; weights: {extractor.source}", purpose, fix))
    return findings


def _version(package: str) -> str | None:
    """Of an installed package; a folder that merely bears its name is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _has_nvidia() -> bool:
    return shutil.which("nvidia-smi") is not None or Path("/dev/nvidia0").exists()


def _cores() -> int:
    """Those this process may use, where the system says."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _first_word(command: str) -> str:
    """The program of a command line, however it is quoted."""
    try:
        return next(iter(shlex.split(command)), "")
    except ValueError:  # a quote that is not closed
        return command
