"""Descriptions: a move is described as itself, whatever the world it is seen in; a free path is called one."""

import math
import re
from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.angles import rotation_angle
from curvedray.errors import InputError
from curvedray.moves.actions import EASES
from curvedray.moves.describe import describe
from curvedray.moves.move import Move, Sequence
from curvedray.moves.recognise import CLOSE, CLOSE_DEGREES, CLOSE_LENGTH, SHAKE_PEAK, _without_shake, recognise
from curvedray.moves.text import parse_moves
from curvedray.moves.trajectory import trajectory

LENS = Lens.from_fov(torch.tensor(90.0, dtype=torch.float64), 0.0)
FISHEYE = Lens.from_fov(torch.tensor(150.0, dtype=torch.float64), 1.0)

NAMED = [
    "static",
    "pan left 30deg",
    "pan right 400deg",
    "tilt up 120deg",
    "tilt down 7deg",
    "roll cw 20deg",
    "roll ccw 190deg",
    "truck left 0.3",
    "truck right 2 smooth",
    "pedestal up 0.3",
    "pedestal down 1 ease-in",
    "dolly in 1",
    "dolly out 0.2",
    "zoom in 2x",
    "zoom out 1.3x",
    "orbit left 40deg radius 1.2",
    "orbit right 360deg radius 1 smooth",
    "orbit up 30deg radius 1",
    "orbit down 20deg radius 3",
    "spiral left 360deg radius 2 to 1",
    "spiral right 90deg radius 1 to 2",
    "crane up 0.5 subject 2",
    "crane down 0.3 subject 1",
    "dolly_zoom in 0.5 subject 2",
    "dolly_zoom out 1 subject 1",
    "pan left 30deg and tilt up 20deg",
    "truck right 1 and pedestal up 1",
    "dolly in 1 and pan left 90deg",
    "pan left 30deg, then pan right 30deg",
    "pan left 20deg, then static, then pan left 20deg",
    "orbit left 30deg radius 1, then static, then orbit right 30deg radius 1",
]


@pytest.mark.parametrize("start", [{}, {"yaw": 30.0, "pitch": -20.0}])
@pytest.mark.parametrize("text", NAMED)
def test_a_move_is_described_as_itself(text: str, start: dict[str, float]) -> None:
    single = trajectory(text, Lens.from_fov(90.0), 49, **start)
    assert describe(single).move == text


@pytest.mark.parametrize(
    "text",
    [
        "orbit left 40deg, then dolly in 0.5",
        "pan left 30deg, then tilt up 20deg",
        "tilt up 80deg, then pan left 60deg",  # straight up, a pan is nearly a roll
    ],
)
def test_moves_in_a_row_are_told_apart(text: str) -> None:
    found, meant = parse_moves(describe(trajectory(text, LENS, 81)).move or ""), parse_moves(text)
    assert isinstance(found, Sequence)
    assert isinstance(meant, Sequence)
    for a, b in zip(found.steps, meant.steps, strict=True):
        assert isinstance(a, Move)
        assert isinstance(b, Move)
        assert (a.name, a.direction) == (b.name, b.direction)
        assert a.amount
        assert b.amount
        assert a.amount.value == pytest.approx(b.amount.value, rel=0.03)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("under", ["", "dolly in 1 and "])
def test_handheld_is_described_with_its_strength(seed: int, under: str) -> None:
    said = describe(trajectory(f"{under}handheld 1deg sway 0.02 seed {seed}", LENS, 81)).move or ""
    turn, sway = re.search(r"handheld ([\d.]+)deg sway ([\d.]+)", said).groups()
    assert float(turn) == pytest.approx(1, rel=0.35)
    assert float(sway) == pytest.approx(0.02, rel=0.35)
    assert bool(under) == said.startswith("dolly in")


def test_a_free_path_is_called_one() -> None:
    wild = trajectory("orbit left 200deg and pedestal up 1 and tilt up 80deg and roll cw 100deg ease-in", LENS, 81)
    said = describe(wild)
    assert said.move is None
    assert str(said).startswith("free path, 81 frames, pinhole 90 degrees")


def test_a_description_does_not_depend_on_the_world_and_scales_with_the_unit() -> None:
    path = trajectory("orbit left 40deg radius 1.2", LENS, 81)
    world = trajectory("pan left 77deg and tilt up 31deg and roll cw 12deg and truck left 9", LENS).world_from_camera[
        -1
    ]
    elsewhere = replace(path, world_from_camera=world @ path.world_from_camera)
    assert describe(elsewhere).move == describe(path).move
    assert "radius 0.6" in str(describe(path.scaled(2.0)))
    assert describe(replace(path, unit="metric")).move == "orbit left 40deg radius 1.2m"


