"""What a run is said to take: activations as autograd keeps them, time as steps take it, and a model left as it was."""

import statistics
import time
from dataclasses import replace

import pytest
import torch
from train_tiny import step_records

from curvedray.adapter.adapter import Adapter
from curvedray.bench.harness import threads
from curvedray.data.clips import batch_of, encoded
from curvedray.data.sources import WorldFootage, open_clips, video_shape
from curvedray.errors import InputError
from curvedray.models.open import load_model
from curvedray.training import estimate as estimating
from curvedray.training.estimate import estimate, kept_bytes, validation_passes
from curvedray.training.loop import train
from curvedray.training.objective import batch_in_view, draw, losses
from curvedray.training.process import Process
from curvedray.training.recipe import with_overrides
from curvedray.training.recipes import recipe as named_recipe


@pytest.mark.parametrize(
    ("name", "width"), [("embedded", 24), ("embedded", 120), ("embedded_ucpe", 72), ("embedded_backbone", None)]
)
def test_the_estimate_counts_what_autograd_keeps(name, width, tmp_path):
    recipe = named_recipe(name)
    recipe = replace(recipe, model="random", batch=2, adapter=replace(recipe.adapter, width=width))
    process = Process(recipe, tmp_path)
    model = load_model("random", device=process.device)
    shape = video_shape(recipe.data, model)
    grid, text = model.grid_for(shape.frames, shape.height, shape.width), model.encode_text([""])[0]
    adapter = Adapter(model.transformer, recipe.adapter) if recipe.what == "adapter" else None
    if adapter is not None:
        adapter.attach(model.transformer)
    else:
        model.transformer.requires_grad_(True)
    batch = batch_of([encoded(WorldFootage(1, "train", shape)[0], model, shape)] * 2)
    draws = draw(recipe, 0, [0, 1], model.latent_shape(grid), grid)
    weights = [*model.transformer.parameters(), *(adapter.parameters() if adapter is not None else [])]
    seen = {weight.untyped_storage().data_ptr() for weight in weights}
    kept = []

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in seen:
            seen.add(tensor.untyped_storage().data_ptr())
            kept.append(tensor)
        return tensor

    with (
        batch_in_view(recipe, adapter, batch, draws, grid),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x),
    ):
        found = losses(recipe, model, adapter, batch, draws, text)
    assert torch.isfinite(torch.stack(found)).all()
    measured = sum(tensor.untyped_storage().nbytes() for tensor in kept)
    assert kept_bytes(recipe, model.transformer, grid, process.clips_per_pass) == pytest.approx(measured, rel=0.25)


def opened(name, overrides, out):
    recipe = with_overrides(named_recipe(name), ["model=random", *overrides])
    process = Process(recipe, out)
    model = load_model("random", device=process.device)
    return recipe, model, video_shape(recipe.data, model), process


@pytest.mark.parametrize("name", ["quick", "embedded_backbone"])  # AdamW on an adapter, Muon on the model itself
def test_an_estimate_changes_nothing(tmp_path, name):
    recipe, model, shape, process = opened(name, ["batch=2", "accumulate=2", "every.validate=60"], tmp_path)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    found = estimate(recipe, model, shape, process)
    assert found.timed
    assert "measured on 3 steps" in str(found)
    assert found.hours > found.seconds * recipe.steps / 3600  # validations take their time
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in model.parameters())
    assert not list(tmp_path.iterdir())


def test_the_trial_runs_as_the_loop_will_with_checkpointing(tmp_path):
    """It ran without, in many times the memory that the run takes, and timed a step without its second forward pass."""
    recipe, model, shape, process = opened("quick", ["batch=2", "gradient_checkpointing=true"], tmp_path)
    calls: list[int] = []
    model.transformer.blocks[0].attn1.register_forward_pre_hook(lambda *_: calls.append(1))
    estimate(recipe, model, shape, process)
    assert len(calls) == 2 * (estimating.TRIAL_STEPS + 1)
    assert not model.transformer.training


def test_a_step_too_long_to_try_is_counted(tmp_path, monkeypatch):
    recipe, model, shape, process = opened("quick", ["every.validate=0"], tmp_path)
    monkeypatch.setattr(estimating, "LONGEST_TRIAL", 0.0)
    monkeypatch.setattr(estimating, "_speed", lambda *_: 1e9)
    found = estimate(recipe, model, shape, process)
    assert (found.timed, "not measured" in str(found)) == (False, True)
    assert found.seconds == pytest.approx(found.operations / (estimating.REACHED * 1e9))
    assert found.hours == pytest.approx(found.seconds * recipe.steps / 3600)
    with pytest.raises(InputError, match="something to train"):
        estimate(with_overrides(recipe, ["adapter.method=none"]), model, shape, process)


def test_beginnings_of_clips_are_counted_as_what_they_cost(tmp_path, monkeypatch):
    """A fifth of the frames is about a fifth of the operations, and a mean of lengths is the mean of their costs."""
    monkeypatch.setattr(estimating, "LONGEST_TRIAL", 0.0)
    found = []
    for shares in ("[]", "[1.0]", "[0.5, 0.0, 0.0, 0.0, 0.5]"):
        opening = opened("embedded_backbone", ["model=random", "every.validate=0", f"beginnings={shares}"], tmp_path)
        found.append(estimate(*opening).operations)
    whole, first, half = found
    assert first == pytest.approx(whole / 5, rel=0.3)
    assert half == pytest.approx((whole + first) / 2)


def test_validation_is_counted(tmp_path):
    recipe, model, *_ = opened("quick", ["steps=100", "every.validate=40", "validation_clips=2"], tmp_path)
    model.defaults = replace(model.defaults, steps=10, guidance=2.0, camera_guidance=3.0, block_guidance=2.0)
    assert validation_passes(recipe, model) == 4 * 2 * (8 + 10 * 4)  # at steps 0, 40, 80 and 100
    assert validation_passes(with_overrides(recipe, ["every.validate=0"]), model) == 0


@pytest.mark.slow
def test_the_estimate_is_what_steps_take(tmp_path, monkeypatch):
    """By processor time, on one thread: what a busy machine gives to others is in neither."""
    recipe, model, shape, process = opened("quick", ["steps=20", "data.clips=4", "every.validate=0"], tmp_path)
    clips, _ = open_clips(recipe.data, model, tmp_path)
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    with threads(1):
        said = estimate(recipe, model, shape, process).seconds
        train(recipe, model, clips, tmp_path, process)
    took = statistics.median(record["seconds"] for record in step_records(tmp_path / "log.jsonl"))
    assert 0.5 < said / took < 2
