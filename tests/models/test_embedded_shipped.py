"""The weights in the package: small, described, and obeying."""

import json
import logging

import numpy as np
import pytest
import torch
from safetensors import safe_open

from curvedray.cameras.named_lenses import named_lens
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.map_obedience import layout_obedience
from curvedray.evaluate.world_truth import KnownClips
from curvedray.generation.generate import generate_batch
from curvedray.generation.parts import Parts, load_parts
from curvedray.models.embedded.model import GRID, WEIGHTS
from curvedray.moves.trajectory import trajectory
from curvedray.radial.interval import RadialInterval
from curvedray.radial.map import RadialMap
from curvedray.world.world import world_clip

MOST_BYTES = 25_000_000
PROMPTS = ("a red ball and a blue box in a desert courtyard", "a green pillar and a white ball in a night courtyard")


@pytest.fixture(scope="module")
def parts() -> Parts:
    return load_parts()


@pytest.fixture(scope="module")
def estimator() -> Embedded:
    return Embedded.load()


def test_the_weights_are_small_and_say_what_they_are() -> None:
    files = sorted(WEIGHTS.parent.glob("*.safetensors"))
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    with safe_open(WEIGHTS, "pt") as file:
        assert json.loads(file.metadata()["embedded"])["card"]["recipe"]["what"] == "backbone"


def signed(parts: Parts, estimator: Embedded, moves: dict[str, tuple[str, int, int]]) -> np.ndarray:
    """How far each move went on its own axis, the way it was asked to being positive, in two views."""
    views = tuple(zip(("wide-110", "fisheye-150"), PROMPTS, strict=True))
    asked = [(move, lens, prompt) for move in moves for lens, prompt in views]
    paths = [trajectory(move, named_lens(lens, 96, 64), 17) for move, lens, _ in asked]
    prompts = [prompt for *_, prompt in asked]
    said = estimator.read(generate_batch(parts.model, prompts, paths, list(range(len(asked))), adapter=parts.adapter))
    places = [moves[move] for move, *_ in asked]
    return np.array([float(getattr(said, kind)[row, -1, axis]) * sign for row, (kind, axis, sign) in enumerate(places)])


def test_the_camera_turns_the_way_it_is_asked(parts: Parts, estimator: Embedded) -> None:
    moves = {"pan left 40deg": ("turn", 1, -1), "pan right 40deg": ("turn", 1, 1)}
    moves |= {"roll cw 35deg": ("turn", 2, 1), "roll ccw 35deg": ("turn", 2, -1)}
    moves |= {"tilt up 25deg": ("turn", 0, 1), "tilt down 25deg": ("turn", 0, -1)}
    found = signed(parts, estimator, moves)
    assert (found > 0).mean() > 0.9
    assert np.degrees(found.mean()) > 15


def test_the_camera_travels_the_way_it_is_asked(parts: Parts, estimator: Embedded) -> None:
    moves = {"truck left 0.8": ("shift", 0, -1), "truck right 0.8": ("shift", 0, 1)}
    moves |= {"dolly in 0.8": ("shift", 2, 1), "dolly out 0.6": ("shift", 2, -1)}
    found = signed(parts, estimator, moves)
    assert (found > 0).mean() > 0.8
    assert found.mean() > 0.4  # metres; asked for are 1 to 2


def test_the_lens_and_the_prompt_are_obeyed(parts: Parts, estimator: Embedded) -> None:
    lenses = ("pinhole-70", "wide-110", "fisheye-170")
    asked = [(lens, prompt) for lens in lenses for prompt in PROMPTS]
    paths = [trajectory("truck right 0.5", named_lens(lens, 96, 64), 17) for lens, _ in asked]
    said = estimator.read(
        generate_batch(parts.model, [p for _, p in asked], paths, list(range(6)), adapter=parts.adapter)
    )
    fov = said.fov.reshape(3, 2).mean(1)
    assert fov[0] < fov[1] < fov[2]
    themes = [estimator.reader.shape.themes[i] for i in said.theme.argmax(-1)]
    assert themes == ["desert", "night"] * 3


def test_a_map_of_another_layout_moves_what_is_seen(parts: Parts, estimator: Embedded) -> None:
    """Same captions, cameras and noise, with and without the map: distances go over half of the way to it."""
    clips = [world_clip(index, "test", layout=1) for index in range(8)]
    maps = [RadialMap.from_metric(clip.radius, clip.valid) for clip in clips]
    intervals, masks = zip(*(one.on(GRID) for one in maps), strict=True)
    mu, sigma = (torch.stack([getattr(one, name) for one in intervals]) for name in ("mu", "sigma"))
    read = []
    for radial in (None, (RadialInterval(mu, sigma), torch.stack(masks))):
        films = generate_batch(
            parts.model,
            [clip.caption for clip in clips],
            [clip.cameras for clip in clips],
            list(range(len(clips))),
            adapter=parts.adapter,
            radial=radial,
            near=[one.near for one in maps],
        )
        read.append(estimator.read(films))
    shown = estimator.read(torch.stack([clip.video for clip in clips]))
    found = layout_obedience(KnownClips.of(clips), read[1], read[0], shown)
    assert found.share_of_the_way.mean > 0.5
    assert found.change.mean > 0.5


def test_unknown_words_are_named(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parts.model.encode_text(["a red dragon in a desert courtyard"])
    assert "dragon" in caplog.text
