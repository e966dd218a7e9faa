"""Lists of requests: both forms mean what they say, bad lines are named, and nothing is filmed twice."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from curvedray.cameras import Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.generation.filming import Crew, film_requests, is_filmed
from curvedray.generation.requests import VideoRequest, read_video_requests
from curvedray.generation.write import Files
from curvedray.moves.trajectory import trajectory

PROMPT = "a red ball and a blue box in a desert courtyard"


def written(folder, *lines):
    path = folder / "list.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def poses(folder, name="vid-7-0-16.npy", frames=17):
    path = np.tile(np.eye(4, dtype=np.float32)[:3], (frames, 1, 1))
    path[:, 0, 3] = np.linspace(0, 3, frames)
    np.save(folder / name, path)
    return name


def test_every_bad_line_is_named_and_the_others_are_kept(tmp_path):
    path = written(
        tmp_path,
        {"prompt": PROMPT, "move": "pan left 20deg", "name": "one"},
        "{not json",
        {"prompt": PROMPT, "name": "one"},
        {"prompt": PROMPT, "mvoe": "static"},
        [1, 2],
        {"move": "static"},
        {"prompt": PROMPT, "move": "static", "camera": "a.json"},
        {"prompt": PROMPT, "x_fov": 90.0},
        {"prompt": PROMPT, "seed": "3"},
        {"prompt": PROMPT, "name": "../out"},
        "",
        {"caption": PROMPT, "name": "two"},
    )
    requests, bad = read_video_requests(path)
    assert [request.name for request in requests] == ["one", "two"]
    assert [line.line for line in bad] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert all(f"list.jsonl, line {line.line}" in line.reason for line in bad)
    assert "that of line 1" in bad[1].reason
    assert "move" in bad[2].reason  # the nearest name that there is


def test_options_hold_for_lines_that_say_nothing_else(tmp_path):
    path = written(tmp_path, {"prompt": PROMPT}, {"prompt": PROMPT, "camera": "a.json", "steps": 3, "lens": "wide-110"})
    (first, second), _ = read_video_requests(path, {"move": "static", "steps": 9, "lens": "pinhole-70", "seed": None})
    assert (first.move, first.steps, first.lens) == ("static", 9, "pinhole-70")
    assert (second.move, second.steps, second.lens) == (None, 3, "wide-110")
    assert second.camera == str(tmp_path / "a.json")


def test_a_name_is_stable_and_changes_with_the_line():
    request = VideoRequest(PROMPT, move="static")
    assert request.file == VideoRequest(PROMPT, move="static").file
    assert request.file != replace(request, seed=1).file
    assert request.file.startswith("a-red-ball")


def test_panshots_test_set_gives_its_lens_and_near_distances(tmp_path):
    """The list is a .json as PanShot's, the poses are divided by the near distance, the lens is the request's."""
    line = {"pose_path": poses(tmp_path), "x_fov": 110.0, "xi": 0.6, "caption": PROMPT, "video_path": "vid.mp4"}
    (tmp_path / "test.json").write_text(json.dumps([line]))
    (tmp_path / "near.jsonl").write_text(json.dumps({"video_id": "vid", "clip_id": 7, "near_depth": 2.0}))
    (request,), bad = read_video_requests(tmp_path / "test.json", {"near_depths": str(tmp_path / "near.jsonl")})
    assert bad == []
    _, recipe = Crew().open().recipe(request)
    cameras = recipe.shot.cameras
    assert cameras.unit == "near"
    assert cameras.world_from_camera[-1, 0, 3].item() == pytest.approx(1.5)
    expected = Lens.from_fov(110.0, 0.6, *cameras.lens.size)
    torch.testing.assert_close(cameras.lens.focal, expected.focal)
    torch.testing.assert_close(cameras.lens.xi, expected.xi)


def test_what_is_said_of_panshots_poses_holds_beside_a_lens_by_name_too(tmp_path):
    """Near distances and yaw were passed over where the lens had a name, and no word was said."""
    (tmp_path / "near.jsonl").write_text(json.dumps({"video_id": "vid", "clip_id": 7, "near_depth": 2.0}))
    path = written(tmp_path, {"prompt": PROMPT, "camera": poses(tmp_path), "lens": "pinhole-70"})
    (request,), _ = read_video_requests(path, {"near_depths": str(tmp_path / "near.jsonl")})
    crew = Crew().open()
    for one, last in ((request, 1.5), (replace(request, near=6.0), 0.5)):  # a line's own near distance comes first
        _, recipe = crew.recipe(one)
        assert recipe.shot.cameras.world_from_camera[-1, 0, 3].item() == pytest.approx(last)


def test_a_lens_in_panshots_terms_goes_with_every_camera_file(tmp_path):
    """Any file but PanShot's was read as RealEstate10K's."""
    write_cameras(trajectory("truck right 0.5", named_lens("pinhole-70", 96, 64), 17), tmp_path / "own.json")
    line = {"prompt": PROMPT, "camera": "own.json", "x_fov": 110.0, "xi": 0.6}
    (request,), _ = read_video_requests(written(tmp_path, line))
    cameras = Crew().open().recipe(request)[1].shot.cameras
    torch.testing.assert_close(cameras.lens.focal, Lens.from_fov(110.0, 0.6, *cameras.lens.size).focal)
    assert cameras.world_from_camera[-1, 0, 3].item() == pytest.approx(0.5)


def test_a_video_is_known_again_from_another_folder(tmp_path, monkeypatch):
    """Its map was the same file by another spelling of its path, and it was filmed again."""
    radius = np.full((17, 64, 96), 3.0, np.float32)
    np.savez(tmp_path / "map.npz", radius=radius)
    line = {"prompt": PROMPT, "move": "static", "radial": "map.npz", "name": "a", "steps": 1, "zoom": 1}
    path, crew = written(tmp_path, line), Crew().open()
    for folder, resumed in ((tmp_path, False), (tmp_path.parent, True)):
        monkeypatch.chdir(folder)
        (request,), _ = read_video_requests(os.path.relpath(path))
        (film,) = film_requests([request], tmp_path / "films", Crew(), opened=crew)
        assert film.resumed == resumed, film


def test_a_list_is_filmed_once_and_what_fails_is_named(tmp_path):
    """A request that changes is filmed again, and it alone; a torn video is, too."""
    path = written(
        tmp_path,
        {"prompt": PROMPT, "move": "pan left 20deg", "name": "good", "steps": 1},
        {"prompt": PROMPT, "camera": "nowhere.json", "name": "lost"},
        "{",
    )
    words = ["generate", "--requests", str(path), "-o", str(tmp_path / "films"), "--json", "--zoom", "1"]

    def run():
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    first = run()
    assert (first["requests"], first["filmed"], first["failed"], first["bad_lines"]) == (3, 1, 1, 1)
    assert "nowhere.json" in first["videos"][1]["failure"]
    film = tmp_path / "films" / "good.mp4"
    before = film.read_bytes()
    assert (tmp_path / "films" / "good-cameras.json").is_file()
    assert [video["resumed"] for video in run()["videos"]] == [True, False]
    assert film.read_bytes() == before
    (request, _), _ = read_video_requests(path, {"zoom": 1})
    crew = Crew().open()
    assert is_filmed(film, crew.recipe(request)[1])
    assert not is_filmed(film, crew.recipe(replace(request, seed=1))[1])
    film.write_bytes(before[:-100])
    (again,) = film_requests([request], tmp_path / "films", Crew(), opened=crew)
    assert (again.resumed, film.read_bytes() == before) == (False, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a prompt"], "prompt"),
        (["--blocks", "wall ahead 7m"], "--blocks"),
        (["--seeds", "3"], "--seeds"),
        (["--seed", "3", "--seed", "4"], "--seed"),
    ],
)
def test_what_a_list_cannot_be_told_is_refused(tmp_path, words, says):
    path = written(tmp_path, {"prompt": PROMPT})
    done = CliRunner().invoke(app, ["generate", *words, "--requests", str(path), "-o", str(tmp_path / "films")])
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)


def test_what_cannot_be_filmed_is_named_and_the_rest_goes_on(tmp_path):
    """A request that only filming refuses, such as guidance towards a map that is not there, stopped the whole list."""
    path = written(
        tmp_path,
        {"prompt": PROMPT, "move": "static", "name": "no-map", "map_guidance": 2.0, "steps": 1},
        {"prompt": PROMPT, "move": "static", "name": "good", "steps": 1},
    )
    requests, _ = read_video_requests(path, {"zoom": 1})
    first, second = film_requests(requests, tmp_path / "films", Crew())
    assert "map" in first.failure
    assert not second.failure


def test_a_list_asks_for_the_same_videos_however_its_path_is_spelled(tmp_path, monkeypatch):
    path = written(tmp_path, {"prompt": PROMPT, "camera": "c.json"})
    monkeypatch.chdir(tmp_path)
    names = {read_video_requests(one)[0][0].file for one in (path, path.name, f"./{path.name}")}
    assert len(names) == 1


def test_radii_that_were_not_written_before_are_written_now(tmp_path):
    (request,), _ = read_video_requests(written(tmp_path, {"prompt": PROMPT, "move": "static", "steps": 1, "zoom": 1}))
    crew = Crew().open()
    for files, resumed in ((Files(), False), (Files(radii=True), False), (Files(radii=True), True)):
        (film,) = film_requests([request], tmp_path, Crew(), opened=crew, files=files)
        assert film.resumed == resumed
    assert list(tmp_path.glob("*-radii.npz"))
