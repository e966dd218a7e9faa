"""How commands end: one sentence for a mistake or a full device, nothing left behind when stopped."""

import errno
import os
import signal
import subprocess
import sys

import pytest
import typer
from rich.console import Console

from curvedray.cli import COMMANDS, app
from curvedray.cli.exits import _options, as_options, in_options
from curvedray.cli.exits import run as run_app
from curvedray.errors import InputError

STOPPED = "stopped; nothing half-written was left behind"


def curvedray(*words, **how):
    return subprocess.run([sys.executable, "-m", "curvedray", *words], text=True, timeout=300, **how)


def test_brackets_in_a_name_are_no_markup():
    """Regression: `[/b]` in a path crashed the error handler itself."""
    run = curvedray("cameras", "describe", "no [/b] such [red]file.json", capture_output=True)
    assert run.returncode == 2
    assert "no [/b] such [red]file.json" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_full_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        run = curvedray("--version", stdout=full, stderr=subprocess.PIPE)
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line.startswith("error: ")
    assert "No space left on device" in line


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EACCES, errno.EIO])
def test_what_the_machine_refuses_is_one_sentence(number, monkeypatch, capsys):
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise OSError(number, os.strerror(number), "some [/b] file")

    monkeypatch.setattr(sys, "argv", ["curvedray"])
    with pytest.raises(SystemExit) as leaving:
        run_app(broken, Console(stderr=True, soft_wrap=True))
    assert leaving.value.code == 2
    expected = f"error: some [/b] file: expected a file or folder to use, got {os.strerror(number)}\n"
    assert capsys.readouterr().err == expected


def test_a_folder_of_data_whose_name_is_too_long_is_one_sentence():
    answer = curvedray("data", "check", "x" * 300, capture_output=True)
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


def test_a_reader_that_leaves_early_is_no_error():
    command = [sys.executable, "-m", "curvedray", "cameras", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.close()
        assert run.stderr.read() == ""


# An app whose one command writes a file and waits, so that it can be stopped in the midst of it.
WAITING = """
import signal, sys, time, typer
from curvedray.cli import console
from curvedray.cli.exits import run
from curvedray.files import whole_file
# What runs in the background of a shell is started with Ctrl-C ignored, and the tests may be.
signal.signal(signal.SIGINT, signal.default_int_handler)
app = typer.Typer()
@app.command()
def wait(path: str):
    with whole_file(path) as partial:
        partial.write_text("half")
        print("waiting", flush=True)
        time.sleep(600)
run(app, console)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_command_leaves_nothing_behind(tmp_path, number, code):
    command = [sys.executable, "-c", WAITING, str(tmp_path / "out.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline() == "waiting\n"
            run.send_signal(number)
            assert run.wait(timeout=60) == code
            assert STOPPED in run.stderr.read()
        finally:
            run.kill()
    assert list(tmp_path.iterdir()) == []


def test_advice_is_given_in_the_command_lines_words():
    near = InputError(
        "near", "a distance", "none", "Give near=2.5, or near=, or any_weights=True (unit=, size=(2, 3))."
    )
    options = {"near": "--near", "any_weights": "--any-weights"}
    said = as_options(near, options)
    assert said == (
        "--near: expected a distance, got none. Give --near 2.5, or --near, or --any-weights (unit=, size=(2, 3))."
    )
    assert "--option unit=, --option size=(2, 3)" in as_options(near, options | {"option": "--option"})
    assert in_options("Say near= and read on.", options) == "Say --near and read on."


def test_notes_are_in_the_command_lines_words_too(tmp_path):
    """Regression: mistakes were put in the command line's words, notes told its users to say lens= and size=."""
    (tmp_path / "kitti\x1b[31m.txt").write_text("\n".join(f"1 0 0 {i} 0 1 0 0 0 0 1 0" for i in range(3)))
    run = curvedray("cameras", "describe", "kitti\x1b[31m.txt", capture_output=True, cwd=tmp_path)
    assert "Say otherwise with --lens (and --size)." in run.stderr
    assert "\x1b[31m" not in run.stderr + run.stdout


def test_what_was_got_is_quoted_as_it_was():
    assert "got near=3" in as_options(InputError("file", "cameras", "near=3"), {"near": "--near"})


def test_a_shell_completes_the_command():
    """By its own name, however it was started: completion of `python -m curvedray` is nothing that a shell can do."""
    # Named, the shell is not looked for among the processes above the test, of which there may be none.
    named = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = curvedray("--show-completion", "bash", capture_output=True, env=named).stdout
    assert "complete -o default -F _curvedray_completion curvedray" in shown
    typed = {"_CURVEDRAY_COMPLETE": "complete_bash", "COMP_WORDS": "curvedray cameras d", "COMP_CWORD": "2"}
    assert curvedray(capture_output=True, env=os.environ | typed).stdout.split() == ["describe"]


def test_the_options_are_those_of_the_command_that_was_run():
    assert _options(app, ["generate", "a ball", "--near", "2"])["near"] == "--near"
    assert _options(app, ["cameras", "describe", "x"])["option"] == "--option"
    assert "near" not in _options(app, ["doctor"])


def test_help_and_version_do_not_wait_for_heavy_packages():
    script = "import sys, curvedray.cli; print(sorted({'torch', 'scipy', 'diffusers', 'numpy'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
    assert curvedray("--version", capture_output=True).stdout.startswith("curvedray ")


def test_every_command_is_there_and_can_be_completed():
    """Help promises no command that does not exist, and a shell can ask for their names."""
    environment = {"_CURVEDRAY_COMPLETE": "complete_bash", "COMP_WORDS": "curvedray ", "COMP_CWORD": "1"}
    script = "import sys; sys.argv = ['curvedray']; from curvedray.cli import app; app(prog_name='curvedray')"
    import os

    run = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert set(run.stdout.split()) == set(COMMANDS)
