"""The passage that a search shows."""

import pytest

from maniple.service.search import find_passage


def marked(text, *terms):
    passage, marks = find_passage(text, terms)
    return passage, [passage[start:end] for start, end in marks]


def test_the_passage_is_around_the_first_word_and_all_words_in_it_are_marked():
    text = "Nothing here. " * 50 + "Solar power grew, and Müller counts solar cells. " + "The end. " * 50
    passage, words = marked(text, "solar", "muller")
    assert words == ["Solar", "Müller", "solar"]
    assert len(passage) <= 240 and not passage.startswith("othing")


def test_a_whole_word_is_preferred_to_a_part_of_one():
    passage, _ = marked("a cart " * 100 + "This is art.", "art")
    assert "This is art." in passage


@pytest.mark.parametrize(
    ("text", "term", "places"),
    [
        ("It reports of a port, and of ports.", "port", [(16, 20), (29, 33)]),
        ("It reports.", "port", [(5, 9)]),
        ("中国光伏，光伏", "光伏", [(2, 4), (5, 7)]),
    ],
)
def test_a_part_of_a_word_is_marked_only_if_there_is_no_whole_one(text, term, places):
    assert find_passage(text, [term])[1] == places


def test_a_text_without_the_words_shows_its_beginning():
    assert marked("The beginning.", "missing") == ("The beginning.", [])
    assert marked("", "missing") == ("", [])


def test_words_that_touch_are_one_mark():
    assert marked("光伏发电", "光伏", "伏发") == ("光伏发电", ["光伏发"])


@pytest.mark.parametrize(
    ("text", "word", "shown"),
    [
        ("# Growth\n\nIt grew by **24 %** in `Spain`.", "grew", "Growth\n\nIt grew by 24 % in Spain."),
        ("| City | Degrees |\n|---|--:|\n| Rome | 22.2 |", "rome", "City · Degrees\n\nRome · 22.2"),
        (r"With $K_n = 1000\,(1+p)^n$ it grows.", "grows", "With K_n = 1000(1+p)^n it grows."),
        (r"So $x = \frac{a}{b} \times \text{rate}", "rate", "So x = a/b · rate"),
        ("It costs $5 or $10 a_year, 2 * 3 = 6.", "costs", "It costs $5 or $10 a_year, 2 * 3 = 6."),
        ("See [the page](https://e.test/solar).", "page", "See the page."),
        ("See [the page](https://e.test/solar).", "solar", "See [the page](https://e.test/solar)."),
    ],
)
def test_a_passage_is_shown_without_marks_of_markdown_and_tex(text: str, word: str, shown: str):
    passage, words = marked(text, word)
    assert passage == shown
    assert [one.lower() for one in words] == [word]
