"""Maps on their way to a video: whatever a user has is made one, what does not fit is refused, none is ignored."""

import numpy as np
import pytest
import torch
from tiny_wan import path, tiny_wan, trained
from typer.testing import CliRunner

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app
from curvedray.encoding.attention import CurvedEncoding
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.generation.generate import generate
from curvedray.generation.maps import MapRequest
from curvedray.generation.recipe import read_recipe
from curvedray.generation.shot import cameras_for, near_of
from curvedray.models.open import usual_shape
from curvedray.moves.trajectory import trajectory
from curvedray.radial.convert import write_frames
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import parse_blocks

PROMPT = "a red ball in a snowy courtyard"
SHAPE = (17, 64, 96)
QUICK = ("--steps", 1, "--zoom", 1)
SCENE = "box 1x1x2m at left 1m ahead 4m; wall ahead 7m"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def wall():
    return RadialMap.from_metric(torch.full((17, 64, 96), 4.0), near=2.0)


def test_a_blocked_out_scene_is_filmed_along_the_videos_own_camera_and_repeats_to_the_byte(tmp_path):
    out, move = tmp_path / "a.mp4", "dolly in 0.3 over 1s then static"  # seconds of the video, at the model's own rate
    done = run("generate", PROMPT, "--blocks", SCENE, "--move", move, *QUICK, "--save-radii", "-o", out)
    assert done.exit_code == 0, done.output
    recipe, map = read_recipe(out), read_radial_map(tmp_path / "a-map.npz")
    made = film_blocks(parse_blocks(SCENE), move, recipe.shot.cameras.lens, 17, fps=8)
    assert recipe.shot.cameras.fps == 8
    torch.testing.assert_close(map.radius[map.valid], made.map.radius[made.map.valid], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        recipe.shot.cameras.world_from_camera, made.cameras.scaled(map.near).world_from_camera, rtol=1e-4, atol=1e-5
    )
    radii = np.load(tmp_path / "a-radii.npz")
    assert radii["radius"].shape == radii["sigma"].shape == (len(radii["blocks"]), 5, 8, 12)
    assert (radii["radius"] > 0).all()
    assert float(radii["near"]) == pytest.approx(map.near)
    assert run("generate", "--again", out, "-o", tmp_path / "b.mp4").exit_code == 0
    assert out.read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_a_scene_follows_a_camera_file_in_metres_and_a_block_in_the_way_is_refused():
    lens_path = Cameras(path(17).lens, torch.eye(4).repeat(17, 1, 1), "metric")
    lens_path.world_from_camera[:, 2, 3] = torch.linspace(0, 1, 17)
    wanted = MapRequest.of(None, None, None, "wall ahead 5m")
    assert wanted is not None
    found = wanted.made(lens_path, None, SHAPE).map
    centre = found.radius[:, 32, 48]
    torch.testing.assert_close(centre[0] - centre[-1], torch.tensor(1.0), atol=0.05, rtol=0)
    with pytest.raises(InputError, match="unknown scale"):
        wanted.made(Cameras(lens_path.lens, lens_path.world_from_camera), None, SHAPE)
    inside = MapRequest.of(None, None, None, "box 2x2x4m at ahead 0.5m")
    assert inside is not None
    with pytest.raises(InputError, match="inside it at frame 0"):
        inside.made("static", None, SHAPE)


def test_depth_of_other_programs_is_read_where_it_is_used(tmp_path, wall):
    write_frames(wall, tmp_path / "png", "png")
    asked = MapRequest.of(tmp_path / "png", "radius", "mm", None)
    assert asked is not None
    found = asked.made("static", None, SHAPE).map
    torch.testing.assert_close(found.radius, wall.radius, atol=1e-3, rtol=0)
    along = MapRequest.of(tmp_path / "png", "z", "mm", None)
    assert along is not None
    assert (along.made("static", "pinhole-70", SHAPE).map.radius >= 4 - 1e-3).all()
    with pytest.raises(InputError, match="at most 170 degrees"):
        along.made("static", "fisheye-180", SHAPE)


