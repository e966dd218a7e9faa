"""Generation: guidance as it is written, recipes that repeat to the byte, and mistakes answered in a sentence."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_wan import path, tiny_folder, tiny_wan
from torch import Tensor
from typer.testing import CliRunner

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.adapter.cost import adapter_operations, backbone_operations
from curvedray.adapter.file import save_adapter
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.generation.generate import cameras_for, generate, generate_batch
from curvedray.generation.recipe import Parts, VideoRecipe, load_parts, new_recipe, read_recipe
from curvedray.generation.write import make_video
from curvedray.media.video import read_video
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape
from curvedray.models.wan import SHAPES, Wan, wan_transformer
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap

SMALL = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 2}


def trained(model: Wan, method: str = "crepe") -> Adapter:
    """An adapter whose camera matters, and that was taught to follow maps."""
    adapter = Adapter(model.transformer, AdapterConfig(method))
    generator = torch.Generator().manual_seed(3)
    for parameter in adapter.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    adapter.accepts_radial_maps = True
    return adapter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and an adapter on disk, as a user has them."""
    place = tmp_path_factory.mktemp("models")
    tiny_folder(place / "wan")
    save_adapter(trained(Wan.load(place / "wan")), place / "adapter.safetensors")
    return place


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
    cases = [
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
    for options, expected in cases:
        torch.testing.assert_close(made(**options), expected, rtol=0, atol=2e-4)


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
    assert not torch.equal(videos[0], videos[1])
    unknown = RadialMap.from_metric(torch.full((5, 32, 48), 25.0), near=1.0)
    assert torch.equal(generate(model, "a", adapter=adapter, radial=unknown, **SMALL).latents, videos[2])
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


# -- files


def test_a_recipe_survives_json(folder: Path) -> None:
    model = Wan.load(folder / "wan")
    parts = load_parts(model, folder / "adapter.safetensors")
    recipe = new_recipe(parts, "a cat", "orbit left 40deg", frames=5, seed=7)
    again = VideoRecipe.from_json(json.loads(json.dumps(recipe.to_json())))
    assert again.to_json() == recipe.to_json()
    assert torch.equal(again.cameras.world_from_camera, recipe.cameras.world_from_camera)
    assert torch.equal(again.cameras.lens.focal, recipe.cameras.lens.focal)
    broken = recipe.to_json()
    del broken["settings"]["steps"]
    with pytest.raises(InputError, match="missing field"):
        VideoRecipe.from_json(broken)


def run(*arguments: object) -> str:
    """The command as a user types it; its error, if any, comes out as it was raised."""
    result = CliRunner().invoke(app, [str(i) for i in arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_command_makes_a_video_and_makes_it_again_to_the_byte(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "cat.mp4"
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    small = ["--frames", 5, "--size", "48x32", "--steps", 2, "--seed", 3]
    camera = ["--move", "orbit left 40deg", "--lens", "fisheye-160", "--camera-guidance", 1.5]
    said = run("generate", "a cat", *model, *small, *camera, "-o", out, "--json")
    names = {"cat.mp4", "cat.json", "cat-sheet.png", "cat-path.png", "cat-radii.png"}
    assert {file.name for file in out.parent.iterdir()} == names
    report = json.loads(said[said.index("{") :])
    assert report["files"][0] == str(out)
    assert report["recipe"]["settings"]["seed"] == 3
    assert read_video(out).frames.shape == (5, 32, 48, 3)
    first = {file.name: file.read_bytes() for file in out.parent.iterdir()}

    run("generate", "--again", out, "-o", tmp_path / "cat.mp4")
    assert (tmp_path / "cat.mp4").read_bytes() == first["cat.mp4"]
    run("generate", "--again", out.with_suffix(".json"))
    assert {file.name: file.read_bytes() for file in out.parent.iterdir()} == first

    moved = tmp_path / "moved.safetensors"
    moved.write_bytes((folder / "adapter.safetensors").read_bytes())
    run("generate", "--again", out, "--adapter", moved, "-o", tmp_path / "third.mp4")
    assert torch.equal(read_video(tmp_path / "third.mp4").frames, read_video(out).frames)
    moved.write_bytes(b"another")
    with pytest.raises(InputError, match="made with"):
        run("generate", "--again", out, "--adapter", moved, "-o", tmp_path / "fourth.mp4")
    assert not (tmp_path / "fourth.mp4").exists()


def test_the_command_takes_camera_files_and_radial_maps(folder: Path, tmp_path: Path) -> None:
    write_cameras(path(5), tmp_path / "path.json")
    np.savez(tmp_path / "map.npz", radius=np.full((5, 32, 48), 2.0, np.float32), near=np.array(1.0))
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    small = ["--frames", 5, "--size", "48x32", "--steps", 1]
    given = ["--camera", tmp_path / "path.json", "--radial", tmp_path / "map.npz", "--radial-sigma", 0.2]
    run("generate", "a cat", *model, *small, *given, "-o", tmp_path / "out.mp4")
    recipe = read_recipe(tmp_path / "out.mp4")
    assert recipe.radial is not None
    assert recipe.settings.radial_sigma == 0.2
    torch.testing.assert_close(recipe.cameras.world_from_camera, path(5).world_from_camera)
    run("generate", "--again", tmp_path / "out.mp4", "-o", tmp_path / "again.mp4")
    assert (tmp_path / "again.mp4").read_bytes() == (tmp_path / "out.mp4").read_bytes()


def test_cost_is_shown_before_starting(folder: Path) -> None:
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    said = run("generate", "a cat", *model, "--dry-run", "--json")
    recipe = json.loads(said[said.index("{") :])
    assert recipe["files"] == []
    assert recipe["cost"]["tokens"] == 21 * 30 * 52
    assert recipe["cost"]["adapter_share"] > 1
    assert recipe["recipe"]["settings"]["frames"] == 81


def test_mistakes_are_answered_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    out = ["-o", tmp_path / "out.mp4"]
    for arguments, complaint in (
        (["a cat", *model], "-o out.mp4"),
        ([*model, *out], "a prompt"),
        (["a cat", "--model", folder / "wan", *out], "--adapter none"),
        (["a cat", *model, *out, "--size", "48"], "WIDTHxHEIGHT"),
        (["a cat", *model, *out, "--device", "abacus"], "device"),
        (["a cat", *model, *out, "--frames", 6], "4 n"),
        (["a cat", *model, *out, "--move", "wobble"], "move"),
        (["a cat", *model, *out, "--sampler", "magic"], "unipc"),
        (["a cat", *model, *out, "--steps", 0], "steps"),
        (["a cat", *model, *out, "--radial", tmp_path / "absent.npy"], "absent"),
        (["a cat", *model, "-o", tmp_path / "out.avi", "--frames", 1, "--size", "48x32", "--steps", 1], "mp4"),
        (["--again", tmp_path / "absent.mp4"], "absent"),
    ):
        with pytest.raises(InputError, match=complaint):
            run("generate", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_stopping_leaves_nothing_behind(
    studio: tuple[Wan, Adapter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(*studio)
    recipe = new_recipe(parts, "a", "static", frames=5, height=32, width=48, steps=1)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("curvedray.generation.write.write_png", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_video(parts, recipe, tmp_path / "out.mp4", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_without_a_camera_aware_adapter_the_model_alone_can_be_asked_for(folder: Path, tmp_path: Path) -> None:
    small = ["--frames", 1, "--size", "48x32", "--steps", 1]
    run("generate", "a cat", "--model", folder / "wan", "--adapter", "none", *small, "-o", tmp_path / "out.mp4")
    assert read_recipe(tmp_path / "out.mp4").adapter is None
    assert not (tmp_path / "out-radii.png").exists()


# -- cost


def test_counted_operations_at_wan_1_3b() -> None:
    """What the adapter adds: 4 % of a step on 5 latent frames of 15 x 26 tokens, 10 % on the full grid."""
    transformer = wan_transformer("meta", **SHAPES["wan2.1-1.3b"])
    with torch.device("meta"):
        adapter = Adapter(transformer)
    for grid, share in ((TokenGrid(5, 15, 26), 1.04), (TokenGrid(21, 30, 52), 1.10)):
        backbone = backbone_operations(transformer, grid, 512)
        assert (backbone + adapter_operations(adapter, grid)) / backbone == pytest.approx(share, abs=0.008)


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
    assert torch.equal(seen.frames, alone.frames)
    assert sorted(seen.radii[-1]) == [1]
