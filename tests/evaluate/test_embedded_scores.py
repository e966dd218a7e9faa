"""The embedded model's table: a perfect reading scores zero, a shuffled one does not, and the page says so."""

import argparse
import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "embedded"))
from estimator import checkpoint_of, optimisers_of, restore
from make import SHIPPED, stages
from rows import ROWS, Record
from score_tables import FAMILIES, Row, path_in_nears, row_numbers, write_page
from truths import Lessons, mirrored

from curvedray.evaluate.estimators.clip_reader import ClipReader, ReaderShape
from curvedray.evaluate.world_truth import AXES, SHAPE, KnownClips, errors_of
from curvedray.media.pixels import video_from_frames
from curvedray.models.embedded.model import WEIGHTS, load_embedded
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.training.checkpoints import latest_checkpoint, save_checkpoint
from curvedray.training.recipe import differences
from curvedray.training.recipes import recipe
from curvedray.world.world import world_clip

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def truth() -> KnownClips:
    return KnownClips.of([world_clip(index, "val") for index in range(8)])


def test_an_exact_reading_has_no_error(truth: KnownClips) -> None:
    errors = errors_of(truth, truth.exact())
    for name in ("rotation", "rot_err", "cam_mc", "metres", "fov", "xi", "distance"):
        assert errors.measures[name] == pytest.approx(0, abs=2e-3), name
    assert all(errors.measures[name].mean() == 1 for name in ("theme", "colour", "kind"))
    moving = [axis for axis in AXES if np.std(errors.asked[axis]) > 1e-6]
    assert len(moving) >= 4
    assert all(errors.correlation(axis).mean == pytest.approx(1, abs=1e-6) for axis in moving)


def test_a_thing_stands_where_the_radii_of_its_colour_are(truth: KnownClips) -> None:
    """A reader answers in a slot per colour, and its truth is of that form."""
    reader = ClipReader(replace(SHAPE, width=32, layers=1))
    said = reader(torch.zeros(len(truth), SHAPE.channels, 5, 8, 12))
    for name in ("turn", "shift", "fov", "xi", "log_radius", "position"):
        assert getattr(said, name).shape == getattr(truth, name).shape, name
    assert said.kind.shape[:2] == truth.kind.shape
    there = truth.colour == 0
    bearing, distance = truth.position[there].unbind(-1)
    assert (bearing.abs() < 1).all()
    assert (distance > np.log(1.2)).all()
    assert (distance < np.log(10)).all()
    assert (truth.position[~there] == 0).all()


def test_other_cameras_have_errors_and_no_motion_has_no_correlation(truth: KnownClips) -> None:
    shuffled, still = errors_of(truth.with_next_cameras(), truth.exact()), errors_of(truth, truth.without_looking())
    assert shuffled.measures["rotation"].mean() > 1
    travelled = truth.shift[:, 1:].norm(dim=-1).mean().item()
    assert still.measures["metres"].mean() == pytest.approx(travelled, rel=1e-5)
    assert np.isnan(still.correlation("yaw").mean)


def test_a_turn_about_one_axis_is_found_on_that_axis(truth: KnownClips) -> None:
    """Yaw is about y, pitch about x, roll about z; x, y and z are the shift's."""
    said = truth.exact()
    for index, axis in enumerate(("pitch", "yaw", "roll")):
        other = replace(said, turn=said.turn.index_fill(-1, torch.tensor(index), 0.0))
        assert np.isnan(errors_of(truth, other).correlation(axis).mean)
        other = replace(said, shift=said.shift.index_fill(-1, torch.tensor(index), 0.0))
        assert np.isnan(errors_of(truth, other).correlation("xyz"[index]).mean)


def reading_of(truth: KnownClips, name: str, wrong: float = 0.0) -> Row:
    said = truth.exact()
    return Row(name, replace(said, log_radius=said.log_radius + wrong), np.ones(len(truth)), np.ones(len(truth)))


def page_of(truth: KnownClips, out: Path) -> str:
    """A row of two seeds that takes maps, and one that does not."""
    free, mapped = [reading_of(truth, "crepe", 0.2)] * 2, [reading_of(truth, "crepe", 0.1)] * 2
    real, families = reading_of(truth, "real"), [*FAMILIES, *FAMILIES, *FAMILIES[:2]]
    rows = [reading_of(truth, "no adapter"), *free]
    write_page(out, truth, truth, families, real, real, rows, mapped, "floor", "python score.py")
    return (out / "table.md").read_text()


