"""`curvedray data` on shards: what is missing is a row, a code and a sentence."""

import json

import pytest
from tiny import TinyFootage
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.cli.data import _show
from curvedray.data.check import ClipReport
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.data.webdataset import pack_footage
from curvedray.errors import InputError


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Shards of a clip each, one of them gone and one cut short."""
    folder = tmp_path_factory.mktemp("made")
    write_folder(TinyFootage(3), folder / "clips")
    pack_footage(FolderFootage(folder / "clips"), folder / "shards", 1)
    (folder / "shards" / "000000.tar").unlink()
    torn = folder / "shards" / "000001.tar"
    torn.write_bytes(torn.read_bytes()[:2000])
    return folder / "shards"


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_every_broken_shard_is_a_row_of_the_check(shards):
    """Regression: `1 of 1 clips have no problem`, and success, of a set of which two thirds were gone."""
    shown = command("data", "check", shards)
    assert shown.exit_code == 1
    assert "\n000000.tar\n    problem: a shard that cannot be used whole: it is not there" in shown.stdout
    assert "2 shards cannot be used whole" in shown.stdout
    rows = json.loads(command("data", "check", shards, "--json").stdout)
    assert [row["id"] for row in rows if row["problems"]][-2:] == ["000000.tar", "000001.tar"]


def test_a_cache_names_the_shards_it_lacks(shards, tmp_path):
    words = ("--model", "random", "--size", "48x32", "--frames", "9", "-o", tmp_path / "cache", "--json")
    report = json.loads(command("data", "cache", shards, *words).stdout)
    assert [name for name, _ in report["skipped"]][-2:] == ["000000.tar", "000001.tar"]


@pytest.mark.parametrize("what", ["split", "caption"])
def test_what_is_written_beside_clips_is_not_written_beside_shards(shards, what):
    """Regression: `none of them`, and no word of what to do."""
    refused = command("data", what, shards)
    assert isinstance(refused.exception, InputError)
    assert "packed from" in str(refused.exception)


def test_clips_of_one_capture_can_be_told_apart(capsys):
    """Regression: names were cut after 21 letters, which those of a capture share."""
    names = [f"2013_05_28_drive_000{drive}_sync-image_00-00008{i}" for drive in range(2) for i in range(2)]
    _show([ClipReport(name, 81, 832, 480, 81, 1.0, 2.0, "metric", 90.0, 0.0, None, ()) for name in names], [])
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines for name in names)
    assert max(map(len, lines)) <= 80
