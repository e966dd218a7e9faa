"""`curvedray cameras` as a user meets it: words, JSON, files, and mistakes told in one sentence."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app
from curvedray.cli.shared import pixels, reader_options
from curvedray.errors import InputError
from curvedray.formats import read_cameras, write_cameras
from curvedray.moves.trajectory import trajectory


def run(*words: str | Path) -> str:
    """The command's stdout; a user's mistake comes out as its InputError."""
    result = CliRunner().invoke(app, ["cameras", *(str(i) for i in words)], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def orbit(tmp_path: Path) -> Path:
    path = tmp_path / "orbit.json"
    write_cameras(trajectory("orbit left 40deg radius 1.2", named_lens("fisheye-150"), 81), path)
    return path


def test_describe_says_a_move_and_a_file_alike(orbit: Path) -> None:
    first = "orbit left 40 degrees, radius 1.2, 81 frames, fisheye 150 degrees"
    said = run("describe", "--move", "orbit left 40deg radius 1.2", "--lens", "fisheye-150")
    assert said.splitlines()[0] == first
    assert 'as text: "orbit left 40deg radius 1.2"' in said
    assert run("describe", orbit).splitlines()[0] == first
    assert "format curvedray" in run("describe", orbit)


def test_describe_as_json(orbit: Path) -> None:
    said = json.loads(run("describe", orbit, "--json"))
    assert said["move"] == "orbit left 40deg radius 1.2"
    assert said["frames"] == 81
    assert said["unit"] == "near"
    assert said["format"] == "curvedray"
    in_metres = ("--option", "unit=metric", "--near", "2")
    halved = json.loads(run("describe", orbit, "--json", *in_metres, "--frames", "21"))
    assert halved["path_length"] == pytest.approx(said["path_length"] / 2, rel=1e-3)
    assert halved["frames"] == 21


def test_convert_there_and_back(tmp_path: Path) -> None:
    there, tum, back = (tmp_path / i for i in ("there.json", "path.txt", "back.json"))
    made = run("make", "dolly in 1 and pan left 30deg", there, "--lens", "pinhole-90", "--frames", "17", "--json")
    assert json.loads(made) == {"file": str(there), "frames": 17, "unit": "near"}
    assert run("convert", there, tum, "--to", "tum") == ""
    run("convert", tum, back, "--from", "tum", "--lens", "pinhole-90", "--option", "unit=near")
    expected, got = read_cameras(there), read_cameras(back)
    assert got.unit == "near"
    assert torch.allclose(got.world_from_camera, expected.world_from_camera, atol=1e-6)


def test_convert_moves_rescales_and_resamples(orbit: Path, tmp_path: Path) -> None:
    cameras = read_cameras(orbit)
    away = tmp_path / "away.json"
    write_cameras(replace(cameras[10:], unit="metric"), away)
    run("convert", away, tmp_path / "home.json", "--relative", "--near", "0.5", "--frames", "33")
    home = read_cameras(tmp_path / "home.json")
    assert torch.equal(home.world_from_camera[0], torch.eye(4))
    assert len(home) == 33
    expected = cameras[10:].relative_to_first().scaled(0.5).world_from_camera[-1]
    assert torch.allclose(home.world_from_camera[-1], expected, atol=1e-5)


def test_near_distances_are_not_divided_by_another(orbit: Path, tmp_path: Path) -> None:
    """A file in near distances was divided again by --near, without a word, and stayed in near distances."""
    for command in (["convert", orbit, tmp_path / "again.json"], ["describe", orbit]):
        with pytest.raises(InputError, match="--near: expected none, as the file is in near distances already, got 3"):
            run(*command, "--near", "3")
    assert not (tmp_path / "again.json").exists()


def test_describe_keeps_the_digits_of_coordinates_far_away(tmp_path: Path) -> None:
    """Regression: a straight path at 5,400 km was read in single precision, and described as a free one."""
    rows = [f"1 0 0 {4.5e5 + 0.01 * i} 0 1 0 5.4e6 0 0 1 100" for i in range(5)]
    (tmp_path / "geo.txt").write_text("\n".join(rows))
    assert "truck right 0.04 m" in run("describe", tmp_path / "geo.txt")


def test_a_file_is_fitted_to_a_size_and_a_number_of_frames(orbit: Path, tmp_path: Path) -> None:
    """A trajectory is a curve: what one command writes, another takes at its own size, and says so."""
    result = CliRunner().invoke(
        app, ["cameras", "convert", str(orbit), str(tmp_path / "small.json"), "--size", "96x64", "--frames", "17"]
    )
    assert result.exit_code == 0, result.output
    assert "the path of 81 frames was resampled to 17" in result.stderr
    assert "832 x 480 became 96 x 64 pixels" in result.stderr
    small = read_cameras(tmp_path / "small.json")
    assert (len(small), small.lens.size) == (17, (96, 64))
    assert small.lens.hfov.item() == pytest.approx(150, abs=0.01)
    run("convert", orbit, tmp_path / "flat.json", "--lens", "pinhole-90")
    assert read_cameras(tmp_path / "flat.json").lens.xi == 0


@pytest.mark.parametrize("size", ["832x480", "832X480", " 832 x 480", "832×480"])
def test_sizes_are_width_by_height(size: str) -> None:
    assert pixels(size) == (832, 480)


@pytest.mark.parametrize("size", ["", "x", "832", "1x", "-1x4", "1.5x4", "٨٣٢x٤٨٠", "8²x9", "1" * 5000 + "x1", "8_3x4"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(InputError, match="WIDTHxHEIGHT"):
        pixels(size)


def test_frames_in_a_size_are_sent_to_their_own_option() -> None:
    with pytest.raises(InputError, match="--frames"):
        pixels("81x480x832")


def test_options_are_numbers_text_or_lists_of_them() -> None:
    said = ["a=3", "b=0.5", "c=(1, 2)", "d=True", "e=cam03", "f-g=None", "h=٣", "i=[[", "j={1: []", "k=0x", "l={[]: 1}"]
    assert reader_options(said) == {
        "a": 3,
        "b": 0.5,
        "c": (1, 2),
        "d": True,
        "e": "cam03",
        "f_g": None,
        "h": "٣",
        "i": "[[",
        "j": "{1: []",
        "k": "0x",
        "l": "{[]: 1}",  # no literals, so text
    }


NO_OPTIONS = ["((1,),)", "{1: 2}", "1j", "b'x'", "9" * 30, "9" * 5000, "x" * 5000]


@pytest.mark.parametrize("value", NO_OPTIONS, ids=range(len(NO_OPTIONS)))
def test_options_that_no_reader_takes_are_refused(value: str) -> None:
    with pytest.raises(InputError, match="--option camera"):
        reader_options([f"camera={value}"])


@pytest.mark.parametrize("value", ["[" * 400 + "]" * 400, "-" * 900 + "1", "9" * 900 + ".", "\0\0"], ids=range(4))
def test_options_that_break_the_parser_do_not_break_the_command(value: str) -> None:
    with contextlib.suppress(InputError):
        assert reader_options([f"camera={value}"]).keys() == {"camera"}


def test_list_has_every_move_lens_and_format() -> None:
    from curvedray.cameras.named_lenses import list_lenses
    from curvedray.formats import FORMATS
    from curvedray.moves.move import KINDS

    tables = json.loads(run("list", "--json"))
    assert [i["move"] for i in tables["moves"]] == list(KINDS)
    assert [i["lens"] for i in tables["lenses"]] == [i.name for i in list_lenses()]
    assert [i["format"] for i in tables["formats"]] == list(FORMATS)
    shown = run("list")
    assert all(name in shown for name in (*KINDS, *FORMATS))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["describe"], "a camera file, or --move"),
        (["describe", "nowhere.json"], "nowhere.json"),
        (["describe", "x.json", "--move", "static"], "not both"),
        (["describe", "--move", "pann left 3deg"], "Did you mean pan"),
        (["describe", "--move", "static", "--lens", "fishy-150"], "lens"),
        (["describe", "--move", "static", "--frames", "0"], "frames"),
        (["describe", "--move", "static", "--frames", "1000000000"], "at most 30000"),
        (["describe", "--move", "static", "--size", "832"], "WIDTHxHEIGHT"),
        (["describe", "--move", "static", "--size", "0x480"], "WIDTHxHEIGHT"),
        (["describe", "--move", "static", "--size", "99999999x480"], "each from 1 to 8192"),
        (["describe", "--move", "static", "--size", "9" * 5000 + "x480"], "each from 1 to 8192"),
        (["describe", "--move", "handheld seed " + "9" * 400], "at most 18 digits"),
        (["describe", "--move", "static", "--lens", ""], "one of pinhole-60"),
        (["describe", "--move", "static", "--lens", "fisheye-150@nan"], "Lens.xi"),
        (["describe", "--move", "(" * 3000 + "static"], "at most 50 brackets"),
        (["describe", "."], r"^\.: expected a camera file.*a folder with no COLMAP model"),
        (["describe", "x.json", "--option", "nonsense"], "NAME=VALUE"),
        (["make", "orbit left 5m", "out.json"], "degrees"),
        (["make", "dolly in 0.5", "out.json", "--near", "-3"], "near"),
        (["convert", "nowhere.json", "out.json"], "nowhere.json"),
    ],
)
def test_mistakes_are_one_clear_error(
    words: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=expected):
        run(*words)
    assert not list(tmp_path.iterdir()), "nothing half-written"


@pytest.mark.parametrize("option", ["fps=abc", "fps=True", "unit=3", "mirrored_world=yes", "dtype=float64", "path=x"])
def test_options_that_every_format_takes_are_checked_too(orbit: Path, option: str) -> None:
    with pytest.raises(InputError, match="--option"):
        run("describe", orbit, "--option", option)


def test_a_single_frame_is_said_as_one() -> None:
    assert run("describe", "--move", "static", "--frames", "1").startswith("static, 1 frame, pinhole")


def test_a_mistake_exits_with_2_and_no_traceback() -> None:
    command = [sys.executable, "-m", "curvedray", "cameras", "describe", "--move", "pan left 0.5"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: amount of pan: expected degrees")
    assert "Traceback" not in result.stderr


def test_coordinates_of_a_map_keep_their_digits(tmp_path: Path) -> None:
    rows = [f"1 0 0 {4_500_000 + 0.1 * i!r} 0 1 0 0 0 0 1 5e7" for i in range(5)]
    (tmp_path / "a.txt").write_text("\n".join(rows))
    run("convert", tmp_path / "a.txt", tmp_path / "near.json", "--relative", "--lens", "pinhole-90")
    path = read_cameras(tmp_path / "near.json").world_from_camera[:, 0, 3]
    assert path.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4], abs=1e-7)
    run("convert", tmp_path / "a.txt", tmp_path / "b.txt", "--to", "kitti", "--lens", "pinhole-90")
    first = [line.split()[3] for line in (tmp_path / "b.txt").read_text().splitlines()]
    assert [float(i) for i in first] == [float(row.split()[3]) for row in rows]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["describe", "--move", "dolly in 2m"], "Or give --near, the near distance in metres"),
        (["describe", "--move", "static", "--near", "0"], "--near: expected a near distance from"),
    ],
)
def test_errors_speak_of_options(words: list[str], said: str) -> None:
    result = subprocess.run([sys.executable, "-m", "curvedray", "cameras", *words], capture_output=True, text=True)
    assert result.returncode == 2
    assert said in " ".join(result.stderr.split())


def test_what_was_understood_is_said_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "curvedray", "cameras", "make", "circle around the subject", "orbit.json"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0
    assert "understood as: orbit left 40deg radius 1" in result.stderr
