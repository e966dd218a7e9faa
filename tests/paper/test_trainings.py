"""A row's training at the tiny scale: what it is known by, gone on with from elsewhere, and several side by side."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import BrokenBarrierError

import pytest
import torch

from curvedray.errors import InputError
from curvedray.inputs import read_tensors
from curvedray.locks import lock_folder
from curvedray.models.embedded.model import random_embedded, save_embedded
from curvedray.paper.catalogue import item
from curvedray.paper.experiment import Row
from curvedray.paper.listener import Listener
from curvedray.paper.rows import CREPE, UCPE, mix
from curvedray.paper.runner import runner_of
from curvedray.paper.scales import EMBEDDED, TINY, scale_named
from curvedray.paper.setting import Setting
from curvedray.paper.train import raise_reason, train_row, train_side_by_side
from curvedray.training.recipe import Recipe
from curvedray.training.start import check_run_folder


def test_a_training_is_known_by_its_labels_and_not_by_its_tables_name(tmp_path):
    """Two teachers' labels gave one key, so the second row took the first one's weights; and the placement table's
    middle row is the breakpoint table's K = 5, which was trained twice."""
    for name in ("unik3d", "unidepth"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.npz").write_text(name)
    places = {"labels": str(tmp_path / "unik3d"), "unidepth-labels": str(tmp_path / "unidepth")}
    wan = Setting(scale_named("wan"), tmp_path, places)
    rows = runner_of(item("alternate-teacher")).experiment.rows_at(wan.scale)
    assert wan.training_key(rows["UniK3D"]) != wan.training_key(rows["UniDepthV2"])
    placement, breakpoints = (runner_of(item(name)).experiment.rows for name in ("placement", "breakpoints"))
    for setting in (wan, Setting(TINY, tmp_path)):
        assert setting.training_key(placement["middle 10"]) == setting.training_key(breakpoints["K=5"])
        assert setting.training_key(placement["last 10"]) != setting.training_key(breakpoints["K=5"])


def test_a_new_decoder_is_another_film_and_no_other_training(tmp_path):
    """What a training sees of an embedded model is all but its decoder; its file's times do not count either."""
    model, settings = random_embedded(), []
    assert model.codec.paint is not None
    for number, layer in enumerate((None, model.codec.paint[0], model.transformer.blocks[0].attn1.to_q)):
        if layer is not None:
            layer.weight.data.add_(1)
        path = tmp_path / f"{number}.safetensors"
        save_embedded(model, path)
        settings.append(Setting(replace(EMBEDDED, model=str(path)), tmp_path))
    first, painted, trained = settings
    assert len({one.model_key for one in settings}) == 3
    assert first.training_key(CREPE) == painted.training_key(CREPE) != trained.training_key(CREPE)
    before = first.model_key
    os.utime(tmp_path / "0.safetensors", (0, 0))
    assert replace(first).model_key == before


def test_the_precision_of_a_machine_does_not_make_another_row():
    """Rows are compared whichever machine trained them; all else of a recipe makes another."""
    row = mix()
    plain, quick = (Setting(TINY, Path("store"), overrides=(f"precision={i}",)) for i in ("no", "bf16"))
    assert plain.base.precision != quick.base.precision
    assert plain.training_key(row) == quick.training_key(row)
    assert plain.training_key(row) != Setting(TINY, Path("store"), overrides=("lr=0.5",)).training_key(row)


def test_an_option_that_came_later_and_is_off_changes_no_key(monkeypatch, tmp_path):
    """`ray_map`, off, made every row that was trained before it another one, to be trained again."""
    setting = Setting(TINY, tmp_path)
    before, recipe = setting.training_key(CREPE), setting.recipe_of(CREPE)
    assert setting.training_key(Row({"adapter.ray_map": True})) != before
    assert setting.training_key(Row({"adapter.orientation": False})) != before
    record = recipe.to_json()
    monkeypatch.setattr(Setting, "recipe_of", lambda *_: recipe)
    keys = []
    for value in (False, None, True):
        later = record | {"adapter": record["adapter"] | {"of_tomorrow": value}}
        monkeypatch.setattr(Recipe, "to_json", lambda _, later=later: dict(later))
        keys.append(setting.training_key(CREPE))
    assert keys[0] == keys[1] == before != keys[2]


@pytest.mark.whole
def test_rows_trained_side_by_side_are_those_trained_in_turn(tmp_path):
    """Two processes that make one cache, and a row that two tables ask for."""
    here, there = (Setting(TINY, tmp_path / name) for name in ("here", "there"))
    wanted = [("crepe", CREPE, 0), ("again", CREPE, 0), ("ucpe", UCPE, 1)]
    made = train_side_by_side(there, wanted, processes=2)
    assert made["crepe", 0] == made["again", 0] != made["ucpe", 1]
    for name, row, seed in wanted:
        alone = train_row(here, name, row, seed, Listener())
        side_by_side = made[name, seed]
        assert alone is not None
        assert side_by_side is not None
        one, other = (read_tensors(path)[0] for path in (alone, side_by_side))
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)  # this process may run on more threads


