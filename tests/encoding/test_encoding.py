"""Laws of the curved-ray encoding: the paper's formula, its limits, its invariances, and finite numbers everywhere."""

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import bounded_coordinate, quotient_phasor, softmax_attention, token_phasors
from scenes import DOUBLE, lens, noise, orbit, poses, tokens

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.encoding.attention import curved_ray_attention
from curvedray.encoding.curved import (
    OFFSETS,
    breakpoints,
    curved_path,
    expected_phasor,
    lens_coordinates,
    sinc,
)
from curvedray.encoding.geometry import Geometry

GRID = TokenGrid(3, 2, 3)
FREQUENCIES = torch.tensor([[1.0, 7.0], [2.0, 9.0], [0.5, 3.0]], dtype=DOUBLE)
phases = st.lists(st.floats(-300, 300), min_size=2, max_size=9)


def geometry_of(cameras, grid=GRID, frequencies=FREQUENCIES, offsets=OFFSETS):
    return Geometry.between(cameras, grid, cameras, frequencies, torch.tensor(offsets, dtype=DOUBLE))


def reference(*inputs, **options):
    return curved_ray_attention(*inputs, backend="reference", **options)


# -- the phasor


@given(phases)
@settings(deadline=None, max_examples=60)
def test_it_is_the_papers_quotient_and_never_longer_than_one(thetas):
    cos, sin = expected_phasor(torch.tensor(thetas, dtype=DOUBLE))
    assert math.hypot(cos, sin) <= 1 + 1e-12
    assert (cos.item(), sin.item()) == pytest.approx(quotient_phasor(thetas), abs=1e-8)


@given(st.floats(-50, 50), st.floats(-50, 50), st.integers(2, 12))
@settings(deadline=None, max_examples=40)
def test_affine_phases_give_the_same_for_every_k(start, end, num):
    ends = torch.tensor([start, end], dtype=DOUBLE)
    steps = torch.lerp(ends[0], ends[1], torch.linspace(0, 1, num, dtype=DOUBLE))
    torch.testing.assert_close(expected_phasor(steps), expected_phasor(ends), atol=1e-12, rtol=0)


def test_no_width_is_plain_rope_and_float32_keeps_its_digits():
    theta = noise(50)
    still = expected_phasor(theta[:, None].expand(50, 5))
    torch.testing.assert_close(still, (theta.cos(), theta.sin()), atol=1e-14, rtol=0)
    torch.testing.assert_close(expected_phasor(theta[:, None]), still)
    gap = torch.logspace(-7, 0.5, 2000, dtype=DOUBLE).float()
    single = torch.stack([torch.zeros_like(gap) + 0.3, 0.3 + gap], -1).requires_grad_()
    double = single.detach().double().requires_grad_()
    for a, b in zip(expected_phasor(single), expected_phasor(double), strict=True):
        assert (a.double() - b).abs().max() < 1e-6
        pairs = ((a, single), (b, double))
        ours, exact = (torch.autograd.grad(y.sum(), x, retain_graph=True)[0] for y, x in pairs)
        assert (ours.double() - exact).abs().max() < 5e-6


def test_sinc_is_smooth_where_its_series_meets_the_quotient():
    x = torch.linspace(-0.2, 0.2, 4001, dtype=DOUBLE)
    torch.testing.assert_close(sinc(x), torch.sinc(x / torch.pi), atol=4e-15, rtol=0)


# -- the path


@pytest.mark.parametrize("xi", [0.0, 0.8, 1.6])
def test_the_path_is_that_of_one_point_at_a_time(xi):
    one_lens = lens(90.0 if xi == 0 else 150.0, xi)
    points = noise(200, 3) * 3
    ours = lens_coordinates(points, one_lens)
    for point, coordinates in zip(points.tolist(), ours.tolist(), strict=True):
        expected = bounded_coordinate(point, one_lens.focal.tolist(), one_lens.size, one_lens.xi.item())
        assert coordinates[:3] == pytest.approx(expected, abs=1e-12)
    assert (ours[:, [0, 1, 3]].norm(dim=-1) - 1).abs().max() < 1e-12


