"""A map obeyed exactly scores one, a map ignored scores zero, and half-way is half."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from curvedray.evaluate.map_obedience import layout_obedience
from curvedray.evaluate.world_truth import KnownClips
from curvedray.world.world import world_clip


@pytest.fixture(scope="module")
def layouts() -> tuple[KnownClips, KnownClips]:
    """The same captions and cameras twice, with things elsewhere."""
    first, other = ([world_clip(i, "val", layout=layout) for i in range(6)] for layout in (0, 1))
    return KnownClips.of(first), KnownClips.of(other)


def test_an_obeyed_map_scores_one_and_an_ignored_one_zero(layouts):
    first, other = layouts
    assert not torch.allclose(first.position, other.position)
    obeyed = layout_obedience(other, other.exact(), first.exact(), other.exact())
    assert obeyed.share_of_the_way.mean == pytest.approx(1)
    assert obeyed.change.mean == pytest.approx(1)
    assert obeyed.bearing.mean == pytest.approx(1)
    assert obeyed.distance.mean == pytest.approx(1)
    ignored = layout_obedience(other, first.exact(), first.exact(), other.exact())
    assert ignored.share_of_the_way.mean == 0
    assert np.isnan(ignored.change.mean)
    assert abs(ignored.bearing.mean) < 0.8


def test_half_way_is_half_and_noise_is_no_obedience(layouts):
    first, other = layouts
    between = (first.log_radius + other.log_radius) / 2
    half = layout_obedience(other, replace(other.exact(), log_radius=between), first.exact(), other.exact())
    assert half.share_of_the_way.mean == pytest.approx(0.5, abs=1e-6)
    assert half.change.mean == pytest.approx(1, abs=1e-6)
    noise = torch.randn(between.shape, generator=torch.Generator().manual_seed(0))
    noisy = replace(other.exact(), log_radius=first.log_radius + 0.1 * noise)
    assert abs(layout_obedience(other, noisy, first.exact(), other.exact()).change.mean) < 0.1


def test_a_map_that_is_ignored_is_told_by_its_chance_level(layouts):
    """Filmed anew without heed of the map, the r of change was about 0.5: both changes are from the same film."""
    first, other = layouts
    again = replace(first.exact(), log_radius=first.log_radius.roll(2, 0))  # some other film, whatever the map
    ignored = layout_obedience(other, again, first.exact(), other.exact())
    assert ignored.change.mean > 0.3
    assert ignored.change_by_chance.mean == pytest.approx(ignored.change.mean, abs=0.25)
    obeyed = layout_obedience(other, other.exact(), first.exact(), other.exact())
    assert obeyed.change_by_chance.mean < 0.9 < obeyed.change.mean