def test_mistakes_are_answered_before_a_model_is_loaded_and_leave_nothing(tmp_path, wall, monkeypatch):
    monkeypatch.setattr("curvedray.generation.parts.load_model", None)
    np.save(tmp_path / "cm.npy", 100 * wall.radius.numpy())
    np.save(tmp_path / "few.npy", wall.radius[:7].numpy())
    np.save(tmp_path / "tall.npy", wall.radius.movedim(1, 2).numpy())
    (tmp_path / "empty").mkdir()
    out = tmp_path / "out" / "a.mp4"
    for words, said in [
        (["--radial", tmp_path / "cm.npy"], "Are they metres?"),
        (["--radial", tmp_path / "few.npy"], "expected 17 frames"),
        (["--radial", tmp_path / "tall.npy"], "Crop the map"),
        (["--radial", tmp_path / "few.npy", "--frames", 9], "expected 9 frames"),
        (["--radial", tmp_path / "few.npy", "--radial-scale", "cm"], "--radial-meaning"),
        (["--radial", tmp_path / "empty"], "--radial-meaning"),
        (["--radial", tmp_path / "empty", "--radial-meaning", "z"], "frames of one kind"),
        (["--radial-meaning", "z"], "a file or folder"),
        (["--blocks", "cloud ahead 2m"], "one of box"),
        (["--blocks", SCENE, "--radial", tmp_path / "cm.npy"], "both"),
    ]:
        done = run("generate", PROMPT, *words, *QUICK, "-o", out)
        assert said in str(done.exception), (words, done.exception)
    assert not out.parent.exists()