def test_depth_tells_front_from_back_where_a_pinhole_does_not():
    front = torch.tensor([math.sin(math.pi / 6), 0.0, math.cos(math.pi / 6)], dtype=DOUBLE)
    points = torch.stack([front, front * front.new_tensor([1.0, 1.0, -1.0])])
    (u0, _, r0, d0), (u1, _, r1, d1) = lens_coordinates(points, lens(90.0, 0.0)).tolist()
    assert (u0, r0, d0) == pytest.approx((u1, r1, -d1), rel=1e-12)
    assert d0 > 0.1


def dense_and_coarse(path_lens, pose, radius, sigma, counts):
    """Quadrature errors of K breakpoints against a dense integral, for one frequency each of u, v and range."""
    ray = F.normalize(torch.tensor([0.3, -0.2, 1.0], dtype=DOUBLE), dim=0).reshape(1, 1, 1, 3)
    omega = torch.tensor([6.0, 5.0, 0.7], dtype=DOUBLE)

    def mean(num):
        radii = breakpoints(torch.tensor([[radius]], dtype=DOUBLE), torch.tensor([[sigma]], dtype=DOUBLE), num)
        path = curved_path(radii, ray, pose[None], path_lens)[0, 0, 0, :, :3]
        return torch.stack(expected_phasor((path * omega).T))

    dense = mean(20001)
    return [(mean(num) - dense).norm().item() for num in counts]


@pytest.mark.parametrize("behind", [False, True])
def test_convergence_is_of_second_order_also_through_beta_zero(behind):
    pose = poses(1, seed=3)[0]
    if behind:  # the path runs from in front of the query camera to far behind it
        pose[:3, :3] = torch.diag(pose.new_tensor([1.0, -1.0, -1.0]))
        pose[:3, 3] = pose.new_tensor([0.2, 0.1, 1.0])
    one_lens = lens(90.0, 0.0) if behind else lens()
    counts = [17, 33, 65, 129]
    errors = dense_and_coarse(one_lens, pose, 0.0, 1.0, counts)
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 1.8


# -- attention


def test_the_whole_is_the_papers_in_plain_loops():
    cameras = Cameras(Lens.from_fov(torch.tensor([150.0, 120.0, 170.0], dtype=DOUBLE), 0.8, 80, 64), poses(3))
    q, k, v, mu, sigma = tokens(GRID)
    ours = reference(q, k, v, cameras, GRID, mu, sigma, breakpoints=4, frequencies=FREQUENCIES)[0, 0]
    rays, exists = cameras.rays(GRID, torch.tensor(OFFSETS, dtype=DOUBLE))
    assert exists.all()
    radii = breakpoints(mu[0], sigma[0], 4).tolist()
    between = cameras.query_from_source()
    phasors = 18
    for query in (0, 7, 17):
        frame = query // GRID.patches
        one_lens = cameras.lens[frame]
        keys = []
        for token in range(GRID.tokens):
            source, patch = divmod(token, GRID.patches)
            turns = token_phasors(
                rays[source, patch].tolist(),
                radii[token],
                between[frame, source].tolist(),
                one_lens.focal.tolist(),
                one_lens.size,
                one_lens.xi.item(),
                FREQUENCIES.tolist(),
            )
            key = k[0, 0, token].tolist()
            for i, (c, s) in enumerate(turns):
                x, y = k[0, 0, token, i].item(), k[0, 0, token, phasors + i].item()
                key[i], key[phasors + i] = x * c - y * s, x * s + y * c
            keys.append(key)
        expected = softmax_attention(q[0, 0, query].tolist(), keys, v[0, 0].tolist())
        assert ours[query].tolist() == pytest.approx(expected, abs=1e-8)


