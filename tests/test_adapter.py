"""Laws of the adapter: silent at first, blind to the world's frame, and never anything but its own weights."""

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_wan import GRID, inputs, path, tiny_transformer
from torch import Tensor, nn

from curvedray.adapter import Adapter
from curvedray.adapter_config import METHODS, AdapterConfig
from curvedray.adapter_file import load_adapter, save_adapter
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cost import parameter_table
from curvedray.errors import InputError
from curvedray.methods import CameraView, GeometricAttention, RadialHead, bounded_interval, camera_map
from curvedray.radial import RadialInterval, radial_loss
from curvedray.relative import relative_encoding
from curvedray.ucpe_weights import read_ucpe

GUIDED = [name for name in METHODS if name != "none"]
RADIAL = [name for name in METHODS if METHODS[name].predicts_radius]
DATA = Path(__file__).parent / "data"


def attached(method: str, transformer: nn.Module, *, woken: bool = False, **config: object) -> Adapter:
    """An adapter on its transformer; woken, its weights are random, as if it had been trained."""
    adapter = Adapter(transformer, AdapterConfig(method, **config))
    if woken:
        generator = torch.Generator().manual_seed(3)
        for parameter in adapter.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return adapter.attach(transformer)


def seen(adapter: Adapter, transformer: nn.Module, cameras: Cameras, **options: object) -> Tensor:
    with adapter.viewing(cameras, grid=GRID, **options):  # type: ignore[arg-type]
        return transformer(**inputs())[0]


def loss_of(adapter: Adapter, output: Tensor) -> Tensor:
    """Both losses of training: on the output, and on the predicted radii."""
    target = torch.full((1, GRID.tokens), 2.0)
    radial = [radial_loss(adapter.predictions[i], target, target > 0).sum() for i in adapter.supervised_blocks]
    return output.square().mean() + 0.01 * sum(radial)


@pytest.mark.parametrize("method", METHODS)
def test_at_first_the_video_is_the_backbones_bit_for_bit(method: str) -> None:
    transformer = tiny_transformer()
    with torch.no_grad():
        alone = transformer(**inputs())[0]
        adapter = attached(method, transformer)
        assert torch.equal(seen(adapter, transformer, path()), alone)
        assert torch.equal(seen(adapter, transformer, path(seed=5, xi=1.3, fov=150)), alone)


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
        torch.testing.assert_close(plain, again, rtol=1e-5, atol=1e-7)


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
    adapter = attached(method, transformer, woken=True, orientation=False, query_rotation=method == "crepe")
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


def test_a_pose_a_frame_or_a_pose_a_latent_frame() -> None:
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer, woken=True)
    every = path(GRID.video_frames)
    with torch.no_grad():
        assert torch.equal(seen(adapter, transformer, every), seen(adapter, transformer, every[::4]))
    with pytest.raises(InputError, match="poses"), adapter.viewing(path(4), grid=GRID):
        pass


# -- radii


def test_the_bound_keeps_its_gradient() -> None:
    for mu, sigma in ((0.0, 3.1), (0.0, 3.0), (2.0, 1.5), (4.0, 0.1), (0.0, -3.1)):
        ends = torch.tensor([[mu]], requires_grad=True), torch.tensor([[sigma]], requires_grad=True)
        interval = bounded_interval(*ends, (-3.0, 3.0))
        assert (interval.mu.abs() + interval.sigma).max() <= 3 + 1e-6
        (by_mu,) = torch.autograd.grad(interval.mu.sum(), ends[0], retain_graph=True)
        (by_sigma,) = torch.autograd.grad(interval.sigma.sum(), ends[1])
        assert by_mu.abs() > 0.5
        assert by_sigma.abs() > 0.5
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
        assert torch.equal(adapter.predictions[1].mu, predicted.mu)
        assert torch.equal(seen(adapter, transformer, path(), radial=(far, nowhere)), plain)
        for_all = (RadialInterval(far.mu[0], far.sigma[0]), everywhere[0])
        assert torch.equal(seen(adapter, transformer, path(), radial=for_all), changed)
    assert not torch.equal(changed, plain)


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
        assert not torch.equal(seen(adapter, transformer, path()), alone)
        with adapter.viewing(path(), grid=GRID), adapter.disabled():
            assert torch.equal(transformer(**inputs())[0], alone)
        with pytest.raises(InputError, match="Detach"):
            attached("ucpe", transformer)
        adapter.detach()
        assert torch.equal(transformer(**inputs())[0], alone)
    assert [p.requires_grad for p in transformer.parameters()] == flags
    assert not any(block.attn1._forward_hooks for block in transformer.blocks)


