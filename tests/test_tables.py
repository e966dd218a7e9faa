"""Tables: a cell stays a cell, and other people's text stays text."""

import pytest

from curvedray.tables import markdown_table, plain


def test_a_table_by_hand():
    assert markdown_table(["a", "b"], [["1", "**2**"]]) == "| a | b |\n| --- | --- |\n| 1 | **2** |"


@pytest.mark.parametrize("text", ["a | b", "a\nb", r"a \| b", "a\r\n| b"])
def test_a_cell_stays_one_cell(text):
    *_, row = markdown_table(["only"], [[text]]).splitlines()
    assert row.replace(r"\|", "").count("|") == 2
    assert len(markdown_table(["only"], [[text]]).splitlines()) == 3


def test_foreign_text_is_neither_markup_nor_control():
    assert plain("a\x1b[31m\n<b>|`*") == r"a\\x1b\[31m \<b\>\|\`\*"
    assert plain("an-ordinary_name.mp4") == "an-ordinary_name.mp4"
