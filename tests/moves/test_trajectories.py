"""Laws of moves and keyframes: signs, closure, additivity, exactness."""

import math

import pytest
import torch

from curvedray.cameras import Lens, inverse_pose
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.moves.actions import EASES
from curvedray.moves.describe import describe
from curvedray.moves.move import KINDS, Step
from curvedray.moves.text import move, parse_moves
from curvedray.moves.trajectory import fitted_to, keyframes, look_at, resample, trajectory

LENS = Lens.from_fov(torch.tensor(90.0, dtype=torch.float64), 0.0)
FISHEYE = Lens.from_fov(torch.tensor(150.0, dtype=torch.float64), 1.0)


def poses(text: str | Step, frames: int = 21, **options: object) -> torch.Tensor:
    return trajectory(text, LENS, frames, **options).world_from_camera


def ahead(text: str, **options: object) -> torch.Tensor:
    return poses(text, **options)[-1, :3, 2]


def end(text: str, **options: object) -> torch.Tensor:
    return poses(text, **options)[-1, :3, 3]


def close(a: torch.Tensor, b: object, atol: float = 1e-9) -> bool:
    return torch.allclose(a, torch.as_tensor(b, dtype=a.dtype), atol=atol, rtol=0)


# -- what each move does


@pytest.mark.parametrize("options", [{}, {"yaw": 33.0, "pitch": -17.0}])
def test_static_is_static_to_the_bit(options: dict[str, float]) -> None:
    still = trajectory("static", Lens.from_fov(90.0), 81, **options).world_from_camera
    assert (still == still[0]).all()
    held = poses("pan left 31deg and dolly in 0.3, then hold for 3", **options)
    assert (held[-10:] == held[-1]).all()


def test_first_camera_is_the_identity() -> None:
    for name, kind in KINDS.items():
        for direction in kind.directions or (None,):
            assert torch.equal(poses(move(name, direction))[0], torch.eye(4, dtype=torch.float64)), name


@pytest.mark.parametrize(
    ("text", "axis", "sign"),
    [("pan left 20deg", 0, -1), ("pan right 20deg", 0, 1), ("tilt up 20deg", 1, -1), ("tilt down 20deg", 1, 1)],
)
def test_turns_look_the_way_they_say(text: str, axis: int, sign: int) -> None:
    assert ahead(text)[axis].item() == pytest.approx(sign * math.sin(math.radians(20)))
    assert not end(text).any()


def test_roll_cw_lowers_the_camera_right_hand_side_and_turns_the_picture_the_other_way() -> None:
    last = poses("roll cw 20deg")[-1]
    assert last[1, 0] > 0, "the camera's right points down"
    above = torch.tensor([[0.0, -1.0, 5.0]], dtype=torch.float64) @ last[:3, :3]  # into the camera's frame
    assert LENS.project(above)[0][0, 0] < LENS.center[0], "what was up leans left: counter-clockwise"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("truck right 0.4", (0.4, 0, 0)),
        ("truck left 0.4", (-0.4, 0, 0)),
        ("pedestal up 0.4", (0, -0.4, 0)),
        ("pedestal down 0.4", (0, 0.4, 0)),
        ("dolly in 0.4", (0, 0, 0.4)),
        ("dolly out 0.4", (0, 0, -0.4)),
    ],
)
def test_slides_go_the_way_they_say(text: str, where: tuple[float, ...]) -> None:
    assert close(end(text), where)
    assert close(poses(text)[-1, :3, :3], torch.eye(3))


def test_a_tilted_camera_pans_about_the_vertical_trucks_level_and_dollies_where_it_looks() -> None:
    panned = poses("pan left 90deg", pitch=-30.0)
    assert close(panned[:, 1, 2], panned[0, 1, 2].expand(21)), "the pitch stays"
    assert close(panned[:, 1, 0], torch.zeros(21)), "the horizon stays level"
    assert abs(end("truck right 1", pitch=-30.0)[1]) < 1e-12
    assert close(end("dolly in 1", pitch=-30.0), ahead("static", pitch=-30.0))
    assert close(end("pedestal up 1", pitch=-30.0, yaw=50.0), (0, -1, 0))


