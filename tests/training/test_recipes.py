"""Recipes: the paper's numbers, every ablation, overrides that refuse what they do not know, records that come back."""

import contextlib
from dataclasses import replace
from random import Random

import pytest
import torch

from curvedray.configs import flattened
from curvedray.errors import InputError
from curvedray.models.open import load_model
from curvedray.radial.mixforcing import MixForcing
from curvedray.training.muon import Muon, orthogonal
from curvedray.training.optimiser import learning_rate
from curvedray.training.recipe import Recipe, differences, with_overrides
from curvedray.training.recipes import ABLATIONS, recipe, recipe_names
from curvedray.training.start import new_adapter


def test_the_papers_recipe():
    paper = recipe("wan_1b")
    assert (paper.steps, paper.batch, paper.lr, paper.radial_weight) == (10_000, 8, 1e-4, 1e-3)
    assert (paper.data.frames, paper.data.height, paper.data.width) == (81, 480, 832)
    assert paper.optimiser.kind == "adamw"
    assert paper.gradient_checkpointing
    assert (paper.radial_alpha, paper.noisiest, paper.adapter.breakpoints) == (1.0, 0.03, 5)
    assert list(paper.adapter.curved(30)) == list(range(10, 20))


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_comes_back_from_its_record(name):
    one = recipe(name)
    assert one.name == name
    assert Recipe.from_json(one.to_json()) == one


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_the_breakpoint_table_is_short_and_without_supervision(k):
    one = recipe(f"wan_1b_k{k}")
    assert (one.steps, one.radial_weight, one.adapter.breakpoints) == (1000, 0.0, k)
    assert not one.radial


def test_the_other_tables():
    blocks = {name: list(recipe(f"wan_1b_{name}").adapter.curved(30)) for name in ("first", "middle", "last", "all")}
    assert blocks == {
        "first": list(range(10)),
        "middle": list(range(10, 20)),
        "last": list(range(20, 30)),
        "all": list(range(30)),
    }
    assert recipe("wan_1b_middle").adapter.curved(30) == recipe("wan_1b").adapter.curved(30)
    assert recipe("wan_1b_supervised_1k").steps == 1000
    assert recipe("wan_1b_unsupervised_10k").radial_weight == 0
    assert recipe("wan_1b_mixforcing_block").mixforcing == MixForcing("block")
    assert recipe("wan_1b_mixforcing_video").mixforcing == MixForcing("video")
    for method in ("ucpe", "recammaster", "depth_concat"):
        assert recipe(f"wan_1b_{method}").adapter.method == method
    assert len({str(recipe(f"embedded_{name}")) for name in ABLATIONS}) == len(ABLATIONS)


def test_overrides():
    one = with_overrides(recipe("quick"), ["steps=500", "adapter.breakpoints=3", "data.source=my/clips", "lr=2e-4"])
    assert (one.steps, one.adapter.breakpoints, one.data.source, one.lr) == (500, 3, "my/clips", 2e-4)
    assert with_overrides(recipe("quick"), ["mixforcing.kind=video"]).mixforcing == MixForcing("video")
    assert with_overrides(one, ["adapter.curved_blocks=[2,4]"]).adapter.curved_blocks == (2, 4)
    assert with_overrides(recipe("wan_1b_mixforcing_block"), ["mixforcing=null"]).mixforcing is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("step=500", r"Did you mean steps"),
        ("adapter.breakpoint=3", r"adapter\.breakpoints"),
        ("optimiser.kind=sgd", r"optimiser\.kind.*adamw"),
        ("steps=many", r"steps.*many"),
        ("steps=0", r"steps: expected a whole number from 1 to"),
        ("batch", r"key=value"),
        ("lr.base=1", r"no parts in lr"),
        ("adapter.method=ray", r"method.*crepe"),
        ("mixforcing.sigma=0.2", r"kind"),
        ("precision=fp16", r"precision"),
    ],
)
def test_what_a_recipe_does_not_know_is_refused(override, message):
    with pytest.raises(InputError, match=message):
        with_overrides(recipe("quick"), [override])


def test_unknown_recipes_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean wan_1b_k3"):
        recipe("wan_1b_k33")
    with pytest.raises(InputError, match="predicts radii"):
        with_overrides(recipe("wan_1b_ucpe"), ["mixforcing.kind=block"])


def test_differences_name_the_keys():
    one = recipe("quick")
    assert differences(one, one) == []
    assert differences(one, with_overrides(one, ["adapter.breakpoints=3"])) == ["adapter.breakpoints: 5 / 3"]


def test_learning_rate_warms_up_and_falls():
    one = replace(recipe("quick"), lr=1.0, warmup=10, steps=110, decay="linear")
    assert learning_rate(one, 0) == pytest.approx(0.1)
    assert learning_rate(one, 9) == learning_rate(one, 10) == 1.0
    assert learning_rate(one, 60) == pytest.approx(0.5)
    assert learning_rate(replace(one, decay="cosine"), 60) == pytest.approx(0.5)
    assert learning_rate(replace(one, decay="constant"), 109) == 1.0


def test_muon_steps_along_orthogonal_matrices():
    generator = torch.Generator().manual_seed(0)
    for shape in ((12, 30), (30, 12), (16, 40)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape, generator=generator)))
        assert values.min() > 0.6
        assert values.max() < 1.3
    # The minimum of |W - A|^2 is found, with one learning rate whatever the gradient's size.
    wanted = torch.randn(8, 6, generator=generator)
    weight = torch.nn.Parameter(torch.zeros(8, 6))
    optimiser = Muon([weight], lr=0.05)
    for step in range(300):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - step / 300)
        optimiser.zero_grad()
        (1e-3 * (weight - wanted).square().sum()).backward()
        optimiser.step()
    assert (weight - wanted).abs().max() < 0.05


ODD = [
    "",
    "-1",
    "1e999",
    "NaN",
    "9" * 5000,
    "[" * 3000,
    "[1,2]",
    "{}",
    '{"a": 1}',
    "null",
    "true",
    "٣",
    "²",
    "\0",
    "\ud800",
]


def test_no_override_is_a_traceback():
    random, base = Random(0), recipe("embedded_mixforcing_block")
    keys = [*flattened(base.to_json()), "", "mixforcing", "adapter", "start", "a.b.c", "steps.more"]
    taken = 0
    for _ in range(200):
        count = random.randint(1, 2)
        overrides = [f"{random.choice(keys)}{random.choice(['=', '=', ''])}{random.choice(ODD)}" for _ in range(count)]
        with contextlib.suppress(InputError):
            changed = with_overrides(base, overrides)
            assert Recipe.from_json(changed.to_json()) == changed
            taken += 1
    assert 0 < taken < 200  # some are refused, some are not


@pytest.mark.parametrize(
    "override",
    [
        *("seed=-1", "data.frames=0", "every.log=-1", "warmup=-1", "optimiser.betas=[1,2]", "batch=1e12", "name=../x"),
        *("adapter.heads=0", "adapter.heads=1000000"),
    ],
)
def test_numbers_that_no_run_can_have_are_refused(override):
    with pytest.raises(InputError, match=override.partition("=")[0].rpartition(".")[2]):
        with_overrides(recipe("quick"), [override])


def test_more_heads_than_the_backbone_has_room_for_are_refused():
    transformer = load_model("random").transformer
    with pytest.raises(InputError, match="heads"):
        new_adapter(with_overrides(recipe("quick"), ["adapter.heads=1000"]), transformer)
