"""World laws: a clip follows from its number to the byte, obeys its caption, and keeps its camera out of things."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.cameras import inverse_pose
from curvedray.errors import InputError
from curvedray.world import world
from curvedray.world.raycast import render
from curvedray.world.scene import FIRST_THING
from curvedray.world.themes import COLOURS, THEMES, WORDS, describe_caption
from curvedray.world.world import keeps_clear, reach, scene, scene_from_caption, split_of, world_clip


@pytest.fixture(scope="module")
def clips():
    return [world_clip(index, "val", frames=5, height=32, width=48) for index in range(40)]


def test_a_clip_follows_from_its_number_to_the_byte():
    one, two = (world_clip(7, "train") for _ in range(2))
    assert one.video.numpy().tobytes() == two.video.numpy().tobytes()
    assert one.radius.numpy().tobytes() == two.radius.numpy().tobytes()
    assert torch.equal(one.cameras.world_from_camera, two.cameras.world_from_camera)
    assert (one.caption, one.move) == (two.caption, two.move)
    assert one.video.shape == (17, 64, 96, 3)
    assert one.cameras.unit == "metric"


def test_a_pinned_clip_stays_what_it_was():
    """Weights were trained on these very scenes: a change here is a new world."""
    clip = world_clip(0, "train", frames=2, height=16, width=24)
    assert clip.caption == "a blue ball and a yellow ball in a sunset courtyard"
    assert clip.move == "truck left 1.60m linear and pedestal down 0.39m linear"


def test_size_and_length_do_not_change_what_happens():
    small, long = world_clip(3, frames=3, height=16, width=24), world_clip(3, frames=9, height=32, width=48)
    assert (small.caption, small.move, small.family) == (long.caption, long.move, long.family)
    assert torch.allclose(small.cameras.world_from_camera[-1], long.cameras.world_from_camera[-1])
    assert small.cameras.lens.hfov.item() == pytest.approx(long.cameras.lens.hfov.item(), abs=1e-3)


def test_splits_share_no_scene():
    captions = {split: {scene(i, split).caption for i in range(60)} for split in ("train", "val", "test")}
    assert not captions["train"] & captions["test"]
    assert not captions["train"] & captions["val"]
    assert not captions["val"] & captions["test"]
    assert all(split_of(caption) == split for split, many in captions.items() for caption in many)


def test_captions_are_made_of_the_words_and_say_what_is_there(clips):
    for clip in clips:
        assert set(clip.caption.split()) <= set(WORDS)
        assert describe_caption(clip.caption) == clip.world.description
        kinds = [thing.kind for thing in clip.world.scene.things]
        assert kinds == [noun.kind for noun in clip.world.description.nouns]
    assert len(WORDS) == len(set(WORDS)) < 40


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["train", "val", "test"]))
def test_things_stand_in_the_captions_order_and_never_touch(index, split):
    place = scene(index, split)
    things, room = place.scene.things, place.scene.room
    if len(things) > 1:
        assert things[0].x < 0 < things[1].x
    if len(things) == 3:
        assert things[2].z > min(things[0].z, things[1].z)
    for time in (0.0, 0.5, 1.0):
        now = place.scene.at(time).things
        for i, one in enumerate(now):
            assert max(abs(one.x), abs(one.z)) + reach(one) <= room.half
            assert all(math.dist((one.x, one.z), (b.x, b.z)) >= reach(one) + reach(b) for b in now[:i])


def test_cameras_keep_inside_the_court_and_out_of_things(clips):
    for clip in clips:
        assert keeps_clear(clip.cameras, clip.world.scene)
        assert clip.radius[clip.valid].min() > 0.3
        assert clip.valid.float().mean() > 0.3
    inside_a_thing = clips[0].cameras
    poses = inside_a_thing.world_from_camera.clone()
    thing = clips[0].world.scene.things[0]
    poses[2, :3, 3] = torch.tensor([thing.x, 0.5, thing.z])
    assert not keeps_clear(type(inside_a_thing)(inside_a_thing.lens, poses, "metric"), clips[0].world.scene)


def test_lenses_and_moves_are_those_of_the_plan(clips):
    for clip in clips:
        (low, high), (straight, bent) = world.LENS_FAMILIES[clip.family]
        assert low - 0.1 <= clip.cameras.lens.hfov.item() <= high + 0.1
        assert straight <= clip.cameras.lens.xi.item() <= bent
    assert {clip.family for clip in clips} == {"pinhole", "wide", "fisheye"}
    assert any(" and " in clip.move for clip in clips)
    yaw = torch.tensor([math.degrees(math.asin(clip.cameras.world_from_camera[0, 0, 2])) for clip in clips])
    assert yaw.abs().max() <= 4.01


def test_radii_agree_between_frames_through_the_lens(clips):
    """Still points seen in the first frame are no farther than what the last frame sees along their ray."""
    clip = next(clip for clip in clips if clip.family == "fisheye" and not clip.moving.any())
    lens, poses = clip.cameras.lens.to(torch.float64), clip.cameras.world_from_camera.double()
    rays, _ = lens.rays()
    step = inverse_pose(poses[-1]) @ poses[0]
    points = (clip.radius[0].double()[..., None] * rays)[clip.valid[0]] @ step[:3, :3].T + step[:3, 3]
    pixels, visible = lens.project(points)
    column, row = pixels.floor().long().unbind(-1)
    inside = visible & (column >= 0) & (column < lens.size[0]) & (row >= 0) & (row < lens.size[1])
    seen, expected = clip.radius[-1][row[inside], column[inside]], points[inside].norm(dim=-1)
    assert ((seen / expected - 1).abs() < 0.1).float().mean() > 0.6  # a pixel is coarse, and things hide others


def test_some_things_move_and_are_masked():
    index = next(i for i in range(100) if any(t.moves for t in scene(i).scene.things))
    clip = world_clip(index, frames=5, height=32, width=48)
    assert clip.moving.any()
    assert "moving" in clip.caption
    assert (clip.moving <= clip.valid).all()
    moving = sum(any(t.moves for t in scene(i).scene.things) for i in range(300))
    assert 10 <= moving <= 60


@pytest.mark.parametrize("theme", THEMES)
def test_a_caption_makes_the_scene_it_says(theme):
    place = scene_from_caption(f"A red ball and a white box in a {theme} courtyard.", seed=3)
    assert place.caption == f"a red ball and a white box in a {theme} courtyard"
    assert [thing.kind for thing in place.scene.things] == ["ball", "box"]
    assert place.scene == scene_from_caption(f"A red ball and a white box in a {theme} courtyard.", seed=3).scene
    cameras = world_clip(0, frames=1, height=48, width=72).cameras
    surface = render(place.scene, cameras).surface[0]
    columns = torch.arange(72.0).expand(48, 72)
    assert columns[surface == FIRST_THING].mean() < columns[surface == FIRST_THING + 1].mean()


def test_what_a_caption_leaves_out_is_asked_for():
    for text in ("", "a dog in the park", "a red ball", "in a desert courtyard", "a pink ball in a desert courtyard"):
        with pytest.raises(InputError, match="For example"):
            describe_caption(text)
    assert len(COLOURS) == 7


def test_numbers_below_zero_are_refused():
    for refused in (lambda: scene(-1), lambda: scene_from_caption("a red ball in a desert courtyard", -1)):
        with pytest.raises(InputError, match="expected 0 or more, got -1"):
            refused()