@pytest.mark.parametrize(
    ("text", "axis", "sign"),
    [("orbit left 40deg", 0, -1), ("orbit right 40deg", 0, 1), ("orbit up 40deg", 1, -1), ("orbit down 40deg", 1, 1)],
)
@pytest.mark.parametrize("lens", [LENS, FISHEYE])
def test_orbit_goes_to_its_side_keeps_its_distance_and_centres_its_subject(
    text: str, axis: int, sign: int, lens: Lens
) -> None:
    cameras = trajectory(f"{text} radius 1.2", lens, 41)
    centre = torch.tensor([0.0, 0.0, 1.2], dtype=torch.float64)
    assert cameras.world_from_camera[-1, axis, 3] * sign > 0.5
    distance = (cameras.world_from_camera[:, :3, 3] - centre).norm(dim=-1)
    assert close(distance, torch.full_like(distance, 1.2))
    seen = (
        inverse_pose(cameras.world_from_camera)[:, :3, :3] @ centre + inverse_pose(cameras.world_from_camera)[:, :3, 3]
    )
    pixels, valid = lens.project(seen)
    assert valid.all()
    assert close(pixels, lens.center.expand_as(pixels), 1e-6)


def test_orbit_keeps_its_subject_from_a_tilted_start() -> None:
    path = poses("orbit left 200deg radius 2", yaw=20.0, pitch=-25.0)
    centre = path[0, :3, 3] + 2 * path[0, :3, 2]
    assert close(path[:, :3, 3] + 2 * path[:, :3, 2], centre.expand(21, 3))


def test_a_whole_turn_closes() -> None:
    for text in ("pan left 360deg", "orbit right 1 turn", "roll cw 360deg", "tilt up 360deg"):
        assert close(poses(text)[-1], torch.eye(4), 1e-12), text


def test_spiral_ends_at_its_radius_and_crane_keeps_its_subject_ahead() -> None:
    path = poses("spiral left 270deg radius 2 to 0.5")
    centre = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)
    assert (path[-1, :3, 3] - centre).norm().item() == pytest.approx(0.5)
    crane = poses("crane up 0.7 subject 2", pitch=10.0)
    subject = crane[0, :3, 3] + 2 * crane[0, :3, 2]
    toward = torch.nn.functional.normalize(subject - crane[:, :3, 3], dim=-1)
    assert close(crane[:, :3, 2], toward)
    assert close(crane[-1, :3, 3] - crane[0, :3, 3], (0, -0.7, 0))


def test_zoom_moves_only_the_focal_length_and_reaches_its_field_of_view() -> None:
    zoomed = trajectory("zoom in 2x", LENS, 11)
    assert zoomed.lens.batch_shape == (11,)
    assert close(zoomed.lens.focal[-1], 2 * LENS.focal)
    assert torch.equal(zoomed.world_from_camera, poses("static", 11))
    for lens in (LENS, FISHEYE):
        to = trajectory("zoom in 1.3x, then zoom to 47deg", lens, 11)
        assert to.lens.hfov[-1].item() == pytest.approx(47, abs=1e-6)
        assert to.lens.hfov[0].item() == pytest.approx(lens.hfov.item())


@pytest.mark.parametrize("lens", [LENS, FISHEYE])
@pytest.mark.parametrize("text", ["dolly_zoom in 0.7 subject 2", "dolly_zoom out 1.5 subject 2"])
def test_dolly_zoom_keeps_the_size_of_its_subject(lens: Lens, text: str) -> None:
    cameras = trajectory(text, lens, 21)
    small = torch.tensor([0.01, 0.0, 2.0], dtype=torch.float64)
    seen = small - cameras.world_from_camera[:, :3, 3]
    width = cameras.lens.project(seen)[0][:, 0] - cameras.lens.center[:, 0]
    assert (width / width[0] - 1).abs().max() < 1e-4
    assert (cameras.lens.focal[-1] / cameras.lens.focal[0] - 1).abs().min() > 0.3, "the zoom is a real one"


def test_handheld_is_seeded_smooth_and_as_strong_as_asked() -> None:
    same, again, other = (poses(f"handheld 1deg sway 0.02 seed {i}", 641, fps=128.0) for i in (3, 3, 4))
    assert torch.equal(same, again)
    assert not close(same, other, 1e-3)
    positions = same[:, :3, 3]
    assert (positions - positions.mean(0)).square().sum(-1).mean().sqrt().item() == pytest.approx(0.02, rel=0.02)
    rough = positions.diff(dim=0).diff(dim=0).norm(dim=-1).max() / positions.diff(dim=0).norm(dim=-1).max()
    assert rough < 0.1, "velocity hardly changes between frames, 128 a second"


# -- composition, easing, time


