"""Ray-caster laws: distances are those of school geometry, and every frame agrees with every other through the lens."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.errors import InputError
from curvedray.world.raycast import nearest_hit, render
from curvedray.world.scene import FIRST_THING, FLOOR, SKY, Room, Scene, Thing

RED, BLUE, GREY, SAND = (0.8, 0.2, 0.2), (0.2, 0.3, 0.8), (0.5, 0.5, 0.5), (0.8, 0.7, 0.5)
ROOM = Room((RED, BLUE, GREY, SAND), (RED, BLUE, GREY, SAND), (GREY, SAND), (SAND, BLUE))
BALL = Thing("ball", -1.4, 4.0, 0.9, 1.8, RED)
BOX = Thing("box", 1.5, 4.5, 0.8, 1.6, BLUE, yaw=0.4)
PILLAR = Thing("pillar", 0.3, 2.5, 0.4, 1.2, SAND)
LENSES = {
    "pinhole": Lens.from_fov(80, 0.0, 48, 32),
    "wide": Lens.from_fov(110, 0.5, 48, 32),
    "fisheye": Lens.from_fov(175, 1.1, 48, 32),
    "circle": Lens(torch.tensor([30.0, 30]), torch.tensor([24.0, 24]), torch.tensor(2.2), (48, 48)),
}


def path(*places, turn=0.0):
    """Poses at (x, y, z), each turned further about the vertical."""
    poses = torch.eye(4).repeat(len(places), 1, 1)
    for index, place in enumerate(places):
        angle = turn * index
        poses[index, 0, 0] = poses[index, 2, 2] = math.cos(angle)
        poses[index, 0, 2], poses[index, 2, 0] = math.sin(angle), -math.sin(angle)
        poses[index, :3, 3] = torch.tensor(place)
    return poses


def straight(scene, direction, origin=(0.0, 0.0, 0.0)):
    ray = np.array(direction, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance, surface = nearest_hit(scene, np.array(origin), (ray / np.linalg.norm(ray))[:, None])
    return distance.item(), surface.item()


def test_walls_floor_and_sky_lie_where_the_room_says():
    empty = Scene(ROOM)
    assert straight(empty, (0, 0, 1)) == (7.0, 0)
    assert straight(empty, (1, 0, 0), (2.0, 0, 0)) == (5.0, 1)
    assert straight(empty, (0, 0, -1), (0, 0, 3.0)) == (10.0, 2)
    assert straight(empty, (-1, 0, 0)) == (7.0, 3)
    assert straight(empty, (0, 1, 0)) == (1.5, FLOOR)
    assert straight(empty, (0, -1, 0)) == (math.inf, SKY)
    assert straight(empty, (0, 1, 1)) == pytest.approx((1.5 * math.sqrt(2), FLOOR))
    just_below, just_above = (straight(empty, (0, -2.5 + gap, 7)) for gap in (1e-6, -1e-6))
    assert just_below[1] == 0
    assert just_above[1] == SKY


def test_things_are_met_where_geometry_says():
    scene = Scene(ROOM, (BALL, BOX, PILLAR))
    centre = np.array([BALL.x, ROOM.floor - BALL.radius, BALL.z])
    assert straight(scene, centre) == pytest.approx((np.linalg.norm(centre) - BALL.radius, FIRST_THING))
    ahead = straight(Scene(ROOM, (Thing("box", 0, 4, 1, 3, RED),)), (0, 0, 1))
    assert ahead == pytest.approx((3.0, FIRST_THING))
    turned = straight(Scene(ROOM, (Thing("box", 0, 4, 1, 3, RED, yaw=math.pi / 4),)), (0, 0, 1))
    assert turned == pytest.approx((4 - math.sqrt(2), FIRST_THING))
    assert straight(Scene(ROOM, (Thing("pillar", 0, 4, 0.5, 3, RED),)), (0, 0, 1)) == pytest.approx((3.5, FIRST_THING))
    low = Thing("pillar", 0, 4, 0.5, 1.0, RED)  # its lid lies half a metre below the eye
    assert straight(Scene(ROOM, (low,)), (0, 0.5, 4)) == pytest.approx((math.hypot(0.5, 4), FIRST_THING))
    assert straight(Scene(ROOM, (low,)), (0, 0, 1)) == (7.0, 0)


@pytest.mark.parametrize("name", LENSES)
def test_distances_are_those_of_the_ball_to_rounding(name):
    """Against the equation of the ball and of the room, point by point, in double precision."""
    lens = LENSES[name]
    seen = render(Scene(ROOM, (BALL,)), Cameras(lens, path((0.3, -0.1, 0.2)), "metric"))
    rays, exist = lens.to(torch.float64).rays()
    points = torch.tensor([0.3, -0.1, 0.2]).double() + seen.radius[0, ..., None].double() * rays
    ball, floor, front = (seen.surface[0] == i for i in (FIRST_THING, FLOOR, 0))
    assert torch.equal(seen.surface[0] >= 0, exist)
    assert ball.any()
    centre = torch.tensor([BALL.x, ROOM.floor - BALL.radius, BALL.z]).double()
    assert ((points[ball] - centre).norm(dim=-1) - BALL.radius).abs().max() < 1e-5
    assert not floor.any() or (points[floor][:, 1] - ROOM.floor).abs().max() < 1e-5
    assert (points[front][:, 2] - ROOM.half).abs().max() < 1e-5


@pytest.mark.parametrize("name", LENSES)
def test_frames_agree_through_the_lens(name):
    """A point seen in one frame and carried into another lies on the ray of its pixel there, or behind something."""
    scene, lens = Scene(ROOM, (BALL, BOX, PILLAR)), LENSES[name].to(torch.float64)
    cameras = Cameras(lens, path((0, 0, 0), (0.5, -0.2, 0.8), turn=0.2).double(), "metric")
    seen = render(scene, cameras)
    rays, _ = lens.rays()
    points = seen.radius[0, ..., None].double() * rays
    pose = cameras.world_from_camera
    step = inverse_pose(pose[1]) @ pose[0]
    there = points[seen.valid[0]] @ step[:3, :3].T + step[:3, 3]
    pixels, visible = lens.project(there)
    inside = visible & (pixels >= 0).all(-1) & (pixels < torch.tensor(lens.size)).all(-1)
    again, exist = lens.unproject(pixels[inside])
    with np.errstate(divide="ignore", invalid="ignore"):
        world = (pose[1, :3, :3] @ again.T).numpy()
        distance, surface = nearest_hit(scene, pose[1, :3, 3].numpy(), np.ascontiguousarray(world))
    expected, got = there[inside].norm(dim=-1), torch.from_numpy(distance)
    same = torch.from_numpy(surface) == seen.surface[0][seen.valid[0]][inside]
    assert exist.all()
    assert (got < expected + 1e-4).all()  # nothing is farther than what was seen there
    assert same.float().mean() > 0.7
    assert ((got - expected).abs()[same] < 1e-4).float().mean() > 0.97  # else another side of the same thing hides it


def test_beyond_the_image_circle_it_is_black_and_has_no_distance():
    lens = LENSES["circle"]
    seen = render(Scene(ROOM, (BALL,)), Cameras(lens, torch.eye(4)[None], "metric"), samples=1)
    outside = ~lens.mask()
    assert outside.any()
    assert (seen.frames[0][outside] == 0).all()
    assert (seen.frames[0][~outside].sum(-1) > 0).all()
    assert (seen.radius[0][outside] == 0).all()
    assert not seen.valid[0][outside].any()


def test_rays_made_piece_by_piece_draw_the_same_picture(monkeypatch):
    scene, cameras = Scene(ROOM, (BALL,)), Cameras(LENSES["fisheye"], torch.eye(4)[None], "metric")
    whole = render(scene, cameras)
    monkeypatch.setattr("curvedray.world.raycast.LENS_CHUNK", 100)
    pieces = render(scene, cameras)
    same = whole.surface == pieces.surface
    assert same.float().mean() > 0.999  # an edge may round to either side
    torch.testing.assert_close(whole.radius[same], pieces.radius[same])
    off = (whole.frames.int() - pieces.frames.int()).abs().amax(-1)
    assert (off > 1).float().mean() < 1e-3


def test_a_lens_may_change_from_frame_to_frame():
    zoom = LENSES["wide"].zoomed(torch.tensor([1.0, 1.3]))
    both = render(Scene(ROOM, (BALL,)), Cameras(zoom, path((0, 0, 0), (0, 0, 0)), "metric"))
    for frame in range(2):
        alone = render(Scene(ROOM, (BALL,)), Cameras(zoom[frame], torch.eye(4)[None], "metric"))
        assert (both.frames[frame].int() - alone.frames[0].int()).abs().float().mean() < 0.01
        torch.testing.assert_close(both.radius[frame], alone.radius[0])
    assert not torch.equal(both.frames[0], both.frames[1])


def test_supersampling_averages_what_finer_pixels_see():
    scene, lens = Scene(ROOM, (BALL, BOX, PILLAR)), LENSES["fisheye"]
    coarse = render(scene, Cameras(lens, torch.eye(4)[None]), samples=2).frames[0].float()
    fine = render(scene, Cameras(lens.resized(96, 64), torch.eye(4)[None]), samples=1).frames[0].float()
    assert (fine.reshape(32, 2, 48, 2, 3).mean((1, 3)) - coarse).abs().max() <= 1


def test_a_thing_that_moves_is_where_it_went_and_is_told_apart():
    moving = Thing("ball", -1.0, 4.0, 0.8, 1.6, RED, motion=(2.0, 0.0))
    scene = Scene(ROOM, (BOX, moving))
    seen = render(scene, Cameras(LENSES["wide"], path((0, 0, 0), (0, 0, 0)), "metric"))
    columns = torch.arange(48.0) + 0.5
    left, right = ((mask.sum(0) * columns).sum() / mask.sum() for mask in seen.shows([1]))
    assert left < 24 < right
    at_first = render(scene.at(0.0), Cameras(LENSES["wide"], torch.eye(4)[None]))
    torch.testing.assert_close(seen.radius[0], at_first.radius[0])
    assert not seen.shows([0]).logical_and(seen.shows([1])).any()


def test_straight_lines_are_straight_in_a_pinhole():
    """The foot of the front wall is one straight row in a pinhole, and bends in a fisheye."""

    def foot(lens):
        surface = render(Scene(ROOM), Cameras(lens, torch.eye(4)[None]), samples=1).surface[0]
        rows = (surface == FLOOR).int().argmax(0)
        return rows[(surface == 0).any(0)]

    assert foot(Lens.from_fov(80, 0.0, 96, 64)).unique().numel() == 1
    assert foot(Lens.from_fov(160, 1.0, 192, 128)).unique().numel() > 2


def test_what_cannot_be_rendered_is_refused():
    with pytest.raises(InputError, match="one path"):
        render(Scene(ROOM), Cameras(LENSES["wide"], torch.eye(4).expand(2, 3, 4, 4)))
    with pytest.raises(InputError, match="samples"):
        render(Scene(ROOM), Cameras(LENSES["wide"], torch.eye(4)[None]), samples=0)


@pytest.mark.parametrize(
    "wrong", [{"half": math.nan}, {"floor": math.inf}, {"height": -1.0}, {"spacing": 0.0}, {"softness": 0.0}]
)
def test_a_room_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match=rf"room's {next(iter(wrong))}: expected"):
        replace(ROOM, **wrong)


@pytest.mark.parametrize("wrong", [{"radius": math.nan}, {"x": math.inf}, {"height": -1.0}, {"motion": (math.nan, 0)}])
def test_a_thing_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match=rf"ball's {next(iter(wrong))}: expected"):
        replace(BALL, **wrong)
