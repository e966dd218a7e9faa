"""The paper's registry: its numbers are as printed, its oddities show, and every item says what it takes."""

import json

import pytest
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.evaluate.statistics import average_rank
from curvedray.paper import catalogue as paper
from curvedray.paper import values as paper_values
from curvedray.paper.needs import NEEDS, parsed_places
from curvedray.paper.plan import plan_of
from curvedray.paper.run import Table
from curvedray.paper.runner import Runner, runner_of
from curvedray.paper.scales import EMBEDDED, SCALES, WAN, scale_named
from curvedray.paper.setting import Setting
from curvedray.paper.tables import papers_table


def as_dicts(values):
    columns, rows = values
    return {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()}


def test_every_table_is_whole_and_every_column_has_a_direction():
    assert len(paper.ITEMS) == len({entry.name for entry in paper.ITEMS})
    for entry in paper.ITEMS:
        if entry.values:
            columns, rows = entry.values
            assert all(len(row) == len(columns) for row in rows.values())
            assert all(entry.direction(column) != "neither" or column in ("IS Std.", "width") for column in columns)


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


def test_every_item_has_a_runner_that_knows_what_it_takes_at_every_scale(tmp_path):
    tiny = Setting(SCALES["tiny"], tmp_path)
    for entry in paper.ITEMS:
        runner = runner_of(entry)
        assert isinstance(runner, Runner)
        for scale in SCALES.values():
            assert set(runner.needs_at(scale)) <= set(NEEDS)
        assert runner.work(tiny).done == 0
        if isinstance(runner, Table) and entry.values:  # what the paper names and we measure is named alike
            settings = {name.rpartition(" | ")[2] for name in entry.values[1]}
            assert settings & set(runner.experiment.rows)


def test_rows_that_are_trained_alike_are_trained_once(tmp_path):
    setting = Setting(EMBEDDED, tmp_path)
    work = {
        name: set(runner_of(paper.item(name)).work(setting).trainings) for name in ("lenses", "overall", "injection")
    }
    assert work["lenses"] == work["overall"]
    assert len(work["lenses"] & work["injection"]) == 2
    more = Setting(EMBEDDED, tmp_path, seeds=3)
    assert len(runner_of(paper.item("lenses")).work(more).trainings) == 3 * len(work["lenses"])
    other = Setting(EMBEDDED, tmp_path, overrides=("lr=1e-3",))
    assert not set(runner_of(paper.item("lenses")).work(other).trainings) & work["lenses"]


def test_the_breakpoint_rows_are_the_papers(tmp_path):
    setting, runner = Setting(EMBEDDED, tmp_path), runner_of(paper.item("breakpoints"))
    recipes = {name: setting.recipe_of(row) for name, row in runner.experiment.rows.items()}
    assert [(name, row.adapter.breakpoints, row.radial_weight) for name, row in recipes.items()] == [
        (f"K={k}", k, 0.0) for k in (1, 2, 3, 5, 7)
    ]
    assert {row.steps for row in recipes.values()} == {EMBEDDED.steps["sweep"]}


def test_windows_of_blocks_follow_the_models_depth(tmp_path):
    """Regression: 6 blocks of one model were written into recipes."""
    embedded, wan = Setting(EMBEDDED, tmp_path), Setting(WAN, tmp_path)
    assert wan.depth == 30
    assert [wan.window(i) for i in ("first", "middle", "last", "all")] == [(0, 10), (10, 20), (20, 30), (0, 30)]
    first, middle, last, everything = (embedded.window(i) for i in ("first", "middle", "last", "all"))
    assert first[0] == 0
    assert last[1] == everything[1] == embedded.depth
    assert first[1] - first[0] == middle[1] - middle[0] == last[1] - last[0]


def test_budgets_keep_their_proportions_when_the_full_one_is_changed(tmp_path):
    supervision = runner_of(paper.item("supervision")).experiment
    steps = [Setting(EMBEDDED, tmp_path, overrides=("steps=500",)).steps(row) for row in supervision.rows.values()]
    assert steps == [250, 250, 500, 500, 500]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["paper", "run", "nothing", "--scale", "embedded"], "lenses"),
        (["paper", "run", "lenses", "--scale", "x"], "embedded or wan"),
        (["paper", "run", "lenses", "--scale", "wan", "--use", "panshot"], "NAME=PLACE"),
        (["paper", "run", "lenses", "--scale", "wan", "--use", "nothing=x"], "NAME=PLACE"),
        (["paper", "run", "lenses", "--scale", "embedded", "film.steps=many", "--dry-run"], "a number"),
        (["paper", "run", "lenses", "--scale", "embedded", "film.speed=2", "--dry-run"], "camera_guidance"),
        (["paper", "run", "lenses", "--scale", "embedded", "stepps=3", "--dry-run"], "stepps"),
    ],
)
def test_a_mistake_is_one_sentence(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, words).exception
    assert isinstance(refused, InputError)
    assert said in str(refused)
    assert not list(tmp_path.iterdir())


def test_the_first_missing_piece_is_named_with_what_brings_it(tmp_path):
    plan = plan_of(paper.item("zero-shot"), Setting(WAN, tmp_path, {"panshot": str(tmp_path)}), "here")
    missing = [line.key for line in plan.missing]
    assert "panshot" not in missing
    assert {"kitti360", "realcam", "labels"} <= set(missing)
    page = plan.to_markdown()
    assert "--use kitti360=DIR" in page
    assert "runs up to the first missing piece" in page
    assert "large GPU" in page
    plan = plan_of(paper.item("method"), Setting(WAN, tmp_path), "here")
    assert not plan.missing
    assert "trains and films nothing" in plan.sentence()


def test_places_are_read_as_typed():
    assert parsed_places(["wan=a=b", "panshot=/x"]) == {"wan": "a=b", "panshot": "/x"}
    with pytest.raises(InputError, match="embedded or wan"):
        scale_named("huge")


def test_the_list_is_readable_at_eighty_columns():
    shown = CliRunner().invoke(app, ["paper", "list"], env={"COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    for entry in paper.ITEMS:
        assert f"{entry.name:<20} {entry.title}" in shown  # never broken into slivers


def test_hours_of_training_are_announced_before_they_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["paper", "run", "lenses", "steps=700", "-o", "elsewhere"]).exception
    assert isinstance(refused, InputError)
    for words in ("--scale embedded", "3 of 3 adapters", "2100 steps", "one core", "to elsewhere"):
        assert words in str(refused)
    assert not list(tmp_path.iterdir())


def test_the_commands():
    listed = CliRunner().invoke(app, ["paper", "list", "--json"])
    assert listed.exit_code == 0
    rows = json.loads(listed.stdout)
    assert {row["name"] for row in rows} >= {"lenses", "breakpoints", "overall"}
    assert all(row["scales"] == ["embedded", "wan"] for row in rows)
    shown = CliRunner().invoke(app, ["paper", "show", "breakpoints", "--json"])
    assert json.loads(shown.stdout)["rows"]["K=3"]["CamMC"] == 12.31
    assert "12.31" in CliRunner().invoke(app, ["paper", "show", "breakpoints"]).stdout
    dry = CliRunner().invoke(app, ["paper", "run", "adherence", "--scale", "embedded", "--dry-run", "--json"])
    assert json.loads(dry.stdout)["work"]["films"] > 0
