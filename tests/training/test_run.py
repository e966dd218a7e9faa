"""`curvedray.train`: a recipe's name and a folder in, weights out."""

import pytest

import curvedray

TINY = {"model": "random", "steps": 2, "batch": 1, "data.clips": 2, "every.validate": 0}


def test_one_call_trains_and_goes_on(tmp_path):
    said: list[tuple[int, int]] = []
    result = curvedray.train(
        "quick", tmp_path / "run", TINY, tick=lambda done, total, words: said.append((done, total))
    )
    assert result.weights is not None
    assert result.weights.exists()
    assert (result.first, result.step) == (0, 2)
    assert said[-1] == (2, 2)
    longer = curvedray.train("quick", tmp_path / "run", TINY | {"steps": 3}, resume=True)
    assert (longer.first, longer.step) == (2, 3)


def test_a_change_that_is_none_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(curvedray.InputError):
        curvedray.train("quick", tmp_path / "run", {"stepz": 2})
    assert list(tmp_path.iterdir()) == []
