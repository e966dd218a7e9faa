"""Set-up takes the torch that fits the machine, the smallest where nothing needs more, and says so beforehand."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "set_up.py"
_spec = importlib.util.spec_from_file_location("set_up", SCRIPT)
tool = importlib.util.module_from_spec(_spec)
sys.modules["set_up"] = tool
_spec.loader.exec_module(tool)

LAPTOP = tool.Machine("Linux", "x86_64", nvidia=False)
WORKSTATION = tool.Machine("Linux", "x86_64", nvidia=True)
MAC, PI = tool.Machine("Darwin", "arm64", nvidia=False), tool.Machine("Linux", "aarch64", nvidia=False)
PINNED = "9.9.0"
CPU_INDEX = ("--extra-index-url", tool.CPU_WHEELS)


class Sources:
    """What pip would find: with its own sources, and with the extra one (None: it cannot be reached)."""

    def __init__(self, own=(PINNED,), extra=(PINNED, f"{PINNED}+cpu")):
        self.own, self.extra, self.asked = list(own), extra, []

    def __call__(self, arguments):
        self.asked.append(arguments)
        if not arguments:
            return self.own
        assert arguments == (*CPU_INDEX, *tool.FAILS_FAST)
        return self.own + list(self.extra or ())


def choose(machine, sources, found=(), asked=""):
    return tool.choose(machine, PINNED, asked, list(found), sources)


def test_a_laptop_gets_the_build_for_cpus_from_the_extra_source():
    torch = choose(LAPTOP, Sources())
    assert (torch.version, torch.arguments, torch.megabytes) == (f"{PINNED}+cpu", CPU_INDEX, 200)


def test_what_pip_finds_by_itself_needs_no_extra_source():
    sources = Sources(own=(PINNED, f"{PINNED}+cpu"))
    torch = choose(LAPTOP, sources)
    assert (torch.version, torch.arguments) == (f"{PINNED}+cpu", ())
    assert sources.asked == [()]


def test_without_the_extra_source_it_says_what_comes_instead():
    torch = choose(LAPTOP, Sources(extra=None))
    assert (torch.version, torch.arguments, torch.megabytes) == (PINNED, (), 2700)
    assert "CUDA" in torch.why
    assert tool.CPU_WHEELS in torch.why


@pytest.mark.parametrize(("machine", "megabytes"), [(WORKSTATION, 2700), (MAC, 200), (PI, 200)])
def test_elsewhere_the_indexs_own_build_is_right_and_nobody_is_asked(machine, megabytes):
    sources = Sources()
    torch = choose(machine, sources)
    assert (torch.version, torch.arguments, torch.megabytes) == (PINNED, (), megabytes)
    assert sources.asked == []


@pytest.mark.parametrize("version", [PINNED, f"{PINNED}+cpu", f"{PINNED}+cu128"])
def test_the_pinned_torch_of_our_own_environment_stays(version):
    torch = choose(LAPTOP, Sources(), [tool.Found(version, ".venv", Path("lib"), ours=True)])
    assert (torch.version, torch.arguments, torch.borrowed) == (version, None, None)


def test_another_version_in_our_own_environment_is_replaced():
    torch = choose(LAPTOP, Sources(), [tool.Found("9.8.0", ".venv", Path("lib"), ours=True)])
    assert torch.version == f"{PINNED}+cpu"


def test_a_torch_that_is_here_is_borrowed_unless_it_is_too_old():
    here = tool.Found("2.8.1+cu128", "/home/me/env", Path("/home/me/env/lib"))
    torch = choose(WORKSTATION, Sources(), [here])
    assert (torch.version, torch.borrowed, torch.arguments) == ("2.8.1+cu128", here.packages, None)
    old = tool.Found("2.5.1", "/home/me/env", Path("/home/me/env/lib"))
    assert choose(WORKSTATION, Sources(), [old]).borrowed is None


def test_what_is_asked_for_wins():
    here = tool.Found("2.8.1", "/home/me/env", Path("/home/me/env/lib"))
    assert choose(LAPTOP, Sources(), [here], asked="default").version == PINNED
    assert choose(WORKSTATION, Sources(), [here], asked="cpu").version == f"{PINNED}+cpu"
    assert choose(WORKSTATION, Sources(), [here], asked="/home/me/env").borrowed == here.packages
    with pytest.raises(SystemExit, match="TORCH: expected cpu, default, or the folder"):
        choose(WORKSTATION, Sources(), [here], asked="/nowhere")


def made(monkeypatch, tmp_path, offered, environment=None, torch_in=None, machine=LAPTOP):
    """The commands of a set-up in which nothing is really run; every environment's torch is as `torch_in` says."""
    commands = []

    def run(command):
        commands.append(command)
        if command[1:3] == ["-m", "venv"]:
            python = tool.python_of(Path(command[3]))
            python.parent.mkdir(parents=True)
            python.touch()
        if "index" in command:
            if "--extra-index-url" in command and "--timeout" not in command:
                raise AssertionError("it must fail fast")
            return f"torch ({offered[0]})\nAvailable versions: {', '.join(offered)}\n"
        if tool.ASK_FOR_TORCH in command:
            version, packages = (torch_in or {}).get(command[0], (None, None))
            return json.dumps([list(sys.version_info[:2]), version, packages])
        if command[1] == "-c":
            return str(tmp_path)
        return ""

    pinned = "torch==9.9.0\nnumpy==1.0\n"
    (tmp_path / "constraints.txt").write_text(pinned)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    tool.set_up(tmp_path / "venv", "all", run, environment or {}, machine)
    return commands


def test_it_says_what_it_downloads_before_it_does(monkeypatch, tmp_path, capsys):
    commands = made(monkeypatch, tmp_path, [PINNED, f"{PINNED}+cpu"])
    said = capsys.readouterr().out
    assert "torch 9.9.0+cpu: the build for CPUs, as no NVIDIA hardware is here; about 200 MB" in said
    torch, rest = (command for command in commands if "install" in command)
    assert torch[-1] == "torch"
    assert rest[-2:] == ["--editable", f"{tmp_path}[all]"]
    pins = Path(torch[torch.index("--constraint") + 1])
    assert pins.read_text() == "torch==9.9.0+cpu\nnumpy==1.0\n"
    assert str(pins) in rest


def test_a_borrowed_torch_is_seen_and_what_is_installed_fits_it(monkeypatch, tmp_path, capsys):
    other = tmp_path / "other"
    python = tool.python_of(other)
    python.parent.mkdir(parents=True)
    python.touch()
    torch_in = {str(python): ("2.8.1", str(other / "lib"))}
    commands = made(monkeypatch, tmp_path, [PINNED], {"VIRTUAL_ENV": str(other)}, torch_in)
    assert f"torch 2.8.1: borrowed from {other}" in capsys.readouterr().out
    assert (tmp_path / "borrowed_torch.pth").read_text() == f"{other / 'lib'}\n"
    (install,) = (command for command in commands if "install" in command)
    assert "torch==2.8.1" in Path(install[install.index("--constraint") + 1]).read_text()


def test_a_pip_that_fails_is_said_with_its_words():
    with pytest.raises(subprocess.CalledProcessError) as error:
        tool.run([sys.executable, "-c", "import sys; sys.exit('no room')"])
    assert "no room" in error.value.stderr


def test_it_runs_here_and_names_a_choice(tmp_path):
    """On this machine, whatever its network: nothing is made, a choice is said."""
    command = [sys.executable, str(SCRIPT), str(tmp_path / "venv"), "--dry-run"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=True)
    assert "  torch " in run.stdout
    assert not (tmp_path / "venv").exists()
