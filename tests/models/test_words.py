"""The word encoder tells apart what it knows and says what it does not."""

import logging

import torch

from curvedray.models.embedded.words import WordEncoder, split

WORDS = ("a", "red", "blue", "ball", "box", "and")


def test_order_and_words_change_the_embedding():
    encoder = WordEncoder(WORDS, width=8, length=6)
    first, second, third = encoder(["a red ball", "a ball red", "a blue ball"])
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)


def test_case_and_punctuation_do_not_matter():
    encoder = WordEncoder(WORDS, width=8, length=6)
    assert torch.equal(encoder(["A red ball."]), encoder(["a red ball"]))
    assert split("A red-ball, and") == ["a", "red", "ball", "and"]


def test_unknown_words_are_named_and_leave_the_rest_alone(caplog):
    encoder = WordEncoder(WORDS, width=8, length=6)
    with caplog.at_level(logging.WARNING):
        embedded = encoder(["a turquoise red ball"])
    assert "turquoise" in caplog.text
    assert torch.equal(embedded, encoder(["a red ball"]))


def test_a_long_caption_is_cut_with_a_word(caplog):
    encoder = WordEncoder(WORDS, width=8, length=3)
    with caplog.at_level(logging.WARNING):
        assert encoder(["a red ball and a blue box"]).shape == (1, 3, 8)
    assert "longer" in caplog.text
