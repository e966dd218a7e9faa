"""Laws of the adapter: silent at first, blind to the world's frame, and never anything but its own weights."""

import copy
import dataclasses
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_wan import GRID, attached, inputs, path, seen, tiny_transformer
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.branches import RadialHead, bounded_interval
from curvedray.adapter.config import METHODS, AdapterConfig
from curvedray.adapter.file import save_adapter
from curvedray.cameras import Cameras, TokenGrid
from curvedray.errors import InputError
from curvedray.radial.interval import RadialInterval, inward_clamp
from curvedray.radial.loss import radial_loss

GUIDED = [name for name in METHODS if name != "none"]
RADIAL = [name for name in METHODS if METHODS[name].predicts_radius]


def near_enough(ours: Tensor, theirs: Tensor) -> None:
    """The same computation twice: equal but for the last digits, which memory's alignment may change."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def loss_of(adapter: Adapter, output: Tensor) -> Tensor:
    """Both losses of training: on the output, and on the predicted radii."""
    target = torch.full((1, GRID.tokens), 2.0)
    radial = [radial_loss(adapter.predictions[i], target, target > 0).sum() for i in adapter.supervised_blocks]
    return output.square().mean() + 0.01 * sum(radial)


@pytest.mark.parametrize("method", METHODS)
def test_at_first_the_video_is_the_backbones(method: str) -> None:
    transformer = tiny_transformer()
    with torch.no_grad():
        alone = transformer(**inputs())[0]
        adapter = attached(method, transformer)
        near_enough(seen(adapter, transformer, path()), alone)
        near_enough(seen(adapter, transformer, path(seed=5, xi=1.3, fov=150)), alone)
    added = [weight for name, weight in adapter.named_parameters() if "out_proj" in name]
    assert not any(weight.any() for weight in added)  # what is added is zero, so what is left is the backbone's own


@pytest.mark.parametrize("method", GUIDED)
def test_a_training_step_moves_the_adapter_alone_and_then_the_camera_matters(method: str) -> None:
    transformer = tiny_transformer()
    before = copy.deepcopy(transformer.state_dict())
    adapter = attached(method, transformer)
    optimiser = torch.optim.AdamW(adapter.parameters(), lr=1e-2)
    for _ in range(2):
        with adapter.viewing(path(), grid=GRID):
            loss_of(adapter, transformer(**inputs())[0]).backward()
        optimiser.step()
        optimiser.zero_grad()
    assert all(torch.equal(value, before[name]) for name, value in transformer.state_dict().items())
    with torch.no_grad():
        here, there = (seen(adapter, transformer, path(seed=i)) for i in (2, 6))
    assert (here - there).abs().max() > 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_gradients_reach_exactly_what_the_file_holds(method: str, tmp_path: Path) -> None:
    transformer = tiny_transformer()
    adapter = attached(method, transformer, woken=True)
    output = seen(adapter, transformer, path())
    if method == "none":
        assert not output.requires_grad
        reached = set()
    else:
        loss_of(adapter, output).backward()
        reached = {name for name, parameter in adapter.named_parameters() if parameter.grad is not None}
    assert reached == set(load_file(save_adapter(adapter, tmp_path / "a.safetensors")))
    assert all(parameter.grad is None for parameter in transformer.parameters())


@pytest.mark.parametrize("method", GUIDED)
def test_gradient_checkpointing_changes_no_gradient(method: str) -> None:
    gradients = []
    for checkpointing in (False, True):
        transformer = tiny_transformer()
        if checkpointing:
            transformer.enable_gradient_checkpointing()
        adapter = attached(method, transformer, woken=True)
        transformer.train()
        with adapter.viewing(path(), grid=GRID):
            loss_of(adapter, transformer(**inputs())[0]).backward()
        gradients.append([parameter.grad for parameter in adapter.parameters()])
    for plain, again in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, again, rtol=1e-4, atol=1e-6)


def test_without_a_view_it_fails_loudly_also_in_backward() -> None:
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer, woken=True)
    with pytest.raises(InputError, match="viewing"):
        transformer(**inputs())
    transformer.enable_gradient_checkpointing()
    transformer.train()
    output = seen(adapter, transformer, path())
    with pytest.raises(InputError, match="viewing"):
        output.sum().backward()


@pytest.mark.parametrize("method", ["crepe", "endpoint", "point", "ucpe", "depth_concat", "prope", "gta"])
@pytest.mark.parametrize(("xi", "fov"), [(0.5, 100.0), (1.8, 200.0)])
def test_where_the_world_begins_does_not_matter(method: str, xi: float, fov: float) -> None:
    """At xi 1.8 the corners have no ray. Orientation maps are off: they are about the world's own axes."""
    transformer = tiny_transformer()
    rotations = dict.fromkeys(("query_rotation", "value_rotation", "rays_beside"), method == "crepe")
    adapter = attached(method, transformer, woken=True, orientation=False, **rotations)
    cameras = path(xi=xi, fov=fov)
    if xi > 1:
        assert not cameras.rays(GRID, torch.zeros(1, 2))[1].all()
    moved = path(1, seed=9).world_from_camera.double() @ cameras.world_from_camera.double()
    moved[..., :3, 3] += 50
    with torch.no_grad():
        here = seen(adapter, transformer, cameras)
        there = seen(adapter, transformer, dataclasses.replace(cameras, world_from_camera=moved.float()))
        other = seen(adapter, transformer, path(seed=8, xi=xi, fov=fov))
    torch.testing.assert_close(here, there, rtol=0, atol=2e-4)
    assert (here - other).abs().max() > 1e-2


