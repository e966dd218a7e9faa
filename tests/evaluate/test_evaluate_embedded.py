"""The embedded estimator: what it refuses, what it answers, its file, and its way into scores."""

import json
from contextlib import suppress
from dataclasses import fields

import numpy as np
import pytest
import torch

from curvedray import Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate import pose_errors
from curvedray.evaluate.estimators import Estimator, make_estimator
from curvedray.evaluate.estimators.clip_reader import ClipReader, ReaderShape, in_a_mirror
from curvedray.evaluate.estimators.embedded import (
    WEIGHTS,
    Embedded,
    at_reading_size,
    load_reader,
    poses,
    save_reader,
)
from curvedray.evaluate.matching import Job
from curvedray.evaluate.metrics import geometry, lens
from curvedray.evaluate.run import score_clip
from curvedray.evaluate.scores import Failure
from curvedray.evaluate.world_truth import SHAPE
from curvedray.files import write_tensors
from curvedray.formats import write_cameras
from curvedray.media.video import write_video
from curvedray.models.open import load_model
from curvedray.moves.trajectory import trajectory
from curvedray.world.world import world_clip

SMALL = ReaderShape(("desert", "night"), ("red", "blue"), ("ball", "box", "pillar"), width=16, layers=1, heads=2)


@pytest.fixture(scope="module")
def embedded():
    torch.manual_seed(0)
    return Embedded(ClipReader(SMALL).eval().requires_grad_(False), "1", "unmeasured")


def clips(count=1, scale=1, seed=0):
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, (count, 17, 64, 96, 3), dtype=np.uint8)
    return small.repeat(scale, 2).repeat(scale, 3)


def test_it_reads_everything_at_once(embedded):
    assert isinstance(embedded, Estimator)
    reading = embedded.read(torch.from_numpy(clips(3)))
    assert reading.turn.shape == reading.shift.shape == (3, 5, 3)
    assert reading.fov.shape == reading.xi.shape == (3,)
    assert reading.log_radius.shape == (3, 5, 8, 12)
    assert (reading.theme.shape, reading.colour.shape, reading.kind.shape) == ((3, 2), (3, 2, 2), (3, 2, 4))
    assert reading.position.shape == (3, 2, 2)
    assert (reading.turn[:, 0] == 0).all()
    assert (reading.shift[:, 0] == 0).all()
    alone = embedded.read(torch.from_numpy(clips(3)[1:2]))  # a clip's neighbours do not change it
    torch.testing.assert_close(alone.turn[0], reading.turn[1], atol=1e-5, rtol=1e-4)


def test_its_answer_is_a_path_a_lens_a_horizon_and_radii(embedded):
    answer = embedded.estimate(clips()[0])
    assert answer.poses.shape == (17, 4, 4)
    assert answer.found.nonzero()[0].tolist() == [0, 4, 8, 12, 16]
    np.testing.assert_array_equal(answer.poses[0], np.eye(4))
    np.testing.assert_allclose(np.linalg.det(answer.poses[:, :3, :3]), 1)
    np.testing.assert_array_equal(answer.view.up[0], [0, -1, 0])  # the world's paths start level
    np.testing.assert_allclose(answer.view.up[4], -answer.poses[16, 1, :3])
    assert isinstance(answer.view.lens, Lens)
    assert answer.radial.shape == (5, 8, 12)
    assert (answer.radial > 0).all()
    assert answer.note.startswith("reads as ")


@pytest.mark.parametrize("scale", [2, 3])
def test_an_enlarged_clip_reads_as_the_clip(embedded, scale):
    torch.testing.assert_close(
        at_reading_size(torch.from_numpy(clips(1, scale))), at_reading_size(torch.from_numpy(clips()))
    )
    small, large = (embedded.estimate(clips(1, s)[0]) for s in (1, scale))
    np.testing.assert_allclose(small.poses, large.poses, atol=1e-5)
    assert large.view.lens.size == (96 * scale, 64 * scale)
    assert float(large.view.lens.hfov) == pytest.approx(float(small.view.lens.hfov), rel=1e-4)


@pytest.mark.parametrize(
    ("shape", "words"),
    [((16, 64, 96), "16 frames"), ((17, 64, 64), "shaped 64 x 64"), ((17, 32, 48), "smaller, 48 x 32")],
)
def test_what_it_cannot_read_is_a_reason(embedded, shape, words):
    answer = embedded.estimate(np.zeros((*shape, 3), dtype=np.uint8))
    assert isinstance(answer, Failure)
    assert words in answer.reason
    with pytest.raises(InputError, match=words):
        embedded.read(torch.zeros(1, *shape, 3, dtype=torch.uint8))


@pytest.mark.parametrize(("fov", "xi"), [(9.0, 0.0), (-3.0, -1.0), (3.0, 1.2), (7.0, 0.5)])
def test_a_wild_reading_is_still_a_lens(embedded, fov, xi):
    bias = embedded.reader.lens.bias.clone()
    try:
        embedded.reader.lens.bias.copy_(torch.tensor([fov, xi]))
        assert embedded.estimate(clips()[0]).view.lens.focal.min() > 0
    finally:
        embedded.reader.lens.bias.copy_(bias)


