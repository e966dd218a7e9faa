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


def test_a_token_carries_its_neighbours_words():
    """Without places the two captions were the same tokens in another order: which colour was whose was not said."""
    encoder = WordEncoder(WORDS, width=8, length=9)
    encoder.place.zero_()
    one, other = encoder(["a red ball and a blue box", "a red box and a blue ball"])
    ball, colour = WORDS.index("ball") + 1, WORDS.index("red") + 1
    assert torch.equal(one[2], torch.cat([encoder.word[i] for i in (ball, colour, 1, WORDS.index("and") + 1)]))
    apart = torch.cdist(one, other).min(1).values
    assert (apart[[1, 2, 5, 6]] > 1).all()  # red, ball, blue, box: none of them is in the other caption
    alone = WordEncoder(WORDS, width=8, length=9, neighbours=0)
    alone.place.zero_()
    assert torch.cdist(*alone(["a red ball and a blue box", "a red box and a blue ball"])).min(1).values.max() == 0


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
        assert encoder(["a red ball and a blue box"]).shape == (1, 3, 4 * 8)
    assert "longer" in caplog.text
