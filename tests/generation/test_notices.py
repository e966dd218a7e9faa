"""What the embedded model understands of words, and what it says before filming what it never saw."""

import logging

import pytest
import torch

from curvedray.errors import InputError
from curvedray.generation.generate import generate
from curvedray.generation.parts import Parts, load_parts
from curvedray.generation.recipe import new_recipe
from curvedray.generation.sampling import Given, film
from curvedray.generation.shot import Shot
from curvedray.models import interface
from curvedray.models.embedded.trained_on import MEANING, read_caption
from curvedray.world.themes import WORDS
from curvedray.world.world import scene

QUICK = {"num_inference_steps": 1}


@pytest.fixture(scope="module")
def parts() -> Parts:
    return load_parts()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("A RED BALL, A BLUE BOX; DESERT", "a red ball and a blue box in a desert courtyard"),
        ("a crimson sphere and an azure cube in a sandy yard", "a red ball and a blue box in a desert courtyard"),
        ("Golden columns, snow", "a yellow pillar in a snowy courtyard"),
        ("red ball moving left; white orb; night", "a red ball moving left and a white ball in a night courtyard"),
    ],
)
def test_synonyms_plurals_commas_and_capitals_are_read_and_said_back(said: str, meant: str) -> None:
    caption, notices = read_caption(said)
    assert caption == meant
    assert notices == [f"understood as: {meant}"]


@pytest.mark.parametrize("index", range(20))
def test_a_caption_of_the_world_stays_as_it_is_without_a_word(index: int) -> None:
    caption = scene(index).caption
    assert read_caption(caption) == (caption, [])


def test_what_is_not_known_or_missing_is_named() -> None:
    caption, notices = read_caption("a red dragon beside a blue box")
    assert caption == "a red a blue box"
    assert "dragon" in notices[0]
    assert "no place" in notices[1]
    assert "nothing" in read_caption("Ein Hund läuft")[1][-1]
    caption, notices = read_caption("a dragon with an egg")
    assert caption == ""
    assert notices[-1] == "understood as: nothing"


def test_every_synonym_means_a_word_of_the_world_and_is_none_itself() -> None:
    assert set(MEANING.values()) <= set(WORDS)
    assert not set(MEANING) & set(WORDS)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"width": 192, "height": 128}, "192 x 128 pixels"),
        ({"frames": 33}, "33 frames"),
        ({"cameras": "orbit left 180deg"}, "turns by 180 degrees"),
        ({"cameras": "dolly in 5"}, "5.0 near distances"),
        ({"cameras": "zoom in 2x"}, "zooms"),
        ({"lens": "kitti360"}, "xi of 1.74"),
        ({"lens": "pinhole-20"}, "20 degrees across"),
    ],
)
def test_what_it_was_never_trained_for_is_said_before_filming(
    parts: Parts, asked: dict[str, object], complaint: str
) -> None:
    shot = Shot.of(parts.model, "a red ball in a snowy courtyard", **asked)
    assert complaint in " ".join(shot.notices)


def test_what_it_was_trained_for_needs_no_words(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    for move, lens in (("orbit left 40deg", "fisheye-180"), ("pan right 60deg", "pinhole-60"), ("truck left 1", None)):
        assert Shot.of(parts.model, "a red ball in a snowy courtyard", move, lens=lens).notices == ()
    with caplog.at_level(logging.WARNING):
        generate(parts.model, "a crimson orb, snow", adapter=parts.adapter, **QUICK)
    assert "understood as: a red ball in a snowy courtyard" in caplog.text


def test_poses_as_an_array_are_a_path(parts: Parts) -> None:
    poses = torch.eye(4).repeat(17, 1, 1)
    poses[:, 0, 3] = torch.linspace(0, 1, 17)
    given = [
        generate(parts.model, "a red ball in a snowy courtyard", i, lens="wide-110", adapter=parts.adapter, **QUICK)
        for i in (poses, poses.double().numpy(), "truck right 1")
    ]
    assert (given[0].frames.int() - given[1].frames.int()).abs().max() <= 1
    assert (given[0].frames.int() - given[2].frames.int()).abs().max() <= 2


def test_nan_is_refused_with_its_cause() -> None:
    """Regression: a black video and exit code 0."""
    parts = load_parts()
    shot = Shot.of(parts.model, "a red ball in a snowy courtyard", steps=2)
    with pytest.raises(InputError, match="guidance"):
        film(parts, shot, given=Given(noise=torch.full(parts.model.latent_shape(shot.grid(parts.model)), float("nan"))))
    assert parts.adapter is not None
    name, weight = next(iter(parts.adapter.named_parameters()))
    weight.data.fill_(float("nan"))
    with pytest.raises(InputError, match=f"adapter's weights {name}"):
        film(parts, shot)


def test_weights_are_fingerprinted_when_read_and_when_attached_and_then_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: five fingerprints per video, each over every tensor of the transformer."""
    asked, fingerprint = [], interface.weights_fingerprint

    def counted(transformer: torch.nn.Module) -> str | None:
        asked.append(transformer)
        return fingerprint(transformer)

    monkeypatch.setattr(interface, "weights_fingerprint", counted)
    parts = load_parts()
    recipe = new_recipe(parts, "a red ball in a snowy courtyard", "pan left 10deg")
    film(parts, recipe.shot)
    assert len(asked) == 2
    assert recipe.base == parts.base