# -- its file


def test_a_reader_comes_back_from_its_file(embedded, tmp_path):
    path = tmp_path / "reader.safetensors"
    save_reader(embedded.reader, path, "about a degree", {"steps": 3})
    again = Embedded.load(path)
    assert again.floor == "about a degree"
    assert len(again.version) == 12
    assert again.reader.shape == SMALL
    for name, weights in embedded.reader.state_dict().items():
        torch.testing.assert_close(again.reader.state_dict()[name], weights, atol=1e-3, rtol=1e-3)  # half precision
    save_reader(again.reader, path, "about a degree", {"steps": 3})
    assert Embedded.load(path).version == again.version  # same weights, same bytes
    save_reader(again.reader, path, "two degrees", {"steps": 3})
    assert Embedded.load(path).version != again.version


def test_a_missing_or_broken_file_is_named(embedded, tmp_path):
    path = tmp_path / "reader.safetensors"
    with pytest.raises(InputError, match="none there"):
        load_reader(path)
    save_reader(embedded.reader, path, "floor")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="complete"):
        load_reader(path)


def changed(embedded, path, header=None, **tensors):
    """A reader's file with a changed header or changed tensors."""
    stored = {name: tensor.half() for name, tensor in embedded.reader.state_dict().items()}
    shape = {"themes": ["desert", "night"], "colours": ["red", "blue"], "kinds": ["ball", "box", "pillar"]}
    good = {"shape": shape | {"width": 16, "layers": 1, "heads": 2}, "floor": "f"}
    text = header if isinstance(header, str) else json.dumps(good | (header or {}))
    stored = {name: tensor for name, tensor in (stored | tensors).items() if tensor is not None}
    write_tensors(path, stored, {"curvedray": text})
    return path


@pytest.mark.parametrize(
    "header",
    ["", "[]", "null", "3", '"x"', "{", "{" * 5000, '{"floor": 1e999}', {"floor": 3}, {"floor": None}],
)
def test_an_odd_header_is_refused_in_a_sentence(embedded, tmp_path, header):
    with pytest.raises(InputError):
        load_reader(changed(embedded, tmp_path / "r.safetensors", header))


def test_an_odd_shape_is_refused_in_a_sentence(embedded, tmp_path):
    words = {"themes": ["a"], "colours": ["a"], "kinds": ["a"]}
    odd: list[object] = [None, [], 7, {}, {"themes": "desert"}, words | {"kinds": []}, words | {"themes": [1]}, words]
    odd += [words | {"width": width} for width in (32, "16", True, -1, 10**9, 1.5)]
    odd += [words | more for more in ({"heads": 0}, {"heads": 3}, {"layers": 10**6}, {"channels": 0}, {"depth": 1})]
    for shape in odd:
        with pytest.raises(InputError):
            load_reader(changed(embedded, tmp_path / "r.safetensors", {"shape": shape}))


@pytest.mark.parametrize(
    "tensor",
    [None, torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.bool), torch.zeros(2, dtype=torch.complex64),
     torch.zeros(3), torch.zeros(1, 2), torch.zeros(()), torch.full((2,), torch.nan), torch.full((2,), torch.inf)],
)  # fmt: skip
def test_an_odd_tensor_is_refused_in_a_sentence(embedded, tmp_path, tensor):
    changed(embedded, tmp_path / "good.safetensors")
    load_reader(tmp_path / "good.safetensors")
    with pytest.raises(InputError, match=r"lens\.bias"):
        load_reader(changed(embedded, tmp_path / "r.safetensors", **{"lens.bias": tensor}))
    with pytest.raises(InputError, match="with another"):
        load_reader(changed(embedded, tmp_path / "r.safetensors", another=torch.zeros(1)))


def test_a_damaged_file_is_an_input_error_or_loads(embedded, tmp_path):
    path = changed(embedded, tmp_path / "r.safetensors")
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for number in range(30):
        content = bytearray(whole)
        for place in random.integers(0, 9000 if number % 2 else 400, 5):
            content[place] = random.integers(256)
        path.write_bytes(content)
        with suppress(InputError):
            load_reader(path)


def test_the_registry_makes_it(embedded, tmp_path, monkeypatch):
    path = tmp_path / "reader.safetensors"
    save_reader(embedded.reader, path, "floor")
    monkeypatch.setattr("curvedray.evaluate.estimators.embedded.WEIGHTS", path)
    assert make_estimator("embedded").name == "embedded"


# -- its way into scores


