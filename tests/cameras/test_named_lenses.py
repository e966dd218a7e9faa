"""Lenses by name, other models against their textbooks, and fits whose error is what they say it is."""

import math
from dataclasses import replace

import numpy as np
import pycolmap
import pytest
import torch

from curvedray import InputError, Lens
from curvedray.cameras.angles import fibonacci_lattice
from curvedray.cameras.lens_fits import RAYS, compare, directions_in_image, fit_model, fit_ucm
from curvedray.cameras.named_lenses import list_lenses, named_lens
from curvedray.cameras.other_lens_models import (
    EUCM,
    DoubleSphere,
    Equidistant,
    Mei,
    OpenCVFisheye,
    Pinhole,
    Radial,
    first_fold,
)

SIZE = (832, 480)
KITTI360_IMAGE_02 = Mei(
    xi=2.213404750785489,
    k1=0.01679823566011368,
    k2=1.6548773243373522,
    p1=0.00042223943394772046,
    p2=0.00042462134260997584,
    gamma1=1336.3220825849971,
    gamma2=1335.7883350012958,
    u0=716.9432351012632 + 0.5,  # OpenCV counts pixels from the first one's centre
    v0=705.7649830822158 + 0.5,
    size=(1400, 1400),
)


def double(fov, xi):
    return Lens.from_fov(torch.tensor(fov, dtype=torch.float64), xi, *SIZE)


# -- names


@pytest.mark.parametrize("row", list_lenses(), ids=lambda row: row.name)
def test_a_named_lens_keeps_its_field_on_every_shape_of_image(row):
    for width, height in ((832, 480), (480, 832), (512, 512)):
        lens = named_lens(row.name, width, height)
        assert lens.size == (width, height)
        assert lens.hfov.item() == pytest.approx(row.hfov, abs=0.06)
        assert lens.xi.item() == pytest.approx(row.xi, abs=1e-3)
        assert lens.focal.dtype == torch.float32


def test_every_promised_name_is_there():
    names = {row.name for row in list_lenses()}
    assert names == {"pinhole-60", "pinhole-90", "wide-110", "gopro-wide", "fisheye-150", "fisheye-180", "kitti360"}
    assert all(row.about for row in list_lenses())


def test_a_family_takes_any_number_and_bends_more_as_it_grows():
    bends = [named_lens(name).xi.item() for name in ("pinhole-75", "wide-90", "wide-125", "fisheye-130", "fisheye-180")]
    assert bends == pytest.approx([0.0, 0.3, 0.7375, 0.8, 1.3])
    assert bends == sorted(bends)
    assert named_lens("wide-130").xi == named_lens("fisheye-130").xi
    assert named_lens("Fisheye-142.5 ").hfov.item() == pytest.approx(142.5, abs=1e-3)


def test_xi_by_name_and_by_keyword_agree():
    said, given = named_lens("fisheye-200@0.9"), named_lens("fisheye-200", xi=0.9)
    assert said.xi == given.xi == torch.tensor(0.9)
    assert torch.equal(said.focal, given.focal)


BAD_NAMES = {
    "fishey-150": "Did you mean fisheye-150",
    "gopro": "Did you mean gopro-wide",
    "": "pinhole-N",
    "fisheye-": "pinhole-N",
    "fisheye-1e3": "pinhole-N",
    "fisheye-200": "fisheye-200@1.2",
    "wide-60": "wide 90 to 130",
    "pinhole-180": "pinhole 1 to 175",
    "pinhole-200@0": "field of view",
    "wide-110@much": "number after @",
    "wide-110@nan": "xi",
    "wide-110@-1": "xi",
    "kitti360@1": "Leave xi out",
}


@pytest.mark.parametrize(("name", "says"), BAD_NAMES.items())
def test_an_unknown_name_says_what_exists(name, says):
    with pytest.raises(InputError) as error:
        named_lens(name)
    assert says in str(error.value)


def test_xi_said_twice_is_refused():
    with pytest.raises(InputError, match="once"):
        named_lens("wide-110@0.4", xi=0.4)


