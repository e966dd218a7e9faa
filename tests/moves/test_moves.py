"""Moves as text: every move parses back from its own text, aliases mean what they should, mistakes are named."""

import contextlib
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.moves.actions import EASES
from curvedray.moves.move import ALIASES, KINDS, Move, Quantity, Sequence, Step, Together
from curvedray.moves.text import move, parse_moves
from curvedray.moves.trajectory import trajectory

LENS = Lens.from_fov(torch.tensor(90.0, dtype=torch.float64), 0.0)

number = st.floats(0, 9e3, allow_nan=False).map(lambda x: round(x, 6)) | st.floats(1e-9, 9e3)
length = st.builds(Quantity, number.filter(lambda x: x > 0), st.sampled_from(["near", "m"]))


@st.composite
def moves(draw: st.DrawFn) -> Move:
    name = draw(st.sampled_from(sorted(KINDS)))
    kind = KINDS[name]
    fields: dict[str, object] = {
        "share": draw(number.filter(lambda x: x > 0)),
        "ease": draw(st.sampled_from(list(EASES))),
    }
    if draw(st.booleans()):
        fields |= {"share": 1.0, "seconds": draw(st.floats(1e-3, 1e4))}
    if kind.directions:
        fields["direction"] = draw(st.sampled_from(kind.directions))
    if kind.amount and draw(st.booleans()):
        value = draw(number.map(lambda x: x + 1))
        fields["amount"] = Quantity(value, kind.amount.unit, name != "handheld" and draw(st.booleans()))
    if kind.distance and draw(st.booleans()):
        fields["distance"] = draw(length)
    if name == "handheld":
        fields["seed"] = draw(st.integers(0, 2**40))
    if name == "spiral" and draw(st.booleans()):
        fields["to"] = draw(length)
    return Move(name, **fields)


steps = st.recursive(
    moves(),
    lambda i: st.lists(i, min_size=2, max_size=3).flatmap(
        lambda x: st.sampled_from([Sequence(tuple(x)), Together(tuple(x))])
    ),
    max_leaves=6,
)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # beartype picks the items it checks by it
@settings(max_examples=60, deadline=None)
@given(steps)
def test_text_round_trip(step: Step) -> None:
    assert parse_moves(str(step)) == step
    assert parse_moves(str(step).upper().replace(" ", "   ")) == step


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("yaw left 5deg", "pan left 5deg"),
        ("pitch up 5 degrees", "tilt up 5deg"),
        ("rotate clockwise 5°", "roll cw 5deg"),
        ("rotate left 5deg", "pan left 5deg"),
        ("track left 1", "truck left 1"),
        ("track forward 1", "dolly in 1"),
        ("push in 1 near", "dolly in 1"),
        ("pull back 1", "dolly out 1"),
        ("boom up 1", "pedestal up 1"),
        ("move down 1", "pedestal down 1"),
        ("arc right 5deg", "orbit right 5deg"),
        ("dolly zoom in 0.2", "dolly_zoom in 0.2"),
        ("hold", "static"),
        ("pan left 5deg ease in", "pan left 5deg ease-in"),
        ("pan left 5deg ease-in-out", "pan left 5deg smooth"),
        ("pan left 5deg, tilt up 5deg", "pan left 5deg, then tilt up 5deg"),
        ("pan left 5deg and then tilt up 5deg", "pan left 5deg, then tilt up 5deg"),
        ("pan left 5deg + tilt up 5deg", "pan left 5deg and tilt up 5deg"),
        ("zoom in 2", "zoom in 2x"),
    ],
)
def test_aliases(said: str, meant: str) -> None:
    assert str(parse_moves(said)) == str(parse_moves(meant))


def test_every_alias_is_a_move() -> None:
    for alias, names in ALIASES.items():
        for name in names:
            for direction in KINDS[name].directions or (None,):
                assert move(alias, direction).name in names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "nothing"),
        ("   ", "nothing"),
        ("pann left 3deg", "pann.*Did you mean pan"),
        ("orbit lefft 3deg", "lefft.*Did you mean left"),
        ("orbit left 3deg radus 2", "radus.*Did you mean radius"),
        ("pan", "left or right"),
        ("pan up 3deg", "left or right.*up.*say tilt up"),
        ("dolly left 1", "in or out.*left.*say truck left"),
        ("truck up 1", "say pedestal up"),
        ("pan left tilt up 10deg", "`then` or `and` between two moves.*tilt"),
        ("pan left 0.5", "degrees.*truck"),
        ("truck left 30deg", "a length.*30deg"),
        ("pan left right 3deg", "one direction"),
        ("pan left 3deg 4deg", "one amount.*4"),
        ("pan left -3deg", "direction says the sign"),
        ("pan left 1e999deg", "at most 360000deg"),
        ("dolly in 1e300", "at most 1000000"),
        ("zoom in 1e300x", "at most 10000x"),
        ("orbit left radius 1e300", "at most 1000000"),
        ("pan left 3deg then", "a move.*the end"),
        ("then pan left 3deg", "then"),
        ("pan left 3deg and", "the end"),
        ("(pan left 3deg", "closing bracket"),
        ("pan left 3deg)", "end of the text"),
        ("()", "a move"),
        ("12", "a move"),
        ("pan left 3deg for", "a number"),
        ("pan left 3deg for 0", "positive"),
        ("static 3deg", "no amount"),
        ("static left", "no direction"),
        ("pan left 3deg seed 2", "handheld"),
        ("handheld seed -1", "whole number"),
        ("handheld 1deg/s", "degrees of shake"),
        ("pan left 3deg to 4deg", "only zoom and spiral"),
        ("pan left 3deg radius 4", "no distance"),
        ("orbit left subject 2", "`radius`"),
        ("orbit left radius 0", "more than 0"),
        ("zoom in 0.5x", "zoom out"),
        ("zoom in 2x to 30deg", "both"),
        ("zoom to 200deg", "all that this lens can see"),
        ("dolly_zoom in 2 subject 1", "less than the subject"),
        ("pan left 3deg; drop table", "drop"),
        ("\x00", "a move"),
    ],
)
def test_bad_text_is_named(text: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        trajectory(text, LENS, 5)
    assert re.search(expected, str(error.value)), error.value


def test_a_speed_is_limited_by_what_it_adds_up_to() -> None:
    with pytest.raises(InputError, match="amount of dolly: expected at most"):
        trajectory("dolly in 1000000/s", LENS, 100)


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=30)
    | st.lists(
        st.sampled_from(["pan", "left", "3deg", "(", ")", "then", "and", "to", "zoom", ",", "1", "/s", "for"])
    ).map(" ".join)
)
def test_any_text_is_moves_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_moves(str(parse_moves(text))) == parse_moves(text)