def test_keyword_arguments_reach_the_branch() -> None:
    """Some versions of diffusers call attn1 with hidden_states=."""
    transformer = tiny_transformer()
    adapter = attached("crepe", transformer, woken=True)
    x = torch.randn(1, GRID.tokens, 48)
    with torch.no_grad(), adapter.viewing(path(), grid=GRID):
        assert torch.equal(transformer.blocks[0].attn1(x), transformer.blocks[0].attn1(hidden_states=x))


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


# -- files


@pytest.mark.parametrize("method", METHODS)
def test_save_and_load_round_trip(method: str, tmp_path: Path) -> None:
    transformer = tiny_transformer()
    adapter = attached(method, transformer, woken=True)
    adapter.accepts_radial_maps, adapter.notes = True, {"steps": 3}
    with torch.no_grad():
        saved = seen(adapter, transformer, path())
    adapter.detach()
    file = save_adapter(adapter, tmp_path / "adapter.safetensors")
    again = load_adapter(file, tiny_transformer())
    assert (again.config, again.notes, again.accepts_radial_maps) == (adapter.config, adapter.notes, True)
    with torch.no_grad():
        again.attach(transformer)
        assert torch.equal(seen(again, transformer, path()), saved)
    assert file.read_bytes() == save_adapter(again, tmp_path / "b.safetensors").read_bytes()


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    file = save_adapter(Adapter(transformer), tmp_path / "adapter.safetensors")
    with pytest.raises(InputError, match=r"blocks.*trained on"):
        load_adapter(file, tiny_transformer(layers=4))
    other = tiny_transformer(seed=1)
    with pytest.raises(InputError, match="any_weights"):
        load_adapter(file, other)
    load_adapter(file, other, any_weights=True).attach(other, any_weights=True)
    load_adapter(file, tiny_transformer().to(torch.bfloat16))

    weights, header = load_file(file), {"curvedray": _header(file)}
    missing = {k: v for k, v in weights.items() if k != "blocks.0.q_proj.bias"}
    for name, tensors, note, complaint in (
        ("missing", missing, header, r"no blocks\.0\.q_proj\.bias"),
        ("extra", weights | {"more": torch.zeros(1)}, header, "an extra more"),
        ("shape", weights | {"blocks.0.q_proj.bias": torch.zeros(3)}, header, r"shape \(24,\)"),
        ("foreign", weights, None, "header"),
        ("typo", weights, {"curvedray": _header(file).replace('"heads"', '"haeds"')}, "haeds"),
        ("list", weights, {"curvedray": "[1]"}, "header"),
        ("hollow", weights, {"curvedray": '{"format": 1, "base": null}'}, "header with"),
        ("future", weights, {"curvedray": _header(file).replace('"format": 1', '"format": 2')}, "format 1"),
    ):
        save_file(tensors, tmp_path / f"{name}.safetensors", metadata=note)
        with pytest.raises(InputError, match=complaint):
            load_adapter(tmp_path / f"{name}.safetensors", transformer)
    (tmp_path / "cut.safetensors").write_bytes(file.read_bytes()[:-100])
    for name in ("cut.safetensors", "absent.safetensors"):
        with pytest.raises(InputError, match=name):
            load_adapter(tmp_path / name, transformer)


def _header(file: Path) -> str:
    size = int.from_bytes(file.read_bytes()[:8], "little")
    return str(json.loads(file.read_bytes()[8 : 8 + size])["__metadata__"]["curvedray"])


def test_config_round_trips_and_refuses_what_it_does_not_know() -> None:
    config = AdapterConfig("endpoint", curved_blocks=(1, 2), width=48, heads=2, query_rotation=True)
    assert AdapterConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert config.path_points == 2
    for record, complaint in (
        ({"methd": "crepe"}, "methd"),
        ({"method": "crepe2"}, "one of none, crepe"),
        ({"heads": "two"}, "heads"),
        ({"periods": [[8, 1]]}, "periods"),
        ({"orientation": 1}, "orientation"),
    ):
        with pytest.raises(InputError, match=complaint):
            AdapterConfig.from_json(record)
    assert AdapterConfig().curved(30) == range(10, 20)
    assert AdapterConfig().curved(8) == range(2, 6)
    assert AdapterConfig(supervise="middle").supervised(30) == (15,)
    assert len(AdapterConfig(supervise="all").supervised(30)) == 10


