"""The paper's registry: its numbers are as printed, its known oddities show, and what cannot run says so."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.statistics import Interval, average_rank
from curvedray.formats import read_cameras
from curvedray.models.embedded.model import EmbeddedModel
from curvedray.paper import items as paper
from curvedray.paper import values as paper_values
from curvedray.paper.experiment import Experiment, check_ready, load
from curvedray.paper.run import run_experiment, with_folder
from curvedray.paper.tables import papers_table, side_by_side


def as_dicts(values):
    columns, rows = values
    return {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()}


def test_every_table_is_whole_and_every_column_has_a_direction():
    assert len(paper.ITEMS) == len({entry.name for entry in paper.ITEMS}) == 22
    for entry in paper.ITEMS:
        assert entry.kind in ("table", "figure")
        if entry.values:
            columns, rows = entry.values
            assert all(len(row) == len(columns) for row in rows.values())
            assert all(entry.direction(column) != "neither" or column == "IS Std." for column in columns)


def test_the_same_number_is_the_same_in_every_table():
    overall, injection = as_dicts(paper_values.OVERALL), as_dicts(paper_values.INJECTION)
    for method in ("ucpe", "crepe"):
        for metric in ("CamMC", "RotErr", "TransErr"):
            assert overall[method][metric] == injection[method][metric]
    short, full = as_dicts(paper_values.BREAKPOINTS), as_dicts(paper_values.BREAKPOINTS_FULL)
    for k in ("K=2", "K=5", "K=7"):
        assert short[k]["CamMC"] == full[k]["CamMC"]
        assert short[k]["RotErr"] == pytest.approx(full[k]["RotErr"], abs=0.006)


def test_the_merged_mean_lies_outside_its_subsets():
    lenses, overall = as_dicts(paper_values.LENSES), as_dicts(paper_values.OVERALL)
    for method, possible in (("ucpe", False), ("crepe", True), ("recammaster", True)):
        parts = [lenses[f"{subset} | {method}"]["CamMC"] for subset in ("pinhole", "non-pinhole")]
        assert (min(parts) <= overall[method]["CamMC"] <= max(parts)) is possible


def test_the_papers_ranking_of_k_survives_our_ranks():
    rows = as_dicts(paper_values.BREAKPOINTS_FULL)
    entry = paper.item("breakpoints-full")
    metrics = [metric for metric in rows["K=2"] if metric != "Avg. Rank"]
    ranks, counted = average_rank(rows, {metric: entry.direction(metric) for metric in metrics})
    assert len(counted) == 19
    assert min(ranks, key=ranks.get) == "K=5"
    assert sorted(ranks, key=ranks.get) == sorted(rows, key=lambda k: rows[k]["Avg. Rank"])


def test_the_papers_table_marks_the_best_of_each_subset():
    table = papers_table(paper.item("lenses"))
    assert table.count("**19.02**") == 1
    assert table.count("**15.33**") == 1
    assert "**54.56**" not in table
    assert "21.87" in table  # the note
    with pytest.raises(InputError, match="numbers"):
        papers_table(paper.item("teaser"))


def near(mean):
    return Interval(mean, mean - 0.1, mean + 0.1)


def test_ours_beside_the_papers_says_whether_the_order_is_the_same():
    entry = paper.item("breakpoints")
    ours = {
        f"K={k}": {"CamMC": near(c), "RotErr": near(r)} for k, c, r in ((2, 3.0, 2.0), (3, 2.0, 1.0), (5, 1.0, 1.5))
    }
    page = side_by_side(entry, ours, "Embedded model, 300 steps, lr 1e-3.")
    assert "2.00 [1.90, 2.10] (paper 12.31)" in page
    assert "**1.00 [0.900, 1.10]** (paper 13.45)" in page
    assert "RotErr: the paper's order (K=3, K=5, K=2)" in page
    assert "CamMC: **not the paper's order**. Ours K=5, K=3, K=2; the paper's K=3, K=5, K=2." in page
    assert "Average rank over 2 metrics (CamMC, RotErr)" in page
    assert "K=3 has the best pose" in page


def test_subsets_are_ordered_apart():
    ours = {
        f"{subset} | {method}": {"CamMC": near(value), "Rotation": near(value)}
        for subset in ("pinhole", "non-pinhole")
        for method, value in (("none", 9.0), ("recammaster", 3.0), ("ucpe", 2.0), ("crepe", 1.0))
    }
    page = side_by_side(paper.item("lenses"), ours, "how")
    assert "CamMC, pinhole: the paper's order (crepe, ucpe, recammaster)" in page
    assert "CamMC, non-pinhole: the paper's order" in page
    assert "9.00 [8.90, 9.10] |" in page  # a row that the paper does not have stands alone
    assert {line.count("|") for line in page.splitlines() if line.startswith("|")} == {4}  # a name is one cell


@pytest.mark.parametrize(
    ("name", "scale", "words"),
    [
        ("overall", "embedded", "needs Wan"),
        ("lenses", "wan", "scale wan"),
        ("nothing", "embedded", "lenses"),
        ("lenses", "x", "scale"),
    ],
)
def test_what_cannot_run_says_so_in_one_sentence(name, scale, words):
    with pytest.raises(InputError, match=words):
        load(name, scale)


def test_what_runs_here_is_told_and_the_rest_says_why(tmp_path, monkeypatch):
    lenses = paper.item("lenses")
    monkeypatch.setattr("curvedray.models.embedded.model.WEIGHTS", tmp_path / "embedded.safetensors")
    assert lenses.status == "no: the embedded model's weights are not in this package"
    with pytest.raises(InputError, match="weights are not in this package"):
        check_ready("lenses")
    (tmp_path / "embedded.safetensors").touch()
    monkeypatch.setattr("curvedray.evaluate.estimators.embedded.WEIGHTS", tmp_path / "estimator.safetensors")
    assert lenses.status == "no: the embedded estimator's weights are not in this package"
    (tmp_path / "estimator.safetensors").touch()
    assert lenses.status == "yes: --scale embedded"
    assert paper.item("overall").status.startswith("no: it needs Wan")


def test_the_experiments_have_the_papers_rows():
    lenses, breakpoints = (load(name, "embedded") for name in ("lenses", "breakpoints"))
    assert list(lenses.rows) == ["none", "recammaster", "ucpe", "crepe"]
    assert [(name, row.adapter.breakpoints, row.radial_weight) for name, row in breakpoints.rows.items()] == [
        (f"K={k}", k, 0.0) for k in (1, 2, 3, 5, 7)
    ]
    with pytest.raises(InputError, match=r"lr: 0\.1"):
        Experiment(rows={"a": replace(lenses.rows["ucpe"], lr=0.1), "b": lenses.rows["crepe"]})


def test_every_table_with_a_scale_has_its_experiment_in_the_package():
    for entry in paper.ITEMS:
        for scale in entry.scales:
            assert load(entry.name, scale).rows


def test_a_rows_folder_does_not_depend_on_how_its_path_is_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = load("lenses", "embedded").rows["crepe"]
    typed = [with_folder(row, Path(text))[1] for text in ("runs", "./runs/", str(tmp_path / "runs"))]
    assert len({folder.resolve() for folder in typed}) == 1
    assert with_folder(replace(row, steps=7), Path("runs"))[1] != typed[0]


class Nearly:
    """An estimator that turns every frame a little, by a number that depends on the video."""

    name, version, floor, every_frame = "nearly", "1", "none", False

    def __init__(self, folder):
        self.folder = folder

    def estimate(self, video, lens=None, clip=""):
        path = read_cameras(self.folder / f"{clip}.json")[::4].world_from_camera.double().numpy()
        turn = Rotation.from_euler("y", float(video.mean()) / 10, degrees=True).as_matrix()
        path[1:, :3, :3] = path[1:, :3, :3] @ turn
        return Estimate(poses=path, found=np.ones(len(path), dtype=bool))


@pytest.mark.whole
def test_an_experiment_trains_generates_scores_and_resumes(tmp_path, monkeypatch):
    experiment = load("lenses", "embedded")
    experiment = replace(experiment, rows={name: experiment.rows[name] for name in ("none", "ucpe", "crepe")}, clips=1)
    experiment = experiment.changed(["model=random", "steps=1", "batch=1", "data.clips=1", "every.validate=0", "ema=0"])
    said: list[str] = []
    ticks: list[tuple[int, int, str]] = []
    released: list[dict[str, bool]] = []
    monkeypatch.setattr(EmbeddedModel, "release", lambda self, **which: released.append(which))
    first = run_experiment(
        *(paper.item("lenses"), experiment, Nearly(tmp_path / "cameras"), tmp_path),
        said.append,
        lambda *tick: ticks.append(tick),
    )
    assert {words.split()[0] for _, _, words in ticks} == {"clips", "loss", "generating"}  # nobody waits in silence
    assert released == 2 * [{"text": True, "vae": True}]  # encoders take no room while a row is trained
    assert "Every trained row: 1 steps of batch 1" in first
    assert "Differences from ucpe, clip by clip" in first
    assert "| crepe | Rotation ↓ | 1 |" in first
    assert len([line for line in said if line.split(": ")[0] in experiment.rows]) == 9
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["failed"] == {"none": [], "ucpe": [], "crepe": []}
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mp4")}
    assert len(files) == 3
    assert run_experiment(paper.item("lenses"), experiment, Nearly(tmp_path / "cameras"), tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mp4")} == files


def test_the_list_is_readable_at_eighty_columns():
    shown = CliRunner().invoke(app, ["paper", "list"], env={"COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    for entry in paper.ITEMS:
        assert f"{entry.name}  {entry.title} ({entry.kind})" in shown  # never broken into slivers
    assert shown.count("runs here: curvedray paper run") == sum(bool(entry.scales) for entry in paper.ITEMS)


def test_hours_of_training_are_announced_before_they_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["paper", "run", "lenses", "steps=700", "-o", "elsewhere"]).exception
    assert isinstance(refused, InputError)
    for words in ("--scale embedded", "3 rows of 700 steps", "hours on two cores", "writes to elsewhere"):
        assert words in str(refused)
    assert not list(tmp_path.iterdir())


def test_the_commands():
    listed = CliRunner().invoke(app, ["paper", "list", "--json"])
    assert listed.exit_code == 0
    rows = json.loads(listed.stdout)
    assert {row["name"] for row in rows} >= {"lenses", "breakpoints", "overall"}
    assert all(row["here"] for row in rows)
    assert "breakpoints" in CliRunner().invoke(app, ["paper", "list"]).stdout
    shown = CliRunner().invoke(app, ["paper", "show", "breakpoints", "--json"])
    assert json.loads(shown.stdout)["rows"]["K=3"]["CamMC"] == 12.31
    assert "12.31" in CliRunner().invoke(app, ["paper", "show", "breakpoints"]).stdout
