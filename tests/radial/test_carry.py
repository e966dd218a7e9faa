"""A map carried to another camera agrees with the ray-caster there, and knows what it cannot know."""

from dataclasses import replace

import pytest

from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.moves.trajectory import trajectory
from curvedray.radial.carry import carried
from curvedray.radial.map import RadialMap
from curvedray.world.preview import preview_scene
from curvedray.world.raycast import render


def path(move, lens="wide-110"):
    return trajectory(move, named_lens(lens, 96, 64), 3, unit="metric")


def exact(cameras):
    seen = render(preview_scene(), cameras, samples=1)
    return RadialMap.from_metric(seen.radius, seen.valid)


def test_the_same_camera_keeps_the_map():
    cameras = path("pan left 20deg")
    map = exact(cameras)
    same, share = carried(map, cameras, cameras)
    both = same.valid & map.valid
    assert share > 0.7
    assert (same.radius / map.radius).log().abs()[both].median() < 0.01  # the nearest of its neighbours


@pytest.mark.parametrize(("move", "lens"), [("truck right 0.5m", "wide-110"), ("static", "fisheye-150")])
def test_another_camera_sees_what_the_ray_caster_sees(move, lens):
    source, target = path("static"), path(move, lens)
    found, share = carried(exact(source), source, target)
    truth = exact(target)
    both = found.valid & truth.valid
    error = (found.radius / truth.radius).log().abs()[both]
    assert 0.3 < share < 1
    assert error.median() < 0.02
    assert (error < 0.1).float().mean() > 0.9  # the rest are edges, and what a near thing uncovers
    assert found.near == exact(source).near


def test_what_the_source_never_saw_stays_unknown():
    source, target = path("static"), path("pan right 90deg")
    found, _ = carried(exact(source), source, target)
    assert found.valid[0].float().mean() > 2 * found.valid[-1].float().mean()


def test_paths_without_metres_or_of_another_length_are_refused():
    cameras = path("static")
    with pytest.raises(InputError, match="poses in metres"):
        carried(exact(cameras), replace(cameras, unit="arbitrary"), cameras)
    with pytest.raises(InputError, match="3 poses"):
        carried(exact(cameras), cameras, cameras[:2])
