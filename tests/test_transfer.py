"""Motion transfer from end to end: source, cameras, map, video, scores; and sources that make no sense."""

import json
from dataclasses import replace

import pytest
import torch
from tiny import footage
from tiny_wan import tiny_wan, trained
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.evaluate.estimators import make_estimator
from curvedray.evaluate.estimators.perspective import Perspective
from curvedray.formats import read_cameras, write_cameras
from curvedray.generation.parts import Parts, load_parts
from curvedray.generation.recipe import read_recipe
from curvedray.generation.write import make_video
from curvedray.media.video import read_video, write_video
from curvedray.radial.map import read_radial_map
from curvedray.transfer import _oddities, source_cameras, transfer
from curvedray.world.world import world_clip

PROMPT = "a green pillar and a white ball in a snowy courtyard"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    clip = world_clip(2, "val")
    folder = tmp_path_factory.mktemp("source")
    write_cameras(clip.cameras, folder / "clip-cameras.json")
    return write_video(clip.video, folder / "clip.mp4", 8, crf=4)


@pytest.fixture(scope="module")
def parts():
    return load_parts()


def test_the_sources_camera_and_distances_reach_the_new_video(source, parts, tmp_path):
    teacher = make_estimator("embedded")
    cameras = source.with_name("clip-cameras.json")
    made = transfer(source, PROMPT, parts, teacher, tmp_path / "out.mp4", cameras=cameras)
    assert made.carried is None
    assert 0 < made.scores["abs_rel"] < 1
    assert made.files[0] == tmp_path / "out.mp4"
    assert read_video(made.files[-1]).frames.shape[0] == 17
    recipe = read_recipe(made.files[0])
    used = read_radial_map(tmp_path / "out-stages" / "followed" / "map.npz")
    assert recipe.radial is not None
    assert recipe.near == pytest.approx(used.near)
    asked = world_clip(2, "val").cameras.relative_to_first().scaled(used.near).world_from_camera
    got = recipe.shot.cameras.relative_to_first().world_from_camera
    torch.testing.assert_close(got, asked, atol=1e-3, rtol=1e-3)


def test_another_move_carries_the_map_as_far_as_it_goes(source, tmp_path):
    words = ["transfer", str(source), PROMPT, "--move", "truck right 0.3", "--estimate", "embedded", "--json"]
    run = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "new.mp4")])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert 0.5 < found["carried"] < 1
    assert any("of the new camera's view" in note for note in found["notes"])
    assert set(found["scores"]) == {"silog", "abs_rel", "delta_1", "scale_jitter"}


def test_a_generated_video_is_a_source_too(filmed, parts, tmp_path):
    """It is larger than the model's own size, and its cameras are in near distances."""
    video = next(path for path in sorted(filmed.glob("*.mp4")))
    cameras = video.with_name(f"{video.stem}-cameras.json")
    made = transfer(video, PROMPT, parts, make_estimator("embedded"), tmp_path / "again.mp4", cameras=cameras)
    assert made.scores
    asked = read_cameras(cameras).relative_to_first().world_from_camera
    got = read_recipe(made.files[0]).shot.cameras.relative_to_first().world_from_camera
    torch.testing.assert_close(got, asked, atol=1e-4, rtol=1e-4)


def test_a_cut_and_a_still_picture_are_said():
    moving = torch.arange(17).reshape(-1, 1, 1, 1).expand(17, 8, 8, 3).to(torch.uint8) * 2
    assert _oddities(moving) == []
    assert "no motion" in _oddities(torch.zeros(17, 8, 8, 3, dtype=torch.uint8))[0]
    assert (
        "cut after frame 8" in _oddities(torch.where(torch.arange(17).reshape(-1, 1, 1, 1) > 8, 200, moving).byte())[0]
    )


def test_what_is_missing_is_said_before_anything_is_filmed(source, parts, tmp_path):
    frames = read_video(source).frames
    with pytest.raises(InputError, match="a camera file, or an estimator"):
        source_cameras(frames, None, None, None, "clip")
    with pytest.raises(InputError, match="trained with MixForcing"):
        transfer(source, PROMPT, load_parts("", "none"), make_estimator("embedded"), tmp_path / "x.mp4")
    short = write_video(frames[:5], tmp_path / "short.mp4", 8)
    with pytest.raises(InputError, match="frames"):
        transfer(
            short,
            PROMPT,
            parts,
            make_estimator("embedded"),
            tmp_path / "x.mp4",
            cameras=source.with_name("clip-cameras.json"),
        )
    assert not list(tmp_path.glob("x.mp4"))


# -- on Wan's own classes, with tiny random weights


@pytest.fixture
def tiny_parts():
    model = tiny_wan()
    model.defaults = replace(model.defaults, frames=9, height=32, width=48, steps=2, guidance=1.0)
    return Parts(model, trained(model).attach(model.transformer))


@pytest.fixture
def tiny_source(tmp_path):
    clip = footage(0, radial=False)
    write_cameras(clip.cameras, tmp_path / "source-cameras.json")
    return write_video(clip.video, tmp_path / "source.mp4", 8, crf=4)


def wall(frames, lens):
    return torch.full(frames.shape[:3], 4.0)


WALL = Perspective(wall, "wall", "1", "Apache-2.0")


