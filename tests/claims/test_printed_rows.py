"""Program outputs laid out with a row for each record."""

import time

import pytest

from maniple.claims.printed_rows import MAX_CHARACTERS, lay_out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "done\n",
        "The mean was 5.2 in May; that is all.\n",
        "a[7] = 5\n",
        "It has 12 boats, and 3 of them are new.\n",
        "[1, 2, 3]\n",
        "{broken: [1, 2\n",
        "| a | b |\n|---|---|\n| x; 1 | y; 2 |\n",
        "def f(x):\n    return {'a': x}\n",
    ],
)
def test_what_has_no_records_stays_as_it_is(text: str):
    assert lay_out(text) == text


def test_text_around_records_stays():
    lines = lay_out('first\n[{"a": "x", "b": 1}, {"a": "y", "b": 2}]\nlast 7\n').split("\n")
    assert (lines[0], "| y | 2 |" in lines, "last 7" in lines) == ("first", True, True)


def test_fields_of_objects_in_records_are_columns():
    text = lay_out('{"x": {"size": {"h": 1}}, "y": {"size": {"h": 2}, "z": "a|b"}}')
    assert "| y | 2 | a/b |" in text.split("\n")


def test_the_first_field_with_words_heads_the_rows():
    lines = lay_out('[{"n": 1, "a": "x"}, {"n": 2, "a": "y"}]').split("\n")
    assert "| y | 2 |" in lines


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{'a': " * 30_000, "a: 1, " * 60_000, "(1, " * 80_000, "x 1; " * 70_000, " [" * 100_000],
)
def test_hostile_outputs_take_bounded_time(text: str):
    begun = time.process_time()
    lay_out(text[:MAX_CHARACTERS])
    assert time.process_time() - begun < 10
