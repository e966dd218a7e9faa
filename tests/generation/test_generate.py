"""Generation: guidance as it is written, recipes that repeat to the byte, and mistakes answered in a sentence."""

import dataclasses
from collections.abc import Iterator

import pytest
import torch
from tiny_wan import path, tiny_wan, trained
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.adapter.cost import Cost, adapter_operations, backbone_operations, duration
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.generation.generate import generate, generate_batch
from curvedray.generation.shot import cameras_for
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape
from curvedray.models.interface import without_block
from curvedray.models.wan import SHAPES, Wan, wan_transformer
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap

SMALL = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 2}


@pytest.fixture
def studio() -> Iterator[tuple[Wan, Adapter]]:
    model = tiny_wan()
    adapter = trained(model).attach(model.transformer)
    yield model, adapter
    adapter.detach()


# -- sampling


def test_same_seed_same_bytes_another_seed_or_camera_another_video(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    first, again = (generate(model, "a cat", "pan left 40deg", adapter=adapter, **SMALL) for _ in range(2))
    assert torch.equal(first.frames, again.frames)
    assert first.frames.shape == (5, 32, 48, 3)
    for change in ({"seed": 1}, {"cameras": "pan right 40deg"}, {"lens": "fisheye-160"}, {"prompt": "zzz"}):
        said = {"prompt": "a cat", "cameras": "pan left 40deg"} | change
        assert not torch.equal(generate(model, adapter=adapter, **SMALL, **said).latents, first.latents)


def test_guidance_is_what_it_says(studio: tuple[Wan, Adapter]) -> None:
    """One Euler step is linear in the velocity, so the formulas can be read off the latents."""
    model, adapter = studio
    one = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 1, "sampler": "euler", "adapter": adapter}

    def made(**options: object) -> Tensor:
        return generate(model, options.pop("prompt", "a cat"), "pan left 40deg", **(one | options)).latents

    plain = made(guidance_scale=1.0)
    unwanted = made(guidance_scale=1.0, prompt="b")
    with adapter.disabled():
        off, off_unwanted = made(guidance_scale=1.0), made(guidance_scale=1.0, prompt="b")
    blocks = model.transformer.blocks
    with without_block(model.transformer, 1):
        weak = made(guidance_scale=1.0)
    assert model.transformer.blocks is blocks
    cases = [
        ({"guidance_scale": 1.0, "block_guidance": 1.5, "left_out": 1}, weak + 1.5 * (plain - weak)),
        ({"guidance_scale": 3.0, "negative_prompt": "b"}, unwanted + 3 * (plain - unwanted)),
        ({"guidance_scale": 1.0, "camera_guidance": 2.0}, off + 2 * (plain - off)),
        (
            {"guidance_scale": 1.0, "camera_guidance": 2.0, "drop_text": True, "negative_prompt": "b"},
            off_unwanted + 2 * (plain - off_unwanted),
        ),
        (
            {"guidance_scale": 3.0, "camera_guidance": 2.0, "negative_prompt": "b"},
            plain + 2 * (plain - unwanted) + (plain - off),
        ),
    ]
    assert (plain - off).abs().max() > 1e-2
    assert (plain - unwanted).abs().max() > 1e-3
    assert (plain - weak).abs().max() > 1e-3
    for options, expected in cases:
        torch.testing.assert_close(made(**options), expected, rtol=0, atol=2e-4)


