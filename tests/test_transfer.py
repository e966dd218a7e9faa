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
    return load_parts("", "embedded-map")


def test_the_sources_camera_and_distances_reach_the_new_video(source, parts, tmp_path):
    teacher = make_estimator("embedded")
    cameras = source.with_name("clip-cameras.json")
    made = transfer(source, PROMPT, parts, teacher, tmp_path / "out.mp4", cameras=cameras)
    assert made.carried is None
    assert 0 < made.scores["abs_rel"] < 1
    assert made.files[0] == tmp_path / "out.mp4"
    assert read_video(made.files[-1]).frames.shape[0] == 17
    recipe = read_recipe(made.files[0])
    used = read_radial_map(tmp_path / "out-stages" / "map.npz")
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


def test_the_whole_transfer_runs_on_the_wan_path(tmp_path):
    """Source, cameras, a teacher's map, a video by Wan's classes, scores: and the map is what the teacher saw."""
    model = tiny_wan()
    model.defaults = replace(model.defaults, frames=9, height=32, width=48, steps=2, guidance=1.0)
    adapter = trained(model).attach(model.transformer)
    clip = footage(0, radial=False)
    video = write_video(clip.video, tmp_path / "source.mp4", 8, crf=4)
    write_cameras(clip.cameras, tmp_path / "source-cameras.json")

    def wall(frames, lens):
        return torch.full(frames.shape[:3], 4.0)

    teacher = Perspective(wall, "wall", "1", "Apache-2.0")
    cameras = tmp_path / "source-cameras.json"
    made = transfer(video, "a cat", Parts(model, adapter), teacher, tmp_path / "out.mp4", cameras=cameras)
    assert read_video(made.files[0]).frames.shape == (9, 32, 48, 3)
    map = read_radial_map(tmp_path / "out-stages" / "map.npz")
    rays, _ = clip.cameras.lens.rays()
    torch.testing.assert_close(map.radius[0], 4 / rays[..., 2], rtol=1e-3, atol=1e-3)
    assert made.scores["abs_rel"] == pytest.approx(0, abs=1e-3)  # the teacher sees the same wall again
    recipe = read_recipe(made.files[0])
    parts = replace(Parts(model, adapter), radial=map, radial_source=recipe.radial)
    make_video(parts, recipe, tmp_path / "again.mp4")
    assert made.files[0].read_bytes() == (tmp_path / "again.mp4").read_bytes()
