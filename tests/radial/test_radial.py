"""Radial maps, their loss and MixForcing: validity on raw metres, exact substitution, the schedule, the optimum."""

import math
import zipfile
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.cameras import Lens, TokenGrid
from curvedray.errors import InputError
from curvedray.radial.interval import RadialInterval
from curvedray.radial.loss import radial_loss, supervised
from curvedray.radial.map import RadialMap, near_distance, read_radial_map
from curvedray.radial.mixforcing import MixForcing

GRID = TokenGrid(5, 4, 6, (4, 4, 4))


def metres(seed=0, frames=17):
    generator = torch.Generator().manual_seed(seed)
    return 0.5 + 30 * torch.rand(frames, 16, 24, generator=generator)


def interval(seed=0, clips=2):
    generator = torch.Generator().manual_seed(seed)
    mu = torch.randn(clips, GRID.tokens, generator=generator)
    return RadialInterval(mu, 0.1 + torch.rand(clips, GRID.tokens, generator=generator))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 5.0))
def test_nothing_far_is_ever_clipped_into_a_target(seed, near):
    radius = metres(seed)
    radius[0, :4, :4] = 25.0  # a whole token beyond the limit
    target, mask = RadialMap.from_metric(radius, near=near).on(GRID)
    assert not mask[0]
    clipped, _ = RadialMap.from_metric(radius.clamp_max(20.0), near=near).on(GRID)
    assert (target.radius[mask] * near <= 20.0 + 1e-4).all()
    assert (target.radius[mask] <= clipped.radius[mask] + 1e-4).all()  # far pixels never pull a mean up


def test_a_far_pixel_leaves_the_mean_of_the_others():
    radius = torch.full((17, 16, 24), 2.0)
    radius[:, 0, 0] = 1e4
    radius[:, 0, 1] = float("nan")
    radius[:, 1, 0] = -3.0
    radius[:, 1, 1] = float("inf")
    target, mask = RadialMap.from_metric(radius, near=1.0).on(GRID)
    assert mask.all()
    torch.testing.assert_close(target.radius, torch.full_like(target.radius, 2.0))


def test_teacher_values_are_not_bounded_to_the_heads_interval():
    target, mask = RadialMap.from_metric(torch.full((5, 4, 6), 18.0), near=0.5).on(GRID)
    assert mask.all()
    torch.testing.assert_close(target.mu, torch.full_like(target.mu, math.log(36)))


def test_near_distance_is_the_fifth_percentile_of_the_valid():
    radius = torch.arange(1.0, 102.0)
    assert near_distance(radius, radius > 0) == 6.0
    assert near_distance(radius, radius > 50) == float(np.percentile(np.arange(51, 102), 5, method="nearest"))
    assert near_distance(radius, radius > 1000) is None


def test_scaling_the_scene_changes_no_target():
    radius = metres() / 4
    a, mask_a = RadialMap.from_metric(radius, farthest=math.inf).on(GRID)
    b, mask_b = RadialMap.from_metric(3 * radius, farthest=math.inf).on(GRID)
    torch.testing.assert_close(a.mu, b.mu)
    assert torch.equal(mask_a, mask_b)


def test_frames_are_those_the_poses_are_taken_at():
    radius = torch.arange(1.0, 18.0)[:, None, None].expand(17, 16, 24).contiguous()
    target, _ = RadialMap.from_metric(radius, near=1.0).on(GRID)
    expected = torch.tensor([1.0, 5, 9, 13, 17]).repeat_interleave(GRID.patches)
    torch.testing.assert_close(target.radius, expected)
    again, _ = RadialMap.from_metric(radius[::4].contiguous(), near=1.0).on(GRID)
    torch.testing.assert_close(again.mu, target.mu)