# -- UCPE


def golden(name: str) -> dict[str, np.ndarray]:
    return dict(np.load(DATA / f"{name}.npz"))


def test_ucpe_branch_reproduces_the_public_codes_forward() -> None:
    data = {k: torch.from_numpy(np.asarray(v)) for k, v in golden("ucpe_adapter_relray_absmap").items()}
    grid = TokenGrid(int(data["frames"]), int(data["patches_y"]), int(data["patches_x"]))
    config = AdapterConfig("ucpe", width=32, heads=2, ucpe_conventions=True)
    branch = GeometricAttention(config, "ray", 48)
    named = {name: data["w_" + name.replace(".", "_")] for name in branch.state_dict()}
    branch.load_state_dict(named)
    ray_from_world = data["viewmats"]
    encoding = relative_encoding(ray_from_world, torch.linalg.inv(ray_from_world), grid, 16)
    for maps, expected in ((data["cam_emb"], data["out"]), (None, data["out_without_cam_emb"])):
        view = CameraView(path(), grid, maps, {"ray": encoding}, torch.zeros(3, 1), None)
        with torch.no_grad():
            torch.testing.assert_close(branch(data["x"], view)[0], expected, rtol=1e-4, atol=2e-5)


def test_ucpe_maps_of_its_own_making_are_the_ones_its_weights_get() -> None:
    data = golden("ucpe_raymats_uplat")
    grid = TokenGrid(3, int(data["height"]), int(data["width"]))
    for index in range(2):
        lens = Lens.from_fov(float(data["x_fov_deg"][index]), float(data["xi"][index]), grid.cols, grid.rows)
        cameras = Cameras(lens, torch.from_numpy(data["c2w"][index]))
        maps = camera_map(AdapterConfig("ucpe", ucpe_conventions=True), cameras, grid)
        assert maps is not None
        expected = np.concatenate([data["up_map"][index], data["lat_map"][index]], -1).reshape(-1, 3)
        np.testing.assert_allclose(maps.numpy(), expected, atol=2e-4)


def test_ucpe_checkpoints_are_read_by_key_and_nothing_else_is_unpickled(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    source = attached("ucpe", transformer, woken=True, ucpe_conventions=True)
    with torch.no_grad():
        expected = seen(source, transformer, path())
    source.detach()
    stored = {
        f"pipe.dit.blocks.{k.split('.')[1]}.cam_self_attn.{k.split('.', 2)[2]}": v
        for k, v in source.state_dict().items()
    }
    stored["pipe.dit.blocks.0.self_attn.q.weight"] = torch.zeros(2)
    torch.save({"state_dict": stored}, tmp_path / "ucpe.ckpt")
    save_file(stored, tmp_path / "ucpe.safetensors")
    for name in ("ucpe.ckpt", "ucpe.safetensors"):
        adapter = read_ucpe(tmp_path / name, transformer)
        with torch.no_grad():
            adapter.attach(transformer)
            assert torch.equal(seen(adapter, transformer, path()), expected)
        adapter.detach()
    torch.save({"state_dict": stored, "code": Path}, tmp_path / "hostile.ckpt")
    with pytest.raises(InputError, match="tensors alone"):
        read_ucpe(tmp_path / "hostile.ckpt", transformer)
    del stored["pipe.dit.blocks.2.cam_self_attn.q_proj.bias"]
    torch.save(stored, tmp_path / "short.ckpt")
    with pytest.raises(InputError, match=r"no blocks\.2\.q_proj\.bias"):
        read_ucpe(tmp_path / "short.ckpt", transformer)


# -- sizes


def test_parameter_counts_at_wan_1_3b() -> None:
    counts = {row.method: row.parameters for row in parameter_table("wan2.1-1.3b")}
    assert list(counts) == list(METHODS)
    assert counts["none"] == 0
    assert counts["ucpe"] == 30 * (3 * (1536 * 192 + 192) + (192 * 1536 + 1536) + (3 * 1536 + 1536)) == 35_637_120
    assert counts["crepe"] - counts["ucpe"] == 2 * 1536 + (1536 * 384 + 384) + (384 * 2 + 2)
    assert counts["crepe"] == counts["endpoint"] == counts["point"]
    assert 5.5e6 < counts["depth_concat"] - counts["crepe"] < 6.5e6
