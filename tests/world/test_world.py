"""World laws: captions say what, layouts say where, paths keep clear, and the sun casts true shadows."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.errors import InputError
from curvedray.world import world
from curvedray.world.courts import FARTHEST, NEAREST, SCALES, draw_scene, fits, footprint
from curvedray.world.paths import CLEAR, clearance
from curvedray.world.raycast import nearest_hit, render
from curvedray.world.scene import FIRST_THING, Room, Scene, Thing
from curvedray.world.shading import SUN, _sunless
from curvedray.world.themes import COLOURS, THEMES, WORDS, describe_caption
from curvedray.world.world import draw_description, scene, scene_from_caption, shows_all, split_of, world_clip

SMALL = {"frames": 5, "height": 16, "width": 24}
PINNED = {
    "caption": "a yellow ball and a purple ball and a red pillar in a night courtyard",
    "move": "orbit left 40.77deg radius 2.99m linear and tilt up 21.87deg linear",
}


@pytest.fixture(scope="module")
def clips():
    return [world_clip(index, "val", **SMALL) for index in range(24)]


def test_a_clip_follows_from_its_number_to_the_byte():
    one, two = (world_clip(7, "train", **SMALL) for _ in range(2))
    assert one.video.numpy().tobytes() == two.video.numpy().tobytes()
    assert one.radius.numpy().tobytes() == two.radius.numpy().tobytes()
    assert (one.caption, one.move) == (two.caption, two.move)
    assert one.cameras.unit == "metric"


def test_a_pinned_clip_stays_what_it_was():
    """Weights were trained on these very scenes: a change here is a new world."""
    clip = world_clip(0, "train", frames=2, height=16, width=24)
    assert (clip.caption, clip.move) == (PINNED["caption"], PINNED["move"])


def test_size_and_length_do_not_change_what_happens():
    small, long = world_clip(3, frames=3, height=16, width=24), world_clip(3, frames=9, height=32, width=48)
    assert (small.caption, small.move, small.family) == (long.caption, long.move, long.family)
    assert torch.allclose(small.cameras.world_from_camera[-1], long.cameras.world_from_camera[-1])
    assert small.cameras.lens.hfov.item() == pytest.approx(long.cameras.lens.hfov.item(), abs=1e-3)
    assert scene(3).scene == small.world.scene


def test_splits_share_no_caption():
    captions = {split: {scene(i, split).caption for i in range(12)} for split in ("train", "val", "test")}
    assert not captions["train"] & captions["test"]
    assert not captions["train"] & captions["val"]
    assert not captions["val"] & captions["test"]
    assert all(split_of(caption) == split for split, many in captions.items() for caption in many)


def test_captions_are_made_of_the_words_and_say_what_is_there(clips):
    for clip in clips:
        assert set(clip.caption.split()) <= set(WORDS)
        assert split_of(clip.caption) == "val"
        named = clip.world.scene.things[: len(clip.world.description.nouns)]
        assert [thing.kind for thing in named] == [noun.kind for noun in clip.world.description.nouns]
        assert describe_caption(clip.caption) == clip.world.description
    assert len(WORDS) == len(set(WORDS)) < 40


def test_a_layout_changes_where_things_stand_and_nothing_else():
    one, two = (world_clip(3, "test", **SMALL, layout=layout) for layout in (0, 1))
    assert one.caption == two.caption
    assert one.move == two.move
    assert torch.equal(one.cameras.world_from_camera, two.cameras.world_from_camera)
    assert torch.equal(one.cameras.lens.focal, two.cameras.lens.focal)
    assert {(thing.x, thing.z) for thing in one.world.scene.things}.isdisjoint(
        (i.x, i.z) for i in two.world.scene.things
    )
    assert (one.radius - two.radius).abs()[one.valid & two.valid].mean() > 0.1


def test_paths_keep_clear_and_every_named_thing_is_seen(clips):
    for clip in clips:
        assert clearance(clip.cameras, clip.world.scene) >= CLEAR - 0.05  # judged on more frames than the clip has
        assert shows_all(clip.world.scene, clip.cameras, len(clip.world.description.nouns))


def test_lenses_and_moves_are_those_of_the_plan(clips):
    for clip in clips:
        (low, high), (straight, bent) = world.LENS_FAMILIES[clip.family]
        assert low - 0.1 <= clip.cameras.lens.hfov.item() <= high + 0.1
        assert straight <= clip.cameras.lens.xi.item() <= bent
    assert {clip.family for clip in clips} == {"pinhole", "wide", "fisheye"}
    assert any(" and " in clip.move for clip in clips)
    yaw = torch.tensor([math.degrees(math.asin(clip.cameras.world_from_camera[0, 0, 2])) for clip in clips])
    assert yaw.abs().max() <= 4.01


def test_radii_agree_between_frames_through_the_lens():
    """Still points seen in the first frame are no farther than what the last frame sees along their ray."""
    many = (world_clip(index, "val", frames=5, height=32, width=48) for index in range(40))
    clip = next(clip for clip in many if clip.family == "fisheye" and not clip.moving.any())
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


@pytest.mark.parametrize("theme", THEMES)
def test_a_caption_makes_a_scene_in_which_everything_it_names_is_seen(theme):
    text = f"A red ball and a white box with a blue pillar behind in a {theme} courtyard."
    place = scene_from_caption(text, seed=3)
    assert place.caption == f"a red ball and a white box and a blue pillar in a {theme} courtyard"
    assert [thing.kind for thing in place.scene.things][:3] == ["ball", "box", "pillar"]
    assert place.scene == scene_from_caption(text, seed=3).scene
    assert place.scene != scene_from_caption(text, seed=4).scene
    cameras = Cameras(Lens.from_fov(90, 0, 72, 48), torch.eye(4)[None], "metric")
    surface = render(place.scene, cameras).surface[0]
    assert all((surface == FIRST_THING + i).any() for i in range(3))


def test_what_a_caption_leaves_out_is_asked_for():
    for text in ("", "a dog in the park", "a red ball", "in a desert courtyard", "a pink ball in a desert courtyard"):
        with pytest.raises(InputError, match="For example"):
            describe_caption(text)
    assert len(COLOURS) == 7


def test_numbers_below_zero_are_refused():
    for refused in (lambda: scene(-1), lambda: scene_from_caption("a red ball in a desert courtyard", -1)):
        with pytest.raises(InputError, match="expected 0 or more, got -1"):
            refused()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_nothing_touches_anything_and_sizes_span_their_range(seed):
    random = np.random.default_rng(seed)
    description = draw_description(random, "train")
    scene = draw_scene(description, random)
    for index, thing in enumerate(scene.things[: len(description.nouns)]):
        assert fits([thing], list(scene.things[:index]), scene.room)
        assert NEAREST - 1e-9 <= math.hypot(thing.x, thing.z) <= FARTHEST + 1e-9
        size = thing.radius / {"ball": 0.62, "box": 0.55, "pillar": 0.34}[thing.kind]
        assert SCALES[0] - 1e-9 <= size <= SCALES[1] + 1e-9


@given(st.floats(0.1, 2), st.floats(0.1, 2), st.floats(-3, 3), st.floats(-1, 1), st.floats(-1, 1))
def test_footprints_cover_their_box(radius, depth, yaw, a, b):
    box = Thing("box", 1.0, 2.0, radius, 1.0, (0, 0, 0), yaw=yaw, depth=depth)
    cos, sin = math.cos(yaw), math.sin(yaw)
    x, z = 1 + cos * a * radius - sin * b * depth, 2 + sin * a * radius + cos * b * depth
    assert min(math.dist((x, z), (p, q)) - r for p, q, r in footprint(box)) <= 1e-9


def marched(scene, origin, direction, farthest=12.0, step=2e-3):
    """The first point inside a thing along a ray, by small steps: the slow twin of the formulas."""
    for t in np.arange(step, farthest, step):
        x, y, z = origin + t * direction
        for index, thing in enumerate(scene.things):
            height = scene.room.floor - thing.base - y
            if thing.kind == "ball":
                inside = math.dist((x, height, z), (thing.x, thing.radius, thing.z)) <= thing.radius
            elif thing.kind == "pillar":
                inside = math.dist((x, z), (thing.x, thing.z)) <= thing.radius and 0 <= height <= thing.height
            else:
                cos, sin = math.cos(thing.yaw), math.sin(thing.yaw)
                a = cos * (x - thing.x) + sin * (z - thing.z)
                b = cos * (z - thing.z) - sin * (x - thing.x)
                inside = abs(a) <= thing.radius and abs(b) <= thing.half_depth and 0 <= height <= thing.height
            if inside:
                return t, FIRST_THING + index
    return math.inf, -1


THINGS = (
    Thing("box", 0.5, 3.0, 1.2, 1.0, (1, 0, 0), yaw=0.5, depth=0.15),
    Thing("box", -1.2, 4.0, 0.5, 0.6, (0, 1, 0), base=0.7),
    Thing("pillar", 1.8, 4.5, 0.3, 2.0, (0, 0, 1), base=0.2),
    Thing("ball", -0.4, 2.2, 0.4, 0.8, (1, 1, 0), base=0.5),
)
GREY = ((0.5, 0.5, 0.5),) * 4
ROOM = Room(GREY, GREY, GREY[:2], GREY[:2], half=6.0, deep=5.0, ahead=2.5, shadows=0.4)


def test_flat_and_raised_things_are_met_where_small_steps_meet_them():
    random, scene, origin = np.random.default_rng(0), Scene(ROOM, THINGS), np.array([0.1, 0.2, -0.3])
    rays = random.normal(size=(3, 60)) * 0.25 + np.array([[0.0], [0.15], [1.0]])
    rays /= np.linalg.norm(rays, axis=0)
    distance, surface = nearest_hit(scene, origin, rays)
    met = 0
    for ray, far, seen in zip(rays.T, distance, surface, strict=True):
        expected, named = marched(scene, origin, ray, farthest=min(12.0, far + 0.1))
        if seen >= FIRST_THING:
            met += 1
            assert far == pytest.approx(expected, abs=5e-3)
            assert seen == named
        else:
            assert expected == math.inf
    assert met > 15


def test_walls_stand_where_the_room_says():
    rays = np.array([[0, 0, 1], [0, 0, -1], [1, 0, 0], [-1, 0, 0]], float).T
    with np.errstate(divide="ignore"):
        distance, surface = nearest_hit(Scene(ROOM), np.array([0.0, 0.0, 0.0]), rays)
    np.testing.assert_allclose(distance, [7.5, 2.5, 6.0, 6.0])
    assert surface.tolist() == [0, 2, 1, 3]


def test_a_point_is_dark_exactly_where_a_ray_to_the_sun_meets_something():
    """On the floor, off the walls' own shadow, against small steps towards the sun."""
    random, scene = np.random.default_rng(1), Scene(ROOM, THINGS)
    x, z = random.uniform(-1, 4, 120), random.uniform(1.5, 6.5, 120)
    points = np.stack([x, np.full_like(x, ROOM.floor), z])
    dark = _sunless(scene, points, np.full(120, 4, np.int8))
    differ = [
        index
        for index, point in enumerate(points.T)
        if (marched(scene, point, np.array(SUN), farthest=6.0, step=5e-3)[0] < math.inf) != dark[index]
    ]
    assert 5 < dark.sum() < 115
    assert len(differ) <= 2  # grazing rays, within a step of an edge


def test_the_walls_behind_the_sun_are_dark_and_throw_shadows():
    corners = np.array([[-5.9, ROOM.floor, 2.0], [0.0, ROOM.floor, 2.5], [0.0, ROOM.floor, -2.4]]).T
    assert _sunless(Scene(ROOM), corners, np.full(3, 4, np.int8)).tolist() == [True, False, True]
    walls = np.array([[0.0, 0.0, 7.5], [6.0, 0.0, 2.0], [0.0, 0.0, -2.5], [-6.0, 0.0, 2.0]]).T
    assert _sunless(Scene(ROOM), walls, np.arange(4, dtype=np.int8)).tolist() == [False, False, True, True]


def test_shadows_only_darken():
    cameras = Cameras(Lens.from_fov(100, 0.4, 48, 32), torch.eye(4)[None])
    lit, shaded = (render(Scene(replace(ROOM, shadows=s), THINGS), cameras).frames.int() for s in (0.0, 0.4))
    assert (shaded <= lit).all()
    assert 0.05 < (shaded < lit).any(-1).float().mean() < 0.95
