"""Distances in colour: the colours are turbo's, the scale says which is which, what is unknown is grey."""

import importlib.util

import numpy as np
import pytest
import torch

from curvedray.errors import InputError
from curvedray.media.distance_colours import (
    SCALE_HEIGHT,
    distance_limits,
    distance_scale,
    near_to_far,
    radial_picture,
    with_scale,
)


def test_the_colours_are_those_of_turbo():
    """Some rows by heart, and all of them where matplotlib is there to ask."""
    table = near_to_far()
    assert table.shape == (256, 3)
    rows = {0: (155, 15, 1), 64: (254, 144, 41), 128: (161, 253, 61), 192: (34, 197, 226), 255: (59, 47, 128)}
    assert {row: tuple(table[row].tolist()) for row in rows} == rows
    if importlib.util.find_spec("matplotlib"):
        from matplotlib import colormaps

        turbo = colormaps["turbo_r"](np.linspace(0.04, 0.96, 256))[:, :3]
        assert np.array_equal(table.numpy(), np.round(turbo * 255))


def test_radii_go_from_warm_to_cool_and_the_unknown_is_grey():
    radius = torch.linspace(1.0, 10.0, 100).reshape(10, 10)
    radius[0, 0], radius[0, 1], radius[0, 2] = torch.inf, torch.nan, 0.0
    picture = radial_picture(radius)
    assert (picture[0, :3] == 90).all()
    near, far = picture[0, 4].int(), picture[9, 9].int()
    assert near[0] > 2 * near[2]
    assert far[2] > 2 * far[0]
    hidden = radial_picture(radius, radius > 5)
    assert (hidden[1] == 90).all()
    larger, same = (radial_picture(radius * k, limits=(1.0 * k, 10.0 * k)).int() for k in (3, 1))
    assert (larger - same).abs().max() <= 8  # a step of the colour table, where a logarithm rounds
    assert (radial_picture(torch.full((2, 3, 3), torch.inf)) == 90).all()
    assert distance_limits(torch.full((2, 2), torch.nan)) is None


def test_the_scale_shows_the_pictures_own_colours():
    """A row of distances, even in their logarithm from end to end, has the colours of its scale."""
    limits = (0.5, 20.0)
    row = torch.logspace(np.log10(limits[0]), np.log10(limits[1]), 303)
    scale = distance_scale(320, limits)
    assert scale.shape == (SCALE_HEIGHT, 320, 3)
    bar = scale[9, 8:311].int()
    assert (bar - radial_picture(row[None], limits=limits)[0].int()).abs().max() <= 6
    assert (scale[18:].sum(-1) > 500).any()  # numbers, in light ink


def test_a_scale_goes_below_its_picture():
    radius = torch.rand(20, 60, generator=torch.Generator().manual_seed(0)) + 1
    picture = radial_picture(radius)
    whole = with_scale(picture, distance_limits(radius))
    assert whole.shape == (20 + SCALE_HEIGHT, 60, 3)
    assert torch.equal(whole[:20], picture)
    assert with_scale(picture, None).shape == whole.shape
    assert not torch.equal(with_scale(picture, None)[20:], whole[20:])


@pytest.mark.parametrize("limits", [(1.0, 1.0), (1e-9, 1e9), (3.0, 3.1), (0.02, 5e4)])
@pytest.mark.parametrize("width", [1, 16, 200])
def test_any_limits_and_width_have_a_scale(limits, width):
    assert distance_scale(width, limits).shape == (SCALE_HEIGHT, width, 3)


@pytest.mark.parametrize("limits", [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, float("inf")), (float("nan"), 1.0)])
def test_limits_that_have_no_logarithm_are_refused(limits):
    for refused in (lambda: radial_picture(torch.ones(2, 2), limits=limits), lambda: distance_scale(100, limits)):
        with pytest.raises(InputError, match="limits"):
            refused()
