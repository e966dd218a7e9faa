"""A video's files: recipes that repeat to the byte, outputs checked before any work, mistakes answered in words."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_wan import path, tiny_folder, tiny_wan, trained
from typer.testing import CliRunner

from curvedray.adapter.file import save_adapter
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.formats import read_cameras, write_cameras
from curvedray.generation.generate import generate
from curvedray.generation.parts import Parts, Source, load_parts
from curvedray.generation.recipe import VideoRecipe, new_recipe, read_recipe
from curvedray.generation.write import check_output, make_video
from curvedray.media.video import read_video
from curvedray.models.embedded.model import ADAPTER
from curvedray.models.wan import Wan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and an adapter on disk, as a user has them."""
    place = tmp_path_factory.mktemp("models")
    tiny_folder(place / "wan")
    save_adapter(trained(Wan.load(place / "wan")), place / "adapter.safetensors")
    return place


def test_a_recipe_survives_json(folder: Path) -> None:
    model = Wan.load(folder / "wan")
    parts = load_parts(model, folder / "adapter.safetensors")
    recipe = new_recipe(parts, "a cat", "orbit left 40deg", frames=5, seed=7)
    again = VideoRecipe.from_json(json.loads(json.dumps(recipe.to_json())))
    assert again.to_json() == recipe.to_json()
    assert torch.equal(again.shot.cameras.world_from_camera, recipe.shot.cameras.world_from_camera)
    assert torch.equal(again.shot.cameras.lens.focal, recipe.shot.cameras.lens.focal)
    broken = recipe.to_json()
    del broken["settings"]["steps"]
    with pytest.raises(InputError, match="settings: steps"):
        VideoRecipe.from_json(broken)


def test_names_of_a_model_and_an_adapter_do_for_one_video(folder: Path) -> None:
    small = {"num_frames": 5, "height": 32, "width": 48, "num_inference_steps": 1}
    model, adapter = Wan.load(folder / "wan"), folder / "adapter.safetensors"
    named = generate(str(folder / "wan"), "a cat", adapter=str(adapter), **small)
    for _ in range(2):  # the adapter is detached again, so that the model is free for the next
        mixed = generate(model, "a cat", adapter=adapter, **small)
    assert (named.frames.int() - mixed.frames.int()).abs().max() <= 1
    with pytest.raises(InputError, match="a file's name"):
        generate(str(folder / "wan"), "a cat", adapter=trained(model), **small)


