"""What a run would take is counted: laws of the count, and the page that shows it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import typer
from tiny import TinyModel
from torch.utils.flop_counter import FlopCounterMode

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.cameras import TokenGrid
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.models.wan import SHAPES, TEXT_TOKENS, wan_transformer
from curvedray.training.plan import plan, plan_tables
from curvedray.training.recipes import recipe
from curvedray.training.sharding import held_bytes
from curvedray.training.work import Work

ROOT = Path(__file__).parents[2]


def test_hours_are_operations_over_what_the_gpus_do():
    one, node, many = (plan(recipe("wan_1b"), gpus, 1e15, 0.5) for gpus in (1, 8, 64))
    assert one.hours == pytest.approx(8 * node.hours) == pytest.approx(64 * many.hours)
    assert (one.accumulate, node.accumulate, many.batch, many.steps) == (8, 1, 64, 1250)
    assert plan(recipe("wan_1b"), 8, 1e15, 0.25).hours == pytest.approx(2 * node.hours)
    assert one.memory == one.memory_split
    assert many.memory_split < node.memory_split < node.memory
    assert one.exchanged == one.exchanged_split == 0


def test_a_frozen_backbones_pass_and_backward_are_what_torch_counts():
    """Regression: backward through frozen weights was counted as one forward pass, a third too little at Wan's size.

    Wan's shape, of four blocks, on the meta device: nothing is computed, torch counts.
    """
    grid = TokenGrid.from_video(81, 480, 832)
    transformer = wan_transformer("meta", **(SHAPES["wan2.1-1.3b"] | {"num_layers": 4})).requires_grad_(False)
    with torch.device("meta"):
        nothing = Adapter(transformer, AdapterConfig(method="none"))
        latents = torch.zeros(1, 16, 21, 60, 104, requires_grad=True)
        text, noise_level = torch.zeros(1, TEXT_TOKENS, 4096), torch.zeros(1)
    work = Work.of(recipe("quick"), transformer, nothing, grid, TEXT_TOKENS)
    with FlopCounterMode(display=False) as forward:
        out = transformer(latents, noise_level, text, return_dict=False)[0]
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    assert work.forward == pytest.approx(forward.get_total_flops(), rel=0.08)
    assert work.backward == pytest.approx(backward.get_total_flops(), rel=0.08)


def test_a_split_backbone_is_its_share_and_two_blocks():
    transformer = TinyModel().transformer
    whole = sum(p.numel() * 4 for p in transformer.parameters())
    assert held_bytes(transformer, 1) == whole
    block = sum(p.numel() * 4 for p in transformer.blocks[0].parameters())
    rest = whole - 3 * block
    assert held_bytes(transformer, 10**9) == pytest.approx(2 * block + rest, rel=1e-3)


def test_a_model_that_cannot_be_counted_is_refused():
    with pytest.raises(InputError, match="--dry-run"):
        plan_tables(recipe("quick"))
    with pytest.raises(InputError, match="h100"):
        plan_tables(recipe("wan_1b"), "abacus")


@pytest.mark.slow
def test_the_page_shows_what_is_counted():
    page = (ROOT / "docs" / "scale.md").read_text()
    assert plan_tables(recipe("wan_1b")) in page


def test_the_slurm_script_is_sound_and_its_options_exist():

    script = ROOT / "examples" / "train.slurm"
    assert subprocess.run([shutil.which("bash") or "bash", "-n", str(script)]).returncode == 0
    words = script.read_text().split("-m curvedray ")[1].split()
    command = typer.main.get_command(app).commands["train"]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if re.fullmatch("--?[a-z]+", word)} <= options
