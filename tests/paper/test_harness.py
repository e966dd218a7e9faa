"""An experiment at the tiny scale: every stage, files named by what made them, kills at every stage, nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import footage
from train_tiny import start_child, wait_for
from typer.testing import CliRunner

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.adapter.file import save_adapter
from curvedray.cameras import Cameras, Lens
from curvedray.cli import app
from curvedray.data.clips import Clip
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.estimators.protocol import UpAndLens
from curvedray.evaluate.scores import Failure
from curvedray.generation.sampling import noise_for
from curvedray.inputs import read_tensors
from curvedray.locks import lock_folder
from curvedray.models.embedded.model import random_embedded, save_embedded
from curvedray.paper.catalogue import item
from curvedray.paper.clips import make_test_clips
from curvedray.paper.experiment import Experiment, Row, TestSet
from curvedray.paper.families import FAMILIES, belongs, clips_of_family
from curvedray.paper.film import film_row, head_radii
from curvedray.paper.flow_losses import LEVELS, flow_losses
from curvedray.paper.heads import NOISE_SEED, encoded_clips
from curvedray.paper.kept_estimates import KeptEstimates, read_estimate, write_estimate
from curvedray.paper.listener import Listener
from curvedray.paper.rows import CREPE, NONE, UCPE, mix
from curvedray.paper.run import Table
from curvedray.paper.runner import runner_of, write_page
from curvedray.paper.scales import EMBEDDED, TINY, scale_named
from curvedray.paper.setting import Setting
from curvedray.paper.teachers import TEACHERS, TaughtClips
from curvedray.paper.train import train_row, train_side_by_side
from curvedray.radial.map import read_radial_map
from curvedray.training.start import check_run_folder
from curvedray.world.world import world_clip

SMALL = Experiment(
    rows={"none": NONE, "crepe-mix": mix(map="exact", sigma=0.2)},
    tests={"": TestSet(family="non-pinhole", most=1)},
    baseline="none",
    maps=True,
    radii=True,
)
STAGES = ("/cache/", "/trained/", "/tests/", "/videos/", "/estimates/", "/scores/", "/losses/", "/adherence/")


def run_small(store, kill_at=""):
    """Run the small experiment; killed, as by kill -9, when the first file of a stage is about to get its name."""
    torch.set_num_threads(1)
    if kill_at:
        real = os.replace

        def replace_or_die(source, target, **options):
            if kill_at in str(target):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(source, target, **options)

        os.replace = replace_or_die  # type: ignore[assignment]
    entry = item("adherence")
    page = Table(SMALL).run(entry, Setting(TINY, store, clips=1), Listener())
    write_page(page, store / entry.name)


@pytest.mark.whole
@pytest.mark.parametrize("stages", [STAGES[3:4], pytest.param(STAGES, marks=pytest.mark.slow)], ids=["filming", "all"])
def test_a_run_killed_at_its_stages_goes_on_and_ends_whole(stages, tmp_path):
    store = tmp_path / "store"
    for stage in stages:
        assert wait_for(start_child(run_small, store, stage)) == -signal.SIGKILL, stage
        assert not (store / "adherence" / "results.json").exists()
    assert wait_for(start_child(run_small, store)) == 0
    record = json.loads((store / "adherence" / "results.json").read_text())
    assert set(record["cells"]) == {"none", "crepe-mix"}
    assert {"RotErr", "k1", "Gravity", "AbsRel (token)", "SSI-L1", "Words", "Flow loss"} <= set(
        record["cells"]["crepe-mix"]
    )
    assert record["rows"]["crepe-mix"]["sigma"] == 0.2
    page = (store / "adherence" / "table.md").read_text()
    assert "curvedray paper run adherence --scale tiny --clips 1" in page
    assert "Differences from none, clip by clip" in page
    files = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    left = [path for path in files if path.name.startswith(".")]
    assert wait_for(start_child(run_small, store)) == 0
    after = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    redone = {path for path in files if after.get(path) != files[path]} - set(left)
    assert {path.parent.name for path in redone} <= {"adherence"}  # all but the page was there


def test_a_flow_loss_is_that_of_the_real_clip_in_its_own_noise(tmp_path):
    """Against the formula, clip by clip. An adapter whose output is still zero changes nothing; any other does, and so
    does a map."""
    setting = Setting(TINY, tmp_path)
    tests = make_test_clips(setting, TestSet(most=2))
    model = setting.open_model()
    adapter = Adapter(model.transformer, AdapterConfig(query_rotation=True).fitted_to(setting.grid))
    adapter.accepts_radial_maps = True
    save_adapter(adapter, tmp_path / "zero.safetensors")
    for branch in adapter.blocks:
        torch.nn.init.normal_(branch.out_proj.weight)
    save_adapter(adapter, tmp_path / "other.safetensors")
    rows = {
        "none": (NONE, None),
        "zero": (CREPE, tmp_path / "zero.safetensors"),
        "other": (CREPE, tmp_path / "other.safetensors"),
        "map": (mix(map="exact"), tmp_path / "other.safetensors"),
    }
    found = {name: flow_losses(setting, row, file, tests, Listener()) for name, (row, file) in rows.items()}
    for number, clip in enumerate(tests.clips):
        batch = encoded_clips(setting, model, tests, [clip])
        noise = noise_for(model, setting.grid, NOISE_SEED + number)[None]
        errors = []
        for level in LEVELS:
            shown = (1 - level) * batch.latents + level * noise
            guess = model.velocity(shown, torch.tensor([level]), batch.text).detach()
            errors.append((guess - (noise - batch.latents)).square().mean())
        np.testing.assert_allclose(found["none"][clip.id], np.mean(errors), rtol=1e-4)
        np.testing.assert_allclose(found["zero"][clip.id], found["none"][clip.id], rtol=1e-5)
        assert len({round(found[name][clip.id], 6) for name in ("none", "other", "map")}) == 3


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
    """They were all trained first, hours at a desk, and then the mistake was said."""
    setting = Setting(TINY, tmp_path)
    rows = [("crepe", CREPE, 0), *(("ucpe", UCPE, seed) for seed in range(4))]
    with lock_folder(setting.trained_file(CREPE).parent, "it", ""), pytest.raises(InputError, match="nobody else"):
        train_side_by_side(setting, rows, processes=1)
    assert not setting.trained_file(UCPE, 3).exists()


@pytest.mark.whole
def test_a_rows_videos_are_those_of_its_list_of_requests(tmp_path):
    """What the harness filmed, `curvedray generate --requests` takes for its own: the same cameras, maps, settings."""
    setting = Setting(TINY, tmp_path, clips=1)
    row, tests = mix(map="noisy"), make_test_clips(setting, TestSet(most=1))
    weights = train_row(setting, "noisy", row, 0, Listener())
    folder = film_row(setting, "noisy", row, weights, tests, Listener())
    (clip,) = tests.clips
    (line,) = map(json.loads, (folder / "requests.jsonl").read_text().splitlines())
    assert line["name"] == clip.id
    asked = read_radial_map(line["radial"])
    exact = tests.map(clip).on(setting.grid)[0].mu
    off = asked.on(setting.grid)[0].mu - exact
    known = asked.on(setting.grid)[1]
    assert 0.1 < off[known].std() < 0.5  # the row's teacher is a noisy one
    assert head_radii(folder / f"{clip.id}.mp4").shape == tuple(asked.radius.shape)
    words = ["--model", TINY.model, "--adapter", str(weights), "-o", str(folder), "--json"]
    again = CliRunner().invoke(app, ["generate", "--requests", str(folder / "requests.jsonl"), *words])
    assert again.exception is None, again.exception
    assert json.loads(again.stdout)["resumed"] == 1


@pytest.fixture
def estimate():
    up = np.tile([0.0, -1.0, 0.0], (3, 1))
    return Estimate(
        poses=np.tile(np.eye(4), (3, 1, 1)),
        found=np.array([True, False, True]),
        view=UpAndLens(up, Lens.from_fov(torch.tensor(120.0, dtype=torch.float64), 0.5, 48, 32)),
        radial=np.ones((3, 4, 6)),
        note="reads as desert",
        inliers=7.0,
    )


def test_an_estimate_comes_back_as_it_was(tmp_path, estimate):
    write_estimate(estimate, tmp_path / "a.safetensors")
    back = read_estimate(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(back.poses, estimate.poses)
    np.testing.assert_array_equal(back.found, estimate.found)
    np.testing.assert_array_equal(back.view.up, estimate.view.up)
    assert back.view.lens.xi.item() == estimate.view.lens.xi.item()
    assert (back.note, back.inliers, back.suspect, back.reprojection) == ("reads as desert", 7.0, "", None)
    write_estimate(Failure("too dark", "a"), tmp_path / "b.safetensors")
    assert read_estimate(tmp_path / "b.safetensors") == Failure("too dark", "a")


def test_a_judge_is_asked_once_for_each_video_lens_and_version(tmp_path, estimate):
    class Judge:
        name, version, floor, every_frame, asked = "judge", "1", "none", True, 0

        def estimate(self, video, lens=None, clip=""):
            self.asked += 1
            return estimate

    judge = Judge()
    kept, video = KeptEstimates(judge, tmp_path), np.zeros((3, 4, 6, 3), dtype=np.uint8)
    for _ in range(2):
        kept.estimate(video, Lens.from_fov(90.0, 0.0, 6, 4), "a")
    assert judge.asked == 1
    kept.estimate(video, Lens.from_fov(100.0, 0.0, 6, 4), "a")
    kept.estimate(video + 1, Lens.from_fov(90.0, 0.0, 6, 4), "a")
    assert judge.asked == 3
    next(tmp_path.glob("*.safetensors")).write_bytes(b"damaged")
    judge.version = "2"
    kept.estimate(video, Lens.from_fov(90.0, 0.0, 6, 4), "a")
    assert judge.asked == 4


class FewClips:
    """Encoded clips of the world's first cameras, through pinholes and bent lenses, with radii."""

    empty_text, fingerprint = torch.zeros(1, 1), "few"

    def __init__(self):
        self.clips = []
        for index in range(12):
            one = world_clip(index, "val", 5, 16, 24)
            radius = torch.linspace(-1, 2, 24)
            known = torch.ones(24, dtype=torch.bool)
            self.clips.append(Clip(one.id, "", torch.zeros(1, 1, 1, 1), torch.zeros(1, 1), one.cameras, radius, known))

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index]

    def name_of(self, index):
        return self.clips[index].id