def run(*arguments: object) -> str:
    """The command as a user types it; its error, if any, comes out as it was raised."""
    result = CliRunner().invoke(app, [str(i) for i in arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_command_makes_a_video_and_makes_it_again_to_the_byte(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "cat.mp4"
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    small = ["--frames", 5, "--size", "48x32", "--steps", 2, "--seed", 3, "--threads", 1]  # others round sums otherwise
    camera = ["--move", "orbit left 40deg", "--lens", "fisheye-160", "--camera-guidance", 1.5]
    said = run("generate", "a cat", *model, *small, *camera, "-o", out, "--json")
    names = {"cat.mp4", "cat-recipe.json", "cat-cameras.json", "cat-sheet.png", "cat-path.png", "cat-radii.png"}
    assert {file.name for file in out.parent.iterdir()} == names
    report = json.loads(said[said.index("{") :])
    assert report["files"][0] == str(out)
    assert report["recipe"]["settings"]["seed"] == 3
    assert read_video(out).frames.shape == (5, 32, 48, 3)
    first = {file.name: file.read_bytes() for file in out.parent.iterdir()}

    run("generate", "--again", out, "-o", tmp_path / "cat.mp4")
    assert (tmp_path / "cat.mp4").read_bytes() == first["cat.mp4"]
    run("generate", "--again", out.with_name(f"{out.stem}-recipe.json"), "--threads", 1)
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
    assert recipe.shot.settings.radial_sigma == 0.2
    torch.testing.assert_close(recipe.shot.cameras.world_from_camera, path(5).world_from_camera)
    run("generate", "--again", tmp_path / "out.mp4", "-o", tmp_path / "again.mp4")
    assert (tmp_path / "again.mp4").read_bytes() == (tmp_path / "out.mp4").read_bytes()


def test_inputs_are_never_written_over(folder: Path, tmp_path: Path) -> None:
    """`--camera mine.json -o mine.mp4` wrote the recipe over the camera file; the README did so itself."""
    small = ["--model", folder / "wan", "--frames", 5, "--size", "48x32", "--steps", 1]
    words = ["generate", "a cat", "--adapter", folder / "adapter.safetensors", *small, "--camera"]
    for name in ("mine.json", "mine-cameras.json", "mine-recipe.json"):
        write_cameras(path(5), tmp_path / name)
    before = (tmp_path / "mine.json").read_bytes()
    for name in ("mine-cameras.json", "mine-recipe.json"):
        with pytest.raises(InputError, match=f"{name}.*an input of this video"):
            run(*words, tmp_path / name, "-o", tmp_path / "mine.mp4")
    assert not (tmp_path / "mine.mp4").exists()
    run(*words, tmp_path / "mine.json", "-o", tmp_path / "mine.mp4")
    assert (tmp_path / "mine.json").read_bytes() == before
    np.savez(tmp_path / "m-map.npz", radius=np.full((5, 32, 48), 2.0, np.float32))
    depth = ["--radial", tmp_path / "m-map.npz", "--radial-meaning", "z"]
    with pytest.raises(InputError, match="an input of this video"):
        run(*words[:-1], *depth, "-o", tmp_path / "m.mp4")


def test_what_cannot_be_written_is_refused_before_filming(folder: Path, tmp_path: Path, monkeypatch) -> None:
    """A whole film was made, and then thrown away."""
    monkeypatch.setattr("curvedray.generation.write.film", lambda *args, **kwargs: pytest.fail("filmed"))
    words = ["generate", "a cat", "--model", folder / "wan", "--frames", 5, "--size", "48x32", "--steps", 1]
    with pytest.raises(InputError, match="predicts radii"):
        run(*words, "--adapter", "none", "--save-radii", "-o", tmp_path / "a.mp4")
    with pytest.raises(InputError, match="fps"):
        run(*words, "--adapter", folder / "adapter.safetensors", "--fps", 0.005, "-o", tmp_path / "a.mp4")


def test_what_has_no_effect_is_said(folder: Path) -> None:
    model = ["--model", folder / "wan", "--adapter", folder / "adapter.safetensors"]
    idle = ["--radial-sigma", 0.3, "--drop-text", "--camera-guidance", 1, "--negative", "a dog", "--guidance", 1]
    idle += ["--left-out", 1]
    said = json.loads(run("generate", "a cat", *model, *idle, "--dry-run", "--json").partition("{")[2].join(["{", ""]))
    names = {notice.partition(" ")[0] for notice in said["notices"]}
    assert {"radial_sigma", "drop_text", "negative", "left_out"} <= names
    alone = ["--model", folder / "wan", "--adapter", "none", "--camera-guidance", 3]
    said = json.loads(run("generate", "a cat", *alone, "--dry-run", "--json").partition("{")[2].join(["{", ""]))
    assert any("camera_guidance has no effect" in notice for notice in said["notices"])


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
        (["a cat", "-o", tmp_path / "out.avi"], "mp4"),
        (["a cat", "-o", folder], "mp4"),
        (["a cat", "-o", folder / "wan" / "model_index.json" / "out.mp4"], "a folder"),
        (["  ", *out], "no words"),
        (["a cat", *out, "--dtype", "banana"], "float32"),
        (["a cat", *out, "--dtype", "bfloat16"], "embedded"),
        (["a cat", *out, "--guidance", -1], "guidance"),
        (["a cat", *out, "--camera-guidance", "nan"], "camera_guidance"),
        (["a cat", *out, "--shift", 1e30], "shift"),
        (["a cat", *out, "--near", 0], "near"),
        (["a cat", *out, "--near", 1e30], "near"),
        (["a cat", *out, "--move", "dolly in 1e6"], "1000 near distances"),
        (["a cat", *out, "--fps", 0], "fps"),
        (["a cat", *out, "--threads", 0], "threads"),
        (["a cat", *out, "--seed", 1, "--seeds", 2], "--seed or --seeds"),
        (["a cat", *out, "--seeds", 0], "--seeds"),
        (["a cat", *out, "--seed", 1, "--seed", 1], "once"),
        (["a cat", *out, "--frames", 401], "64 tokens"),
        (["a cat", *out, "--frames", 8001, "--size", "8192x8192"], "pixels in all"),
        (["a cat", *out, "--frames", 10**9 + 1], "frames"),
        (["a cat", *model, *out, "--beside-exact"], "embedded"),
        (["a red ball", *out, "--beside-exact", "--dry-run"], "desert, snowy"),  # known before filming
        (["--again", folder / "cat.mp4", "--steps", 3], "--steps"),
        (["--again", tmp_path / "absent.mp4"], "absent"),
    ):
        with pytest.raises(InputError, match=complaint):
            run("generate", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_stopping_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_wan()
    parts = Parts(model, trained(model).attach(model.transformer))
    recipe = new_recipe(parts, "a", "static", frames=5, height=32, width=48, steps=1)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("curvedray.generation.write.write_png", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_video(parts, recipe, tmp_path / "out.mp4")
    assert list(tmp_path.iterdir()) == []


def test_without_a_camera_aware_adapter_the_model_alone_can_be_asked_for(folder: Path, tmp_path: Path) -> None:
    small = ["--frames", 1, "--size", "48x32", "--steps", 1]
    run("generate", "a cat", "--model", folder / "wan", "--adapter", "none", *small, "-o", tmp_path / "out.mp4")
    assert read_recipe(tmp_path / "out.mp4").adapter is None
    assert not (tmp_path / "out-radii.png").exists()


EMBEDDED = "a red ball and a blue box in a desert courtyard"


def test_a_shipped_adapter_goes_by_its_name(tmp_path: Path) -> None:
    """Regression: the path of the installation was in every video, so that equal videos differed."""
    source = Source.of(ADAPTER)
    assert source.path == "embedded"
    assert source == Source.of("embedded")
    assert source.file == ADAPTER
    copy = tmp_path / "mine.safetensors"
    copy.write_bytes(ADAPTER.read_bytes())
    assert Source.of(copy) == Source(str(copy), source.sha256)
    assert source.found("adapter", str(copy)).path == str(copy)


def test_a_mapped_video_repeats_with_the_near_distance_it_was_given(tmp_path: Path) -> None:
    """Regression: `near` was not in the recipe, so that a map was read with another unit the second time."""
    np.save(tmp_path / "map.npy", np.full((17, 64, 96), 4.0, np.float32))
    quick = ["--steps", 1, "--zoom", 1]
    run("generate", EMBEDDED, "--radial", tmp_path / "map.npy", "--near", 2, *quick, "-o", tmp_path / "a.mp4")
    assert read_recipe(tmp_path / "a.mp4").near == 2.0
    run("generate", "--again", tmp_path / "a.mp4", "-o", tmp_path / "b.mp4")
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_seeds_endings_and_the_exact_rendering(tmp_path: Path) -> None:
    quick = ["--steps", 1, "--zoom", 2]
    both = ["--seed", 3, "--seed", 5, "--fps", 12, "--beside-exact"]
    run("generate", EMBEDDED, *quick, *both, "-o", tmp_path / "a.webm")
    first, second = (read_video(tmp_path / f"a-{seed}.webm") for seed in (3, 5))
    assert first.fps == 12
    assert not torch.equal(first.frames, second.frames)
    assert read_recipe(tmp_path / "a-5.webm").shot.settings.seed == 5
    assert read_video(tmp_path / "a-3-exact.webm").frames.shape[1:3] == (128, 2 * 192)
    run("generate", EMBEDDED, *quick, "-o", tmp_path / "b.gif")
    assert read_recipe(tmp_path / "b.gif").shot.prompt == EMBEDDED
    run("generate", "--again", tmp_path / "b-recipe.json", "-o", tmp_path / "c.gif")
    assert (tmp_path / "b.gif").read_bytes() == (tmp_path / "c.gif").read_bytes()
    assert read_cameras(tmp_path / "b-cameras.json").frames == 17


def test_a_camera_file_of_another_length_and_size_is_fitted_and_said(tmp_path: Path) -> None:
    run("cameras", "make", "orbit left 30deg", tmp_path / "orbit.json", "--lens", "fisheye-150")
    said = run("generate", EMBEDDED, "--camera", tmp_path / "orbit.json", "--dry-run", "--json")
    report = json.loads(said[said.index("{") :])
    assert any("81 frames" in notice for notice in report["notices"])
    assert any("832 x 480" in notice for notice in report["notices"])
    assert len(report["recipe"]["cameras"]["frames"]) == 17


def test_the_output_is_checked_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded for a video that cannot be written")

    monkeypatch.setattr("curvedray.generation.parts.load_model", never)
    (tmp_path / "out-sheet.png").mkdir()
    with pytest.raises(InputError, match="out-sheet"):
        run("generate", EMBEDDED, "-o", tmp_path / "out.mp4")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    settings = new_recipe(Parts(tiny_wan()), "a", "static").shot.settings
    with pytest.raises(InputError, match="free disk"):
        check_output(tmp_path / "other.mp4", settings)


def test_mutated_recipes_are_a_sentence_never_a_traceback(tmp_path: Path) -> None:
    recipe = new_recipe(Parts(tiny_wan()), "a cat", "orbit left 40deg", frames=5, height=32, width=48).to_json()
    text, draw, refused = json.dumps({"recipe": recipe}), random.Random(0), 0
    odd = ["null", "[]", "{}", "-1", "1e999", '"x"', "true", "NaN", "9" * 5000, "[[[[1]]]]"]
    file = tmp_path / "recipe.json"
    for case in range(300):
        if case % 2:  # a value in place of another
            record = json.loads(text)
            target = record["recipe"]
            while isinstance(target, dict | list) and target:
                keys = list(target) if isinstance(target, dict) else list(range(len(target)))
                key = draw.choice(keys)
                if draw.random() < 0.4 or not isinstance(target[key], dict | list):
                    target[key] = "@"
                    break
                target = target[key]
            damaged = json.dumps(record).replace('"@"', draw.choice(odd), 1)
        else:  # bytes
            cut = bytearray(text.encode())
            for _ in range(draw.randrange(1, 5)):
                cut[draw.randrange(len(cut))] = draw.randrange(256)
            damaged = cut.decode("latin-1")
        file.write_text(damaged)
        try:
            read_recipe(file)
        except InputError:
            refused += 1
    assert refused > 100


def test_a_mistake_leaves_the_callers_model_without_an_adapter():
    """It stayed attached, and the next call was refused for it."""
    parts = load_parts()
    parts.adapter.detach()
    with pytest.raises(InputError, match="wobble"):
        generate(parts.model, "a red ball", "wobble 3deg", adapter=str(ADAPTER))
    made = generate(parts.model, "a red ball", "static", adapter=str(ADAPTER), num_inference_steps=1)
    assert len(made.frames) == 17