def test_kitti360_is_the_fit_of_its_calibration_and_shows_its_circle():
    fit = fit_ucm(KITTI360_IMAGE_02, max_angle=90)
    named = named_lens("kitti360", 1400, 1400)
    torch.testing.assert_close(named.focal.double(), fit.lens.focal, rtol=1e-6, atol=0)
    torch.testing.assert_close(named.center.double(), fit.lens.center, rtol=1e-6, atol=0)
    torch.testing.assert_close(named.xi.double(), fit.lens.xi, rtol=1e-6, atol=0)
    assert fit.rms_pixels < 0.74
    assert fit.max_pixels < 1.5
    assert fit.rms_degrees < 0.11
    assert fit.max_degrees < 0.21
    assert fit.covered == 1
    assert 10 < fit_ucm(KITTI360_IMAGE_02).max_pixels < 15  # the rim is why max_angle exists
    mask = named_lens("kitti360", 350, 350).mask()
    assert not mask[[0, 0, -1, -1], [0, -1, 0, -1]].any()
    radius = fit.lens.focal.mean().item() / fit.lens.xi.item() / 4
    assert mask.sum().item() == pytest.approx(math.pi * radius**2, rel=0.01)


# -- each model by its own textbook, one point at a time

POINT = (0.4, -0.7, 0.9)


def test_pinhole_and_radial():
    x, y = 0.4 / 0.9, -0.7 / 0.9
    s = x * x + y * y
    bent = 1 - 0.2 * s + 0.03 * s * s
    assert pixel(Pinhole(300, 310, 400, 230, SIZE)) == pytest.approx((300 * x + 400, 310 * y + 230))
    assert pixel(Radial(300, 310, 400, 230, -0.2, 0.03, SIZE)) == pytest.approx(
        (300 * x * bent + 400, 310 * y * bent + 230)
    )


def test_fisheyes():
    across = math.hypot(0.4, 0.7)
    theta = math.atan2(across, 0.9)
    bent = theta + 0.01 * theta**3 - 0.02 * theta**5 + 0.003 * theta**7 - 0.0004 * theta**9
    for model, radius in (
        (Equidistant(300, 310, 400, 230, SIZE), theta),
        (OpenCVFisheye(300, 310, 400, 230, 0.01, -0.02, 0.003, -0.0004, SIZE), bent),
    ):
        assert pixel(model) == pytest.approx((300 * radius * 0.4 / across + 400, -310 * radius * 0.7 / across + 230))
        assert pixel(model, (0.0, 0.0, 2.0)) == pytest.approx((400, 230))


def test_double_sphere_and_mei():
    norm = math.sqrt(0.4**2 + 0.7**2 + 0.9**2)
    shifted = 0.9 - 0.2 * norm
    below = 0.6 * math.sqrt(0.4**2 + 0.7**2 + shifted**2) + 0.4 * shifted
    assert pixel(DoubleSphere(300, 310, 400, 230, -0.2, 0.6, SIZE)) == pytest.approx(
        (300 * 0.4 / below + 400, -310 * 0.7 / below + 230)
    )
    x, y = 0.4 / (0.9 + 2.2 * norm), -0.7 / (0.9 + 2.2 * norm)
    s = x * x + y * y
    bent = 1 + 0.02 * s + 1.6 * s * s
    u = x * bent + 2 * 0.001 * x * y + 0.002 * (s + 2 * x * x)
    v = y * bent + 0.001 * (s + 2 * y * y) + 2 * 0.002 * x * y
    mei = Mei(2.2, 0.02, 1.6, 0.001, 0.002, 1300, 1310, 400, 230, SIZE)
    assert pixel(mei) == pytest.approx((1300 * u + 400, 1310 * v + 230))


def test_eucm_against_pycolmap():
    numbers = [300.0, 310.0, 400.0, 230.0, 0.6, 1.2]
    camera = pycolmap.Camera(model="EUCM", width=SIZE[0], height=SIZE[1], params=numbers)
    points = fibonacci_lattice(RAYS, math.radians(80))
    pixels, valid = EUCM(*numbers, size=SIZE).project(points)
    assert valid.all()
    assert np.abs(camera.img_from_cam(points.numpy()) - pixels.numpy()).max() < 1e-9