@pytest.fixture(scope="module")
def few():
    return FewClips()


def test_worse_teachers_are_worse_in_the_way_they_say(few):
    exact = few[0].log_radius
    noisy, biased = (TaughtClips(few, name) for name in ("noisy", "biased"))
    assert (noisy[0].log_radius - exact).std() == pytest.approx(0.3, abs=0.15)
    assert torch.equal(noisy[0].log_radius, noisy[0].log_radius)  # the same clip is taught the same
    assert not torch.equal(noisy[0].log_radius, noisy[1].log_radius)
    assert (biased[0].log_radius - exact).mean() == pytest.approx(0.26, abs=1e-5)
    assert biased[0].log_radius.std() / exact.std() == pytest.approx(1.3, abs=1e-5)
    pinhole = TaughtClips(few, "pinhole-only")
    for index in range(len(few)):
        bent = bool(few[index].cameras.lens.xi.max() > 0)
        assert bool(pinhole[index].radius_known.any()) is not bent
    assert len({TaughtClips(few, name).fingerprint for name in TEACHERS}) == len(TEACHERS)


def test_families_share_no_clip_that_they_should_not(few):
    trained = clips_of_family(few, "wide, turning")
    assert 0 < len(trained) < len(few)
    for family in ("fisheye, translating", "pinhole, translating"):
        assert not any(belongs(trained[i].cameras, family) for i in range(len(trained)))
    for index in range(len(few)):
        cameras = few[index].cameras
        assert belongs(cameras, "pinhole") is not belongs(cameras, "non-pinhole")
    assert belongs(footage(0).cameras, "pinhole, translating")
    assert set(FAMILIES) >= {"all"}