def test_the_page_has_every_row(truth: KnownClips, tmp_path: Path) -> None:
    page = page_of(truth, tmp_path)
    assert page.count("| no adapter |") == 6
    assert page.count("| crepe, with a map |") == 8
    halfway = next(
        line for line in page.split("obey a map")[1].splitlines() if line.startswith("| crepe, with a map |")
    )
    assert " 0.200 [0.200, 0.200] ± 0 | 0 [0, 0] ± 0 | 0.500 [0.500, 0.500] ± 0 |" in halfway
    second = json.loads((tmp_path / "rows.json").read_text())["maps"]["crepe, with a map"][1]
    assert second["share_of_the_way"]["mean"] == pytest.approx(0.5, abs=1e-5)


def test_the_floor_of_a_map_is_beside_the_row_that_it_is_counted_from(truth: KnownClips, tmp_path: Path) -> None:
    """The row of real clips was counted from the films of whichever adapter came last, and did not say so."""
    near, far = (reading_of(truth, name, wrong) for name, wrong in (("near", 0.2), ("far", 0.4)))
    real = reading_of(truth, "real")
    families = [*FAMILIES, *FAMILIES, *FAMILIES[:2]]
    write_page(tmp_path, truth, truth, families, real, real, [near, far], [near, far], "floor", "python score.py")
    maps = json.loads((tmp_path / "rows.json").read_text())["maps"]
    for name, without in (("near", 0.2), ("far", 0.4)):
        (floor,) = maps[f"{name}, real clips of that layout"]
        assert floor["error_without"]["mean"] == pytest.approx(without, abs=1e-5)


def test_a_path_in_near_distances_forgets_the_scale(truth: KnownClips) -> None:
    said = truth.exact()
    twice = replace(said, shift=2 * said.shift, log_radius=said.log_radius + np.log(2))
    assert path_in_nears(truth, twice) == pytest.approx(0, abs=1e-5)
    assert path_in_nears(truth, replace(said, shift=2 * said.shift)).mean() > 0.1


def test_the_page_has_the_form_of_the_results_that_were_measured(truth: KnownClips, tmp_path: Path) -> None:
    """Headings, sentences and columns; the numbers are of other clips."""
    measured = (ROOT / "experiments" / "results" / "embedded" / "table.md").read_text()

    def form(page: str) -> list[str]:
        lines = page.splitlines()
        heads = [line for line, after in pairwise(lines) if after.startswith("| ---")]
        return heads + [line for line in lines[4:] if line and not line.startswith("|")]

    assert form(page_of(truth, tmp_path)) == form(measured)


def test_rows_of_several_days_become_one_page(truth: KnownClips, tmp_path: Path) -> None:
    """A record grows row by row and is read back; what another model, judge or training made is not today's."""
    real, obeys = reading_of(truth, "real"), reading_of(truth, "obeys", 0.1)
    found = row_numbers(truth, truth, real, real, reading_of(truth, "free", 0.2), obeys)
    numbers = {part: {name: vars(one) for name, one in all_.items()} for part, all_ in found.items()}
    made_by = {"model": "a", "judge": "b", "floor": "none", "clips": 8, "steps": 2, "batch": 1, "filming": {"steps": 2}}
    with_maps, without = "maps: depth_concat", "ucpe"
    Record.begun(tmp_path, made_by).add(with_maps, 0, "key", numbers)
    again = Record.begun(tmp_path, made_by)
    again.add(with_maps, 1, "key", numbers)
    again.add(without, 0, "key", {"camera": numbers["camera"]})
    last = Record.begun(tmp_path, made_by)
    assert [last.has(with_maps, seed, "key") for seed in range(3)] == [True, True, False]
    assert not last.has(with_maps, 0, "other key")
    page = (tmp_path / "table.md").read_text()
    assert page.count(f"| {with_maps} | 2 |") == 5
    assert page.count(f"| {without} | 1 |") == 2
    assert "0.500 [0.500, 0.500] ± 0 |" in page  # half of the way, in both
    assert Record.begun(tmp_path, made_by | {"model": "c"}).rows == {}