def test_steps_in_a_row_add_up() -> None:
    assert close(poses("pan left 10deg, then pan left 30deg")[-1], poses("pan left 40deg")[-1])
    assert close(poses("orbit left 10deg for 3, then orbit left 30deg")[-1], poses("orbit left 40deg")[-1])
    assert close(end("dolly in 0.2 then dolly out 0.2"), (0, 0, 0))
    assert close(end("pan right 90deg, then dolly in 1"), (1, 0, 0)), "the second starts where the first ended"
    assert close(poses("pan left 20deg then pan left 20deg"), poses("pan left 40deg")), "and at an even pace"


def test_moves_at_once_add_up_in_any_order() -> None:
    both = poses("truck right 0.3 and pan left 30deg and zoom in 2x")
    assert close(both, poses("pan left 30deg while truck right 0.3"))
    assert close(end("pan left 90deg and dolly in 1"), (0, 0, 1)), "a dolly keeps to its track while the head turns"


def test_python_and_text_say_the_same() -> None:
    text = parse_moves("orbit left 40deg radius 1.2m smooth, then dolly in 0.5 for 2 and pan right 10deg/s")
    first = move("orbit", "left", 40, radius="1.2m", ease="smooth")
    assert text == first >> (move("dolly", "in", 0.5, share=2) & move("pan", "right", "10deg/s"))
    assert move("arc", "left", 40) == move("orbit", "left", 40)


@pytest.mark.parametrize("ease", EASES)
def test_easing_hits_its_ends_exactly_and_never_goes_back(ease: str) -> None:
    path = poses(f"truck right 0.7 {ease}", 101)[:, 0, 3]
    assert path[0] == 0
    assert path[-1] == 0.7
    assert (path.diff() > 0).all()


def test_a_speed_is_an_amount_a_second() -> None:
    assert close(poses("pan left 10deg/s", 81, fps=16.0)[-1], poses("pan left 50deg", 81)[-1])
    assert close(end("static for 3, then dolly in 0.2/s", frames=81, fps=16.0), (0, 0, 0.25))


def test_path_length() -> None:
    assert describe(trajectory("orbit left 90deg radius 2", LENS, 801)).path_length == pytest.approx(math.pi, rel=1e-5)
    assert describe(trajectory("dolly in 1 then dolly out 1", LENS, 81)).path_length == pytest.approx(2)


def test_units() -> None:
    assert close(end("dolly in 3m", near=1.5), (0, 0, 2))
    assert close(end("dolly in 2", unit="metric", near=1.5), (0, 0, 3))
    assert close(end("dolly in 2", unit="arbitrary"), (0, 0, 2))
    for text, options in [("dolly in 1m", {}), ("dolly in 1", {"unit": "metric"}), ("orbit left", {"unit": "metric"})]:
        with pytest.raises(InputError, match="near="):
            poses(text, **options)
    with pytest.raises(InputError, match="arbitrary"):
        poses("dolly in 1m", unit="arbitrary", near=2.0)


def test_one_frame_is_the_start() -> None:
    for name, kind in KINDS.items():
        cameras = trajectory(move(name, kind.directions[0] if kind.directions else None), LENS, 1)
        assert torch.equal(cameras.world_from_camera, torch.eye(4, dtype=torch.float64)[None]), name
        assert describe(cameras).looks_like == "static"
    with pytest.raises(InputError, match="frames"):
        trajectory("static", LENS, 0)


# -- keyframes and resampling


def test_keyframes_are_passed_exactly_and_smoothly() -> None:
    keys = poses("orbit left 90deg, then tilt up 20deg and truck right 1", 5)
    path = keyframes(keys, LENS, 401, unit="metric")
    assert torch.equal(path.world_from_camera[::100], keys)
    assert path.unit == "metric"
    acceleration = path.world_from_camera[:, :3, 3].diff(dim=0).diff(dim=0).norm(dim=-1)
    assert acceleration.max() < 0.0005, "no corner at a key, where the speed would jump by a hundred times this"
    uneven = keyframes(keys, LENS, 101, times=torch.tensor([0.0, 1, 2, 5, 10]))
    assert torch.equal(uneven.world_from_camera[50], keys[3])
    with pytest.raises(InputError, match="later"):
        keyframes(keys, LENS, 9, times=torch.tensor([0.0, 1, 1, 5, 10]))