def test_one_breakpoint_is_two_without_width():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    one = reference(q, k, v, cameras, GRID, mu, sigma, breakpoints=1)
    torch.testing.assert_close(one, reference(q, k, v, cameras, GRID, mu, 0 * sigma, breakpoints=2))
    torch.testing.assert_close(one, reference(q, k, v, cameras, GRID, mu, 0 * sigma, breakpoints=7))
    assert (one - reference(q, k, v, cameras, GRID, mu, sigma)).abs().max() > 1e-3


def test_the_sign_of_sigma_does_not_matter():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    ours = reference(q, k, v, cameras, GRID, mu, sigma)
    torch.testing.assert_close(ours, reference(q, k, v, cameras, GRID, mu, -sigma))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)])
def test_the_world_frame_does_not_matter(dtype, tolerance):
    here = orbit(GRID)
    moved = Cameras(here.lens, poses(1, seed=9, turn=2.0, move=20.0) @ here.world_from_camera)
    inputs = [i.to(dtype) for i in tokens(GRID)]
    a, b = (reference(*inputs[:3], c, GRID, *inputs[3:], query_rotation=True) for c in (here, moved))
    torch.testing.assert_close(a, b, atol=tolerance, rtol=0)


def test_a_scaled_world_with_scaled_radii_keeps_every_bearing():
    here = orbit(GRID)
    q, k, v, mu, sigma = tokens(GRID)
    bearings = FREQUENCIES * torch.tensor([[1.0], [1.0], [0.0]], dtype=DOUBLE)
    a = reference(q, k, v, here, GRID, mu, sigma, frequencies=bearings)
    b = reference(q, k, v, here.scaled(4.0), GRID, mu - math.log(4.0), sigma, frequencies=bearings)
    torch.testing.assert_close(a, b)


def test_cross_attention_is_rows_of_self_attention():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    whole = reference(q, k, v, cameras, GRID, mu, sigma, query_rotation=True)
    grid = TokenGrid(2, GRID.rows, GRID.cols)
    options = {"query_cameras": cameras[1:], "query_grid": grid, "query_rotation": True}
    part = reference(q[:, :, GRID.patches :], k, v, cameras, GRID, mu, sigma, **options)
    torch.testing.assert_close(part, whole[:, :, GRID.patches :])


def test_a_batch_is_its_entries_one_by_one():
    many = Cameras(lens(), poses(2, 3))
    q, k, v, mu, sigma = tokens(GRID, batch=2, heads=2)
    whole = reference(q, k, v, many, GRID, mu, sigma)
    for i, one in enumerate(torch.stack([q, k, v], 1)):
        alone = Cameras(lens(), many.world_from_camera[i])
        part = reference(*one[:, None], alone, GRID, mu[i : i + 1], sigma[i : i + 1])
        torch.testing.assert_close(whole[i : i + 1], part)


def test_half_precision_keys_lose_only_their_own_digits():
    cameras, inputs = orbit(GRID), tokens(GRID)
    exact = reference(*inputs[:3], cameras, GRID, *inputs[3:])
    for dtype, tolerance in ((torch.bfloat16, 0.03), (torch.float16, 0.004)):
        half = [i.to(dtype) for i in inputs[:3]]
        out = reference(*half, cameras, GRID, *(i.float() for i in inputs[3:]))
        assert out.dtype == dtype
        assert (out.double() - exact).abs().max() < tolerance


def test_a_ray_that_does_not_exist_leaves_its_channels_alone():
    grid, offsets = TokenGrid(2, 5, 6), torch.tensor(OFFSETS, dtype=DOUBLE)
    cameras = Cameras(lens(240.0, 1.6), poses(2))
    geometry = geometry_of(cameras, grid)
    exists = cameras.rays(grid, offsets)[1].flatten(0, 1)
    assert exists.any(-1).logical_not().any()
    assert (exists.any(-1) & ~exists.all(-1)).any()  # some tokens have some of their rays
    cos, sin = geometry.coefficients(noise(2, 30, 4).exp(), 1)
    cos, sin = (i.unflatten(-1, (3, 6)) for i in (cos, sin))
    assert (cos[~exists] == 1).all()
    assert (sin[~exists] == 0).all()
    assert (sin[exists] != 0).any(-1).all()


