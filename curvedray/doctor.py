"""What this machine has, what is missing for what, and the exact command that mends it."""

import importlib.metadata
import os
import platform
import shutil
import sys
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Finding:
    """One line of the examination; `fix` is a command, empty where nothing is to be mended."""

    what: str
    ok: bool
    found: str
    needed_for: str
    fix: str = ""


# what a user does -> the packages it takes, and the extra that brings them
EXTRAS = {
    "wan": ("generating and training with Wan", ("transformers", "accelerate", "sentencepiece", "ftfy")),
    "train": ("training", ("accelerate",)),
    "sfm": ("COLMAP files, and scoring videos with structure from motion", ("pycolmap",)),
    "app": ("the web app, which is still to come", ("gradio",)),
    "dev": ("working on curvedray itself", ("pytest", "hypothesis", "beartype", "mypy", "ruff")),
}


def examine() -> list[Finding]:
    """Everything worth knowing before work begins, the best news first."""
    return [_python(), _torch(), _accelerator(), _compiler(), _memory(), _disk(), *_extras()]


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("Python", ok, platform.python_version(), "everything", "" if ok else "install Python 3.11 or newer")


def _torch() -> Finding:
    return Finding("torch", True, f"{torch.__version__}, {torch.get_num_threads()} threads", "everything")


def _accelerator() -> Finding:
    if torch.cuda.is_available():
        name, memory = torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory / 2**30
        return Finding("GPU", True, f"{name}, {memory:.0f} GiB", "Wan at full size")
    found = "Apple MPS" if torch.backends.mps.is_available() else "none; the embedded model and all tools run without"
    return Finding("GPU", True, found, "Wan at full size")


def _compiler() -> Finding:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    fix = {"Darwin": "xcode-select --install", "Linux": "apt-get install g++"}.get(
        platform.system(), "install a C++ compiler"
    )
    found = compiler or "none; the slower eager form is used"
    return Finding(
        "C++ compiler", compiler is not None, found, "the fast attention kernel on CPUs", "" if compiler else fix
    )


def _memory() -> Finding:
    pages = {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if pages else float("nan")
    return Finding(
        "memory", True, f"{total:.0f} GiB", "generation and training; each says what it needs before it starts"
    )


def _disk() -> Finding:
    free = shutil.disk_usage(os.getcwd()).free / 2**30
    return Finding(
        "free disk here", free > 1, f"{free:.0f} GiB", "outputs and caches", "" if free > 1 else "free some space"
    )


def _extras() -> list[Finding]:
    findings = []
    for extra, (purpose, packages) in EXTRAS.items():
        versions = {name: _version(name) for name in packages}
        missing = [name for name, version in versions.items() if version is None]
        present = ", ".join(f"{name} {version}" for name, version in versions.items() if version is not None)
        found = "; ".join(filter(None, [present, f"missing {', '.join(missing)}" if missing else ""]))
        fix = f"{sys.executable} -m pip install 'curvedray[{extra}]'" if missing else ""
        findings.append(Finding(f"extra: {extra}", not missing, found, purpose, fix))
    return findings


def _version(package: str) -> str | None:
    """Of an installed package; a folder that merely bears its name is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