def test_a_block_that_is_not_there_cannot_be_left_out(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    blocks = model.transformer.blocks
    with pytest.raises(InputError, match=f"a block from 0 to {len(blocks) - 1}"):
        generate(model, "a cat", adapter=adapter, block_guidance=2.0, left_out=len(blocks), **SMALL)
    assert model.transformer.blocks is blocks


def test_map_guidance_pulls_away_from_the_radii_that_are_predicted(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    one = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 1, "sampler": "euler", "adapter": adapter}

    def made(radius: float | None, **options: object) -> Tensor:
        given = None if radius is None else RadialMap.from_metric(torch.full((5, 32, 48), radius), near=1.0)
        return generate(model, "a cat", "truck left 0.5", radial=given, guidance_scale=1.0, **one, **options).latents

    adapter.accepts_radial_maps, before = True, adapter.accepts_radial_maps
    try:
        free, mapped, guided = made(None), made(8.0), made(8.0, map_guidance=3.0)
        assert (mapped - free).abs().max() > 1e-4
        torch.testing.assert_close(guided, free + 3 * (mapped - free), rtol=0, atol=2e-4)
        with pytest.raises(InputError, match="a radial map to guide towards"):
            made(None, map_guidance=3.0)
    finally:
        adapter.accepts_radial_maps = before


def test_a_batch_is_what_each_of_its_clips_would_be_alone(studio: tuple[Wan, Adapter]) -> None:
    """But for rounding; with every kind of guidance, a lens each, and metres beside near distances."""
    model, adapter = studio
    asked = {"steps": 2, "frames": 5, "height": 32, "width": 48, "camera_guidance": 2.0, "drop_text": True}
    paths = [
        trajectory("pan left 40deg", named_lens("fisheye-160", 48, 32), 5),
        trajectory("truck left 1m", named_lens("pinhole-70", 48, 32), 5, unit="metric"),
    ]
    near = [None, 2.0]
    together = generate_batch(model, ["a cat", "a dog"], paths, [4, 5], adapter=adapter, near=near, **asked)
    for row, (prompt, camera) in enumerate(zip(["a cat", "a dog"], paths, strict=True)):
        alone = generate(
            model,
            prompt,
            camera,
            adapter=adapter,
            seed=4 + row,
            near=near[row],
            camera_guidance=2.0,
            drop_text=True,
            **SMALL,
        )
        assert (alone.frames.int() - together[row].int()).abs().max() <= 1


def test_an_adapter_that_would_not_be_heard_is_refused(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    with pytest.raises(InputError, match="attach"):
        generate(tiny_wan(), "a", adapter=adapter, **SMALL)
    adapter.detach()
    with pytest.raises(InputError, match="attach"):
        generate(model, "a", adapter=adapter, **SMALL)


def test_callbacks_see_every_step_and_may_stop_it(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    seen: list[tuple[int, float]] = []

    def note(model: Wan, step: int, timestep: float, tensors: dict[str, Tensor]) -> None:
        seen.append((step, timestep))
        if step == 3:
            raise KeyboardInterrupt

    options = SMALL | {"num_inference_steps": 6}
    with pytest.raises(KeyboardInterrupt):
        generate(model, "a", adapter=adapter, callback_on_step_end=note, **options)
    assert [step for step, _ in seen] == [0, 1, 2, 3]
    assert seen[0][1] == pytest.approx(1000)
    assert adapter._view is None


def test_radii_are_collected_by_step_and_block(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    made = generate(model, "a", adapter=adapter, **SMALL)
    assert [sorted(step) for step in made.radii] == [[1], [1]]
    assert made.radii[0][1].mu.shape == (1, made.grid.tokens)


def test_a_radial_map_changes_the_video_and_needs_mixforcing(studio: tuple[Wan, Adapter]) -> None:
    model, adapter = studio
    near, far = (RadialMap.from_metric(torch.full((5, 32, 48), r), near=1.0) for r in (1.0, 15.0))
    videos = [generate(model, "a", adapter=adapter, radial=i, **SMALL).latents for i in (near, far, None)]
    assert (videos[0] - videos[1]).abs().max() > 1e-3
    unknown = RadialMap.from_metric(torch.full((5, 32, 48), 25.0), near=1.0)
    same = generate(model, "a", adapter=adapter, radial=unknown, **SMALL).latents
    torch.testing.assert_close(same, videos[2], rtol=1e-4, atol=1e-4)
    adapter.accepts_radial_maps = False
    with pytest.raises(InputError, match="MixForcing"):
        generate(model, "a", adapter=adapter, radial=near, **SMALL)


def test_cameras_are_made_to_fit_or_refused() -> None:
    model = tiny_wan()
    grid = model.grid_for(5, 32, 48)
    cameras = path(5)
    fitted = cameras_for(model, cameras, None, grid)
    assert fitted.lens.size == (48, 32)
    torch.testing.assert_close(fitted.lens.hfov, cameras.lens.hfov, rtol=0, atol=1e-3)
    metric = dataclasses.replace(cameras, unit="metric")
    with pytest.raises(InputError, match="near"):
        cameras_for(model, metric, None, grid)
    moved = cameras_for(model, metric, None, grid, near=2.0).world_from_camera
    torch.testing.assert_close(moved[:, :3, 3] * 2, cameras.world_from_camera[:, :3, 3])
    with pytest.raises(InputError, match="5 poses"):
        cameras_for(model, path(7), None, grid)
    with pytest.raises(InputError, match="shaped like"):
        cameras_for(model, Cameras(Lens.from_fov(90, 0, 64, 64), cameras.world_from_camera), None, grid)


# -- cost


def test_counted_operations_at_wan_1_3b() -> None:
    """What the adapter adds: 4 % of a step on 5 latent frames of 15 x 26 tokens, 10 % on the full grid."""
    transformer = wan_transformer("meta", **SHAPES["wan2.1-1.3b"])
    with torch.device("meta"):
        adapter = Adapter(transformer)
    for grid, share in ((TokenGrid(5, 15, 26), 1.04), (TokenGrid(21, 30, 52), 1.10)):
        backbone = backbone_operations(transformer, grid, 512)
        assert (backbone + adapter_operations(adapter, grid)) / backbone == pytest.approx(share, abs=0.008)


def test_a_cost_is_said_in_units_a_person_thinks_in() -> None:
    """Regression: "about 0.0 GiB" and "0.0166 T operations"."""
    small = Cost(17, 64, 96, 120, 16, 32, 1_800_000, 200_000, 1.66e10, 1.2, 9.4e6)
    large = dataclasses.replace(small, operations=2.9e16, memory=5.4e9, adapter_parameters=0)
    assert "about 1 s on a laptop's CPU; 9.4 MB" in str(small)
    assert "20 % more work with the camera" in str(small)
    assert "about 17 days on a laptop's CPU, 2.4 minutes on a large GPU; 5.4 GB" in str(large)
    assert [duration(i) for i in (0.01, 75, 100, 7200)] == ["1 s", "75 s", "1.7 minutes", "2 hours"]


def test_the_embedded_model_runs_on_the_same_lines() -> None:
    """Random weights in the embedded model's own classes: the interface is all that is tested here."""
    torch.manual_seed(0)
    model = EmbeddedModel(EmbeddedShape(("a", "red", "ball"), layers=3)).eval()
    config = AdapterConfig(width=48).fitted_to(model.grid_for(17, 64, 96))
    plain = {
        "num_inference_steps": 2,
        "camera_guidance": 1.0,
    }  # an untrained adapter changes nothing, but guidance does
    alone = generate(model, "a red ball", **plain)
    adapter = Adapter(model.transformer, config).attach(model.transformer)
    seen = generate(model, "a red ball", "pan left 30deg", adapter=adapter, **plain)
    assert seen.frames.shape == (17, 64, 96, 3)
    assert (seen.frames.int() - alone.frames.int()).abs().max() <= 1
    assert sorted(seen.radii[-1]) == [1]
