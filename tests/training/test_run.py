"""`curvedray.train`: a recipe's name and a folder in, weights out."""

from dataclasses import replace

import pytest
from tiny import TinyFootage

import curvedray
from curvedray.data.folders import write_folder
from curvedray.radial.map import write_radial_map

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


class Unlabelled(TinyFootage):
    def __getitem__(self, index):
        return replace(super().__getitem__(index), radial=None)


@pytest.mark.parametrize("cache", ["auto", "off"])
@pytest.mark.parametrize("change", [{}, {"mixforcing.kind": "block", "radial_weight": 0}])
def test_learning_distances_from_clips_without_any_is_refused_with_what_to_run(tmp_path, change, cache):
    """It once trained without supervision, and the file said that it takes maps."""
    clips = tmp_path / "clips"
    write_folder(Unlabelled(4), clips)
    shape = {"data.frames": 9, "data.height": 32, "data.width": 48, "data.cache": cache, "validation_clips": 0}
    wanted = {"model": "random", "steps": 1, "batch": 1, "data.source": str(clips)} | shape | change
    with pytest.raises(curvedray.InputError, match=r"none of 4.*radial label .*--labels"):
        curvedray.train("quick", tmp_path / "run", wanted)
    assert curvedray.train("quick", tmp_path / "without", wanted | {"radial_weight": 0, "mixforcing": None}).weights

    said: list[str] = []
    write_radial_map(TinyFootage(1)[0].radial, tmp_path / "labels" / "clip-0.npz")
    labelled = wanted | {"data.labels": str(tmp_path / "labels")}
    assert curvedray.train("quick", tmp_path / "labelled", labelled, say=said.append).weights
    assert any(line.startswith("distances to learn from: in 1 of 4 clips") for line in said)
