"""Blocked-out scenes: text and JSON round trips, exact distances, and mistakes said in a sentence."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import (
    USUAL,
    Block,
    block_scene,
    blocks_from_json,
    blocks_to_json,
    parse_blocks,
)
from curvedray.world.raycast import nearest_hit, render
from curvedray.world.scene import FIRST_THING

LENS = named_lens("pinhole-70", 24, 16)
EXAMPLE = "box 1x1x2m at left 2m ahead 4m; wall ahead 7m; ball 0.5m at right 1m ahead 3m moving left 1m"
metres = st.floats(-90, 90).map(lambda x: round(x, 3))


def sizes(kind):
    return st.tuples(*[st.floats(0.01, 50).map(lambda x: round(x, 3))] * len(USUAL[kind]))


blocks = st.sampled_from(sorted(USUAL)).flatmap(
    lambda kind: st.builds(
        Block,
        st.just(kind),
        sizes(kind),
        metres,
        metres.filter(bool),
        st.floats(0, 90).map(lambda x: round(x, 3)),
        st.floats(-180, 180).map(lambda x: round(x, 3)),
        st.tuples(metres, metres),
    )
)


@settings(deadline=None)
@given(st.lists(blocks, min_size=1, max_size=4))
def test_text_and_json_give_the_blocks_back(many):
    assert parse_blocks("; ".join(str(block) for block in many)) == many
    assert blocks_from_json(blocks_to_json(many)) == many
    assert blocks_from_json({"blocks": [str(block) for block in many]}) == many


def test_the_example_is_understood():
    box, wall, ball = parse_blocks(EXAMPLE)
    assert (box.size, box.right, box.ahead) == ((1, 1, 2), -2, 4)
    assert (wall.kind, wall.ahead) == ("wall", 7)
    assert (ball.size, ball.right, ball.moving) == ((0.5,), 1, (-1, 0))
    assert parse_blocks("cube 50cm ahead 3 metres".replace("50cm", "0.5"))[0].size == (0.5, 0.5, 0.5)
    assert parse_blocks("sphere 1m in front 3m".replace("in front", "front"))[0].ahead == 3


def test_distances_are_those_of_school_geometry():
    scene = block_scene(parse_blocks("box 2x2x3m at ahead 5m; ball 2m at behind 6m up 0.5m"))
    origin = torch.zeros(3, dtype=torch.float64).numpy()
    rays = torch.tensor([[0, 0, 1], [0, 0, -1], [0, 1, 0]], dtype=torch.float64).T.numpy()
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        distance, _ = nearest_hit(scene, origin, rays)
    np.testing.assert_allclose(distance, [4.0, 5.0, 1.5])


def test_a_map_has_its_near_distance_and_no_sky():
    made = film_blocks(parse_blocks(EXAMPLE), "truck right 0.5", LENS, 5)
    assert made.map.radius.shape == (5, 16, 24)
    assert not made.map.valid[:, 0].any()  # sky
    assert made.map.valid[:, -1].all()  # ground
    travelled = made.cameras.world_from_camera[-1, :3, 3].norm().item()
    assert travelled == pytest.approx(0.5 * made.map.near, rel=1e-5)
    assert made.preview().shape[0] == 5
    assert made.preview().shape[2] > 2 * 24


def test_what_moves_is_elsewhere_at_the_end():
    made = film_blocks(parse_blocks("ball 1m at ahead 4m moving right 3m"), "static", LENS, 3)
    nearer = [(frame < 4).float().mean(0).argmax().item() for frame in made.map.radius]
    assert made.map.radius[0, :, 12].min() < made.map.radius[-1, :, 12].min()
    assert len(nearer) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "blocks such as"),
        ("elephant at left 2m", "one of box, ball, pillar, wall"),
        ("box 1x2m ahead 3m", "width x depth x height"),
        ("box 0x1x1m ahead 3m", "width x depth x height"),
        ("ball ahead", "a number of metres"),
        ("ball ahead lots", "a number of metres"),
        ("ball 1m", "where it stands"),
        ("ball ahead 5000m", "at most 1000"),
        ("box ahead 3m sideways 2m", "a direction"),
        ("ball ahead 3m moving up 1m", "left, right, ahead or behind"),
        ("box ahead 999999999999999m", "a number of metres"),
    ],
)
def test_a_scene_that_cannot_be_is_a_sentence(text, says):
    with pytest.raises(InputError, match=says):
        parse_blocks(text)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        [1],
        [{"kind": "box", "colour": "red"}],
        [{"kind": 3}],
        [{"kind": "box", "size": "big"}],
        [{"kind": "box", "ahead": True}],
        [{"kind": "box", "ahead": 1e300}],
        [{"kind": "ball", "ahead": 3, "moving": [1]}],
        [{"kind": "ball", "ahead": 3, "up": -1}],
    ],
)
def test_json_that_is_no_scene_is_a_sentence(record):
    with pytest.raises(InputError):
        blocks_from_json(record)


def test_a_path_through_a_block_or_the_ground_is_refused():
    with pytest.raises(InputError, match=r"keeps out of `box 2x2x2m at ahead 3m`, got one inside it at frame"):
        film_blocks(parse_blocks("box 2x2x2m at ahead 3m"), "dolly in 4m", LENS, 9)
    with pytest.raises(InputError, match="above the ground"):
        film_blocks(parse_blocks("box ahead 6m"), "pedestal down 2m", LENS, 9)
    over = film_blocks(parse_blocks("box 2x2x0.5m at ahead 3m"), "dolly in 4m", LENS, 9)  # it flies over a low one
    assert over.map.valid.any()
    assert math.isfinite(over.map.near)


@pytest.mark.parametrize("ahead", [6, 1])
def test_a_raised_pillar_ends_at_its_base(ahead):
    """Its side went on below its base, and from below it had no face: seen from under it, there was nothing."""
    lens = named_lens("fisheye-180", 96, 64)
    scene = block_scene(parse_blocks(f"pillar 0.6x0.9m at ahead {ahead}m up 2.2m"))
    cameras = Cameras(lens, torch.eye(4)[None], "metric")
    seen = render(scene, cameras)
    shown = seen.surface[0] == FIRST_THING
    assert shown.any()
    height = (lens.rays()[0] * seen.radius[0, ..., None])[shown][:, 1]  # y is down
    base = scene.room.floor - 2.2
    assert height.max() < base + 0.02
    assert height.min() > base - 0.9 - 0.02
    if ahead == 1:  # near enough to be looked at from below
        assert (height > base - 0.005).any()


def test_blocks_are_filmed_through_a_lens_that_changes():
    lenses = [named_lens(f"pinhole-{fov}", 24, 16) for fov in (90, 70, 50)]
    zoom = Lens(*(torch.stack([getattr(one, name) for one in lenses]) for name in ("focal", "center", "xi")), (24, 16))
    path = Cameras(zoom, torch.eye(4).repeat(3, 1, 1), "metric")
    film = film_blocks(parse_blocks("wall ahead 7m"), path, zoom, 3)
    assert film.map.radius.shape == (3, 16, 24)


def test_text_in_json_may_name_several_blocks():
    """Only the first of them was taken, without a word."""
    assert blocks_from_json(["wall ahead 7m; ball 1m at ahead 3m"]) == parse_blocks(
        "wall ahead 7m; ball 1m at ahead 3m"
    )