def test_a_turn_is_seen_whatever_the_axis():
    still = Cameras(Lens.from_fov(100.0, 0.5, 24, 16), torch.eye(4).repeat(3, 1, 1))
    assert not belongs(still, "wide, turning")
    for axis in range(3):
        turn = torch.zeros(3)
        turn[axis] = 0.3
        x, y, z = turn
        poses = torch.eye(4).repeat(3, 1, 1)
        poses[2, :3, :3] = torch.matrix_exp(torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]]))
        assert belongs(replace(still, world_from_camera=poses), "wide, turning")


def test_a_row_may_change_what_a_table_compares_and_nothing_else():
    with pytest.raises(ValueError, match="lr"):
        Row({"lr": 0.1})
    with pytest.raises(ValueError, match="rows among"):
        Experiment(rows={"a": Row()}, baseline="b")


def test_the_precision_of_a_machine_does_not_make_another_row():
    """Rows are compared whichever machine trained them; all else of a recipe makes another."""
    row = mix()
    plain, quick = (Setting(TINY, Path("store"), overrides=(f"precision={i}",)) for i in ("no", "bf16"))
    assert plain.base.precision != quick.base.precision
    assert plain.training_key(row) == quick.training_key(row)
    assert plain.training_key(row) != Setting(TINY, Path("store"), overrides=("lr=0.5",)).training_key(row)
