"""The lens obeys its laws: what it projects it unprojects, it knows its edge, and its gradients stay finite."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray import InputError, Lens
from curvedray.cameras.lens import STEEPEST_SLOPE, bounded_sqrt, widest_angle

GOLDEN = np.load(Path(__file__).parents[1] / "goldens" / "ucpe_lens.npz")
BENDS = [0.0, 0.3, 0.8, 1.0, 1.0 + 1e-7, 1.3, 2.2, 2.6]
xis = st.floats(0, 2.6)


def lens_of(xi, fov=None, width=96, height=64, dtype=torch.float64):
    widest = 2 * math.degrees(widest_angle(torch.tensor(xi, dtype=torch.float64)).item())
    return Lens.from_fov(torch.tensor(fov or min(100.0, 0.8 * widest), dtype=dtype), xi, width, height).to(dtype)


def directions(count, seed=0):
    return torch.nn.functional.normalize(
        torch.randn(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), dim=-1
    )


# -- round trips and the reference twin


@given(xi=xis, seed=st.integers(0, 99), double=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_ray_comes_back_from_its_pixel(xi, seed, double):
    dtype, tolerance = (torch.float64, 1e-9) if double else (torch.float32, 2e-4)
    lens, rays = lens_of(xi, dtype=dtype), directions(300, seed).to(dtype)
    # The circle itself is a square root's corner, and far out a pixel says little: keep a degree and a half off.
    edge = widest_angle(lens.xi.double()).item() - 0.026
    rays = rays[torch.arccos(rays[:, 2].double().clamp(-1, 1)) < edge]
    pixels, seen = lens.project(rays)
    back, exists = lens.unproject(pixels)
    assert seen.all()
    assert exists.all()
    assert (back - rays).norm(dim=-1).max() < tolerance


@given(xi=xis, seed=st.integers(0, 99), double=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_pixel_comes_back_from_its_ray(xi, seed, double):
    dtype, tolerance = (torch.float64, 1e-7) if double else (torch.float32, 2e-2)
    lens = lens_of(xi, dtype=dtype)
    pixels = torch.rand(300, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed)) * 400 - 150
    rays, exists = lens.unproject(pixels)
    assert ((rays.norm(dim=-1) - 1).abs() < 1e-5).all()
    back, seen = lens.project(rays * 3)
    inside = exists & (rays[:, 2] > -math.cos(math.pi - widest_angle(lens.xi.double()).item()) + 1e-4)
    assert seen[inside].all()
    assert (back - pixels)[inside].abs().max() < tolerance


@pytest.mark.parametrize("xi", BENDS)
def test_agrees_with_the_loops(xi):
    lens = lens_of(xi)
    focal, center = lens.focal.tolist(), lens.center.tolist()
    points = directions(400) * 2.5
    pixels, seen = lens.project(points)
    wanted = [reference.ucm_project(p, focal, center, xi) for p in points.tolist()]
    assert seen.tolist() == [w is not None for w in wanted]
    torch.testing.assert_close(
        pixels[seen], torch.tensor([w for w in wanted if w], dtype=torch.float64), rtol=1e-9, atol=1e-7
    )
    pixels = torch.rand(400, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 300 - 100
    rays, exists = lens.unproject(pixels)
    wanted = [reference.ucm_unproject(p, focal, center, xi) for p in pixels.tolist()]
    assert exists.tolist() == [w is not None for w in wanted]
    torch.testing.assert_close(rays[exists], torch.tensor([w for w in wanted if w], dtype=torch.float64))


def test_focal_lengths_of_another_implementation():
    for fov, xi, fx in zip(GOLDEN["fov"], GOLDEN["xi"], GOLDEN["fx"], strict=True):
        field = torch.tensor(float(fov), dtype=torch.float64)
        if fov >= 180 and xi == 0:  # no pinhole sees half the sphere
            with pytest.raises(InputError, match="field of view"):
                Lens.from_fov(field, float(xi), int(GOLDEN["width"]), 480)
            continue
        lens = Lens.from_fov(field, torch.tensor(float(xi), dtype=torch.float64), int(GOLDEN["width"]), 480)
        assert lens.focal[0].item() == pytest.approx(float(fx), rel=1e-12)
        assert lens.hfov.item() == pytest.approx(float(fov), rel=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_rays_of_another_implementation(dtype, tolerance):
    y, x = torch.meshgrid(torch.arange(0, 30, 3), torch.arange(0, 52, 3), indexing="ij")
    corners = torch.stack([x, y], -1).to(dtype)  # its grid has no half pixel
    for fov, xi, wanted in zip(GOLDEN["ray_fov"], GOLDEN["ray_xi"], GOLDEN["rays"], strict=True):
        rays, valid = Lens.from_fov(torch.tensor(fov), torch.tensor(xi), 52, 30).to(dtype).unproject(corners)
        assert valid.all()
        assert np.abs(rays.numpy() - wanted).max() < tolerance


# -- the edge of what it sees


def test_behind_the_camera_is_invalid_though_its_denominator_is_positive():
    lens = lens_of(2.2)
    behind = torch.tensor([[0.1, 0.0, -1.0]], dtype=torch.float64)
    assert (behind[0, 2] + 2.2 * behind.norm()) > 0
    pixels, valid = lens.project(behind)
    assert not valid.any()
    assert torch.equal(pixels[0], lens.center)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("xi", BENDS)
def test_the_edge_is_where_the_model_says(xi, dtype):
    edge = math.acos(-min(xi, 1 / xi if xi else math.inf))
    lens = lens_of(xi, dtype=dtype)
    for step, seen in ((-1e-3, True), (1e-3, False)):
        if edge + step < math.pi:
            angle = edge + step
            point = torch.tensor([[math.sin(angle), 0, math.cos(angle)]], dtype=dtype)
            assert lens.project(point)[1].item() is seen


def test_at_xi_one_only_straight_behind_is_unseen_even_in_float32():
    lens = lens_of(1.0, dtype=torch.float32)
    points = torch.tensor([[1e-5, 0.0, -1.0], [0.0, 1e-8, -1.0], [0.0, 0.0, -1.0]])
    assert lens.project(points)[1].tolist() == [True, True, False]


@pytest.mark.parametrize("xi", [1.3, 2.2])
def test_the_mask_is_a_disc_of_the_right_radius(xi):
    lens = lens_of(xi).cropped(-150, -166, 400, 400)
    radius = lens.focal[0].item() / math.sqrt(xi * xi - 1)
    assert lens.mask().sum().item() == pytest.approx(math.pi * radius**2, rel=0.005)
    assert lens.hfov.item() == pytest.approx(2 * math.degrees(math.acos(-1 / xi)))
    smaller = replace(lens, max_angle=math.radians(60))
    radius = lens.focal[0].item() * math.sin(math.radians(60)) / (math.cos(math.radians(60)) + xi)
    assert smaller.mask().sum().item() == pytest.approx(math.pi * radius**2, rel=0.005)
    assert smaller.hfov.item() == pytest.approx(120)
    assert smaller.vfov.item() == pytest.approx(120)


@pytest.mark.parametrize("limit", [20.0, 89.9, 90.0, 130.0])
def test_max_angle_bounds_project_and_unproject_alike(limit):
    lens = replace(lens_of(1.1), max_angle=math.radians(limit))
    angles = torch.deg2rad(torch.tensor([limit - 1e-4, limit, limit + 1e-4], dtype=torch.float64))
    points = torch.stack([angles.sin(), torch.zeros(3, dtype=torch.float64), angles.cos()], -1)
    assert lens.project(points)[1].tolist() == [True, True, False]
    pixels = replace(lens, max_angle=math.pi).project(points)[0]
    assert lens.unproject(pixels)[1][[0, 2]].tolist() == [True, False]


def test_an_empty_corner_of_a_pinhole_does_not_exist():
    assert lens_of(0.0).mask().all()


# -- scale and precision


@given(xi=xis, power=st.integers(-15, 30), seed=st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_a_pixel_does_not_change_with_distance(xi, power, seed):
    lens, rays = lens_of(xi, dtype=torch.float32), directions(100, seed).float()
    rays = rays[rays[:, 2] > 0.05]
    pixels, valid = lens.project(rays)
    far, still = lens.project(rays * 10.0**power)
    assert valid.all()
    assert still.all()
    torch.testing.assert_close(far, pixels, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("xi", [1.3, 2.2])
def test_float32_rays_are_good_to_a_thousandth_at_the_very_circle(xi):
    lens = lens_of(xi, dtype=torch.float32)
    radius = lens.focal[0] / math.sqrt(xi * xi - 1)
    steps = torch.cat([1 - torch.logspace(-8, -2, 400), torch.linspace(0, 0.99, 100)])
    pixels = lens.center + radius * steps[:, None] * torch.tensor([0.6, 0.8])
    rays, exists = lens.unproject(pixels)
    wanted, also = lens.to(torch.float64).unproject(pixels.double())
    both = exists & also
    assert both.float().mean() > 0.9
    error = (rays - wanted).norm(dim=-1)
    assert error[both].max() < 1e-3
    assert error[both & (steps < 0.99)].max() < 2e-6


def test_geometry_stays_in_float32_for_half_precision_input():
    lens = lens_of(0.8, dtype=torch.float32)
    pixels = torch.tensor([[10.0, 20.0]])
    rays = lens.unproject(pixels.bfloat16())[0]
    assert rays.dtype == torch.float32
    torch.testing.assert_close(rays, lens.unproject(pixels)[0])


# -- gradients

NASTY_POINTS = [
    *([0, 0, 0], [math.nan, 0, 1], [math.inf, 0, 1], [0, 0, -1], [0, 0, -1e30], [1e-42, 0, 1e-42], [1, 0, 0]),
    *([1e-18, 0, -1e-20], [3e38, 3e38, -3e38], [1e-6, 0, -1], [1, 0, -1 / 2.2], [0, 1e-30, 1], [1, 1, -math.sqrt(2)]),
]
NASTY_PIXELS = [
    *([math.nan, 0], [math.inf, 1], [-math.inf, math.inf], [1e30, 1e30], [3e38, -3e38], [48, 32], [1e9, 0]),
    *([0, 0], [96, 64]),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("xi", BENDS)
@pytest.mark.parametrize("way", ["project", "unproject"])
def test_gradients_are_finite_everywhere_and_zero_where_invalid(xi, dtype, way):
    start = lens_of(xi, dtype=dtype)
    focal, center, bend = (i.clone().requires_grad_() for i in (start.focal, start.center, start.xi))
    x = torch.tensor(NASTY_POINTS if way == "project" else NASTY_PIXELS, dtype=dtype)
    if way == "unproject" and xi > 1:  # exactly on the circle, and a hair inside it
        radius = start.focal[0] / math.sqrt(xi * xi - 1)
        on_circle = torch.stack([start.center + torch.tensor([1.0, 0.0]) * radius * k for k in (1.0, 1 - 1e-7)])
        x = torch.cat([x, on_circle.to(dtype)])
    x.requires_grad_()
    out, valid = getattr(Lens(focal, center, bend, start.size), way)(x)
    out.sum().backward()
    for leaf in (x, focal, center, bend):
        assert torch.isfinite(leaf.grad).all()
    assert (x.grad[~valid] == 0).all()
    assert torch.isfinite(out).all()
    assert not valid.all()


@pytest.mark.parametrize("way", ["project", "unproject"])
def test_an_invalid_point_teaches_the_lens_nothing(way):
    start = lens_of(2.2)
    leaves = [i.clone().requires_grad_() for i in (start.focal, start.center, start.xi)]
    bad = torch.tensor([[0.0, 0, -1]] if way == "project" else [[1e4, 0.0]], dtype=torch.float64)
    getattr(Lens(*leaves, start.size), way)(bad)[0].sum().backward()
    assert all((leaf.grad == 0).all() for leaf in leaves)


@pytest.mark.parametrize("xi", [0.0, 0.6, 1.0, 1.4, 2.3])
def test_gradients_are_the_true_ones_inside(xi):
    lens = lens_of(xi)
    points = (directions(20, 3) + torch.tensor([0.0, 0.0, 1.5])).requires_grad_()
    pixels = lens.project(points.detach())[0].requires_grad_()
    numbers = [i.clone().requires_grad_() for i in (lens.focal, lens.center, lens.xi + 0.05)]

    def project(x, *fields):
        return Lens(*fields, lens.size).project(x)[0]

    def unproject(x, *fields):
        return Lens(*fields, lens.size).unproject(x)[0]

    assert torch.autograd.gradcheck(project, (points, *numbers))
    assert torch.autograd.gradcheck(unproject, (pixels, *numbers))
    assert torch.autograd.gradgradcheck(lambda x: lens.unproject(x)[0], (pixels,))


def test_the_root_is_exact_and_its_slope_bounded():
    x = torch.tensor([0.0, 1e-30, 1e-7, 1e-3, 4.0], dtype=torch.float64, requires_grad=True)
    root = bounded_sqrt(x)
    root.sum().backward()
    assert torch.equal(root.detach(), x.detach().sqrt())
    assert x.grad.tolist() == pytest.approx([STEEPEST_SLOPE] * 3 + [0.5 / math.sqrt(1e-3), 0.25])


# -- batches and frames


def test_a_lens_per_frame_meets_points_per_frame():
    fovs, bends = torch.tensor([60.0, 90.0, 150.0]), torch.tensor([0.0, 0.5, 1.2])
    lens = Lens.from_fov(fovs, bends, 96, 64)
    points = directions(3 * 5 * 2).float().reshape(3, 5, 2, 3)
    pixels, valid = lens.project(points)
    rays, exists = lens.unproject(pixels)
    for t in range(3):
        one = Lens.from_fov(fovs[t], bends[t], 96, 64)
        torch.testing.assert_close(pixels[t], one.project(points[t])[0])
        assert torch.equal(valid[t], one.project(points[t])[1])
        torch.testing.assert_close(rays[t], lens[t].unproject(pixels[t])[0])
    assert exists.shape == (3, 5, 2)
    shared, _ = lens.project(points[:1])  # one set of points through every frame's lens
    assert shared.shape == (3, 5, 2, 2)
    assert lens.mask().shape == (3, 64, 96)
    assert lens[1:].batch_shape == (2,)
    assert lens[[2, 0]].xi.tolist() == pytest.approx([1.2, 0.0])
    assert lens.expand(4, 3)[..., 1].hfov.tolist() == pytest.approx([90.0] * 4, rel=1e-5)
    assert lens.zoomed(2.0).focal.tolist() == (lens.focal * 2).tolist()
    assert Lens.from_fov(60).zoomed(torch.tensor([1.0, 2.0])).batch_shape == (2,)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 7, 3)])
def test_points_that_do_not_meet_the_lens_are_refused(shape):
    lens = Lens.from_fov(torch.tensor([60.0, 70.0, 80.0]), 0.5)
    with pytest.raises(InputError, match="first axes"):
        lens.project(torch.ones(shape))


# -- constructors and changes


@given(fov=st.floats(5, 150), xi=st.floats(0.3, 2.0), axis=st.sampled_from(["horizontal", "vertical", "diagonal"]))
@settings(max_examples=40, deadline=None)
def test_the_field_of_view_is_the_one_asked_for(fov, xi, axis):
    lens = Lens.from_fov(torch.tensor(fov, dtype=torch.float64), xi, 90, 60, axis=axis)
    edge = {"horizontal": [90.0, 30.0], "vertical": [45.0, 60.0], "diagonal": [90.0, 60.0]}[axis]
    ray = lens.unproject(torch.tensor(edge, dtype=torch.float64))[0]
    assert 2 * math.degrees(math.atan2(ray[:2].norm(), ray[2])) == pytest.approx(fov, rel=1e-6)
    if axis != "diagonal":
        assert (lens.hfov if axis == "horizontal" else lens.vfov).item() == pytest.approx(fov, rel=1e-6)


def test_an_off_centre_lens_adds_its_two_sides():
    lens = lens_of(0.8, fov=120.0)
    left, right = lens.cropped(0, 0, 48, 64), lens.cropped(48, 0, 48, 64)
    assert left.hfov.item() == pytest.approx(60)
    assert left.hfov.item() + right.hfov.item() == pytest.approx(lens.hfov.item())
    corner, rest = lens.cropped(60, 0, 36, 64), lens.cropped(0, 0, 60, 64)  # the axis lies outside the first
    assert corner.hfov.item() + rest.hfov.item() == pytest.approx(lens.hfov.item())


def test_millimetres():
    lens = Lens.from_millimetres(50, (36, 24), 3600, 2400)
    assert lens.focal.tolist() == pytest.approx([5000, 5000])
    assert lens.hfov.item() == pytest.approx(39.6, abs=0.01)
    wide = Lens.from_millimetres(50, (36, 24), 832, 480)  # pixels stay square on an image of another shape
    assert wide.hfov.item() == pytest.approx(39.6, abs=0.01)
    assert wide.focal[0] == wide.focal[1]
    tall = Lens.from_millimetres(50, (36, 24), 480, 960)
    assert tall.vfov.item() == pytest.approx(26.99, abs=0.01)
    bent = Lens.from_millimetres(8, (36, 24), 832, 480, xi=1.0)
    near_axis = torch.tensor([1e-3, 0.0, 1.0])
    flat = Lens.from_millimetres(8, (36, 24), 832, 480)
    torch.testing.assert_close(bent.project(near_axis)[0], flat.project(near_axis)[0], rtol=0, atol=1e-3)


@pytest.mark.parametrize("xi", [0.0, 0.7, 1.8])
def test_resizing_and_cropping_commute_with_projecting(xi):
    lens, points = lens_of(xi), directions(200, 4)
    pixels, valid = lens.project(points)
    resized, still = lens.resized(31, 77).project(points)
    ratio = torch.tensor([31 / 96, 77 / 64], dtype=torch.float64)
    assert torch.equal(valid, still)
    torch.testing.assert_close(resized[valid], (pixels * ratio)[valid])
    cropped = lens.cropped(7, -5, 40, 50).project(points)[0]
    torch.testing.assert_close(cropped[valid], pixels[valid] - torch.tensor([7.0, -5.0]))
    torch.testing.assert_close(lens.resized(31, 77).hfov, lens.hfov)
    assert torch.equal(lens.cropped(8, 8, 40, 50).mask(), lens.mask()[8:58, 8:48])


BAD_LENSES = {
    "fov of zero": lambda: Lens.from_fov(0.0),
    "fov negative": lambda: Lens.from_fov(-10.0),
    "fov nan": lambda: Lens.from_fov(math.nan),
    "pinhole of 180": lambda: Lens.from_fov(180.0, 0.0),
    "beyond xi": lambda: Lens.from_fov(250.0, 0.5),
    "beyond the circle": lambda: Lens.from_fov(250.0, 2.2),
    "one of two": lambda: Lens.from_fov(torch.tensor([60.0, 200.0]), 0.0),
    "xi negative": lambda: Lens.from_fov(60.0, -0.5),
    "xi nan": lambda: Lens.from_fov(60.0, math.nan),
    "width": lambda: Lens.from_fov(60.0, 0.0, 0, 10),
    "height": lambda: Lens.from_fov(60.0, 0.0, 10, -1),
    "max_angle": lambda: Lens.from_fov(60.0, max_angle=0.0),
    "max_angle large": lambda: Lens.from_fov(60.0, max_angle=181.0),
    "millimetres": lambda: Lens.from_millimetres(0.0),
    "millimetres nan": lambda: Lens.from_millimetres(math.nan),
    "sensor": lambda: Lens.from_millimetres(50.0, (36.0, 0.0)),
    "focal zero": lambda: Lens(torch.tensor([0.0, 1.0]), torch.zeros(2), torch.tensor(0.0), (4, 4)),
    "focal inf": lambda: Lens(torch.tensor([math.inf, 1.0]), torch.zeros(2), torch.tensor(0.0), (4, 4)),
    "focal beyond float32": lambda: Lens.from_fov(60.0).to(torch.float64).zoomed(1e300),
    "centre nan": lambda: Lens(torch.ones(2), torch.tensor([math.nan, 0.0]), torch.tensor(0.0), (4, 4)),
    "resized to nothing": lambda: Lens.from_fov(60.0).resized(0, 10),
    "cropped to nothing": lambda: Lens.from_fov(60.0).cropped(0, 0, 0, 0),
    "zoomed out of being": lambda: Lens.from_fov(60.0).zoomed(0.0),
    "indexed without axes": lambda: Lens.from_fov(60.0)[0],
}


@pytest.mark.parametrize("make", BAD_LENSES.values(), ids=BAD_LENSES.keys())
def test_an_impossible_lens_is_refused(make):
    with pytest.raises(InputError, match="expected"):
        make()