def test_pooling_is_the_mean_over_valid_pixels_in_token_order():
    radius, trusted = metres(3), torch.rand(17, 16, 24, generator=torch.Generator().manual_seed(4)) < 0.6
    target, mask = RadialMap.from_metric(radius, trusted, near=2.0).on(GRID)
    n = 0
    for t in range(5):
        for y in range(4):
            for x in range(6):
                patch = radius[4 * t, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
                kept = trusted[4 * t, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4] & (patch <= 20)
                assert mask[n] == (kept.sum() >= 8)
                if mask[n]:
                    assert abs(target.radius[n] - patch[kept].mean() / 2.0) < 1e-5
                n += 1


def test_an_all_invalid_map_changes_nothing():
    target, mask = RadialMap.from_metric(torch.full((17, 16, 24), 100.0)).on(GRID)
    assert not mask.any()
    predicted = interval(clips=1)
    mixed = predicted.where(mask[None], RadialInterval(target.mu[None], target.sigma[None]))
    assert torch.equal(mixed.mu, predicted.mu)
    assert torch.equal(mixed.sigma, predicted.sigma)
    predicted.mu.requires_grad_()
    loss = radial_loss(predicted, target.radius[None], mask[None])
    loss.sum().backward()
    assert loss.item() == 0
    assert not predicted.mu.grad.any()


def test_depth_along_the_axis_becomes_radius():
    lens = Lens.from_fov(90.0, 0.0, 24, 16)
    rays, _ = lens.rays()
    depth = (3.0 * rays[..., 2]).expand(5, 16, 24)
    torch.testing.assert_close(RadialMap.from_depth(depth, lens).radius, torch.full((5, 16, 24), 3.0))
    behind = RadialMap.from_depth(torch.ones(5, 16, 24), Lens.from_fov(220.0, 1.0, 24, 16))
    assert not behind.valid.all()  # a fisheye sees where a depth along the axis means nothing


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_substitution_touches_exactly_mask_and_valid(seed):
    generator = torch.Generator().manual_seed(seed)
    predicted, teacher = interval(seed), interval(seed + 1)
    valid = torch.rand(2, GRID.tokens, generator=generator) < 0.5
    mask = MixForcing("block").mask(4000, 10_000, 2, GRID, generator)
    mixed = predicted.where(mask & valid, teacher)
    touched = (mixed.mu != predicted.mu) | (mixed.sigma != predicted.sigma)
    assert torch.equal(touched, mask & valid)
    assert torch.equal(mixed.mu[mask & valid], teacher.mu[mask & valid])


@pytest.mark.parametrize(("kind", "values"), [("block", (1, 1, 0.55, 0.1, 0.1)), ("video", (1, 1, 0.75, 0.5, 0.5))])
def test_the_schedule(kind, values):
    mix = MixForcing(kind)
    for step, value in zip((0, 1000, 4000, 7000, 10_000), values, strict=True):
        assert mix.probability(step, 10_000) == pytest.approx(value, abs=1e-12)
    assert mix.probability(40, 100) == pytest.approx(mix.probability(4000, 10_000))


def test_masks_come_in_blocks_of_three_frames_or_whole_videos():
    grid = TokenGrid(21, 2, 3)
    generator = torch.Generator().manual_seed(0)
    frames = MixForcing("block").mask(5500, 10_000, 400, grid, generator).reshape(400, 21, 6)
    assert (frames.all(-1) == frames.any(-1)).all()
    blocks = frames[..., 0].reshape(400, 7, 3)
    assert (blocks.all(-1) == blocks.any(-1)).all()
    assert abs(blocks[..., 0].float().mean() - MixForcing("block").probability(5500, 10_000)) < 0.03
    pairs = blocks[:, :-1, 0] != blocks[:, 1:, 0]  # blocks are drawn independently
    p = MixForcing("block").probability(5500, 10_000)
    assert abs(pairs.float().mean() - 2 * p * (1 - p)) < 0.04
    whole = MixForcing("video").mask(10_000, 10_000, 400, grid, generator)
    assert (whole.all(-1) == whole.any(-1)).all()
    assert abs(whole[:, 0].float().mean() - 0.5) < 0.08


def test_first_steps_substitute_everything():
    assert MixForcing("block").mask(0, 100, 3, GRID, torch.Generator()).all()


def test_the_loss_is_least_at_the_median_and_the_mean_absolute_deviation():
    """One interval for many targets: every other radius and every other spread costs more."""
    generator = torch.Generator().manual_seed(0)
    target = (0.7 + 0.5 * torch.randn(1, 4001, generator=generator).abs() ** 1.5).float()
    median = target.median().item()
    deviation = (target - median).abs().mean().item()

    def loss(radius, spread):
        """The spread is r (e^sigma - e^-sigma) / sqrt(12), solved for sigma."""
        mu, sigma = math.log(radius), math.asinh(spread * math.sqrt(12) / (2 * radius))
        predicted = RadialInterval(torch.full_like(target, mu), torch.full_like(target, sigma))
        assert predicted.spread[0, 0].item() == pytest.approx(spread, rel=1e-4)
        return radial_loss(predicted, target, torch.ones_like(target, dtype=torch.bool)).item()

    least = loss(median, deviation)
    for factor in (0.8, 0.9, 0.95, 1.05, 1.1, 1.25):
        assert loss(median * factor, deviation) > least
        assert loss(median, deviation * factor) > least
        assert loss(median * factor, deviation * factor) > least


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_target_that_is_not_finite_is_no_target(bad):
    """Neither the loss nor any gradient knows of it, whether it was marked valid or not."""
    predicted, target = interval(clips=1), interval(1, clips=1).radius
    valid = torch.ones(1, GRID.tokens, dtype=torch.bool)
    valid[0, 3] = False
    spoilt = target.clone()
    spoilt[0, 3], spoilt[0, 5] = bad, bad
    ends = [end.clone().requires_grad_() for end in (predicted.mu, predicted.sigma)]
    loss = radial_loss(RadialInterval(*ends), spoilt, valid)
    loss.sum().backward()
    valid[0, 5] = False
    torch.testing.assert_close(loss, radial_loss(predicted, target, valid))
    assert all(torch.isfinite(end.grad).all() for end in ends)
    assert all((end.grad[0, [3, 5]] == 0).all() for end in ends)


def test_spread_is_bounded_both_ways():
    narrow, wide = (
        RadialInterval(torch.zeros(1), torch.zeros(1)),
        RadialInterval(torch.full((1,), 3.0), torch.ones(1) * 3),
    )
    assert narrow.spread.item() == pytest.approx(1e-3)
    assert wide.spread.item() == 10.0


@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 1e-2])
def test_a_token_too_sure_of_itself_does_not_drown_the_others(sigma):
    """Regression: on its way from 3 to its place |sigma| may pass zero, and s with it. At the paper's least s, 1e-3,
    one such token's gradient was thousands of times all others', and adapters never recovered from its step."""
    target, known = torch.tensor([[2.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool)

    def pull(floor):
        ends = [torch.tensor([[0.4, 0.4]], requires_grad=True), torch.tensor([[sigma, 0.5]], requires_grad=True)]
        radial_loss(RadialInterval(*ends), target, known, floor=floor).sum().backward()
        return torch.stack([end.grad[0] for end in ends], -1)

    wider, paper = pull(0.1), pull(1e-3)
    assert wider[0].norm() < 100 * wider[1].norm()
    assert wider[0, 1] < 0  # its interval is to widen
    torch.testing.assert_close(wider[1], paper[1])  # the other token's gradient is unchanged
    assert sigma > 1e-3 or paper[0].norm() > 100 * paper[1].norm()


def test_breakpoints_span_the_interval():
    points = RadialInterval(torch.tensor([0.5]), torch.tensor([-0.2])).breakpoints(3)
    torch.testing.assert_close(points.log(), torch.tensor([[0.3, 0.5, 0.7]]))


def test_loss_is_a_mean_a_clip_so_splitting_a_batch_changes_nothing():
    predicted, target = interval(0), interval(1).radius
    valid = torch.rand(2, GRID.tokens, generator=torch.Generator().manual_seed(2)) < 0.4
    together = radial_loss(predicted, target, valid)
    alone = [
        radial_loss(
            RadialInterval(predicted.mu[i : i + 1], predicted.sigma[i : i + 1]), target[i : i + 1], valid[i : i + 1]
        )
        for i in range(2)
    ]
    torch.testing.assert_close(together, torch.cat(alone))


def test_gating_drops_the_noisiest_three_percent():
    ranks = torch.linspace(0, 0.9999, 10_000)
    assert supervised(ranks).float().mean().item() == pytest.approx(0.97, abs=1e-3)
    assert not supervised(torch.tensor([0.98])).any()


def test_pictures_follow_the_token_order():
    mu = torch.arange(float(GRID.tokens)) / 50
    radius, spread = RadialInterval(mu, torch.ones_like(mu)).pictures(GRID)
    assert radius.shape == spread.shape == (5, 4, 6)
    torch.testing.assert_close(radius[1, 2, 3], mu[1 * 24 + 2 * 6 + 3].exp())  # its neighbours are 2 % away


def test_files(tmp_path):
    radius = metres().numpy()
    np.savez(tmp_path / "map.npz", radius=radius, valid=radius < 10, near=0.7)
    read = read_radial_map(tmp_path / "map.npz")
    assert read.near == pytest.approx(0.7)
    assert torch.equal(read.valid, torch.from_numpy(radius < 10))
    np.save(tmp_path / "map.npy", radius)
    assert torch.equal(read_radial_map(tmp_path / "map.npy").radius, metres())
    (tmp_path / "bad.npz").write_bytes(b"not a zip")
    np.savez(tmp_path / "other.npz", depth=radius)
    np.save(tmp_path / "flat.npy", radius[0])
    np.savez(tmp_path / "small.npz", radius=radius, valid=radius[:1] > 0)
    np.savez(tmp_path / "two.npz", radius=radius, near=[1.0, 2.0])
    for name, message in [
        ("bad.npz", "readable"),
        ("other.npz", "called radius"),
        ("flat.npy", "frames, height"),
        ("small.npz", "valid: expected true or false"),
        ("two.npz", "near: expected one number"),
        ("no", "nothing there"),
    ]:
        with pytest.raises(InputError, match=message):
            read_radial_map(tmp_path / name)


@pytest.mark.parametrize("dtype", ["float16", "float64", "longdouble", ">f4", "uint8", "int64", ">u2"])
def test_any_kind_of_number_is_read_and_what_does_not_fit_is_invalid(tmp_path, dtype):
    radius = np.full((5, 4, 6), 3, dtype)
    if np.dtype(dtype).kind == "f":
        radius[0, 0, :4] = np.finfo(np.dtype(dtype)).max, np.nan, -np.inf, -2
    np.savez(tmp_path / "map.npz", radius=radius, near=np.int64(2))
    read = read_radial_map(tmp_path / "map.npz")
    assert (read.radius[read.valid] == 3).all()
    assert (~read.valid).sum() == (4 if np.dtype(dtype).kind == "f" else 0)
    assert read.near == 2
    target, mask = read.on(GRID)
    assert torch.isfinite(target.mu).all()
    assert mask.sum() == GRID.tokens - (~read.valid).sum()


@pytest.mark.parametrize("near", [0, -1.0, math.nan, math.inf, 1e-30, 1e30])
def test_a_near_distance_that_is_none_is_refused_and_never_replaced(tmp_path, near):
    np.savez(tmp_path / "map.npz", radius=metres().numpy(), near=near)
    np.save(tmp_path / "map.npy", metres().numpy())
    for read in (lambda: read_radial_map(tmp_path / "map.npz"), lambda: read_radial_map(tmp_path / "map.npy", near)):
        with pytest.raises(InputError, match=r"map.np.: near distance: expected metres, from 1e-06 to 1e\+06"):
            read()


@pytest.mark.parametrize(("value", "near"), [(1e-44, 1e3), (3e38, 1e-6)])
def test_a_target_is_finite_or_invalid(value, near):
    """Regression: radii that float32 cannot divide by the near distance gave targets of plus or minus infinity."""
    radius = metres()
    radius[:, :4, :4] = value
    radial = RadialMap.from_metric(radius, near=near, farthest=math.inf)
    target, mask = radial.on(GRID)
    assert torch.isfinite(target.mu).all()
    assert not mask[0]
    assert mask[1:6].all()


def test_a_map_that_unpacks_to_gigabytes_is_refused_by_its_header(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("radius.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (700, 1000, 1000)})
        file.write(bytes(10**6))
    with pytest.raises(InputError, match=r"at most 700 MB unpacked, got 5.6 GB"):
        read_radial_map(tmp_path / "bomb.npz")


@pytest.mark.parametrize("shape", [(0, 4, 6), (5, 0, 6), (5, 4, 0)])
def test_an_empty_map_is_refused(tmp_path, shape):
    np.save(tmp_path / "map.npy", np.ones(shape))
    with pytest.raises(InputError, match=r"radii of shape \(frames"):
        read_radial_map(tmp_path / "map.npy")
    with pytest.raises(InputError, match="at least one frame"):
        RadialMap.from_metric(torch.ones(shape))


def test_a_damaged_file_is_refused_or_read_never_a_crash(tmp_path):
    np.savez_compressed(tmp_path / "map.npz", radius=metres(frames=5).numpy(), near=0.7)
    whole = (tmp_path / "map.npz").read_bytes()
    damage = np.random.default_rng(0)
    for attempt in range(150):
        data = bytearray(whole[: damage.integers(len(whole))] if attempt % 2 else whole)
        for place in damage.integers(max(1, len(data)), size=3):
            if len(data):
                data[place] ^= damage.integers(1, 256)
        (tmp_path / "bad.npz").write_bytes(data)
        try:
            read = read_radial_map(tmp_path / "bad.npz")
        except InputError:
            continue
        assert torch.isfinite(read.radius[read.valid]).all()


def test_refusals():
    with pytest.raises(InputError, match="17 frames"):
        RadialMap.from_metric(metres(frames=9)).on(GRID)
    with pytest.raises(InputError, match="shape"):
        RadialMap.from_metric(torch.ones(17, 24, 16)).on(GRID)
    with pytest.raises(InputError, match="near distance"):
        RadialMap(metres(), metres() > 0, 0.0)
    with pytest.raises(InputError, match="hold"):
        MixForcing("block", hold=0.8)
    for wrong in ({"sigma": math.nan}, {"sigma": math.inf}, {"floor": math.nan}, {"block": 0}):
        with pytest.raises(InputError, match="mixforcing"):
            MixForcing("block", **wrong)


@pytest.mark.parametrize(("frames", "block", "sizes"), [(5, 3, [3, 2]), (5, 4, [4, 1]), (9, 4, [4, 4, 1]), (7, 7, [7])])
def test_blocks_are_of_the_size_they_say_when_frames_do_not_divide(frames, block, sizes):
    """Half way down the schedule blocks differ; over many draws every boundary shows, and no other."""
    grid = TokenGrid(frames, 1, 2)
    mix = MixForcing("block", block=block, floor=0.0)
    mask = mix.mask(40, 100, 500, grid, torch.Generator().manual_seed(0)).reshape(500, frames, 2)[..., 0]
    changes = (mask[:, 1:] != mask[:, :-1]).any(0)
    boundaries = [0, *(changes.nonzero()[:, 0] + 1).tolist(), frames]
    assert [b - a for a, b in pairwise(boundaries)] == sizes