def test_a_rotated_query_meets_its_own_key_at_phase_zero():
    cameras = orbit(TokenGrid(1, 2, 3))
    grid = TokenGrid(1, 2, 3)
    four = torch.cat([FREQUENCIES, FREQUENCIES[:1]])
    geometry = geometry_of(cameras, grid, four)
    own = geometry.own_bearings(*cameras.rays(grid, torch.tensor(OFFSETS, dtype=DOUBLE)))
    seen = geometry.coefficients(noise(1, 6, 1).exp().expand(1, 6, 5), 0)
    for a, b, still in zip(own, seen, (1.0, 0.0), strict=True):
        a, b = (i.unflatten(-1, (3, 4, 2)) for i in (a, b))
        torch.testing.assert_close(a[..., [0, 1, 3], :], b[..., [0, 1, 3], :])
        assert (a[..., 2, :] == still).all()


def test_gradients_are_those_of_finite_differences():
    cameras, inputs = orbit(TokenGrid(2, 1, 2)), tokens(TokenGrid(2, 1, 2), dim=20)
    frequencies = torch.tensor([[3.0], [2.0], [1.0]], dtype=DOUBLE)

    def call(*tensors):
        return reference(*tensors[:3], cameras, TokenGrid(2, 1, 2), *tensors[3:], frequencies=frequencies)

    assert torch.autograd.gradcheck(call, [i.requires_grad_() for i in inputs], fast_mode=True)


def test_cameras_and_frequencies_can_be_learned():
    """The default backend notices, and takes the form that differentiates through the cameras."""
    q, k, v, mu, sigma = tokens(GRID)
    pose, omega = poses(3).requires_grad_(), FREQUENCIES.clone().requires_grad_()
    out = curved_ray_attention(q, k, v, Cameras(lens(), pose), GRID, mu, sigma, frequencies=omega)
    out.square().sum().backward()
    assert pose.grad.abs().max() > 0
    assert omega.grad.abs().max() > 0


@pytest.mark.parametrize("xi", [0.0, 1.0, 1.6])
@pytest.mark.parametrize("backend", ["reference", "fast"])
def test_numbers_and_gradients_are_finite_everywhere(xi, backend):
    """Far points, points at the query camera's centre, behind it, straight behind it, and at the image circle."""
    grid = TokenGrid(4, 2, 2)
    one_lens = Lens.from_fov(90.0 if xi == 0 else 200.0, xi, 64, 64)
    pose = torch.eye(4).repeat(4, 1, 1)
    corner = one_lens.unproject(torch.zeros(2))[0]
    pose[1, :3, 3] = corner  # a camera standing on the first patch's ray, at radius 1
    pose[2, :3, :3] = torch.diag(torch.tensor([-1.0, 1.0, -1.0]))  # looks back
    pose[3, 2, 3] = 2.0
    for height in (0.0, -3.0, 3.6, 40.0, -80.0):
        q, k, v, mu, sigma = (i.float() for i in tokens(grid, 40))
        inputs = [q, k, v, torch.full_like(mu, height), 0 * sigma]
        inputs = [i.requires_grad_() for i in inputs]
        out = curved_ray_attention(*inputs[:3], Cameras(one_lens, pose), grid, *inputs[3:], backend=backend)
        out.sum().backward()
        assert out.isfinite().all()
        assert all(i.grad.isfinite().all() for i in inputs)


def test_a_point_at_the_centre_has_no_bearing_and_no_range():
    points = torch.zeros(2, 3, dtype=DOUBLE)
    points[1, 2] = -2.0  # straight behind at xi = 1: the lens sends it to a zero vector
    points.requires_grad_()
    out = lens_coordinates(points, lens(180.0, 1.0))
    assert out.tolist() == [[0, 0, 0, 0], [0, 0, 2, 0]]
    out.sum().backward()
    assert points.grad.isfinite().all()