LONG = """
from pathlib import Path
from curvedray.paper.rows import CREPE
from curvedray.paper.scales import TINY
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_side_by_side
train_side_by_side(Setting(TINY, Path.cwd(), overrides=("steps=100000",)), [("crepe", CREPE, 0)], 1)
"""


@pytest.mark.whole
def test_trainings_side_by_side_end_with_the_command_that_began_them(tmp_path):
    """When it was killed its workers trained on, unseen, beside those of the next command."""
    command = subprocess.Popen([sys.executable, "-c", LONG], cwd=tmp_path)
    out = Setting(TINY, tmp_path, overrides=("steps=100000",)).trained_file(CREPE).parent
    try:
        until(lambda: (out / "log.jsonl").is_file() and "loss" in (out / "log.jsonl").read_text())
        with pytest.raises(InputError, match="nobody else at work"):
            check_run_folder(out)
    finally:
        command.kill()
        command.wait()
    until(lambda: is_free(out))


def until(holds, seconds=300):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)


def is_free(folder):
    try:
        check_run_folder(folder)
    except InputError:
        return False
    return True


@pytest.mark.whole
def test_a_row_that_cannot_be_trained_stops_those_that_wait(tmp_path):
    """They were all trained first, hours at a desk, and then the mistake was said; later those that the pool had
    taken up already, which it cannot cancel."""
    setting = Setting(TINY, tmp_path)
    rows = [("crepe", CREPE, 0), *(("ucpe", UCPE, seed) for seed in range(4))]
    with lock_folder(setting.trained_file(CREPE).parent, "it", ""), pytest.raises(InputError, match="nobody else"):
        train_side_by_side(setting, rows, processes=1)
    assert not any(setting.trained_file(UCPE, seed).parent.exists() for seed in range(4))


def test_the_reason_why_a_cache_could_not_be_made_is_said():
    """Where one share failed the user saw BrokenBarrierError, which the others raise who wait for it."""
    waited, failed, made = (Future[None]() for _ in range(3))
    waited.set_exception(BrokenBarrierError())
    failed.set_exception(InputError("clips", "some", "none"))
    made.set_result(None)
    with pytest.raises(InputError, match="clips"):
        raise_reason([waited, failed, made])
    with pytest.raises(BrokenBarrierError):
        raise_reason([waited, made])
    raise_reason([made])


@pytest.mark.whole
def test_a_stopped_row_goes_on_from_another_path_in_its_own_precision(tmp_path, monkeypatch):
    """Its folder's name leaves both out, so it was found, and then refused as another recipe's."""
    monkeypatch.chdir(tmp_path)
    here = Setting(TINY, Path("store"), overrides=("steps=4", "precision=bf16", "every.checkpoint=1"))

    def stop(done, total, words):
        if done > 2 and "cache" not in words:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_row(here, "crepe", CREPE, 0, Listener(tick=stop))
    out = here.trained_file(CREPE).parent
    assert list((out / "checkpoints").glob("step-*"))
    there = Setting(TINY, tmp_path / "store", overrides=("steps=4", "precision=no"))
    made = train_row(there, "crepe", CREPE, 0, Listener())
    assert made.resolve() == here.trained_file(CREPE).resolve()
    assert Recipe.from_json(json.loads((out / "recipe.json").read_text())).precision == "bf16"
