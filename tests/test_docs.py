"""Every command and every Python example in the README and the docs does what it says.

A page's ```sh blocks run in order, in one empty folder, so that a later command may use what an earlier one wrote; its
```python blocks run after them, in the same folder. A block opened with ```sh needs-... needs what nobody can ship
(Wan's weights, a user's footage): its `curvedray` commands are checked against the command's own help. What only takes
minutes runs with the slow tests.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from curvedray.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(sh|python)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SET_UP = ("make ", "git ", "pip ", "cd ", "source ", "pre-commit ")  # not run: make test runs this very test
MINUTES = ("needs-a-minute", "needs-two-minutes", "needs-minutes")  # run with the slow tests
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
}


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """(what it needs, text) of each fenced block of a language."""
    return [(needs.strip(), text) for found, needs, text in BLOCK.findall(page.read_text()) if found == language]


def commands(text: str) -> list[str]:
    """The shell commands of a block: comments dropped, lines that end in a backslash joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


@pytest.mark.whole
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_does_what_it_says(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    steps: list[tuple[str, object]] = []
    for needs, text in blocks(page, "sh"):
        for command in commands(text):
            if command.startswith(SET_UP):
                continue
            assert command.startswith(("curvedray ", "python ", "ray ")), f"{page.name}: who would run `{command}`?"
            if needs:
                check_options(command)
            else:
                steps.append(("sh", shlex.split(command)))
    steps += [("python", text) for needs, text in blocks(page, "python") if not needs]
    if steps:
        perform(steps, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_takes_minutes_works_too(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    steps = [
        ("sh", shlex.split(command))
        for needs, text in blocks(page, "sh")
        if needs in MINUTES
        for command in commands(text)
    ]
    if steps:
        perform(steps, tmp_path, patience=3000)


def perform(steps: list[tuple[str, object]], folder: Path, patience: int = 600) -> None:
    runner = [sys.executable, str(Path(__file__).with_name("page_runner.py"))]
    result = subprocess.run(
        runner, input=json.dumps(steps), cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=patience
    )
    assert result.returncode == 0, f"{result.stdout[-2000:]}\n{result.stderr[-3000:]}"


def check_options(command: str) -> None:
    """A command we cannot run must at least exist, and have every option it is shown with."""
    words = shlex.split(command)
    if words[0] != "curvedray":
        return
    found: Any = typer.main.get_command(app)
    for word in words[1:]:
        if not hasattr(found, "commands"):
            break
        assert word in found.commands, f"`{command}`: no such command"
        found = found.commands[word]
    options = {"--help"}.union(*([*i.opts, *i.secondary_opts] for i in found.params if i.param_type_name == "option"))
    for word in words:
        if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word):
            assert word.split("=")[0] in options, f"`{command}`: no option {word}"


@pytest.mark.parametrize("wrong", ["generate x -z 3", "generate x --mov 3", "nothing", "cameras nothing", "train -e"])
def test_a_command_that_is_not_there_is_noticed(wrong):
    """Regression: `-o` passed for any command, as the text of every long option contains it."""
    check_options("curvedray generate x -o y.mp4 --near=2 --frames 5")
    check_options("curvedray cameras make 'truck right -1' mine.json --lens wide-110")
    with pytest.raises(AssertionError):
        check_options(f"curvedray {wrong}")


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_decision_names_a_file_that_is_there_and_what_is_in_it():
    """Regression: after files moved, decisions were said to live where nothing was."""
    rows = (ROOT / "docs" / "decisions.md").read_text().splitlines()
    named = re.findall(
        r"`((?:[a-z_]+/)*(?:[a-z_]+\.py)?)`(?:: `(\w+)`)?", "\n".join(row.rsplit(" | ", 1)[-1] for row in rows)
    )
    named = [(path, name) for path, name in named if path]
    assert len(named) > 40
    for path, name in named:
        file = ROOT / path if path.startswith("tests/") else ROOT / "curvedray" / path
        assert file.exists(), f"docs/decisions.md names {path}"
        assert not name or re.search(rf"^(def|class) {name}\b|^{name}\b", file.read_text(), re.MULTILINE), name


def test_the_readme_has_a_phrase_for_every_room():
    tree = (ROOT / "README.md").read_text().split("## The house")[1]
    named = set(re.findall(r"^  (\w+)(?:\.py|/) +\S", tree, re.MULTILINE))
    package = ROOT / "curvedray"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.name for path in package.iterdir() if path.is_dir() and any(path.glob("*.*"))} - {"__pycache__"}
    assert named == modules | folders