LENGTHS = st.sampled_from([0.2, 0.5, 1.0, 2.0])
ANGLES = st.sampled_from([5, 20, 45, 90, 200])
SINGLE = st.one_of(
    st.builds("pan {} {}deg{}".format, st.sampled_from(["left", "right"]), ANGLES, st.sampled_from(["", " smooth"])),
    st.builds("tilt {} {}deg".format, st.sampled_from(["up", "down"]), st.sampled_from([5, 20, 60])),
    st.builds("roll {} {}deg".format, st.sampled_from(["cw", "ccw"]), ANGLES),
    st.builds("truck {} {}".format, st.sampled_from(["left", "right"]), LENGTHS),
    st.builds("dolly {} {} {}".format, st.sampled_from(["in", "out"]), LENGTHS, st.sampled_from(list(EASES))),
    st.builds("pedestal {} {}".format, st.sampled_from(["up", "down"]), LENGTHS),
    st.builds("orbit {} {}deg radius {}".format, st.sampled_from(["left", "right", "up"]), ANGLES, LENGTHS),
    st.builds("zoom {} {}x".format, st.sampled_from(["in", "out"]), st.sampled_from([1.1, 1.5, 2])),
    st.builds("crane {} {} subject 2".format, st.sampled_from(["up", "down"]), LENGTHS),
    st.just("static"),
)
GROUPS = st.lists(SINGLE, min_size=1, max_size=3).map(" and ".join)
COMPOSED = st.lists(GROUPS, min_size=1, max_size=4).map(", then ".join)


def apart(path: Cameras, text: str, pitch: float) -> tuple[float, float]:
    """The largest angle (degrees) and distance between a path and the one that a text makes."""
    lens = path.frame_lens[0]
    made = trajectory(text, lens, len(path), unit=path.unit, pitch=pitch).relative_to_first().world_from_camera
    true = path.relative_to_first().world_from_camera
    turned = rotation_angle(true[:, :3, :3], made[:, :3, :3])
    return math.degrees(turned.max()), (true - made)[:, :3, 3].norm(dim=-1).max().item()


@pytest.mark.parametrize(
    "text", ["pan left 5deg smooth and tilt up 3deg", "pan left 2deg smooth and tilt up 20deg ease-out"]
)
@pytest.mark.parametrize("third", ["", " and pedestal up 0.2"])
def test_a_smooth_turn_has_no_shake(text: str, third: str) -> None:
    """Regression: what rounding left of the positions turned back again and again, and was called a hand's."""
    assert "handheld" not in describe(trajectory(text + third, LENS, 17, pitch=-20.0)).looks_like


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@settings(max_examples=60, deadline=None)
@given(COMPOSED, st.sampled_from([17, 49, 81]), st.sampled_from([0.0, -20.0]))
@example("pan left 5deg smooth and tilt up 20deg and pedestal up 0.2", 17, -20.0)  # taken for a move with a shake
def test_text_that_is_offered_makes_the_path_again(text: str, frames: int, pitch: float) -> None:
    """Whatever was composed: the text read back is within the stated tolerance at every frame, or is not offered."""
    path = trajectory(text, LENS, frames, pitch=pitch)
    said = describe(path)
    assert said.off is None or said.off.close == (said.move is not None)
    if said.move is None:
        assert (said.nearest is None) == (said.off is None)
        assert said.looks_like == "free path"
        return
    assert said.off is not None
    degrees, length = apart(path, said.move, said.off.pitch)
    own = path.relative_to_first().world_from_camera
    largest = math.degrees(rotation_angle(own[:, :3, :3], own[:1, :3, :3].expand(frames, 3, 3)).max())
    # A shake's seed cannot be told: the path may be a peak off the steady move, and the remake a peak off it, too.
    shaken, swayed = (2 * SHAKE_PEAK * rms for rms in _without_shake(parse_moves(said.move))[1])
    assert degrees <= max(CLOSE_DEGREES, CLOSE * largest) + shaken + 1e-9
    assert length <= max(CLOSE_LENGTH, CLOSE * own[:, :3, 3].norm(dim=-1).max().item()) + swayed + 1e-9


