"""A wide lens cut into views: every ray is covered, and exact depths of views merge into exact radii."""

import math
from dataclasses import replace

import pytest
import torch

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.radial.views import TRUSTED, covering_views, cut, is_one_view, merge
from curvedray.world.preview import preview_scene
from curvedray.world.raycast import render

LENSES = {name: named_lens(name, 48, 32) for name in ("wide-110", "fisheye-150", "fisheye-180")}


def seen_by(view, size):
    """The ray-caster's picture and z of one view of the preview's room, from its middle."""
    pose = torch.eye(4)
    pose[:3, :3] = view.camera_from_view
    lens = view.lens.resized(size, size)
    rendered = render(preview_scene(), Cameras(lens, pose[None]))
    rays, _ = lens.rays()
    return rendered.frames, torch.where(rendered.valid, rendered.radius * rays[..., 2], torch.nan)


@pytest.mark.parametrize("name", LENSES)
def test_every_ray_is_trusted_in_some_view(name):
    lens = LENSES[name]
    rays, exists = lens.rays()
    views = covering_views(lens)
    axes = torch.stack([view.camera_from_view[:, 2] for view in views])
    nearest = (rays[exists] @ axes.T).amax(1)
    assert nearest.min() >= math.cos(math.radians(TRUSTED)) - 0.02  # chosen on a coarser set of rays
    assert len(views) <= {"wide-110": 7, "fisheye-150": 9, "fisheye-180": 11}[name]
    for view in views:
        turn = view.camera_from_view
        torch.testing.assert_close(turn @ turn.T, torch.eye(3), atol=1e-5, rtol=0)
        assert torch.linalg.det(turn) > 0


@pytest.mark.parametrize("name", LENSES)
def test_exact_depths_of_views_merge_into_exact_radii(name):
    lens = LENSES[name]
    views = covering_views(lens)
    exact = render(preview_scene(), Cameras(lens, torch.eye(4)[None]))
    radius, valid = merge([seen_by(view, 160)[1] for view in views], views, lens, align=False)
    both = valid & exact.valid
    assert both[exact.valid].float().mean() > 0.93  # the rim of things borders on sky, which is unknown
    error = (radius / exact.radius).log().abs()[both]
    assert error.median() < 2e-3
    assert (error < 0.05).float().mean() > 0.93  # the rest are edges, where views see one side or the other


def test_views_of_different_scale_are_brought_together():
    """A teacher that judges each view's scale anew: what remains is one scale for all."""
    lens = LENSES["fisheye-150"]
    views = covering_views(lens)
    depths = [seen_by(view, 96)[1] for view in views]
    same, valid = merge(depths, views, lens)
    other, _ = merge([depth * (1 + 0.2 * index) for index, depth in enumerate(depths)], views, lens)
    ratio = (other / same).log()[valid]
    assert (ratio - ratio.median()).abs().median() < 5e-3
    assert ratio.median().abs() < 5e-3  # the first view's scale is kept


def test_a_cut_shows_what_a_camera_there_would_see():
    lens = named_lens("fisheye-150", 240, 160)
    clip = render(preview_scene(), Cameras(lens, torch.eye(4)[None])).frames
    view = covering_views(lens, 64)[0]
    expected = seen_by(view, 64)[0].float()
    got = cut(clip, lens, view).float()
    middle = slice(16, 48)
    assert (got - expected)[:, middle, middle].abs().mean() < 8  # of 255: one is blurred, the other is not


def test_a_plain_pinhole_is_one_view():
    assert is_one_view(Lens.from_fov(70, 0.0, 48, 32))
    assert not is_one_view(Lens.from_fov(70, 0.4, 48, 32))
    assert not is_one_view(Lens.from_fov(120, 0.0, 48, 32))


def test_a_lens_per_frame_is_refused():
    with pytest.raises(InputError, match="one lens"):
        covering_views(replace(LENSES["wide-110"]).expand(3))