def test_the_interval_may_be_a_feature_beside_the_rotation() -> None:
    """Two maps then differ in what blocks are told, with or without parallax; without a map neither is seen."""
    transformer = tiny_transformer()
    still = dataclasses.replace(path(), world_from_camera=torch.eye(4).expand_as(path().world_from_camera).clone())
    maps = [RadialInterval(torch.full((GRID.tokens,), mu), torch.full((GRID.tokens,), 0.1)) for mu in (-1.0, 1.0)]
    everywhere = torch.ones(GRID.tokens, dtype=torch.bool)
    assert Adapter(transformer).radial_feature is None
    adapter, outputs = attached("crepe", transformer, woken=True, interval_feature=True), []
    for given in maps:
        with torch.no_grad(), adapter.viewing(still, grid=GRID, radial=(given, everywhere)):
            outputs.append(transformer(**inputs())[0])
            with adapter.without_map():
                outputs.append(transformer(**inputs())[0])
    near, free, far, free_again = outputs
    torch.testing.assert_close(free, free_again, rtol=0, atol=1e-5)
    assert (near - far).abs().max() > 1e-3


def test_a_ray_map_tells_the_lens_beside_the_horizon_or_alone() -> None:
    transformer = tiny_transformer()
    for orientation in (True, False):
        adapter = attached("crepe", transformer, woken=True, ray_map=True, orientation=orientation)
        assert adapter.blocks[0].cam_encoder.in_features == 3 + 3 * orientation
        with torch.no_grad():
            wide, narrow = (seen(adapter, transformer, path(fov=fov)) for fov in (120.0, 60.0))
        assert (wide - narrow).abs().max() > 1e-3
        adapter.detach()
    with pytest.raises(InputError, match=r"AdapterConfig.ray_map.*plucker"):
        AdapterConfig("plucker", ray_map=True)


def test_rays_beside_curves_are_both_branches_in_one() -> None:
    """With the curved half of the output projection at zero a block is UCPE's, with the other at zero the paper's."""
    transformer = tiny_transformer()
    both = attached("crepe", transformer, woken=True, rays_beside=True)
    both.detach()
    for kept, method in ((0, "crepe"), (1, "ucpe")):
        alone = Adapter(transformer, dataclasses.replace(both.config, method=method, rays_beside=False))
        for number, (own, other) in enumerate(zip(alone.blocks, both.blocks, strict=True)):
            width = own.out_proj.in_features
            assert len(other.kinds) == 1 + (number in both.config.curved(both.base.depth))
            half = slice(kept * width, (kept + 1) * width) if len(other.kinds) == 2 else slice(None)
            with torch.no_grad():
                for name in ("q_proj", "k_proj", "v_proj"):
                    mine, theirs = getattr(own, name), getattr(other, name)
                    mine.weight.copy_(theirs.weight[half])
                    mine.bias.copy_(theirs.bias[half])
                own.out_proj.weight.copy_(other.out_proj.weight[:, half])
                own.out_proj.bias.copy_(other.out_proj.bias)
                own.cam_encoder.load_state_dict(other.cam_encoder.state_dict())
        halved = copy.deepcopy(both)
        with torch.no_grad():
            for block in halved.blocks:
                width = block.out_proj.in_features // 2
                if len(block.kinds) == 2:
                    block.out_proj.weight[:, (1 - kept) * width : (2 - kept) * width] = 0
            if alone.radial_head is not None:
                alone.radial_head.load_state_dict(both.radial_head.state_dict())
        outputs = []
        for adapter in (halved, alone):
            adapter.attach(transformer)
            with torch.no_grad():
                outputs.append(seen(adapter, transformer, path()))
            adapter.detach()
        near_enough(*outputs)
    with pytest.raises(InputError, match=r"AdapterConfig.rays_beside.*ucpe"):
        AdapterConfig("ucpe", rays_beside=True)


