"""Any move, lens, size, frames, rate and near distance: finite cameras, or an InputError; never a traceback."""

import random
from typing import Any

import pytest
import torch

from curvedray.cameras.named_lenses import NAMES, named_lens
from curvedray.errors import InputError
from curvedray.moves.describe import describe
from curvedray.moves.move import KINDS
from curvedray.moves.phrases import METRES, PACES, PHRASES, TOWARDS, TURNS
from curvedray.moves.text import DIRECTIONS
from curvedray.moves.trajectory import fitted_to, trajectory

NAN, INFINITY = float("nan"), float("inf")
WORDS = [*PHRASES, *DIRECTIONS, *METRES, *PACES, *TOWARDS, *TURNS, "then", "and", ",", "(", ")", "to", "seed", "for"]
WORDS += ["²", "٣", "\0", "-", "1e300", "nan", "0", "5", "30deg", "0.5", "2x", "1.2m", "9" * 5000, "3s", "°", "/s"]
SOUND: dict[str, list[Any]] = {
    "lens": [*NAMES, "wide-110@0.4", "fisheye-200@0.9", "pinhole-33.3"],
    "size": [(832, 480), (1, 1), (96, 64), (3, 999)],
    "frames": [1, 2, 9, 17],
    "near": [None, 0.3, 3.0],
    "fps": [16.0, 24.0, 0.5],
    "unit": ["near", "arbitrary"],
    "pitch": [0.0, -20.0, 90.0],
}
ABSURD: dict[str, list[Any]] = {
    "lens": ["", "x@", "pinhole-0", "pinhole-179.99999", "fisheye-150@1e9", "gopro-wide@nan", "pinhole-" + "9" * 400],
    "size": [(0, 4), (-1, 5), (10**9, 2)],
    "frames": [0, -1, 10**9],
    "near": [0.0, -1.0, 1e-300, 1e300, NAN, INFINITY],
    "fps": [0.0, -1.0, 1e-300, 1e300, NAN, INFINITY],
    "pitch": [NAN, INFINITY],
}


def text(chance: random.Random) -> str:
    if chance.random() < 0.3:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(0, 8)))
    name = chance.choice(list(KINDS))
    direction = chance.choice(KINDS[name].directions or ("",))
    amount = chance.choice(["", "", "", "30deg", "0.5", "1m", "2x", "10deg/s", "1e300", "nan", "-3", "1e5"])
    return (
        f"{name} {direction} {amount} {chance.choice(['', 'smooth', 'for 2', 'for 1s', 'radius 1', ', then static'])}"
    )


@pytest.mark.parametrize("seed", range(2))
def test_any_input_gives_finite_cameras_or_a_clear_error(seed: int) -> None:
    chance = random.Random(seed)
    made = 0
    for _ in range(150):
        given: dict[str, Any] = {name: chance.choice(values) for name, values in SOUND.items()}
        if chance.random() < 0.4:
            wrong = chance.choice(list(ABSURD))
            given[wrong] = chance.choice(ABSURD[wrong])
        name, size = given.pop("lens"), given.pop("size")
        try:
            cameras = trajectory(text(chance), named_lens(name, *size), **given)
            cameras, _ = fitted_to(cameras, chance.choice([1, 5, 17]), chance.choice([1, 64]), chance.choice([1, 48]))
            said = str(describe(cameras)) if chance.random() < 0.2 else ""
        except InputError:
            continue
        assert torch.isfinite(cameras.world_from_camera).all()
        assert torch.isfinite(cameras.lens.focal).all()
        assert "nan" not in said
        made += 1
    assert made > 20
