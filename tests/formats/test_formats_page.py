"""docs/formats.md and `curvedray cameras formats` say what the table of formats holds, all of it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curvedray.cli.cameras import group
from curvedray.formats import FORMATS, GENERAL, blender_addon

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def first_cells(heading: str) -> list[list[str]]:
    """The names in the first column of each table below a heading, up to the next one."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", row) for row in rows]


@pytest.mark.parametrize("heading", ["Which convention is this file?", "Writing"])
def test_the_page_has_every_format_once(heading):
    names = [name for row in first_cells(heading) for name in row]
    assert sorted(names) == sorted(FORMATS)


def test_the_page_has_every_option():
    stated = {name for row in first_cells("Reading") for name in row}
    own = {option.name for format in FORMATS.values() for option in format.options}
    assert stated == own | {option.name for option in GENERAL}


def run(*words: str) -> str:
    answer = CliRunner().invoke(group, list(words))
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_the_command_lists_every_format_in_a_line_each():
    lines = run("formats").splitlines()
    assert [line.split(" ")[0] for line in lines] == list(FORMATS)
    one = run("formats", "tum")
    assert all(option.name in one for option in (*FORMATS["tum"].options, *GENERAL))


def test_the_command_writes_the_add_on(tmp_path):
    run("blender", str(tmp_path / "addon.py"))
    assert (tmp_path / "addon.py").read_text() == Path(blender_addon.__file__).read_text()