def test_the_estimators_training_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Weights, what the optimisers remember, and the step come back from safetensors and JSON."""

    def begin() -> tuple[ClipReader, list[torch.optim.Optimizer], dict[torch.nn.Parameter, str]]:
        torch.manual_seed(0)
        reader = ClipReader(ReaderShape(("a",), ("b",), ("c",), width=16, layers=1, heads=2, slot_layers=1))
        return reader, optimisers_of(reader), {parameter: name for name, parameter in reader.named_parameters()}

    def step(reader: ClipReader, optimisers: list[torch.optim.Optimizer]) -> None:
        sum(parameter.square().sum() for parameter in reader.parameters()).backward()
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()

    reader, optimisers, names = begin()
    step(reader, optimisers)
    saved = checkpoint_of(reader, optimisers, names, 1, argparse.Namespace(steps=3))
    save_checkpoint(tmp_path, saved, keep=1)
    assert not list(tmp_path.rglob("*.pt"))
    again, others, other_names = begin()
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert restore(found, again, others, other_names) == 1
    for one, two in ((reader, optimisers), (again, others)):
        step(one, two)
    for a, b in zip(reader.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_lesson_in_a_mirror_is_that_of_the_mirrored_clip() -> None:
    """The mirrored clip is rendered: its pixels flipped, its camera path and radii those of a scene with x for -x."""
    model, (clip,) = load_embedded(WEIGHTS), [world_clip(3, "val")]
    lesson = Lessons(model.encode(video_from_frames(clip.video)[None]), KnownClips.of([clip]))
    turned = mirrored(lesson, model.codec)
    other_side = torch.diag(torch.tensor([-1.0, 1.0, 1.0, 1.0]))
    path = other_side @ clip.cameras.world_from_camera @ other_side
    moved = {"video": clip.video.flip(2), "radius": clip.radius.flip(2), "valid": clip.valid.flip(2)}
    known = KnownClips.of([replace(clip, cameras=replace(clip.cameras, world_from_camera=path), **moved)])
    for name in ("turn", "shift", "log_radius", "known"):
        torch.testing.assert_close(getattr(turned.truth, name), getattr(known, name), atol=1e-4, rtol=1e-4)
    truly = model.encode(video_from_frames(clip.video.flip(2))[None])
    assert (turned.latents - truly).square().mean() < 0.05 * truly.square().mean()  # what the codec loses, twice
    again = mirrored(turned, model.codec)
    torch.testing.assert_close(again.truth.turn, lesson.truth.turn)
    assert (again.latents - lesson.latents).square().mean() < 0.05 * lesson.latents.square().mean()


def test_training_it_again_puts_every_file_into_the_package(tmp_path: Path) -> None:
    written = {stage.into for together in stages(tmp_path) for stage in together}
    assert written - {None} == set(WEIGHTS.parent.glob("embedded*.safetensors"))


def test_the_models_page_says_what_was_measured() -> None:
    measured = (ROOT / "experiments" / "results" / "embedded" / "table.md").read_text()
    summary = measured.split("## In short")[1].split("##")[0].strip()
    assert summary in (ROOT / "docs" / "embedded.md").read_text()


def test_rows_differ_in_what_they_are_called_after_and_in_nothing_else(tmp_path: Path) -> None:
    setting = Setting(EMBEDDED, tmp_path)
    first, *others = (setting.recipe_of(row) for row in ROWS.values())
    for other in others:
        changed = [line.split(":")[0] for line in differences(first, other)]
        assert changed
        assert all(line.startswith(("name", "adapter.", "mixforcing")) for line in changed), changed


def test_the_shipped_adapter_is_a_row_of_the_table_trained_longer(tmp_path: Path) -> None:
    """Its recipe trains what the row trains; how often a step is logged is each one's own."""
    trained = [Setting(EMBEDDED, tmp_path).recipe_of(row) for row in ROWS.values() if not row.filming]
    apart = [[line.split(":")[0] for line in differences(recipe(SHIPPED), other)] for other in trained]
    free = ("name", "every", "precision", "steps")
    assert sum(all(line.startswith(free) for line in lines) for lines in apart) == 1, apart