def test_keyframes_blend_their_lenses() -> None:
    lens = LENS.zoomed(torch.tensor([1.0, 4.0], dtype=torch.float64))
    path = keyframes(poses("pan left 20deg", 2), lens, 3)
    assert close(path.lens.focal[1], 2 * LENS.focal, 1e-9)


def test_resampling_keeps_ends_time_and_what_it_can_exactly() -> None:
    path = trajectory("orbit left 40deg smooth and zoom in 2x", LENS, 21)
    assert torch.equal(resample(path, 21).world_from_camera, path.world_from_camera)
    finer = resample(path, 81)
    assert torch.equal(finer.world_from_camera[::4], path.world_from_camera)
    assert torch.equal(finer.lens.focal[::4], path.lens.focal)
    assert finer.fps == path.fps * 4
    exact = trajectory("orbit left 40deg smooth and zoom in 2x", LENS, 81)
    assert close(finer.world_from_camera, exact.world_from_camera, 1e-3)
    coarse = resample(path, 8)
    assert torch.equal(coarse.world_from_camera[[0, -1]], path.world_from_camera[[0, -1]])
    assert len(resample(path, 1)) == 1
    assert len(resample(resample(path, 1), 5)) == 5
    still = resample(trajectory("static", LENS, 5, yaw=33.0), 17).world_from_camera
    assert (still == still[0]).all()


def test_look_at_faces_its_target_and_stays_level() -> None:
    positions = torch.tensor([[0.0, 0.0, 0.0], [1.0, -0.5, 0.0]], dtype=torch.float64)
    target = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)
    facing = look_at(positions, target)
    assert close(facing[0], torch.eye(4))
    assert close(facing[1, :3, 2], torch.nn.functional.normalize(target - positions[1], dim=0))
    assert facing[1, 1, 0] == 0
    with pytest.raises(InputError, match="above or below"):
        look_at(positions[:1], torch.tensor([0.0, -3.0, 0.0], dtype=torch.float64))


def test_a_path_is_fitted_to_another_number_of_frames_and_another_image():
    path = trajectory("orbit left 40deg and zoom in 1.2x", named_lens("fisheye-150", 832, 480), 81)
    fitted, changed = fitted_to(path, 17, 96, 64)
    assert len(fitted) == 17
    assert fitted.lens.size == (96, 64)
    assert len(changed) == 2
    assert "81 frames" in changed[0]
    assert "17" in changed[0]
    assert "832 x 480" in changed[1]
    assert "96 x 64" in changed[1]
    # every 5th frame of the old path is a frame of the new one, and the view across stays
    assert torch.allclose(fitted.world_from_camera, path.world_from_camera[::5], atol=1e-6)
    assert torch.allclose(fitted.lens.hfov, path.lens.hfov[::5], atol=1e-3)
    assert (fitted.lens.vfov > path.lens.vfov[::5]).all()
    assert fitted.fps == pytest.approx(16 * 16 / 80)


def test_fitting_to_what_it_is_changes_nothing():
    path = trajectory("pan left 20deg", LENS, 9)
    fitted, changed = fitted_to(path, 9, *LENS.size)
    assert changed == []
    assert fitted is path


def test_a_fitted_image_shows_the_same_rays_in_its_middle():
    """A taller and a flatter image of the same width: a ray lands on the same column, as far from the middle row."""
    lens = Lens(torch.tensor([400.0, 410.0]), torch.tensor([300.0, 250.0]), torch.tensor(0.7), (640, 480))
    points = torch.randn(50, 3) + torch.tensor([0.0, 0.0, 3.0])
    before = lens.project(points)[0]
    for height in (100, 333, 900):
        after = lens.fitted(320, height).project(points)[0]
        expected = torch.stack([before[:, 0] / 2, (before[:, 1] - 240) / 2 + height / 2], -1)
        torch.testing.assert_close(after, expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize(
    "moves",
    [
        "pan left 10deg for 6s",
        "pan left 10deg for 6s and dolly in",
        "(pan left 10deg for 3s, then tilt up 20deg for 3s) and dolly in",
        "(pan left 1deg for 3s, then tilt up 2deg for 3s, then roll cw 3deg for 3s) and dolly in",
    ],
)
def test_seconds_that_do_not_fit_are_refused_wherever_they_stand(moves):
    """Inside of a move they were squeezed without a word, and a third part divided by zero."""
    with pytest.raises(InputError, match="the 4 s that there are"):
        trajectory(moves, Lens.from_fov(90, 0.0, 96, 64), 65, fps=16)
