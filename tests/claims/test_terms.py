"""The words by which claims and passages are compared."""

import time

from maniple.claims.terms import find_names, find_terms, is_unspaced


def test_inflections_of_a_word_are_the_same_term():
    assert find_terms("passengers") == find_terms("Passenger")
    assert find_terms("libraries were visited") & find_terms("library visits")


def test_stop_words_and_figures_are_no_terms():
    assert find_terms("the 12 were in 1998") == frozenset()


def test_ideographs_are_compared_in_pairs():
    assert {"大桥", "启用"} <= find_terms("大桥于1932年启用")
    assert is_unspaced("大桥于1932年由国王启用")
    assert not is_unspaced("The bridge 大桥")


def test_abbreviations_in_capitals_are_terms():
    assert "eu" in find_terms("exports to the EU")


def test_a_capital_at_the_beginning_of_a_sentence_is_no_name():
    text = "Swimming is forbidden, said Omar Haddad. Banks are unstable."
    assert find_names(text) == {"omar", "haddad"}


def test_long_texts_take_linear_time():
    begun = time.process_time()
    for text in ("Aa" * 100_000, "A-" * 100_000, "A " * 100_000, "大" * 200_000):
        find_terms(text)
        find_names(text)
    assert time.process_time() - begun < 5
