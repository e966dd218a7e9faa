"""The objective of a pass: what chance decides, what the losses see, and that cheaper passes are the same passes."""

from dataclasses import replace

import pytest
import torch
from tiny import TinyModel, footage
from train_tiny import TINY

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import RAY
from curvedray.data.clips import VideoShape, batch_of, encoded
from curvedray.encoding.attention import curved_ray_attention
from curvedray.errors import InputError
from curvedray.radial.mixforcing import MixForcing
from curvedray.training.objective import batch_in_view, draw, generator_for, losses, total_loss

SHAPE = VideoShape(9, 32, 48)


def tiny_pass(config=TINY.adapter, recipe=TINY, seed=0, slots=(0, 1)):
    """A model, an adapter with every weight random, a batch and its draws."""
    model = TinyModel()
    adapter = Adapter(model.transformer, config).attach(model.transformer)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    batch = batch_of([encoded(footage(i), model, SHAPE) for i in range(len(slots))])
    grid = model.grid_for(9, 32, 48)
    return model, adapter, batch, draw(recipe, 0, slots, tuple(batch.latents.shape[1:]), grid), grid


def test_the_radial_loss_sees_the_prediction_never_the_teacher():
    config = replace(TINY.adapter, curved_blocks=(1, 2))  # one block, whose input no substitution has touched
    found = {}
    for mixforcing in (None, MixForcing("video")):
        recipe = replace(TINY, mixforcing=mixforcing, adapter=config)
        model, adapter, batch, draws, grid = tiny_pass(config, recipe)
        with batch_in_view(recipe, adapter, batch, draws, grid), torch.no_grad():
            found[mixforcing] = losses(recipe, model, adapter, batch, draws, model.encode_text([""])[0])
    (flow, radial), (forced_flow, forced_radial) = found.values()
    torch.testing.assert_close(radial, forced_radial, rtol=1e-5, atol=1e-6)
    assert (flow - forced_flow).abs().max() > 3e-5  # ten times what rounding does
    assert radial.abs().min() > 0


def test_gradient_checkpointing_changes_no_gradient():
    found = []
    for checkpointing in (False, True):
        model, adapter, batch, draws, grid = tiny_pass()
        if checkpointing:
            model.transformer.enable_gradient_checkpointing()
            model.transformer.train()
        with batch_in_view(TINY, adapter, batch, draws, grid):
            flow, radial = losses(TINY, model, adapter, batch, draws, model.encode_text([""])[0])
            (flow + radial).mean().backward()
        found.append({name: p.grad for name, p in adapter.named_parameters()})
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_draws_depend_on_the_slot_alone():
    recipe = replace(TINY, batch=4, mixforcing=MixForcing("block"), steps=100)
    grid = TinyModel().grid_for(9, 32, 48)
    whole_batch = draw(recipe, 50, range(4), (4, 3, 4, 6), grid)
    part = draw(recipe, 50, [2, 3], (4, 3, 4, 6), grid)
    for name in ("rank", "noise", "without_text", "teacher"):
        assert torch.equal(getattr(part, name), getattr(whole_batch, name)[2:])
    assert not torch.equal(draw(recipe, 51, [2, 3], (4, 3, 4, 6), grid).noise, part.noise)


BACKBONE = replace(TINY, what="backbone", adapter=TINY.adapter, mixforcing=None, radial_weight=0.0)


def test_a_step_on_beginnings_is_the_step_on_shorter_clips():
    """The draws are those of whole clips, cut; the same share of steps sees each length."""
    grid, shape = TinyModel().grid_for(9, 32, 48), (4, 3, 4, 6)
    recipe = replace(BACKBONE, beginnings=(0.5, 0.0, 0.5))
    drawn = [draw(recipe, step, range(2), shape, grid) for step in range(60)]
    lengths = [draws.noise.shape[2] for draws in drawn]
    assert set(lengths) == {1, 3}
    assert 15 < lengths.count(1) < 45
    for step, draws in enumerate(drawn):
        whole = draw(BACKBONE, step, range(2), shape, grid)
        assert torch.equal(draws.noise, whole.noise[:, :, : lengths[step]])
        assert torch.equal(draws.rank, whole.rank)
    model, batch = TinyModel(), tiny_pass()[2]
    short = replace(batch, latents=batch.latents[:, :, :1])
    one = drawn[lengths.index(1)]
    empty = model.encode_text([""])[0]
    seen = losses(recipe, model, None, batch, one, empty)[0]
    torch.testing.assert_close(seen, losses(recipe, model, None, short, one, empty)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.5, -0.5), (float("nan"),)])
def test_shares_of_beginnings_add_up(shares):
    with pytest.raises(InputError, match="beginnings"):
        replace(BACKBONE, beginnings=shares)


def test_an_adapter_sees_whole_clips():
    with pytest.raises(InputError, match="beginnings"):
        replace(TINY, what="adapter", beginnings=(1.0,))


@pytest.mark.parametrize("kind", ["reference", "fast", "ray"])
def test_autocast_leaves_the_geometry_in_float32(kind):
    """Positions, radii and phases of hundreds of radians are never rounded to half precision."""
    _, adapter, batch, draws, grid = tiny_pass()
    q, k, v = torch.randn(3, 2, 1, grid.tokens, 24, generator=torch.Generator().manual_seed(0))
    teacher = batch.teacher(0.0)
    found = []
    with batch_in_view(TINY, adapter, batch, draws, grid):
        for enabled in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                if kind == "ray":
                    found.append(adapter._view.encodings[RAY].attention(q, k, v))
                else:
                    found.append(
                        curved_ray_attention(q, k, v, batch.cameras, grid, teacher.mu, teacher.sigma, backend=kind)
                    )
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)  # bfloat16 would be off by a percent


def test_the_total_loss_is_the_papers_sum_and_does_not_depend_on_how_a_batch_is_split():
    flow, radial = torch.rand(2, 6, generator=torch.Generator().manual_seed(0))
    whole = total_loss(flow, radial, 1e-3)
    torch.testing.assert_close(whole, flow.mean() + 1e-3 * radial.mean())
    parts = [total_loss(flow[i : i + 2], radial[i : i + 2], 1e-3) for i in (0, 2, 4)]
    torch.testing.assert_close(torch.stack(parts).mean(), whole)


def test_every_tuple_of_numbers_has_a_stream_of_its_own():
    """A sequence is padded with zeros, so the first clip's noise came from the stream that drew its noise level."""
    drawn = [torch.rand(1, generator=generator_for(*numbers)).item() for numbers in ((1, 2), (1, 2, 0), (1, 2, 0, 0))]
    assert len(set(drawn)) == 3
