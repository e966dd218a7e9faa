"""Make an environment that has torch and curvedray's packages: what `make` runs before anything else.

    python3 tools/set_up.py .venv --extras all

torch is the large one, so it is chosen first, and said before it is downloaded. In this order:
  TORCH=...        what you ask for: `cpu`, `default` (the package index's own build), or the folder of an environment
  the .venv's own  if it is the pinned version already
  one that is here in the active environment, or beside the Python that runs this: it is borrowed, not copied
  the CPU build    on x86-64 Linux without NVIDIA hardware, where the index's own build brings gigabytes of CUDA;
                   from the sources pip knows, else from PyTorch's wheels for CPUs, else (unreachable) the index's own
  the index's own  everywhere else; on macOS and ARM it is small

Standard library only, as it runs before anything is installed.
"""

from __future__ import annotations  # an older Python must get as far as being told so

import argparse
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST_PYTHON, OLDEST_TORCH = (3, 11), (2, 6)  # as pyproject.toml says
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
FAILS_FAST = ("--timeout", "5", "--retries", "0")
MEGABYTES = {"cpu": 200, "default": 200, "cuda": 2700, "generate": 150, "all": 200, "dev": 260}  # downloads, measured

Run = Callable[[list[str]], str]  # a command -> what it printed; raises CalledProcessError


@dataclass(frozen=True)
class Machine:
    system: str
    processor: str
    nvidia: bool

    @classmethod
    def here(cls) -> Machine:
        nvidia = shutil.which("nvidia-smi") is not None or bool(glob.glob("/dev/nvidia[0-9]*"))
        return cls(platform.system(), platform.machine().lower(), nvidia)

    @property
    def cuda_by_default(self) -> bool:
        """Whether the package index's own build of torch brings CUDA's libraries along."""
        return self.system == "Linux" and self.processor in ("x86_64", "amd64")


@dataclass(frozen=True)
class Torch:
    """The torch to use, why, and what it takes: a folder of packages to borrow from, or pip with these arguments."""

    version: str
    why: str
    borrowed: Path | None = None
    arguments: tuple[str, ...] | None = None
    megabytes: int = 0


@dataclass(frozen=True)
class Found:
    """A torch that is here, in whose environment, and its folder of packages; `ours` where it is in the one we make."""

    version: str
    place: str
    packages: Path
    ours: bool = False


def choose(
    machine: Machine, pinned: str, asked: str, found: list[Found], offered: Callable[[tuple[str, ...]], list[str]]
) -> Torch:
    """The torch to use: `asked` is TORCH, `offered` tells which versions pip finds when given further arguments."""
    if asked not in ("", "cpu", "default"):
        for torch in found:
            if torch.place == asked:
                return Torch(torch.version, f"that of {asked}, as asked", torch.packages)
        raise SystemExit(f"TORCH: expected cpu, default, or the folder of an environment that has torch, got {asked}")
    if not asked:
        for torch in found:
            if torch.ours and torch.version.split("+")[0] == pinned:
                return Torch(torch.version, "there already")
        for torch in found:
            if not torch.ours and _release(torch.version) >= OLDEST_TORCH:
                return Torch(torch.version, f"borrowed from {torch.place}", torch.packages)
    anew = ("--force-reinstall",) if asked else ()
    wants_cpu = asked == "cpu" or (asked == "" and machine.cuda_by_default and not machine.nvidia)
    if wants_cpu:
        why = "the build for CPUs, " + ("as asked" if asked else "as no NVIDIA hardware is here")
        for source in ((), ("--extra-index-url", CPU_WHEELS)):
            if f"{pinned}+cpu" in offered((*source, *FAILS_FAST) if source else ()):
                return Torch(f"{pinned}+cpu", why, None, (*anew, *source), MEGABYTES["cpu"])
    why = "the package index's own build"
    if machine.cuda_by_default:
        why += ", with CUDA's libraries"
    if wants_cpu and machine.cuda_by_default:
        why += f" (the far smaller one for CPUs could not be had from {CPU_WHEELS})"
    return Torch(pinned, why, None, anew, MEGABYTES["cuda" if machine.cuda_by_default else "default"])


def _release(version: str) -> tuple[int, ...]:
    """2.13.0+cpu -> (2, 13)."""
    return tuple(int(i) for i in re.findall(r"\d+", version)[:2])


