"""Words that people type: they become exact moves, what was understood is said back, and nothing is dropped."""

import contextlib
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.errors import InputError
from curvedray.moves.move import KINDS
from curvedray.moves.phrases import IDLE, METRES, PACES, PHRASES, TOWARDS, TURNS, in_exact_words, read_moves
from curvedray.moves.text import DIRECTIONS, parse_moves
from curvedray.moves.trajectory import trajectory

MEANT = {
    "circle around the subject": "orbit left 40deg",
    "fly forward": "dolly in 0.5",
    "zoom in slowly": "zoom in 1.22x",
    "zoom in fast": "zoom in 2.25x",
    "whip pan right": "pan right 90deg smooth for 0.5, then static",
    "orbit 360": "orbit left 360deg",
    "orbit counter-clockwise": "orbit right 40deg",
    "a full circle around the person": "orbit left 360deg",
    "vertigo": "dolly_zoom in 0.3",
    "drone rise up and look down": "pedestal up 0.5 and tilt down 20deg",
    "dolly in 50cm": "dolly in 0.5m",
    "dolly in 2 meters": "dolly in 2m",
    "slide left 2 ft": "truck left 0.6096m",
    "pull out 300 mm": "dolly out 0.3m",
    "push in over 3 seconds, then pause": "dolly in 0.5 for 3s, then static",
    "hold for 2 seconds then pan left 30 degrees": "static for 2s, then pan left 30deg",
    "the camera slowly pushes in": "dolly in 0.25",
    "tilt upwards 10": "tilt up 10deg",
    "pan left 30deg fast": "pan left 30deg for 0.5, then static",
    "pan left in the first half": "pan left 30deg, then static",
    "spin clockwise": "roll cw 360deg",
    "spinning around": "pan right 360deg",
    "backward half a metre": None,  # no move is named
    "move backward half a metre": "dolly out 0.5m",
    "descend slowly, followed by a pause": "pedestal down 0.25, then static",
    "orbit left 40deg radius 2 slowly": "orbit left 40deg radius 2 for 2",
    "make me a sandwich": None,
    "pan": None,  # left or right? film terms do not say
    "pan left right 3deg": None,
    "pan left 3deg 4deg": None,
    "dolly in 50 bananas": None,
    "then pan left fast": None,
    "pan left fast then": None,
}


# Halves and haste, which were dropped beside other moves, fell on all of them, or stood where they did nothing.
TIMED = {
    "pan right and tilt up in the second half": "pan right and (static, then tilt up)",
    "tilt up in the second half and pan right": "(static, then tilt up) and pan right",
    "dolly in and pan right 90 degrees quickly": "dolly in and (pan right 90deg for 0.5, then static)",
    "whip pan left while dollying in": "(pan left 90deg smooth for 0.5, then static) and dolly in",
    "pan left 90 degrees quickly, then tilt up": "pan left 90deg for 0.5, then tilt up",
    "pan left 90 degrees quickly in the second half": "static for 1.5, then pan left 90deg for 0.5, then static",
    "pan left 90 degrees slowly in the first half": "pan left 90deg for 2, then static for 2",
    "orbit in the first half, then dolly in in the second half": "orbit left, then dolly in",
    "pan left in the second half, then tilt up": None,
    "pan left in the first half, then tilt up, then dolly in": None,
    "pan left in the first half, then tilt up for 3 seconds": None,
    "pan left over 2 seconds in the second half": None,
    "pan left in the first half in the second half": None,
}
MEANT |= TIMED


@pytest.mark.parametrize(("typed", "meant"), MEANT.items(), ids=MEANT)
def test_everyday_words_become_exact_moves(typed: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(InputError):
            read_moves(typed)
    else:
        assert read_moves(typed) == parse_moves(meant)
        assert read_moves(typed.upper()) == parse_moves(meant)


def test_a_half_is_that_half_of_its_own_move() -> None:
    """`pan right and tilt up in the second half` tilted from the start, and the other way round both moves waited."""
    path = trajectory("pan right 30deg and tilt up 20 degrees in the second half", "pinhole-90", 81).world_from_camera
    alone = trajectory("pan right 30deg", "pinhole-90", 81).world_from_camera
    assert abs(path[:41] - alone[:41]).max() < 1e-6
    assert abs(path[60] - alone[60]).max() > 0.1
    late = trajectory("pan left 90 degrees quickly in the second half", "pinhole-90", 81).world_from_camera
    assert abs(late[40] - late[0]).max() < 1e-6 < abs(late[42] - late[0]).max()


def test_a_guess_is_never_silent_and_exact_text_is_no_guess(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "curvedray.moves"):
        trajectory("orbit left 40deg, then dolly in 0.5", "pinhole-90", 5)
        assert not caplog.records
        trajectory("sink very gently", "pinhole-90", 5)
    assert [i.getMessage() for i in caplog.records] == ["moves: `sink very gently` understood as: pedestal down 0.25"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_of_the_table_is_a_move(phrase: str) -> None:
    """With some direction where the phrase has none of its own."""
    for direction in ("", "left", "up", "in", "cw"):
        with contextlib.suppress(InputError):
            assert read_moves(f"{phrase} {direction}") == parse_moves(in_exact_words(f"{phrase} {direction}"))
            return
    pytest.fail("not understood in any direction")


WORDS = [*PHRASES, *DIRECTIONS, *TOWARDS, *PACES, *TURNS, *METRES, *sorted(IDLE), *KINDS]
WORDS += ["then", "and", ",", "3", "0.5", "over 2 seconds", "in the first half", "for", "12 degrees", "2x"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join))
def test_any_words_are_moves_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(InputError):
        step = read_moves(text)
        assert parse_moves(str(step)) == step


def test_metres_need_to_know_how_far_near_is() -> None:
    with pytest.raises(InputError, match="near distance"):
        trajectory("fly forward 2 meters", "pinhole-90", 5)
    path = trajectory("fly forward 2 meters", "pinhole-90", 5, near=4.0)
    assert path.world_from_camera[-1, 2, 3].item() == pytest.approx(0.5)


# -- seconds


def test_seconds_are_seconds_and_the_rest_is_shared() -> None:
    path = trajectory("dolly in 1 for 2s, then static, then dolly out 1", "pinhole-90", 81, fps=16.0)  # 5 s
    z = path.world_from_camera[:, 2, 3]
    assert z[16].item() == pytest.approx(0.5)
    assert z[32].item() == pytest.approx(1.0)
    assert z[56].item() == pytest.approx(1.0)  # held for half of the three seconds left
    assert z[-1].item() == pytest.approx(0.0, abs=1e-6)


def test_a_move_that_is_shorter_than_the_clip_is_followed_by_a_hold() -> None:
    path = trajectory("pan left 40deg for 2s and dolly in 1", "pinhole-90", 81, fps=16.0).world_from_camera
    alone = trajectory("pan left 40deg", "pinhole-90", 33, fps=16.0).world_from_camera
    assert abs(path[:33, :3, :3] - alone[:, :3, :3]).max() < 1e-6
    assert abs(path[33:, :3, :3] - alone[-1, :3, :3]).max() < 1e-6
    assert path[-1, 2, 3].item() == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["pan left 9deg for 6s", "static for 5s, then pan left 9deg", "static for 0s"])
def test_more_seconds_than_there_are_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"s that there are|above 0"):
        trajectory(text, "pinhole-90", 81, fps=16.0)
