"""Whether quoted words stand in a text."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.evidence.wording import Quotation, count_words, searchable

PAGE = """## The *quick* brown fox

It “jumped” over the [lazy](https://e.test/lazy_(dog) "a dog") dog[12] — twice -5 °C,
and didn't stop at 1,000 well\u2011known ﬁelds. It is unlikely to be the last one.
人工智能正在改变世界，各国都在投入。"""
LETTERS = st.text(alphabet="abcdefghij", min_size=1, max_size=8)
SENTENCE = st.lists(LETTERS, min_size=4, max_size=30)


def occurs(quotation: str, page: str = PAGE) -> bool:
    return Quotation.of(quotation).occurs_in(searchable(page))


@pytest.mark.parametrize(
    "quotation",
    [
        "it jumped over the lazy dog",
        "It 'jumped' over  the\nLAZY dog – twice",
        "didn’t stop at 1,000 **well-known** fields.",
        "The quick brown fox … lazy dog",
        "quick brown fox [...] well-known fields. It is",
        "人工智能正在改变世界, 各国都在投入",
        "人工智能……各国都在投入。",
    ],
)
def test_a_quotation_is_found_with_any_typography(quotation):
    assert occurs(quotation)


@pytest.mark.parametrize(
    "quotation",
    [
        "it jumped over the happy dog",
        "likely to be the last one",
        "twice 5 °C, and didn't",
        "didn't stop at 1000 well-known fields",
        "lazy dog … quick brown fox",
        "人工智能没有改变世界",
    ],
)
def test_an_altered_quotation_is_not_found(quotation):
    assert not occurs(quotation)


SPOKEN = """"Glass has no memory, she used to say; we must have one for it." "The valley, which few of us
liked, was drowned," he wrote. «Le verre n'a pas de mémoire, disait-elle ; c'est à nous d'en avoir pour lui.»
„Wir haben gewartet“, sagte Frau Dr. Kern, „bis das Wasser kam.“"""


@pytest.mark.parametrize(
    "quotation",
    [
        "Glass has no memory; we must have one for it.",
        "Le verre n'a pas de mémoire ; c'est à nous d'en avoir pour lui.",
        "Wir haben gewartet, bis das Wasser kam.",
    ],
)
def test_who_speaks_may_be_left_out_of_a_quotation(quotation):
    assert occurs(quotation, SPOKEN)


@pytest.mark.parametrize(
    "quotation", ["The valley, was drowned", "Glass has a memory; we must have one for it."]
)
def test_nothing_else_may_be_left_out_at_a_pause(quotation):
    assert not occurs(quotation, SPOKEN)


PRINTED = """The state-owned com\u00ad
pany asked a well-
known commit-

## Page 2

tee. [1] The minis-
ter, aged 5-
10, agreed."""


@pytest.mark.parametrize(
    "quotation",
    [
        "[T]he state-owned company asked",
        "asked a well-known committee",
        "well-known committee. The minister",
        "asked a wellknown … The minister",
        "minister, aged 5-10, agreed",
    ],
)
def test_a_quotation_is_found_across_lines_and_pages(quotation):
    assert occurs(quotation, PRINTED)


@pytest.mark.parametrize(
    "quotation",
    [
        "aged 510, agreed",
        "minister, agreed … The state-owned company",
        "[D]he state-owned company",
        "[] he state",
    ],
)
def test_an_altered_quotation_is_not_found_in_broken_lines_either(quotation):
    assert not occurs(quotation, PRINTED)


def test_an_ellipsis_does_not_join_what_is_far_apart():
    page = f"The minister denied it. {'Other matters followed. ' * 200}It was signed in May."
    assert not occurs("The minister denied it … signed in May", page)
    assert occurs("The minister denied it … signed in May", page.replace("Other matters followed. ", "", 190))


def test_a_part_that_returns_is_followed_from_where_the_rest_is():
    page = f"We know that much. {'x ' * 1_000} We know that much is true, and more is coming."
    assert occurs("We know that … more is coming", page)


def test_ideographs_count_by_three():
    assert count_words("one two three") == 3
    assert count_words("人工智能正在改变世界各国") == 4


@given(SENTENCE, st.integers(0, 20), st.integers(4, 20), st.data())
def test_every_stretch_of_a_text_is_in_it_and_none_with_another_word(words, start, length, data):
    page = " ".join(words)
    stretch = words[start : start + length]
    assert occurs(" ".join(stretch), page)
    if stretch:
        place = data.draw(st.integers(0, len(stretch) - 1))
        stretch[place] = "zzz"
        assert not occurs("“" + " ".join(stretch) + "”", page)


@given(
    SENTENCE, st.sampled_from(["**{}**", "_{}_", "`{}`", "[{}](https://e.test/a)", "“{}”", "{}[3]", "{}\n> "])
)
def test_marks_of_markdown_do_not_count(words, mark):
    page = " ".join(mark.format(word) if index % 3 == 0 else word for index, word in enumerate(words))
    assert occurs(" ".join(words), page)


@given(st.text(alphabet=st.characters(exclude_characters="…"), max_size=300))
@settings(max_examples=200)
def test_any_text_without_gaps_is_in_itself(text):
    assert occurs(text, text)


@pytest.mark.parametrize("piece", ["](", "[1,", ". ", "- ", "[ ", '](a "', " ", "…", "a ", "人", "*_`"])
def test_a_megabyte_of_anything_is_read_in_linear_time(piece):
    small, large = (_seconds(piece * (size // len(piece))) for size in (100_000, 800_000))
    assert large < 40 * small + 1


def _seconds(text: str) -> float:
    begin = time.process_time()
    searchable(text)
    return time.process_time() - begin
