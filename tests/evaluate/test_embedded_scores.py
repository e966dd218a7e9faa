"""The embedded model's table: a perfect reading scores zero, a shuffled one does not, and the page says so."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "embedded"))
from make import stages
from rows import rows
from score_tables import AXES, WITH_MAP, Seen, Truth, Values, values_of, write_tables
from truths import COLOURS, KINDS, THEMES

from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.models.embedded.model import WEIGHTS
from curvedray.paper.experiment import MAY_DIFFER
from curvedray.training.recipes import differences
from curvedray.world.world import world_clip


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth.of([world_clip(index, "val") for index in range(8)])


def perfect(truth: Truth) -> Seen:
    named = [
        F.one_hot(torch.from_numpy(classes), count).float()
        for classes, count in (
            (truth.theme, len(THEMES)),
            (truth.colour, len(COLOURS) + 1),
            (truth.kind, len(KINDS) + 1),
        )
    ]
    numbers = [truth.turn, truth.poses[..., :3, 3], truth.fov, truth.xi]
    said = Reading(*(torch.from_numpy(x).float() for x in (*numbers, truth.log_radius)), *named)
    return Seen(said, torch.full((len(truth.fov),), 30.0))


def test_a_perfect_reading_has_no_error(truth: Truth) -> None:
    values = values_of(truth, perfect(truth))
    for name in ("rotation", "rot_err", "cam_mc", "metres", "fov", "xi", "distance"):
        assert values.measures[name] == pytest.approx(0, abs=2e-3), name
    assert all(values.measures[name].mean() == 1 for name in ("theme", "colour", "kind"))
    assert all(values.correlation(axis).mean == pytest.approx(1, abs=1e-6) for axis in AXES)


def test_other_cameras_have_errors_and_no_motion_has_no_correlation(truth: Truth) -> None:
    shuffled, still = values_of(truth.shuffled(), perfect(truth)), values_of(truth, Seen(truth.standing_still()))
    assert shuffled.measures["rotation"].mean() > 1
    assert still.measures["metres"].mean() == pytest.approx(
        np.linalg.norm(truth.poses[:, 1:, :3, 3], axis=-1).mean(), rel=1e-6
    )
    assert np.isnan(still.correlation("yaw").mean)


def test_the_page_has_every_row(truth: Truth, tmp_path: Path) -> None:
    better = replace(perfect(truth), decibels=torch.full((8,), 32.0))
    values: dict[str, Values] = {"perfect": values_of(truth, perfect(truth))}
    values[f"perfect{WITH_MAP}"] = values_of(truth, better)
    losses = {"ucpe": {"loss 0.8": torch.rand(8)}, "crepe": {"loss 0.8": torch.rand(8), "radius 0.8": torch.rand(8)}}
    write_tables(tmp_path, truth, values, losses, Embedded.load(), 8, "val")
    page = (tmp_path / "table.md").read_text()
    assert page.count("| perfect |") == 5
    assert page.count("| crepe |") == 2
    assert f"| perfect{WITH_MAP} | 0 [0, 0] | 2 [2, 2] | 0 [0, 0] |" in page


def test_every_adapter_is_trained_alike() -> None:
    first, *others = rows().values()
    for other in others:
        assert not [line for line in differences(first, other) if not line.startswith(MAY_DIFFER)]


def test_training_it_again_puts_every_file_into_the_package(tmp_path: Path) -> None:
    written = {stage.into for together in stages(tmp_path) for stage in together}
    assert written - {None} == set(WEIGHTS.parent.glob("embedded*.safetensors"))


def test_the_models_page_says_what_was_measured() -> None:
    root = Path(__file__).parents[2]
    measured = (root / "experiments" / "results" / "embedded" / "table.md").read_text()
    summary = measured.split("## In short")[1].split("##")[0].strip()
    assert summary in (root / "docs" / "embedded.md").read_text()