def test_its_lens_and_path_are_scored_against_the_request(embedded, tmp_path):
    write_video(torch.from_numpy(clips()[0]), tmp_path / "a.mp4")
    write_cameras(trajectory("pan left 30deg", Lens.from_fov(90, 0.3, 96, 64), 17), tmp_path / "a.json")
    np.save(tmp_path / "a.npy", np.full((17, 64, 96), 3.0, dtype=np.float32))
    job = Job("a", tmp_path / "a.mp4", tmp_path / "a.json", tmp_path / "a.mp4", tmp_path / "a.npy")
    result = score_clip(job, embedded, 4)
    assert result.failure == ""
    scores = {score.metric: score.value for score in result.scores}
    assert {"RotErr", "Ray", "FoV", "xi", "k1", "Gravity", "AbsRel (token)"} <= scores.keys()
    assert "AbsRel (pixel)" not in scores  # it has tokens only
    assert scores["Frames found"] == 1
    said = embedded.estimate(read_back(tmp_path / "a.mp4")).view.lens
    assert scores["FoV"] == pytest.approx(abs(float(said.hfov) - 90), abs=1e-3)
    assert scores["xi"] == pytest.approx(abs(float(said.xi) - 0.3), abs=1e-5)
    assert scores["Gravity"] == pytest.approx(0, abs=1e-3)  # its own reading of the same video


def read_back(path):
    from curvedray.media.video import read_video

    return read_video(path).frames.numpy()


def test_a_perfect_lens_scores_zero():
    wide = Lens.from_fov(120, 0.5, 96, 64)
    assert [score.value for score in lens.lens_scores("a", wide, wide)] == pytest.approx([0, 0, 0], abs=1e-6)
    k1, k2 = lens.radial_coefficients(0.5)
    radial = Radial(30.0, 30.0, 48.0, 32.0, k1, k2, (96, 64))
    assert [score.value for score in lens.coefficient_scores("a", wide, radial)] == pytest.approx([0, 0], abs=1e-6)


def test_token_radii_are_scored_against_pooled_ones():
    supplied = np.random.default_rng(0).uniform(2, 5, (17, 64, 96))
    exact = geometry.pooled(supplied[::4])
    scores = {s.metric: s.value for s in geometry.adherence_scores("a", supplied, exact, 1)}
    assert scores["SILog (token)"] == pytest.approx(0, abs=1e-9)
    assert "SILog (pixel)" not in scores
    both = {s.metric for s in geometry.adherence_scores("a", supplied, supplied[::2], 2)}
    assert {"SILog (pixel)", "SILog (token)"} <= both
    with pytest.raises(InputError, match="7 frames"):
        geometry.adherence_scores("a", supplied, exact[:1].repeat(7, 0), 2)


def test_the_weights_in_the_package_read_clips_they_never_saw():
    """Its floor is measured on 240 test clips; twelve others, rendered and shown as they are, bound it from above."""
    shipped = Embedded.load()
    assert sum(file.stat().st_size for file in WEIGHTS.parent.glob("*.safetensors")) < 25e6  # all that is shipped
    assert "degrees per frame" in shipped.floor
    shown = [world_clip(index, "test") for index in range(1000, 1012)]
    reading = shipped.read(torch.stack([clip.video for clip in shown]))
    errors = [
        pose_errors(clip.cameras[::4].world_from_camera.double().numpy(), path)
        for clip, path in zip(shown, poses(reading), strict=True)
    ]
    assert np.mean([error.degrees_per_frame for error in errors]) < 4
    fov = torch.stack([clip.cameras.lens.hfov for clip in shown])
    assert (torch.rad2deg(reading.fov) - fov).abs().mean() < 7
    themes = [list(shipped.reader.shape.themes).index(clip.world.theme) for clip in shown]
    assert (reading.theme.argmax(-1) == torch.tensor(themes)).float().mean() > 0.8


def test_the_header_says_what_it_is(embedded, tmp_path):
    from safetensors import safe_open

    save_reader(embedded.reader, tmp_path / "r.safetensors", "floor", {"a": 1})
    with safe_open(tmp_path / "r.safetensors", "pt") as file:
        header = json.loads(file.metadata()["curvedray"])
    assert header["card"] == {"a": 1}
    assert header["shape"]["themes"] == list(SMALL.themes)


def test_it_reads_the_clips_that_the_embedded_model_makes():
    model = load_model("random")
    own = model.defaults
    assert model.grid_for(own.frames, own.height, own.width) == SHAPE.radii
    assert at_reading_size(torch.zeros(1, own.frames, own.height, own.width, 3, dtype=torch.uint8)).shape == (
        *(1, 3, own.frames, own.height, own.width),
    )


def test_a_mirrored_video_is_read_as_the_mirrored_reading(embedded):
    """By law, and not by what was learned: a video and its mirror image are read together."""
    video = torch.rand(2, 3, 17, 64, 96, generator=torch.Generator().manual_seed(0)) * 2 - 1
    said, turned = embedded.reader.read(video), in_a_mirror(embedded.reader.read(video.flip(-1)))
    for field in fields(said):
        torch.testing.assert_close(getattr(said, field.name), getattr(turned, field.name), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(said.turn, embedded.reader(embedded.reader.encode(video)).turn)