def test_one_camera_for_all_clips_or_one_each() -> None:
    """Also for as many clips as frames, where a wrong axis would still fit."""
    transformer = tiny_transformer()
    for method in GUIDED:
        adapter = attached(method, transformer, woken=True)
        paths = [path(seed=i) for i in range(GRID.frames)]
        poses = torch.stack([i.world_from_camera for i in paths])
        with torch.no_grad():
            batch = inputs(batch=GRID.frames)
            with adapter.viewing(Cameras(paths[0].lens, poses), grid=GRID):
                together = transformer(**batch)[0]
            for index, cameras in enumerate(paths):
                one = {k: v[index : index + 1] if isinstance(v, Tensor) else v for k, v in batch.items()}
                with adapter.viewing(Cameras(cameras.lens, poses[index : index + 1]), grid=GRID):
                    torch.testing.assert_close(transformer(**one)[0][0], together[index], rtol=0, atol=2e-4)
        adapter.detach()


def test_a_pose_per_frame_or_per_latent_frame() -> None:
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer, woken=True)
    every = path(GRID.video_frames)
    with torch.no_grad():
        near_enough(seen(adapter, transformer, every), seen(adapter, transformer, every[::4]))
    with pytest.raises(InputError, match="poses"), adapter.viewing(path(4), grid=GRID):
        pass


# -- radii


def test_the_bound_keeps_its_gradient() -> None:
    """Of what is on it or outside, the one that leads back; the one that leads farther away is none."""
    for mu, sigma in ((0.0, 3.1), (0.0, 3.0), (2.0, 1.5), (4.0, 0.1), (0.0, -3.1)):
        ends = torch.tensor([[mu]], requires_grad=True), torch.tensor([[sigma]], requires_grad=True)
        interval = bounded_interval(*ends, (-3.0, 3.0))
        assert (interval.mu.abs() + interval.sigma).max() <= 3 + 1e-6
        (by_mu,) = torch.autograd.grad(interval.mu.sum(), ends[0], retain_graph=True)  # of a loss that wants it smaller
        (by_sigma,) = torch.autograd.grad(interval.sigma.sum(), ends[1], retain_graph=True)
        assert by_mu >= 0.5
        assert by_sigma.abs() >= 0.5 or mu == 4.0  # there both ends are above: mu brings them back
        (wider,) = torch.autograd.grad(-interval.sigma.sum(), ends[1])
        assert wider.abs() <= 0.5  # at most one end is inside, and may move
    for x, slope in ((-3.5, 0.0), (-3.0, 0.0), (0.0, 1.0), (3.5, 1.0)):
        here = torch.tensor(x, requires_grad=True)
        (by_x,) = torch.autograd.grad(inward_clamp(here, -3.0, 3.0), here)  # a step would make it smaller
        assert by_x == slope


def test_a_far_target_is_learned_and_does_not_drive_the_interval_away() -> None:
    """With a gradient that always passes, mu and sigma grew for ever, and the interval used stayed the whole range."""
    raw = torch.tensor([0.0, 3.0], requires_grad=True)
    optimiser = torch.optim.Adam([raw], lr=0.02)
    for _ in range(1500):
        optimiser.zero_grad()
        interval = bounded_interval(raw[:1, None], raw[1:, None], (-3.0, 3.0))
        radial_loss(interval, torch.tensor([[15.0]]), torch.ones(1, 1, dtype=torch.bool), floor=0.1).mean().backward()
        optimiser.step()
    assert raw.abs().max() < 6
    assert interval.mu.item() == pytest.approx(math.log(15), abs=0.1)
    head = RadialHead(48, (-3.0, 3.0))
    first = head(torch.randn(2, 5, 48))
    assert torch.equal(first.mu, torch.zeros(2, 5))
    assert torch.equal(first.sigma, torch.full((2, 5), 3.0))


