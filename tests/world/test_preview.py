"""Preview laws: the room is as large as the path, the ball stands a near distance ahead, and the command says so."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app, main
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.media.image import read_image
from curvedray.media.video import read_video
from curvedray.moves.trajectory import trajectory
from curvedray.world.paths import clearance
from curvedray.world.preview import (
    MOST_MEMORY,
    NEAR,
    enclosing,
    memory_of,
    placed,
    preview,
    preview_scene,
    render_caption,
    scene_near,
)
from curvedray.world.raycast import render_frames
from curvedray.world.scene import FIRST_THING, Room, Scene, Thing
from curvedray.world.world import scene_from_caption

LENS = named_lens("fisheye-150", 64, 48)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["preview", *words])


def test_an_orbit_circles_the_ball():
    """One near distance ahead stands the ball: it stays in the middle and keeps its size."""
    seen = preview(trajectory("orbit left 40deg", LENS, 5))
    ball = seen.rendered.surface == FIRST_THING
    columns = torch.arange(64.0) + 0.5
    middles = torch.stack([(mask.sum(0) * columns).sum() / mask.sum() for mask in ball])
    assert (middles - 32).abs().max() < 1
    assert ball.sum((1, 2)).max() < 1.15 * ball.sum((1, 2)).min()
    assert seen.scale == NEAR
    assert seen.description.looks_like == "orbit left 40 degrees, radius 1"


def test_the_video_shows_the_view_the_path_and_the_lens():
    seen = preview(trajectory("dolly in 0.4", LENS, 4))
    frames = seen.video
    assert len(frames) == 4
    assert frames.shape[1] % 2 == frames.shape[2] % 2 == 0
    top = (frames.shape[1] - 48) // 2
    assert torch.equal(frames[:, top : top + 48, :64], seen.rendered.frames)
    beside = frames[:, :, 64:]
    assert not torch.equal(beside[0], beside[3])  # the marked camera has moved
    assert seen.sheet.shape[1] >= 4 * 64


def test_units_are_honoured():
    near = trajectory("truck right 0.5", LENS, 3)
    path, scale = placed(near, 3.0)
    assert path.world_from_camera[-1, 0, 3].item() == pytest.approx(1.5)
    assert (path.unit, scale) == ("metric", 3.0)
    metric, scale = placed(replace(near, unit="metric"), 3.0)
    assert metric.world_from_camera[-1, 0, 3].item() == pytest.approx(0.5)
    unknown, scale = placed(replace(near, unit="arbitrary"), 3.0)
    assert unknown.world_from_camera[-1, 0, 3].item() == pytest.approx(3.0)
    assert scale == pytest.approx(6.0)
    still = Cameras(LENS, torch.eye(4).repeat(2, 1, 1), "arbitrary")
    assert placed(still, 3.0)[1] == 1.0


def test_a_long_path_gets_a_larger_court_and_nothing_in_its_way():
    poses = torch.eye(4).repeat(9, 1, 1)
    poses[:, 2, 3] = torch.linspace(0, 30, 9)
    poses[:, 1, 3] = torch.linspace(0, 4, 9)
    path = Cameras(LENS, poses, "metric")
    scene = enclosing(preview_scene(), path)
    assert scene.room.half_depth > 30
    assert scene.room.floor > 4
    level = Cameras(LENS, torch.eye(4).repeat(33, 1, 1), "metric")
    level.world_from_camera[:, 2, 3] = torch.linspace(0, 5, 33)
    cleared = enclosing(preview_scene(), level)
    assert len(cleared.things) < len(preview_scene().things)
    assert clearance(level, replace(cleared, things=cleared.things[:1])) > 0


def test_a_world_scene_has_its_own_near_distance():
    place = scene_from_caption("a red ball and a blue box in a snowy courtyard").scene
    near = scene_near(place, LENS)
    assert 0.8 < near < 5
    assert preview(trajectory("static", LENS, 1), place).scale == near
    assert scene_near(None, LENS) == NEAR == preview_scene().things[0].z


def test_the_truth_to_a_caption_shows_what_the_caption_says():
    seen = render_caption("a red ball and a blue box in a snowy courtyard", trajectory("dolly in 0.3", LENS, 3))
    ball, box = seen.surface == FIRST_THING, seen.surface == FIRST_THING + 1
    assert ball[0].any()
    assert box[0].any()
    assert ball[2].sum() > ball[0].sum()  # the ball has come nearer


def test_an_image_far_wider_than_high_has_a_sheet_too():
    assert preview(trajectory("static", named_lens("pinhole-90", 1000, 1), 1)).sheet.shape[-1] == 3


def test_a_zoom_changes_the_picture_of_the_lens():
    seen = preview(trajectory("zoom in 2x", LENS, 2))
    grid = seen.video[:, -100:, 64:]
    assert not torch.equal(grid[0], grid[1])


def test_the_command_writes_a_video_and_a_sheet(run, tmp_path):
    words = ("--move", "truck left 0.9m", "--lens", "fisheye-150", "--size", "64x48", "--frames", "3", "--fps", "10")
    result = run(*words, "-o", "out/look.mp4", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["frames"] == 3
    assert said["displacement"][0] == pytest.approx(-0.9 / NEAR, abs=1e-5)
    video = read_video(tmp_path / said["video"])
    assert (len(video.frames), video.fps) == (3, 10)
    assert video.metadata["lens"] == "fisheye-150"
    assert read_image(tmp_path / said["sheet"]).shape[-1] == 3
    again = run(*words, "-o", "out/again.mp4")
    assert "truck left" in again.stdout
    assert (tmp_path / "out/again.mp4").read_bytes() == (tmp_path / "out/look.mp4").read_bytes()


def test_the_command_reads_camera_files_and_captions(run, tmp_path):
    write_cameras(trajectory("pan right 30deg", LENS, 3), tmp_path / "path.json")
    words = ("--scene", "7", "-o", "a.mp4", "--frames", "2", "--option", "unit=metric", "--json")
    assert json.loads(run("--camera", "path.json", *words).stdout)["unit"] == "metric"
    caption = "a red ball and a blue box in a night courtyard"
    result = run("--camera", "path.json", "--scene", caption, "--size", "32x24", "--lens", "pinhole-60", "-o", "b.mp4")
    assert result.exit_code == 0, result.output
    assert "pinhole 60 degrees" in result.stdout


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--move", "static", "--camera", "x.json"),
        ("--move", "static", "--option", "unit=near"),
        ("--move", "static", "--scene", "9" * 5000),
        ("--move", "juggle"),
        ("--move", "static", "--lens", "fish"),
        ("--move", "static", "--size", "huge"),
        ("--move", "static", "--size", "99999x99999"),
        ("--move", "static", "--size", "8192x8192"),
        ("--move", "static", "--scene", "a dog in the park"),
        ("--camera", "missing.json"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(run, tmp_path, words):
    result = run(*words, "-o", "a.mp4")
    assert isinstance(result.exception, InputError)
    assert not list(tmp_path.iterdir())


def test_a_name_that_cannot_be_a_videos_is_refused_first(run, tmp_path, monkeypatch):
    monkeypatch.setattr("curvedray.world.preview.preview", None)  # refused before anything is drawn
    (tmp_path / "file").touch()
    for name, says in (("a.txt", "ends in .mp4"), ("file/a.mp4", "a folder to write in"), ("a" * 300 + ".mp4", "long")):
        with pytest.raises(InputError, match=says):
            raise run("--move", "static", "-o", name).exception


def test_a_folder_where_the_sheet_goes_is_told_first(run, tmp_path, monkeypatch):
    monkeypatch.setattr("curvedray.world.preview.preview", None)
    (tmp_path / "a.png").mkdir()
    with pytest.raises(InputError, match=r"a\.png: expected the name of a file to write, got a folder"):
        raise run("--move", "static", "-o", "a.mp4").exception


@pytest.mark.parametrize(
    ("size", "frames"), [("8192x8192", "1"), ("4096x4096", "15"), ("1920x1080", "100"), ("832x480", "600")]
)
def test_more_than_memory_holds_is_refused_before_it_is_drawn(run, monkeypatch, size, frames):
    """Regression: one frame of 3840 x 2160 took 4.4 GB, and larger ones were let through, up to ten."""
    monkeypatch.setattr("curvedray.world.preview.render_frames", None)
    with pytest.raises(InputError, match=r"4\.0 GB of memory.*take about \d+(\.\d)? GB"):
        raise run("--move", "static", "--size", size, "--frames", frames, "-o", "a.mp4").exception


def test_what_people_ask_for_is_not_refused():
    for frames, size in ((81, (832, 480)), (81, (1920, 1080)), (1, (3840, 2160)), (121, (1280, 704))):
        assert memory_of(frames, *size) < MOST_MEMORY


@pytest.mark.parametrize("ending", ["webm", "gif"])
def test_a_preview_may_be_any_kind_of_video(run, tmp_path, ending):
    result = run("--move", "pan left", "--size", "64x48", "--frames", "3", "-o", f"a.{ending}")
    assert result.exit_code == 0, result.output
    assert len(read_video(tmp_path / f"a.{ending}").frames) == 3


@pytest.mark.parametrize(("unit", "far"), [("metric", 1e5), ("near", 1e5), ("metric", 1e38), ("near", 1e38)])
def test_a_path_out_of_sight_is_refused(unit, far):
    poses = torch.eye(4).repeat(2, 1, 1)
    poses[1, 0, 3] = far
    with pytest.raises(InputError, match="at most 10000 m from the first camera"):
        preview(Cameras(LENS, poses, unit))


@pytest.mark.parametrize("far", [1e38, 1e12, 1e-30, 1e-44])
def test_a_path_of_unknown_unit_is_drawn_at_any_scale(far):
    """Regression: single precision made the length of a path of 1e20 infinite, and its scale nothing."""
    poses = torch.eye(4).repeat(2, 1, 1)
    poses[1, 0, 3] = far
    path, scale = placed(Cameras(LENS, poses, "arbitrary"), 3.0)
    assert scale > 0
    assert path.world_from_camera[1, 0, 3].item() == pytest.approx(3.0 if far > 1 else 0.0)


def test_ctrl_c_leaves_nothing_behind_and_says_so(tmp_path, monkeypatch, capsys):
    def interrupted(scene, path):
        yield next(render_frames(scene, path))
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("curvedray.world.preview.render_frames", interrupted)
    words = ["--move", "static", "--size", "64x48", "--frames", "3", "-o", "new/a.mp4"]
    monkeypatch.setattr(sys, "argv", ["curvedray", "preview", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert capsys.readouterr() == ("", "stopped; nothing half-written was left behind\n")
    assert not list(tmp_path.iterdir())


def test_a_deep_box_is_in_the_way_along_its_whole_depth():
    """Its half width alone was looked at, and a camera inside of it saw nothing."""
    room = Room(*[((0.5, 0.5, 0.5),) * n for n in (4, 4, 2, 2)])
    box = Thing("box", 0.0, 3.0, 0.3, 2.0, (1.0, 0.0, 0.0), depth=0.8)
    inside = torch.eye(4).repeat(2, 1, 1)
    inside[:, 2, 3] = 2.3
    kept = enclosing(Scene(room, (box,)), Cameras(Lens.from_fov(90, 0.0, 24, 16), inside, "metric"))
    assert not kept.things