def test_opencv_fisheye_against_pycolmap():
    numbers = [300.0, 310.0, 400.0, 230.0, 0.01, -0.02, 0.003, -0.0004]
    camera = pycolmap.Camera(model="OPENCV_FISHEYE", width=SIZE[0], height=SIZE[1], params=numbers)
    points = fibonacci_lattice(RAYS, math.radians(70))
    pixels, valid = OpenCVFisheye(*numbers, size=SIZE).project(points)
    assert valid.all()
    assert np.abs(camera.img_from_cam(points.numpy()) - pixels.numpy()).max() < 1e-9


def pixel(model, point=POINT):
    pixels, valid = model.project(torch.tensor(point, dtype=torch.float64))
    assert valid.item()
    return tuple(pixels.tolist())


@pytest.mark.parametrize(
    "model",
    [
        Radial(300, 300, 416, 240, -0.3, 0.02, SIZE),
        OpenCVFisheye(300, 300, 416, 240, -0.2, 0.01, 0.0, 0.0, SIZE),
        EUCM(300, 300, 416, 240, 0.7, 1.3, SIZE),
        EUCM(300, 300, 416, 240, 0.3, 1.0, SIZE),
        DoubleSphere(300, 300, 416, 240, -0.2, 0.6, SIZE),
        DoubleSphere(300, 300, 416, 240, 0.4, 0.3, SIZE),
        DoubleSphere(300, 300, 416, 240, 2.2, 0.0, SIZE),
        KITTI360_IMAGE_02,
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_ends_where_its_image_would_fold_back(model):
    """The radius grows with the angle over all that it sees, so no two directions of one azimuth share a pixel."""
    angles = torch.linspace(1e-3, math.pi, 3000, dtype=torch.float64)
    points = torch.stack([angles.sin(), torch.zeros_like(angles), angles.cos()], -1)
    pixels, valid = model.project(points)
    seen = int(valid.sum())
    assert 500 < seen < 3000
    assert valid[:seen].all()
    assert (pixels[:seen, 0].diff() > 0).all()
    assert model.formula(points)[seen + 2, 0] < pixels[seen - 1, 0]  # and ends no sooner


def test_the_first_fold_is_where_the_slope_is_zero():
    assert first_fold([0.0, 0.0]) == math.inf
    assert first_fold([0.1, 0.2]) == math.inf
    assert first_fold([-0.3]) == pytest.approx(math.sqrt(1 / 0.9))
    r = first_fold([-0.3, 0.02])
    assert 1 + 3 * -0.3 * r**2 + 5 * 0.02 * r**4 == pytest.approx(0, abs=1e-12)
    assert not OpenCVFisheye(1, 1, 0, 0, 0, 0, 0, 0, SIZE).project(torch.zeros(1, 3))[1].any()


BAD_MODELS = {
    "EUCM": lambda: EUCM(1, 1, 0, 0, 1.0, 1.0, SIZE),
    "beta 0": lambda: EUCM(1, 1, 0, 0, 0.5, 0.0, SIZE),
    "alpha": lambda: DoubleSphere(1, 1, 0, 0, 0.0, -0.1, SIZE),
    "Mei.xi": lambda: replace(KITTI360_IMAGE_02, xi=-1.0),
    "Mei.k1": lambda: replace(KITTI360_IMAGE_02, k1=math.nan),
    "Radial.fx": lambda: Radial(math.inf, 1, 0, 0, 0, 0, SIZE),
    "Pinhole": lambda: Pinhole(1, 1, 0, 0, (0, 4)),
    "Mei.gamma1": lambda: replace(KITTI360_IMAGE_02, gamma1=0.0),
    "Pinhole.fy": lambda: Pinhole(1, -1, 0, 0, SIZE),
}


@pytest.mark.parametrize(("says", "make"), BAD_MODELS.items(), ids=BAD_MODELS.keys())
def test_impossible_models_are_refused(says, make):
    with pytest.raises(InputError, match=says):
        make()


# -- conversions


@pytest.mark.parametrize("kind", [EUCM, DoubleSphere, Mei])
@pytest.mark.parametrize(("fov", "xi"), [(60.0, 0.0), (110.0, 0.55), (150.0, 1.0), (180.0, 2.2)])
def test_exact_conversions_are_exact_both_ways(kind, fov, xi):
    lens = double(fov, xi)
    there = fit_model(kind, lens)
    back = fit_ucm(there.model)
    for fit in (there, back):
        assert (fit.rms_pixels, fit.max_pixels, fit.rms_degrees, fit.max_degrees, fit.covered) == (0, 0, 0, 0, 1)
        assert "same lens" in str(fit)
    points = fibonacci_lattice(RAYS, math.pi)
    assert torch.equal(there.model.project(points)[1], lens.project(points)[1])
    measured = compare(lens, there.model, directions_in_image(lens, 180.0))
    assert measured.max_pixels < 1e-9
    assert measured.max_degrees < 1e-6
    torch.testing.assert_close(back.lens.focal, lens.focal, rtol=1e-12, atol=0)
    torch.testing.assert_close(back.lens.xi, lens.xi, rtol=1e-12, atol=1e-15)


def test_eucm_numbers_are_the_stated_ones():
    model = fit_model(EUCM, double(150.0, 1.5)).model
    assert (model.alpha, model.beta) == (pytest.approx(1.5 / 2.5), 1.0)
    assert model.fx == pytest.approx(double(150.0, 1.5).focal[0].item() / 2.5)


@pytest.mark.parametrize("kind", [Pinhole, Radial])
def test_a_pinhole_is_a_pinhole(kind):
    fit = fit_model(kind, double(80.0, 0.0))
    assert fit.max_pixels == 0
    torch.testing.assert_close(fit_ucm(fit.model).lens.focal, double(80.0, 0.0).focal, rtol=1e-12, atol=0)


# What each fit promises, in pixels of 832 x 480 and in degrees: (kind, fov, xi, most pixels, most degrees).
FITS_FROM_UCM = [
    (OpenCVFisheye, 60.0, 0.0, 1e-3, 1e-4),
    (OpenCVFisheye, 110.0, 0.55, 5e-3, 5e-4),
    (OpenCVFisheye, 150.0, 1.0, 5e-3, 5e-4),
    (OpenCVFisheye, 180.0, 1.3, 2e-2, 5e-3),
    (Radial, 60.0, 0.2, 0.03, 2e-3),
    (Radial, 110.0, 0.55, 6.5, 0.6),
    (Equidistant, 150.0, 1.7, 6.0, 0.8),
]


@pytest.mark.parametrize(("kind", "fov", "xi", "pixels", "degrees"), FITS_FROM_UCM)
def test_fits_from_ucm_keep_their_promise(kind, fov, xi, pixels, degrees):
    fit = fit_model(kind, double(fov, xi))
    assert 0 < fit.rms_pixels <= fit.max_pixels < pixels
    assert 0 < fit.rms_degrees <= fit.max_degrees < degrees
    assert fit.covered == 1
    assert f"{fit.rms_pixels:.3g} pixels" in str(fit)
    assert f"{fit.rms_degrees:.3g} degrees" in str(fit)


FITS_TO_UCM = [
    (Equidistant(300, 300, 416, 240, SIZE), 4.7, 1.1),
    (OpenCVFisheye(300, 300, 416, 240, -0.01, 0.002, -0.001, 0.0001, SIZE), 6.0, 1.5),
    (DoubleSphere(300, 300, 416, 240, -0.2, 0.59, SIZE), 1.1, 0.2),
    (EUCM(300, 300, 416, 240, 0.6, 1.1, SIZE), 3.4, 0.7),
    (Radial(600, 600, 416, 240, -0.2, 0.05, SIZE), 0.2, 0.02),
]


@pytest.mark.parametrize(("model", "pixels", "degrees"), FITS_TO_UCM, ids=lambda i: type(i).__name__)
def test_fits_to_ucm_keep_their_promise(model, pixels, degrees):
    fit = fit_ucm(model)
    assert 0 < fit.rms_pixels <= fit.max_pixels < pixels
    assert 0 < fit.rms_degrees <= fit.max_degrees < degrees
    assert fit.covered == 1


STRAIGHT = [
    Radial(600, 600, 416, 240, 1e-9, 0.0, SIZE),
    Radial(600, 600, 416, 240, -1e-7, 0.0, SIZE),
    Mei(0.0, 1e-3, 0.0, 1e-4, 0.0, 600, 600, 416, 240, SIZE),
]


@pytest.mark.parametrize("model", STRAIGHT, ids=range(len(STRAIGHT)))
def test_a_fit_that_is_a_pinhole_says_exactly_zero(model):
    """The solver stays inside its bounds and leaves 1e-14, which formats of pinholes refuse."""
    fit = fit_ucm(model)
    assert fit.lens.xi == 0
    assert fit.rms_pixels == pytest.approx(compare(fit.lens, model, directions_in_image(model, 180.0)).rms_pixels)


def test_a_fit_at_its_bound_is_marked():
    pincushion = fit_ucm(Radial(600, 600, 416, 240, 0.1, 0.0, SIZE))  # bends the other way than any UCM lens
    assert pincushion.lens.xi == 0
    assert pincushion.at_bound
    assert "no UCM lens bends as this one does" in str(pincushion)
    assert not fit_ucm(Radial(600, 600, 416, 240, 1e-9, 0.0, SIZE)).at_bound
    assert not any(fit_ucm(model).at_bound for model, *_ in FITS_TO_UCM)


@pytest.mark.parametrize(("fov", "xi"), [(60.0, 0.3), (130.0, 0.9), (200.0, 1.2)])
def test_a_fit_finds_the_lens_a_close_model_was_made_from(fov, xi):
    """UCM -> Kannala-Brandt -> UCM, off centre and with pixels that are not square."""
    lens = double(fov, xi)
    lens = replace(lens, focal=lens.focal * torch.tensor([1.0, 1.1]), center=lens.center + torch.tensor([12.0, -7.0]))
    back = fit_ucm(fit_model(OpenCVFisheye, lens).model).lens
    torch.testing.assert_close(back.xi, lens.xi, rtol=0, atol=2e-3)
    torch.testing.assert_close(back.focal, lens.focal, rtol=2e-3, atol=0)
    torch.testing.assert_close(back.center, lens.center, rtol=0, atol=0.05)


def test_no_nearer_lens_is_a_step_away():
    fit = fit_ucm(Equidistant(300, 300, 416, 240, SIZE))
    rays = directions_in_image(fit.model, 180.0)
    for step in (0.99, 1.01):
        for other in (replace(fit.lens, xi=fit.lens.xi * step), replace(fit.lens, focal=fit.lens.focal * step)):
            assert compare(other, fit.model, rays).rms_pixels > fit.rms_pixels


@pytest.mark.parametrize("xi", [0.2, 0.6, 1.0])
def test_near_the_axis_k1_and_k2_are_the_stated_ones(xi):
    """k1 = -a/2, k2 = a/8 + a^2/4 with a = xi / (1 + xi), by taking a narrow field's fit to its limit."""
    a = xi / (1 + xi)
    model = fit_model(Radial, double(16.0, xi)).model
    assert model.k1 == pytest.approx(-a / 2, abs=2e-3)
    assert model.k2 == pytest.approx(a / 8 + a * a / 4, rel=0.15)
    narrow = fit_model(Radial, double(8.0, xi)).model
    assert abs(narrow.k1 + a / 2) < abs(model.k1 + a / 2)


def test_a_fit_that_loses_part_of_the_view_says_so():
    fit = fit_model(Radial, double(150.0, 1.0))
    assert fit.covered < 0.95
    assert "of the view that both can show" in str(fit)


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="max_angle"):
        fit_ucm(KITTI360_IMAGE_02, max_angle=0.0)
    with pytest.raises(InputError, match="max_angle"):
        fit_model(Radial, double(60.0, 0.5), max_angle=200.0)
    with pytest.raises(InputError, match="one lens"):
        fit_model(EUCM, Lens.from_fov(torch.tensor([60.0, 70.0]), 0.0))
    with pytest.raises(InputError, match="nothing lands"):
        fit_ucm(Equidistant(300, 300, -4000, 240, SIZE))
    with pytest.raises(InputError, match="UCM can hold"):
        fit_ucm(Equidistant(100, 100, 416, 240, SIZE))


def test_rays_of_a_fit_have_equal_shares():
    rays = fibonacci_lattice(RAYS, math.radians(120))
    torch.testing.assert_close(rays.norm(dim=-1), torch.ones(len(rays), dtype=torch.float64))
    inner = (rays[:, 2] > 0.5).double().mean().item()  # a cap's share is its height: (1 - 0.5) of 1.5
    assert inner == pytest.approx(1 / 3, abs=1e-3)
