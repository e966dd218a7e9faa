"""Lens, geometry, distribution and fidelity: hand-worked cases and laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from curvedray import Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.metrics.distribution import clip_image_score, clip_text_score, frechet_distance, inception_score
from curvedray.evaluate.metrics.fidelity import EQUAL_FRAMES, psnr, ssim
from curvedray.evaluate.metrics.geometry import (
    adherence,
    adherence_scores,
    drift_disagreement,
    dynamic_tokens,
    pooled,
    ssi_l1,
    temporal_stability,
)
from curvedray.evaluate.metrics.lens import (
    coefficient_scores,
    lens_scores,
    orientation_errors,
    perspective_field,
    radial_coefficients,
    ray_error,
    roll_and_pitch,
    up_directions,
)
from curvedray.evaluate.report import definition_of

LEVEL = torch.tensor([[0.0, -1.0, 0.0]], dtype=torch.float64)


def tilted(roll: float, pitch: float) -> torch.Tensor:
    r, p = math.radians(roll), math.radians(pitch)
    up = [-math.sin(r) * math.cos(p), -math.cos(r) * math.cos(p), math.sin(p)]
    return torch.tensor([up], dtype=torch.float64)


# -- lens and orientation


def test_radial_lens_round_trip():
    lens = Radial(300.0, 300.0, 160.0, 120.0, -0.2, 0.05, (320, 240))
    points = torch.tensor([[0.1, -0.2, 1.0], [0.5, 0.3, 1.0], [0.0, 0.0, 2.0]], dtype=torch.float64)
    pixels, seen = lens.project(points)
    rays, valid = lens.unproject(pixels)
    assert seen.all()
    assert valid.all()
    torch.testing.assert_close(rays, points / points.norm(dim=-1, keepdim=True), atol=1e-9, rtol=0)


def test_radial_lens_marks_pixels_beyond_its_fold():
    lens = Radial(100.0, 100.0, 160.0, 120.0, -0.5, 0.0, (320, 240))
    _, valid = lens.unproject(torch.tensor([[160.0, 120.0], [1.0, 1.0]]))
    assert valid.tolist() == [True, False]


def test_radial_coefficients_are_the_ucm_series():
    # Near the axis a UCM lens of axial focal length f/(1+xi) is the radial model to fourth order in r.
    xi, width = 0.8, 400
    lens = Lens.from_fov(20.0, xi, width, width)
    k1, k2 = radial_coefficients(xi)
    focal = float(lens.focal[0]) / (1 + xi)
    radial = Radial(focal, focal, 200.0, 200.0, k1, k2, lens.size)
    assert ray_error(lens, radial) < 1e-4
    assert ray_error(lens, replace(radial, k1=0.0, k2=0.0)) > 0.01
    assert radial_coefficients(0.0) == (0.0, 0.0)


def test_ray_error_of_a_lens_with_itself_is_zero_and_grows_with_the_gap():
    lens = Lens.from_fov(120.0, 0.7, 96, 64)
    gaps = [ray_error(lens, Lens.from_fov(120.0 + step, 0.7, 96, 64)) for step in (0.0, 5.0, 10.0)]
    assert gaps[0] < 1e-9
    assert 0 < gaps[1] < gaps[2]
    with pytest.raises(InputError, match="96 x 64"):
        ray_error(lens, lens.resized(48, 32))


def test_roll_and_pitch_are_read_back_over_the_full_turn():
    for roll, pitch in ((0, 0), (30, 10), (-150, -40), (179, 80)):
        found_roll, found_pitch = roll_and_pitch(tilted(roll, pitch))
        assert math.degrees(found_roll) == pytest.approx(roll, abs=1e-6)
        assert math.degrees(found_pitch) == pytest.approx(pitch, abs=1e-6)


def test_orientation_errors_by_hand():
    lens = Lens.from_fov(60.0, 0.0, 48, 32)
    same = orientation_errors(tilted(7, 3), lens, tilted(7, 3), lens)
    assert max(same.pitch, same.roll, same.gravity, same.latitude, same.up) < 1e-6
    pitched = orientation_errors(tilted(0, 12), lens, LEVEL, lens)
    assert (pitched.pitch, pitched.gravity) == (pytest.approx(12), pytest.approx(12))
    assert pitched.roll < 1e-6
    wrapped = orientation_errors(tilted(179, 0), lens, tilted(-179, 0), lens)
    assert wrapped.roll == pytest.approx(2)  # not 358
    rolled = orientation_errors(tilted(5, 0), lens, LEVEL, lens)
    assert rolled.up == pytest.approx(5, rel=1e-3)  # a rolled pinhole turns every up-vector by the roll


def test_latitude_of_a_level_camera_is_the_rays_height():
    lens = Lens.from_fov(90.0, 0.0, 64, 64)
    latitude, up, valid = perspective_field(LEVEL[0], lens)
    assert valid.all()
    rays, _ = lens.rays()
    torch.testing.assert_close(latitude, torch.asin(-rays[..., 1].double()), atol=1e-5, rtol=0)
    torch.testing.assert_close(up, torch.tensor([0.0, -1.0]).double().expand_as(up), atol=1e-6, rtol=0)


def test_up_of_a_level_pose_points_up():
    poses = torch.eye(4)[None]
    torch.testing.assert_close(up_directions(poses), torch.tensor([[0.0, -1.0, 0.0]]))


def test_lens_scores_name_what_they_are():
    lens = Radial(300.0, 300.0, 160.0, 120.0, -0.2, 0.05, (320, 240))
    other = Radial(300.0, 300.0, 160.0, 120.0, -0.1, 0.02, (320, 240))
    scores = coefficient_scores("a", lens, other)
    assert [(score.metric, round(score.value, 9)) for score in scores] == [("k1", 0.1), ("k2", 0.03)]
    assert lens_scores("a", lens, Lens.from_fov(56.0, 0.0, 640, 480))[0].unit == "deg"


# -- depth and radial adherence


def test_adherence_by_hand():
    g = np.array([[[1.0, 2.0], [4.0, np.nan]]])
    perfect = adherence(g, 3 * g)
    assert (perfect.silog, perfect.abs_rel, perfect.delta_1, perfect.scale_jitter) == pytest.approx((0, 0, 1, 0))
    p = np.array([[[1.0, 4.0], [2.0, 1.0]]])
    # s = (7/3)/(7/3) = 1; errors 0, 2/2, 2/4; ratios 1, 2, 2; log p/g = 0, log 2, -log 2.
    found = adherence(g, p)
    assert found.abs_rel == pytest.approx(0.5)
    assert found.delta_1 == pytest.approx(1 / 3)
    assert found.silog == pytest.approx(math.log(2) * math.sqrt(2 / 3))


def test_scale_jitter_is_the_median_step():
    g = np.ones((4, 2, 2))
    p = g / np.array([1.0, 2.0, 2.5, 6.0])[:, None, None]  # s = 1, 2, 2.5, 6
    assert adherence(g, p).scale_jitter == pytest.approx(1.0)


def test_adherence_refuses_what_it_cannot_score():
    with pytest.raises(InputError, match="valid in both"):
        adherence(np.full((1, 2, 2), np.nan), np.ones((1, 2, 2)))
    with pytest.raises(InputError, match="one shape"):
        adherence(np.ones((1, 2, 2)), np.ones((1, 2, 3)))


def test_pooling_averages_valid_pixels_only():
    radius = np.full((1, 32, 16), np.nan)
    radius[0, :8, :] = 2.0
    radius[0, 0, 0] = 130.0
    tokens = pooled(radius)
    assert tokens[0, 0, 0] == pytest.approx((127 * 2 + 130) / 128)
    assert np.isnan(tokens[0, 1, 0])


def test_ssi_l1_ignores_scale_and_shift():
    rng = np.random.default_rng(0)
    a = rng.uniform(1, 5, (8, 8))
    assert ssi_l1(a, 3 * a + 2) < 1e-12
    assert ssi_l1(a, rng.uniform(1, 5, (8, 8))) > 0.5


def test_ssi_l1_by_hand():
    # Medians 2 and 2, deviations 2/3 and 1: (-1.5, 0, 1.5) against (-1, 0, 2).
    a, b = np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 4.0]])
    assert ssi_l1(a, b) == pytest.approx((0.5 + 0 + 0.5) / 3)


def test_temporal_stability_of_a_growing_scene():
    still = np.tile(np.random.default_rng(0).uniform(1, 9, (1, 4, 4)), (5, 1, 1))
    assert temporal_stability(still) == pytest.approx({"median": 0, "q1": 0, "q3": 0, "iqr": 0}, abs=1e-12)
    growing = still * np.exp(0.1 * np.arange(5))[:, None, None]
    found = temporal_stability(growing)
    assert found["median"] == pytest.approx(0.1)
    assert found["iqr"] == pytest.approx(0, abs=1e-12)  # a change of scale does not change the spread
    assert drift_disagreement(growing, still) == pytest.approx(0.1)
    assert drift_disagreement(growing, 7 * growing) == pytest.approx(0, abs=1e-12)


def test_temporal_stability_uses_tokens_valid_in_all_frames():
    radius = np.ones((3, 1, 3))
    radius[1, 0, 0], radius[1, 0, 1] = np.nan, 2.0
    radius[:, 0, 0] = [1, np.nan, 50]
    assert temporal_stability(radius)["median"] == pytest.approx(np.log(2) / 2)


def test_dynamic_tokens_by_hand():
    target = np.array([[[1.0, 1.0, 1.0, np.nan]]])
    mu = np.log(np.array([[[2.0, 1.0, 9.0, 1.0]]]))
    sigma = np.array([[[-1.5, 0.5, 9.0, 9.0]]])
    moving = np.array([[[0.5, 0.0, 0.2, 1.0]]])  # dynamic, static, neither, invalid
    groups = dynamic_tokens(mu, sigma, target, moving)
    assert groups["dynamic"].log_mae == pytest.approx(math.log(2))
    assert (groups["dynamic"].delta_1, groups["dynamic"].width, groups["dynamic"].tokens) == (0, 1.5, 1)
    assert (groups["static"].log_mae, groups["static"].delta_1, groups["static"].width) == (0, 1, 0.5)


def test_a_report_has_every_score_of_distances():
    """A clip that is right but for a scale that grows: only what looks at time can tell."""
    rng = np.random.default_rng(0)
    supplied = np.tile(rng.uniform(1, 9, (1, 32, 32)), (5, 1, 1))
    growing = supplied * np.exp(0.1 * np.arange(5))[:, None, None]
    scores = {score.metric: score.value for score in adherence_scores("a", supplied, growing, 1)}
    assert scores["AbsRel (pixel)"] == pytest.approx(0, abs=1e-9)
    assert scores["SSI-L1"] == pytest.approx(0, abs=1e-9)
    assert (scores["Stability median"], scores["Drift"]) == pytest.approx((0.1, 0.1))
    assert scores["Stability iqr"] == pytest.approx(0, abs=1e-9)
    assert all(definition_of(name) for name in scores)
    one = {score.metric for score in adherence_scores("a", supplied[:1], growing[:1], 1)}
    assert "Drift" not in one
    assert "SSI-L1" in one


# -- distribution


def test_frechet_closed_forms():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 6))
    assert frechet_distance(features, features) == pytest.approx(0, abs=1e-9)
    shift = np.arange(6.0)
    assert frechet_distance(features, features + shift) == pytest.approx((shift**2).sum())
    # N(m, S) against N(m, 4 S): tr(S + 4S - 2 * 2S) = tr S.
    centred = features - features.mean(0)
    assert frechet_distance(centred, 2 * centred) == pytest.approx(np.trace(np.cov(features.T)))


def test_frechet_matches_a_matrix_root_and_fewer_clips_than_features():
    from scipy.linalg import sqrtm

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(40, 5)), rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5)) + 1
    root = np.trace(sqrtm(np.cov(a.T) @ np.cov(b.T)).real)
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(np.cov(a.T) + np.cov(b.T)) - 2 * root
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-9)
    few = rng.normal(size=(4, 50))
    assert frechet_distance(few, few) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="equal numbers"):
        frechet_distance(a, b[:30])


def test_inception_score_limits():
    sure = np.eye(5)[np.arange(500) % 5]
    assert inception_score(sure)[0] == pytest.approx(5, rel=0.05)  # five classes, all certain
    vague = np.full((500, 5), 0.2)
    assert inception_score(vague) == pytest.approx((1.0, 0.0))
    assert inception_score(sure, seed=3) == inception_score(sure, seed=3)


def test_clip_scores_by_hand():
    frames = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]])
    assert clip_text_score(frames, np.array([3.0, 0.0])) == pytest.approx(100 / 3)  # 100, 0, and -100 cut to 0
    assert clip_image_score(frames) == pytest.approx(0)
    assert clip_image_score(np.ones((4, 3))) == pytest.approx(100)


# -- fidelity


def test_psnr_by_hand():
    video = np.zeros((2, 16, 16, 3), dtype=np.uint8)
    other = video.copy()
    other[0] = 255
    assert psnr(video, video) == EQUAL_FRAMES
    assert psnr(video, other) == pytest.approx((0 + EQUAL_FRAMES) / 2)
    assert psnr(torch.from_numpy(video), video + np.uint8(1)) == pytest.approx(20 * math.log10(255))


def test_ssim_by_hand():
    flat = np.full((1, 16, 16, 3), 100, dtype=np.uint8)
    lighter = np.full((1, 16, 16, 3), 150, dtype=np.uint8)
    c1 = (0.01 * 255) ** 2
    assert ssim(flat, flat) == pytest.approx(1)
    # Flat frames have no variance or covariance: only the luminance term is left.
    assert ssim(flat, lighter) == pytest.approx((2 * 100 * 150 + c1) / (100**2 + 150**2 + c1))


def test_ssim_falls_with_noise_and_does_not_mind_the_order():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)
    noisy = [np.clip(a + rng.normal(0, s, a.shape), 0, 255).astype(np.uint8) for s in (5, 50)]
    assert 1 > ssim(a, noisy[0]) > ssim(a, noisy[1])
    assert ssim(a, noisy[1]) == pytest.approx(ssim(noisy[1], a))
    with pytest.raises(InputError, match="shape"):
        ssim(a, a[:, :16])


def test_a_lens_that_changes_is_scored_in_every_frame():
    """A film that ignored a zoom was perfect: it was held against the first frame's lens alone."""
    wide, narrow = (Lens.from_fov(fov, 0.0, 96, 64) for fov in (90.0, 50.0))
    zoom = Lens(
        *(torch.stack([getattr(i, key) for i in (wide, narrow)]) for key in ("focal", "center", "xi")), wide.size
    )
    ignored = {score.metric: score.value for score in lens_scores("a", wide, zoom)}
    assert ignored["FoV"] == pytest.approx(20, abs=1e-3)
    assert ignored["Ray"] == pytest.approx(lens_scores("a", wide, narrow)[0].value / 2, rel=1e-5)