@pytest.mark.parametrize("method", RADIAL)
def test_given_radii_replace_predicted_ones_where_they_hold(method: str) -> None:
    """The output changes; the prediction that the loss sees does not; a mask of nothing is no map."""
    transformer = tiny_transformer()
    adapter = attached(method, transformer, woken=True)
    far = RadialInterval(torch.full((1, GRID.tokens), 3.6), torch.full((1, GRID.tokens), 0.1))
    everywhere, nowhere = torch.ones(1, GRID.tokens, dtype=torch.bool), torch.zeros(1, GRID.tokens, dtype=torch.bool)
    with torch.no_grad():
        plain = seen(adapter, transformer, path())
        predicted = adapter.predictions[1]
        changed = seen(adapter, transformer, path(), radial=(far, everywhere))
        near_enough(adapter.predictions[1].mu, predicted.mu)
        near_enough(seen(adapter, transformer, path(), radial=(far, nowhere)), plain)
        for_all = (RadialInterval(far.mu[0], far.sigma[0]), everywhere[0])
        near_enough(seen(adapter, transformer, path(), radial=for_all), changed)
    assert (changed - plain).abs().max() > 1e-4


def test_a_method_without_radii_refuses_a_map() -> None:
    transformer = tiny_transformer()
    adapter = attached("ucpe", transformer)
    interval = RadialInterval(torch.zeros(1, GRID.tokens), torch.zeros(1, GRID.tokens))
    given = (interval, torch.ones(1, GRID.tokens, dtype=torch.bool))
    with pytest.raises(InputError, match="predicts radii"), adapter.viewing(path(), grid=GRID, radial=given):
        pass


# -- on and off


def test_disabled_and_detached_are_the_backbone() -> None:
    transformer = tiny_transformer()
    flags = [p.requires_grad for p in transformer.parameters()]
    with torch.no_grad():
        alone = transformer(**inputs())[0]
        adapter = attached("crepe", transformer, woken=True)
        assert not any(p.requires_grad for p in transformer.parameters())
        assert (seen(adapter, transformer, path()) - alone).abs().max() > 1e-4
        with adapter.viewing(path(), grid=GRID), adapter.disabled():
            near_enough(transformer(**inputs())[0], alone)
        with pytest.raises(InputError, match="Detach"):
            attached("ucpe", transformer)
        adapter.detach()
        near_enough(transformer(**inputs())[0], alone)
    assert [p.requires_grad for p in transformer.parameters()] == flags
    assert not any(block.attn1._forward_hooks for block in transformer.blocks)


def test_keyword_arguments_reach_the_branch() -> None:
    """Some versions of diffusers call attn1 with hidden_states=."""
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer, woken=True)
    x = torch.randn(1, GRID.tokens, 48)
    with torch.no_grad(), adapter.viewing(path(), grid=GRID):
        near_enough(transformer.blocks[0].attn1(x), transformer.blocks[0].attn1(hidden_states=x))


def test_a_grid_that_does_not_fit_is_named() -> None:
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer)
    with pytest.raises(InputError, match="72 tokens"), adapter.viewing(path(), grid=TokenGrid(3, 4, 5)):
        transformer(**inputs())


def test_cameras_for_another_number_of_clips_are_named() -> None:
    transformer = tiny_transformer()
    poses = torch.stack([path(seed=i).world_from_camera for i in range(2)])
    for method in GUIDED:
        adapter = attached(method, transformer)
        with pytest.raises(InputError, match="3 clips"), adapter.viewing(Cameras(path().lens, poses), grid=GRID):
            transformer(**inputs(batch=3))
        adapter.detach()


def test_half_precision_backbone_with_a_float32_adapter() -> None:
    transformer = tiny_transformer().to(torch.bfloat16)
    adapter = attached("crepe", transformer, woken=True)
    batch = {k: v.bfloat16() if isinstance(v, Tensor) else v for k, v in inputs().items()}
    with adapter.viewing(path(), grid=GRID):
        output = transformer(**batch)[0]
        output.float().square().mean().backward()
    assert output.dtype == torch.bfloat16
    assert all(p.grad is not None and p.grad.isfinite().all() for p in adapter.parameters())
