"""Where a quotation stands in a text is found whatever its typography."""

import time

import pytest

from maniple.evidence.quote_span import find_quote

TEXT = """## Page 1
The “old” bridge[^1] was **opened**
in 1932; it cost [6.25 million](https://e.test/a_(b)) pounds, an exam-
ple for others [4]. 大桥于1932年由国王亲自启用通车。 It grew by 5.3 %."""


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("the 'old' bridge was opened in 1932", "old"),
        ("it cost 6.25 million pounds", "6.25 million"),
        ("an example for others", "exam-\nple"),
        ("大桥于1932年由国王", "大桥于1932年由国王"),
        ("It grew by 5.3 %.", "It grew by 5.3 %."),
        ("was opened in 1932 ... an example for others", "pounds"),
    ],
)
def test_a_quotation_is_found(quote, found):
    span = find_quote(quote, TEXT)
    assert span is not None
    assert found in TEXT[span.start : span.end]


@pytest.mark.parametrize(
    "quote",
    ["", "…", "it cost 625 million pounds", "a bridge was opened", "bridge was open", "opened … old bridge"],
)
def test_other_words_are_not_found(quote):
    assert find_quote(quote, TEXT) is None


def test_what_an_ellipsis_leaves_out_is_given():
    span = find_quote("The old bridge … in 1932", TEXT)
    assert span is not None
    assert [one.split() for one in span.left_out] == [["[^1]", "was", "**opened**"]]


def test_a_long_text_takes_linear_time():
    text = "the word and " * 100_000 + "the last word"
    begun = time.process_time()
    assert find_quote("the word … and nothing", text) is None
    assert find_quote("and the last word", text) is not None
    assert time.process_time() - begun < 10
