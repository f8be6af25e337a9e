"""The pages that a person wrote: words that a dictionary has, and sentences that can be read at once."""

import re
from pathlib import Path

import pytest
from spellchecker import SpellChecker

from tests.docs.language import find_pages, split_sentences, split_words
from tests.serving import ROOT

MAX_WORDS = 40
MAX_MANUAL_WORDS = 27_600
"""Of the pages of `docs/` that `find_pages` returns: each new page shortens another one."""
_GENERATED = re.compile(r"<!-- begin: (\S+) -->.*?<!-- end: \1 -->", re.DOTALL)
OWN_WORDS = Path(__file__).with_name("words.txt")
"""Names and terms that the dictionary lacks, one a line in their order."""
PAGES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in find_pages()}


@pytest.fixture(scope="module")
def dictionary() -> SpellChecker:
    known = SpellChecker(language="en")
    known.word_frequency.load_words(OWN_WORDS.read_text(encoding="utf-8").split())
    return known


def find_unknown_words(dictionary: SpellChecker, text: str) -> set[str]:
    return dictionary.unknown(word for one in split_sentences(text) for word in split_words(one))


@pytest.mark.parametrize("page", PAGES)
def test_each_word_of_a_page_is_in_the_dictionary(page: str, dictionary: SpellChecker):
    assert find_unknown_words(dictionary, PAGES[page]) == set(), f"repair it, or add it to {OWN_WORDS.name}"


@pytest.mark.parametrize("page", PAGES)
def test_a_sentence_is_not_too_long(page: str):
    assert [one for one in split_sentences(PAGES[page]) if len(one.split()) > MAX_WORDS] == []


def test_the_manual_stays_short():
    written = {page: _GENERATED.sub("", text) for page, text in PAGES.items() if page.startswith("docs/")}
    manual = {page: len(text.split()) for page, text in written.items()}
    assert sum(manual.values()) < MAX_MANUAL_WORDS, manual


def test_the_own_words_are_sorted_and_not_in_the_dictionary():
    own = OWN_WORDS.read_text(encoding="utf-8").split()
    assert own == sorted(set(own))
    assert set(own) - SpellChecker().unknown(own) == set()


def test_prose_is_checked_and_code_tables_and_addresses_are_not(dictionary: SpellChecker):
    page = """# A heding

Some *prose* with a [linck](https://example.org/adress) and `cod`. Another
sentense!

```sh
makke
```

| tabel |
|---|

- an itim; the next's
"""
    assert [len(one.split()) for one in split_sentences(page)] == [2, 7, 2, 2, 2]
    assert find_unknown_words(dictionary, page) == {"heding", "linck", "sentense", "itim"}
