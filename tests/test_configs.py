"""Configs as JSON: they come back equal, and what they do not know is refused by its dotted key."""

from dataclasses import dataclass, field

import pytest

from curvedray.configs import check_laws, config_of, flattened, number, record_of, whole
from curvedray.errors import InputError


@dataclass(frozen=True)
class Inner:
    share: float = 0.5

    def __post_init__(self):
        check_laws(self, [("share", number(self.share, 0, 1), "a share in [0, 1]")], "inner.")


@dataclass(frozen=True)
class Outer:
    steps: int = 3
    pair: tuple[float, float] = (1.0, 2.0)
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None


@pytest.mark.parametrize("config", [Outer(), Outer(7, (0.0, 1e-9), Inner(1.0), Inner())])
def test_a_config_comes_back_equal(config):
    assert config_of(Outer, record_of(config), "config") == config


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"stepz": 1}, r"config: expected keys among steps.*Did you mean steps\?"),
        ({"inner": {"shar": 1}}, r"inner\.shar\. Did you mean inner\.share"),
        ({"maybe": {"shar": 1}}, r"Did you mean maybe\.share"),
        ({"steps": True}, "config: steps: expected a valid integer, got True"),
        ({"steps": "4"}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"pair": [1.0]}, "pair"),
        ({"pair": [1.0, float("nan")]}, r"config: pair: expected finite numbers"),
        ({"inner": {"share": float("inf")}}, r"inner\.share: expected finite"),
        ({"inner": {"share": 2}}, r"inner\.share: expected a share"),
        ({"inner": None}, "inner"),
        ({"steps": {1, 2}}, "JSON"),
        (None, "names and values"),
        ({"steps": "\ud800"}, "config"),
    ],
)
def test_what_does_not_fit_is_named(record, message):
    with pytest.raises(InputError, match=message):
        config_of(Outer, record, "config")


def test_flattened_records_have_dotted_keys():
    assert flattened(record_of(Outer())) == {"steps": 3, "pair": [1.0, 2.0], "inner.share": 0.5, "maybe": None}


def test_nan_and_truth_are_not_numbers():
    assert whole(3, 1, 3)
    assert not any(whole(i, 0, 3) for i in (True, 4, 1.0, "1", None))
    assert not any(number(i, -9, 9) for i in (float("nan"), True, "1", 10))
