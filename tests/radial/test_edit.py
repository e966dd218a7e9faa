"""Changed maps: only the region changes, cut is undone by paste, and what makes no sense is refused."""

import pytest
import torch

from curvedray.cameras import Lens, TokenGrid
from curvedray.errors import InputError
from curvedray.radial.check import check_map
from curvedray.radial.edit import Region, edited
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

GRID = TokenGrid(2, 4, 6)


@pytest.fixture
def map():
    radius = torch.linspace(1, 15, 5 * 16 * 24).reshape(5, 16, 24)
    return RadialMap.from_metric(radius, radius < 14)


def test_a_written_map_is_read_back(map, tmp_path):
    back = read_radial_map(write_radial_map(map, tmp_path / "map.npz"))
    assert torch.equal(back.valid, map.valid)
    assert torch.equal(back.radius[map.valid], map.radius[map.valid])
    assert back.near == map.near


def test_only_the_region_changes(map):
    region = Region.of("0.25,0.5,0.75,1", "1-3")
    inside = region.on((5, 16, 24))
    assert inside.sum() == 3 * 8 * 12
    for change in ({"push": 1.5}, {"scale": 0.5}, {"cut": True}):
        after, count = edited(map, region, **change)
        differs = (after.valid != map.valid) | (after.valid & (after.radius != map.radius))
        assert not differs[~inside].any()
        assert count == differs.sum() > 0
        assert after.near == map.near


def test_a_push_is_undone_by_its_opposite_and_a_cut_by_a_paste(map):
    there, _ = edited(map, Region(), push=0.5)
    back, _ = edited(there, Region(), push=-0.5)
    torch.testing.assert_close(back.radius, map.radius)
    cut, _ = edited(map, Region.of("0,0,0.5,0.5", None), cut=True)
    assert cut.valid.sum() < map.valid.sum()
    pasted, _ = edited(cut, Region(), paste=map)
    assert torch.equal(pasted.valid, map.valid)


def test_a_mask_of_another_size_is_fitted(map):
    mask = torch.zeros(32, 48, dtype=torch.bool)
    mask[:, :24] = True
    assert Region(mask=mask).on((5, 16, 24))[:, :, :12].all()
    assert not Region(mask=mask).on((5, 16, 24))[:, :, 12:].any()


@pytest.mark.parametrize(
    ("box", "frames", "change", "says"),
    [
        ("0,0,1", None, {"cut": True}, "LEFT,TOP,RIGHT,BOTTOM"),
        ("0.5,0,0.2,1", None, {"cut": True}, "left before right"),
        (None, "3-9", {"cut": True}, "within 0-4"),
        (None, "x", {"cut": True}, "FIRST-LAST"),
        (None, None, {}, "one of push, scale, cut or paste"),
        (None, None, {"push": 1.0, "cut": True}, "push and cut"),
        (None, None, {"push": -3.0}, "stay positive"),
        ("0,0,0.001,0.001", None, {"cut": True}, "at least one pixel"),
    ],
)
def test_what_makes_no_sense_is_refused(map, box, frames, change, says):
    with pytest.raises(InputError, match=says):
        edited(map, Region.of(box, frames), **change)


def test_a_check_says_what_is_odd(map):
    assert check_map(map, GRID).problems == ()
    centimetres = RadialMap.from_metric(map.radius * 100, farthest=1e9)
    assert "are the distances metres" in check_map(centimetres, GRID).problems[0]
    flat = RadialMap.from_metric(torch.full((5, 16, 24), 3.0))
    assert "equally far" in check_map(flat, GRID).problems[0]
    far = RadialMap.from_metric(torch.full((5, 16, 24), 30.0), near=2.0)
    assert "none beyond 20 m" in check_map(far, GRID).problems[0]
    circle = Lens(torch.tensor([6.0, 6.0]), torch.tensor([12.0, 8.0]), torch.tensor(2.0), (24, 16))
    assert "no ray of this lens" in check_map(map, GRID, circle).problems[0]
    found = check_map(map, GRID)
    assert found.valid_pixels == pytest.approx(map.valid.float().mean().item())
    assert str(found).startswith("5 frames of 24 x 16")
