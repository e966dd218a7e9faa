"""An experiment at the tiny scale: every stage, files named by what made them, kills at every stage, nothing twice."""

import json
import os
import signal
from dataclasses import replace

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
from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.estimators.protocol import UpAndLens
from curvedray.evaluate.scores import Failure
from curvedray.generation.sampling import noise_for
from curvedray.paper import clips
from curvedray.paper.catalogue import item
from curvedray.paper.clips import make_test_clips
from curvedray.paper.experiment import Experiment, Row, TestSet
from curvedray.paper.families import FAMILIES, belongs, clips_of_family
from curvedray.paper.film import film_row, head_radii
from curvedray.paper.flow_losses import LEVELS, flow_losses
from curvedray.paper.heads import NOISE_SEED, encoded_clips
from curvedray.paper.kept_estimates import KeptEstimates, read_estimate, write_estimate
from curvedray.paper.listener import Listener
from curvedray.paper.rows import CREPE, NONE, mix
from curvedray.paper.run import Table
from curvedray.paper.runner import write_page
from curvedray.paper.scales import TINY
from curvedray.paper.setting import Setting
from curvedray.paper.teachers import TEACHERS, TaughtClips
from curvedray.paper.train import train_row
from curvedray.radial.map import read_radial_map
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


def test_of_two_runs_that_make_the_same_clips_the_second_goes_on(tmp_path, monkeypatch):
    """It died when it had made its own: the folder was there meanwhile, and not empty."""
    setting, wanted = Setting(TINY, tmp_path), TestSet(most=1)
    real = clips.write_clips

    def write_both(*words):
        monkeypatch.setattr(clips, "write_clips", real)
        make_test_clips(setting, wanted)  # the other run's, made while this one's are
        real(*words)

    monkeypatch.setattr(clips, "write_clips", write_both)
    made = make_test_clips(setting, wanted)
    assert len(made.clips) == 1
    assert [path.name for path in made.folder.parent.iterdir()] == [made.key]


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
            radius, known = torch.linspace(-1, 2, 24), torch.arange(24) % 4 > 0
            latents = torch.zeros(1, 4, 1, 1)  # of four frames, which see six tokens each
            self.clips.append(Clip(one.id, "", latents, torch.zeros(1, 1), one.cameras, radius, known))

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
    seen = few[0].radius_known  # its middle was once that of all tokens, those without a distance too
    assert (biased[0].log_radius - exact)[seen].mean() == pytest.approx(0.26, abs=1e-5)
    offsets = (TaughtClips(few, "jittery")[0].log_radius - exact).unflatten(0, (few[0].latents.shape[1], -1))
    assert (offsets.std(1) < 1e-5).all()  # a whole frame is off by the same
    assert offsets[:, 0].std() > 0.02
    assert biased[0].log_radius.std() / exact.std() == pytest.approx(1.3, abs=1e-5)
    pinhole = TaughtClips(few, "pinhole-only")
    for index in range(len(few)):
        bent = bool(few[index].cameras.lens.xi.max() > 0)
        assert bool(pinhole[index].radius_known.any()) is not bent
    assert len({TaughtClips(few, name).fingerprint for name in TEACHERS}) == len(TEACHERS)


def test_families_share_no_clip_that_they_should_not(few):
    trained = clips_of_family(few, "wide, turning")
    assert 0 < len(trained) < len(few)
    for family in ("fisheye", "pinhole"):
        assert not any(belongs(trained[i].cameras, family) for i in range(len(trained)))
    for index in range(len(few)):
        cameras = few[index].cameras
        assert belongs(cameras, "pinhole") is not belongs(cameras, "non-pinhole")
    assert belongs(footage(0).cameras, "pinhole")
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