def test_every_stage_is_used_again_until_what_it_is_made_of_changes(tiny_source, tiny_parts, tmp_path):
    cameras = tmp_path / "source-cameras.json"

    def again(seed=0, teacher=WALL):
        return transfer(tiny_source, "a cat", tiny_parts, teacher, tmp_path / "out.mp4", cameras=cameras, seed=seed)

    first = again()
    assert first.reused == ()
    film = first.files[0].read_bytes()
    second = again()
    assert second.reused == ("cameras", "map", "film")
    assert second.files == first.files
    assert second.scores == pytest.approx(first.scores)
    assert again(seed=1).reused == ("cameras", "map")
    assert first.files[0].read_bytes() != film
    first.files[0].write_bytes(b"damaged")
    assert again(seed=1).reused == ("cameras", "map")
    assert again(seed=1, teacher=replace(WALL, version="2")).reused == ("cameras", "film")  # who sees the same wall
    (tmp_path / "out-stages" / "stages.json").write_text("[1]")
    write_cameras(read_cameras(cameras).scaled(2.0), cameras)
    assert again(seed=1).reused == ()


def test_another_ending_and_a_source_called_map_are_no_reason_to_mistake_one_file_for_another(
    tiny_source, tiny_parts, tmp_path
):
    """`-o out.webm` after `-o out.mp4` wrote nothing, and the source's own map was replaced by the followed one."""
    cameras = tmp_path / "source-cameras.json"
    source = tiny_source.rename(tmp_path / "map.mp4")
    for ending in (".mp4", ".webm"):
        made = transfer(source, "a cat", tiny_parts, WALL, tmp_path / f"out{ending}", cameras=cameras)
        assert made.files[0] == tmp_path / f"out{ending}"
        assert made.files[0].is_file()
    stages = tmp_path / "out-stages"
    assert len(read_radial_map(stages / "map.npz").radius) == len(read_video(source).frames)
    with pytest.raises(InputError, match="an input of this video"):
        transfer(source, "a cat", tiny_parts, WALL, source, cameras=cameras)


def test_a_new_move_begins_as_the_source_stood(tiny_source, tiny_parts, tmp_path):
    """The map was carried to a tilted camera, and the model was told of a level one."""
    own = read_cameras(tmp_path / "source-cameras.json")
    tilt, angle = torch.eye(4), torch.tensor(0.35)
    tilt[1:3, 1:3] = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).reshape(2, 2)
    write_cameras(replace(own, world_from_camera=tilt @ own.world_from_camera), tmp_path / "tilted.json")
    cameras = tmp_path / "tilted.json"
    made = transfer(tiny_source, "a cat", tiny_parts, WALL, tmp_path / "out.mp4", cameras=cameras, move="static")
    told = read_recipe(made.files[0]).shot.cameras.world_from_camera[0, :3, :3]
    torch.testing.assert_close(told, read_cameras(cameras).world_from_camera[0, :3, :3], atol=1e-4, rtol=0)


def test_cameras_of_an_unknown_scale_are_refused_or_scaled(tiny_source, tiny_parts, tmp_path):
    cameras = tmp_path / "poses.json"
    own = read_cameras(tmp_path / "source-cameras.json")
    write_cameras(replace(own, unit="arbitrary"), cameras)
    with pytest.raises(InputError, match="unknown scale"):
        transfer(tiny_source, "a cat", tiny_parts, WALL, tmp_path / "out.mp4", cameras=cameras)
    assert not (tmp_path / "out.mp4").exists()
    made = transfer(tiny_source, "a cat", tiny_parts, WALL, tmp_path / "out.mp4", cameras=cameras, near=2.0)
    got = read_recipe(made.files[0]).shot.cameras.relative_to_first().world_from_camera
    torch.testing.assert_close(got, own.relative_to_first().scaled(2.0).world_from_camera, atol=1e-3, rtol=1e-3)
    cameras = tmp_path / "source-cameras.json"
    with pytest.raises(InputError, match="near"):
        transfer(tiny_source, "a cat", tiny_parts, WALL, tmp_path / "x.mp4", cameras=cameras, near=2.0)


def test_what_is_odd_is_said_before_anything_is_filmed(tiny_source, tiny_parts, tmp_path):
    """A still picture, although an encoder leaves small changes from frame to frame."""
    still = write_video(read_video(tiny_source).frames[:1].expand(9, -1, -1, -1), tmp_path / "still.mp4", 8)
    heard: list[str] = []

    def say(note):
        heard.append(note)
        raise KeyboardInterrupt  # as the one who reads it may do

    with pytest.raises(KeyboardInterrupt):
        transfer(still, "a cat", tiny_parts, WALL, tmp_path / "out.mp4", say=say)
    assert "no motion" in heard[0]
    assert not list(tmp_path.glob("out*"))


def test_the_whole_transfer_runs_on_the_wan_path(tiny_source, tiny_parts, tmp_path):
    """Source, cameras, a teacher's map, a video by Wan's classes, scores: and the map is what the teacher saw."""
    cameras = tmp_path / "source-cameras.json"
    made = transfer(tiny_source, "a cat", tiny_parts, WALL, tmp_path / "out.mp4", cameras=cameras)
    assert read_video(made.files[0]).frames.shape == (9, 32, 48, 3)
    map = read_radial_map(tmp_path / "out-stages" / "followed" / "map.npz")
    rays, _ = footage(0, radial=False).cameras.lens.rays()
    torch.testing.assert_close(map.radius[0], 4 / rays[..., 2], rtol=1e-3, atol=1e-3)
    assert made.scores["abs_rel"] == pytest.approx(0, abs=1e-3)  # the teacher sees the same wall again
    recipe = read_recipe(made.files[0])
    parts = replace(tiny_parts, radial=map, radial_source=recipe.radial)
    make_video(parts, recipe, tmp_path / "again.mp4")
    assert made.files[0].read_bytes() == (tmp_path / "again.mp4").read_bytes()