@pytest.mark.parametrize(
    "text",
    [
        "orbit left 40deg radius 1 and zoom in 1.3x, then static",  # a hold after a group
        "dolly in 0.5 and pan left 30deg, then pedestal up 0.3 and tilt up 10deg",  # a group after a group
        "zoom in 2x smooth, then static, then zoom out 2x ease-out",
    ],
)
def test_holds_groups_and_easing_are_not_lost(text: str) -> None:
    assert describe(trajectory(text, LENS, 81)).move == text


def test_a_path_whose_last_frame_flips_gets_no_text() -> None:
    """Regression: its ends alone looked like a short move; midway the text was far off."""
    path = trajectory("orbit left 228deg radius 1", LENS, 41)
    poses = path.world_from_camera.clone()
    poses[-1] = torch.eye(4, dtype=poses.dtype)
    said = describe(replace(path, world_from_camera=poses))
    assert said.move is None
    assert "free path" in str(said)
    assert said.nearest is None or f'"{said.nearest}", is up to' in str(said)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**31), st.sampled_from([0.0, 1e-6, 1.0, 1e6]), st.booleans())
def test_any_path_can_be_described(frames: int, seed: int, size: float, upright: bool) -> None:
    random = torch.Generator().manual_seed(seed)
    turned, _ = torch.linalg.qr(torch.randn(frames, 3, 3, generator=random, dtype=torch.float64))
    path = torch.eye(4, dtype=torch.float64).repeat(frames, 1, 1)
    path[:, :3, :3] = turned * torch.linalg.det(turned)[:, None, None]
    if upright:
        path[:, :3, :3] = torch.diag(torch.tensor([-1.0, 1.0, -1.0], dtype=torch.float64))
    path[:, :3, 3] = size * torch.randn(frames, 3, generator=random, dtype=torch.float64)
    said = describe(Cameras(LENS, path))
    assert said.move is None or parse_moves(said.move)
    assert math.isfinite(said.path_length + said.total_rotation + said.net_yaw + said.net_pitch + said.net_roll)


def test_the_sentence_and_the_numbers() -> None:
    said = describe(trajectory("orbit left 40deg radius 1.2", FISHEYE, 81))
    assert str(said).splitlines()[0] == "orbit left 40 degrees, radius 1.2, 81 frames, fisheye 150 degrees"
    numbers = said.to_dict()
    assert numbers["total_rotation"] == pytest.approx(40)
    assert numbers["net_yaw"] == pytest.approx(40)
    assert numbers["hfov"] == pytest.approx((150, 150))
    assert numbers["xi"] == (1.0, 1.0)
    zoomed = describe(trajectory("zoom to 40deg", LENS, 9))
    assert "pinhole 90 to 40 degrees" in str(zoomed)
    with pytest.raises(InputError, match="one trajectory"):
        describe(Cameras(LENS, torch.eye(4).expand(1, 3, 4, 4)))


@pytest.mark.parametrize("text", ["orbit left 40deg, then dolly in 0.5", "dolly in 1, then pan right 30deg"])
def test_a_corner_that_falls_on_a_frame_is_found_there(text):
    """Regression: the second move lost the frames that the first one's tolerance reached into."""
    moves = recognise(trajectory(text, Lens.from_fov(90.0), 81))[0].steps
    for found, meant in zip(moves, parse_moves(text).steps, strict=True):
        assert (found.name, found.direction) == (meant.name, meant.direction)
        assert found.amount.value == pytest.approx(meant.amount.value, rel=1e-3)


@pytest.mark.parametrize(("frames", "fps"), [(81, 2000.0), (81, 5e-4), (30_001, 16.0)])
@pytest.mark.parametrize("text", ["static", "pan left 30deg"])
def test_unusual_rates_and_lengths_are_described_alike(frames, fps, text):
    """Candidates were made at the path's own rate and length, which moves refuse: even a static one was a free path."""
    usual = trajectory(text, LENS, 81)
    share = torch.linspace(0, 80, frames).round().long().tolist()
    assert describe(replace(usual[share], fps=fps)).move == text


def test_the_worst_frame_of_a_long_path_is_counted_in_its_own_frames():
    poses = torch.eye(4, dtype=torch.float64).repeat(60_000, 1, 1)
    poses[50_000:50_010, 0, 3] = 5.0
    off = describe(Cameras(LENS, poses)).off
    assert off is not None
    assert 50_000 <= off.frame < 50_010