def torch_here(environment: Mapping[str, str], venv: Path, asked: str, run: Run) -> list[Found]:
    """Each torch that this Python can use, the environment's own first."""
    active = [environment[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environment.get(name)]
    places = dict.fromkeys([str(venv), *filter(None, [asked]), *active, sys.prefix])
    found = []
    for place in places:
        python = python_of(Path(place))
        if not python.exists():
            continue
        try:
            python_version, version, packages = json.loads(run([str(python), "-c", ASK_FOR_TORCH]))
        except (subprocess.CalledProcessError, OSError, ValueError):
            continue
        if version and tuple(python_version) == sys.version_info[:2]:
            ours = venv.resolve() in Path(packages).resolve().parents  # what it borrowed before is not
            found.append(Found(version, place, Path(packages), ours))
    return found


ASK_FOR_TORCH = """
import importlib.metadata, json, sys
try:
    it = importlib.metadata.distribution("torch")
    print(json.dumps([sys.version_info[:2], it.version, str(it.locate_file(""))]))
except importlib.metadata.PackageNotFoundError:
    print(json.dumps([sys.version_info[:2], None, None]))
"""


def python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def offered_by(pip: list[str], run: Run) -> Callable[[tuple[str, ...]], list[str]]:
    """The versions of torch that pip finds, with further arguments; none where it cannot say."""

    def offered(arguments: tuple[str, ...]) -> list[str]:
        try:
            said = run([*pip, "index", "versions", "torch", *arguments])
        except subprocess.CalledProcessError:
            return []
        found = re.search(r"^Available versions: (.*)$", said, re.MULTILINE)
        return found[1].split(", ") if found else []

    return offered


def set_up(
    venv: Path, extras: str, run: Run, environment: Mapping[str, str], machine: Machine, *, dry_run: bool = False
) -> None:
    """Make the environment, torch first."""
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(
            f"curvedray needs Python 3.11 or newer, this is {platform.python_version()}: make PYTHON=python3.11"
        )
    python = python_of(venv)
    if not python.exists() and not dry_run:
        try:
            run([sys.executable, "-m", "venv", str(venv)])
        except subprocess.CalledProcessError:  # half an environment would be taken for a whole one next time
            shutil.rmtree(venv, ignore_errors=True)
            raise
    constraints = (ROOT / "constraints.txt").read_text()
    (pinned,) = re.findall(r"^torch==(\S+)$", constraints, re.MULTILINE)
    asked = environment.get("TORCH", "")
    pip = [str(python if python.exists() else sys.executable), "-m", "pip"]
    torch = choose(machine, pinned, asked, torch_here(environment, venv, asked, run), offered_by(pip, run))
    print(f"setting up {venv}, once")
    print(f"  torch {torch.version}: {torch.why}" + (f"; about {torch.megabytes} MB" if torch.megabytes else ""))
    print(f"  the packages of curvedray[{extras}]: about {MEGABYTES[extras]} MB if none is here yet", flush=True)
    if dry_run:
        return
    # What was chosen is what the rest is fitted to, whichever build or version it is.
    chosen = venv / "constraints.txt"
    chosen.write_text(constraints.replace(f"torch=={pinned}", f"torch=={torch.version}"))
    install = [*pip, "install", "--quiet", "--disable-pip-version-check", "--constraint", str(chosen)]
    if torch.borrowed is not None:
        borrow(torch.borrowed, python, run)
    if torch.arguments is not None:
        run([*install, *torch.arguments, "torch"])
    run([*install, "--editable", f"{ROOT}[{extras}]"])


def borrow(packages: Path, python: Path, run: Run) -> None:
    """Let an environment see another's packages, after its own: a line in a .pth file."""
    own = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).strip())
    (own / "borrowed_torch.pth").write_text(f"{packages}\n")


def run(command: list[str]) -> str:
    """What a command printed; its complaints go to the terminal only where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument("--extras", default="all", choices=["generate", "all", "dev"])
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    chosen = parser.parse_args()
    try:
        set_up(chosen.venv, chosen.extras, run, os.environ, Machine.here(), dry_run=chosen.dry_run)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(error.cmd)}\nfailed:\n{(error.stderr or error.stdout)[-3000:]}") from None


if __name__ == "__main__":
    main()