def test_an_inverted_disparity_is_said(tmp_path, wall):
    np.save(tmp_path / "disparity.npy", 1 / wall.radius.numpy())
    done = run("generate", PROMPT, "--radial", tmp_path / "disparity.npy", *QUICK, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "is it a disparity" in done.stderr


def test_near_of_cameras_of_unknown_scale_is_applied_or_refused(wall):
    model = tiny_wan()
    grid = model.grid_for(5, 32, 48)
    poses = path(5).world_from_camera
    unknown = Cameras(path(5).lens.resized(48, 32), poses, "arbitrary")
    applied = cameras_for(model, unknown, None, grid, near=2.0)
    torch.testing.assert_close(applied.world_from_camera[:, :3, 3], poses[:, :3, 3] / 2)
    for cameras in (unknown, poses):
        assert near_of(cameras, 0.5, wall) == 0.5  # in the cameras' unit; the map keeps its own
        with pytest.raises(InputError, match="unknown scale"):
            near_of(cameras, None, wall)
    assert near_of("static", None, wall) == wall.near
    with pytest.raises(InputError, match="the map's own"):
        near_of("static", 3.0, wall)


def test_near_distances_that_contradict_one_another_are_refused():
    """Cameras were divided by one number and the map's distances by another, although both are in one unit."""
    theirs = RadialMap.from_metric(torch.full((17, 64, 96), 4.0), near=1.3, unit="cameras")
    lens, poses = path(5).lens, path(5).world_from_camera
    unknown, metric, near = (Cameras(lens, poses, unit) for unit in ("arbitrary", "metric", "near"))
    assert near_of(unknown, None, theirs) == near_of(unknown, 1.3, theirs) == theirs.near
    with pytest.raises(InputError, match="the map's own"):
        near_of(unknown, 2.0, theirs)
    with pytest.raises(InputError, match="in metres"):
        near_of(metric, None, theirs)
    with pytest.raises(InputError, match="near distances already"):
        near_of(near, 5.0, None)
    assert near_of("static", 5.0, None) == 5.0  # metres of a move


def test_blocks_are_filmed_at_the_near_distance_that_is_said():
    """The map was cast along a path of the scene's own near distance, the film went along one of the user's."""
    wanted = MapRequest.of(None, None, None, "wall ahead 7m")
    found = wanted.made("dolly in 1", "pinhole-60", SHAPE, near=1.0).map
    middle = found.radius[:, 32, 48]
    assert found.near == 1.0
    assert (middle[0] - middle[-1]).item() == pytest.approx(1.0, abs=0.02)


def test_depth_is_turned_into_radii_through_the_lens_of_each_frame(tmp_path):
    """A zoom was read through the lens that it begins with, and depth of the latent frames was a traceback."""
    np.save(tmp_path / "z.npy", np.full(SHAPE, 3.0, np.float32))
    found = MapRequest.of(tmp_path / "z.npy", "z", None, None).made("zoom in 2", "pinhole-70", SHAPE).map
    lens = trajectory("zoom in 2", named_lens("pinhole-70", 96, 64), 17).frame_lens
    for frame in (0, -1):
        ray = lens[frame].unproject(torch.tensor([0.5, 0.5]))[0]
        assert found.radius[frame, 0, 0].item() == pytest.approx(3 / ray[2].item(), rel=1e-4)
    cameras = trajectory("zoom in 2", named_lens("pinhole-70", 96, 64), 17)
    np.save(tmp_path / "latent.npy", np.full((5, 64, 96), 3.0, np.float32))
    few = MapRequest.of(tmp_path / "latent.npy", "z", None, None).made(cameras, None, SHAPE).map
    torch.testing.assert_close(few.radius, found.radius[::4])
    np.save(tmp_path / "odd.npy", np.full((6, 64, 96), 3.0, np.float32))
    with pytest.raises(InputError, match="17 frames"):
        MapRequest.of(tmp_path / "odd.npy", "z", None, None).made(cameras, None, SHAPE)


def test_a_camera_file_of_unknown_scale_keeps_the_maps_near(tmp_path, wall):
    """`--near` is the cameras' then; the recipe notes the map's, so that the video repeats."""
    write_radial_map(wall, tmp_path / "map.npz")
    cameras = Cameras(path(17).lens, torch.eye(4).repeat(17, 1, 1), "arbitrary")
    cameras.world_from_camera[:, 0, 3] = torch.linspace(0, 0.1, 17)
    write_cameras(cameras, tmp_path / "cameras.json")
    words = ["generate", PROMPT, "--camera", tmp_path / "cameras.json", "--radial", tmp_path / "map.npz", *QUICK]
    assert "unknown scale" in str(run(*words, "-o", tmp_path / "a.mp4").exception)
    done = run(*words, "--near", 0.5, "-o", tmp_path / "a.mp4")
    assert done.exit_code == 0, done.output
    recipe = read_recipe(tmp_path / "a.mp4")
    assert recipe.near == wall.near
    assert recipe.shot.cameras.world_from_camera[-1, 0, 3].item() == pytest.approx(0.2)


def test_the_usual_shape_is_known_before_a_model_is(tmp_path):
    assert usual_shape("") == SHAPE
    assert usual_shape("Wan-AI/Wan2.1-T2V-1.3B-Diffusers") == (81, 480, 832)
    (tmp_path / "model_index.json").write_text('{"expand_timesteps": true}')
    assert usual_shape(str(tmp_path)) == (121, 704, 1280)


# -- inside the model


def test_a_map_reaches_every_curved_block_unchanged(monkeypatch):
    """Where it is valid each curved block attends with the map's own numbers, in every step; elsewhere with its own."""
    model = tiny_wan(layers=4)
    adapter = trained(model).attach(model.transformer)
    radius = 1 + torch.rand(5, 32, 48)
    radius[:, :16] = torch.nan  # half of it is left to the model
    map = RadialMap.from_metric(radius, near=1.0)
    grid = model.grid_for(5, 32, 48)
    interval, known = map.on(grid)
    heard = []
    real = CurvedEncoding.attention

    def attention(self, q, k, v, mu=None, sigma=None, *more, **named):
        heard.append((mu.clone(), sigma.clone()))
        return real(self, q, k, v, mu, sigma, *more, **named)

    monkeypatch.setattr(CurvedEncoding, "attention", attention)
    small = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 2, "guidance_scale": 1.0}
    generate(model, "a", adapter=adapter, radial=map, **small)
    curved = len(adapter.predictions)
    assert len(heard) == 2 * curved > 0
    for mu, sigma in heard:
        torch.testing.assert_close(mu[0][known], interval.mu[known], rtol=0, atol=0)
        torch.testing.assert_close(sigma[0][known], interval.sigma[known], rtol=0, atol=0)
        assert not torch.isclose(mu[0][~known], interval.mu[~known]).all()


def test_blocks_take_every_size_that_the_model_takes(tmp_path):
    """The embedded model's tokens are of 8 x 8 pixels; the map was checked on tokens of 16 x 16, and refused."""
    size = ["--size", "104x72", "--blocks", "wall ahead 7m", "--move", "static", "--dry-run"]
    done = CliRunner().invoke(app, ["generate", "a red ball", *size, "-o", str(tmp_path / "a.mp4")])
    assert done.exit_code == 0, done.output
