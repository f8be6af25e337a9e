"""Passages are found by the words of a query, however they and the query are written."""

import gc
import sqlite3

import pytest

from maniple.search.text_index import MAX_HITS_OF_TEXT, SNIPPET_CHARACTERS, TextIndex, split_lines


@pytest.fixture
def index():
    index = TextIndex()
    yield index
    index.close()


def test_an_index_that_nobody_uses_any_more_is_deleted():
    index = TextIndex()
    database = index._database
    del index
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError):
        database.execute("SELECT 1")


def found(index: TextIndex, query: str) -> list[str]:
    return [one.name for one in index.find(query, 10).hits]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("2026年铜价上涨的原因是供应不足。", "铜价", "**铜价**"),
        ("2026年铜价上涨的原因是供应不足。", "供应 原因", "**原因**"),
        ("2026年铜价上涨", "涨", "**涨**"),
        ("GDP增长了5%", "GDP增长", "**GDP增长**"),
        ("東京の人口は1400万人", "人口", "**人口**"),
        ("ประเทศไทยส่งออกข้าว", "ส่งออก", "**ส่งออก**"),
        ("भारत में हिन्दी", "हिन्दी", "**हिन्दी**"),
        ("Übergröße der Straße", "ubergrosse STRASSE", "**Übergröße**"),
        ("UBERGROSSE", "übergröße", "**UBERGROSSE**"),
        ("Cafe\u0301 Zürich", "café zurich", "**Cafe\u0301**"),
        ("co-operation is key", "cooperation", "**co-operation**"),
        ("cooperation is key", "co-operation", "**cooperation**"),
        ("co-operation is key", "co operation", "**operation**"),
        ("it costs 1,234.5 euros", "1234.5", "**1,234.5**"),
        ("it costs 1234.5 euros", "1,234.5", "**1234.5**"),
        ("es kostet 1.234,5 Euro", "1,234.5", "**1.234,5**"),
        ("the universities exported", "university export", "**universities**"),
        ("snake_case_name = 3", "case_name", "**case_name**"),
        ("the file (see a/b.txt)", "a/b.txt", "**a/b.txt**"),
        ("ＡＢＣ corporation", "abc", "**ＡＢＣ**"),
    ],
)
def test_words_are_found_in_every_script_form_and_spelling_and_marked(index, text, query, marked):
    index.put("hit", "1", f"Other words come first.\n{text}\nAnd last.")
    index.put("other", "1", "Nothing of the kind.")
    hits = index.find(query, 5)
    assert [(one.name, one.line) for one in hits.hits] == [("hit", 2)]
    assert hits.has_all
    assert marked in hits.hits[0].snippet


@pytest.mark.parametrize(
    "query",
    [
        '"copper" AND (price*',
        "copper NOT price",
        'NEAR("copper price", 3)',
        "words:copper ^price",
        "copper + price -",
        "{words head}: copper price",
        "copper\0 price\ud800",
        '""" copper * : price',
        "copper; DROP TABLE passage; --price",
        "copper " * 5_000 + "price",
    ],
)
def test_no_query_is_an_error_of_syntax(index, query):
    index.put("hit", "1", "The price of copper is near.")
    assert found(index, query) == ["hit"]


@pytest.mark.parametrize("query", ["", " ", '"', "*", "AND", "()", "-- ;", "\0", "\ud800", "_", "²"])
def test_a_query_without_words_finds_nothing(index, query):
    index.put("hit", "1", "AND * ( ) - \0 _ x")
    assert found(index, query) == []


def test_passages_with_all_words_come_before_those_with_some(index):
    index.put("some", "1", "copper copper copper")
    index.put("all", "1", f"{'filler ' * 100} copper {'filler ' * 20} price")
    assert found(index, "copper price") == ["all"]
    hits = index.find("copper price zebra", 5)
    assert ([one.name for one in hits.hits], hits.has_all) == (["all", "some"], False)
    assert index.find("copper zebra lion tiger", 5, min_share=0.5).hits == ()


def test_a_text_has_few_hits_and_equal_passages_are_one(index):
    index.put("long", "1", "".join(f"copper {number}\n{'x ' * 600}\n" for number in range(50)))
    index.put("first", "1", "the same copper")
    index.put("second", "1", "the same copper")
    hits = index.find("copper", 10).hits
    assert sum(one.name == "long" for one in hits) == MAX_HITS_OF_TEXT
    (same,) = [one for one in hits if "same" in one.snippet]
    assert {same.name, *same.also} == {"first", "second"}


def test_names_and_titles_are_found_also_of_what_has_no_text(index):
    index.put("plots/copper-price.png", "1", "")
    index.put("sources/3.md", "1", "A table of numbers.", "Annual outlook")
    assert found(index, "copper-price.png") == ["plots/copper-price.png"]
    assert found(index, "outlook numbers") == ["sources/3.md"]


def test_what_was_replaced_or_removed_is_not_found(index):
    index.put("a", "1", "old words")
    index.put("a", "2", "new words")
    index.put("b", "1", "old words")
    index.remove(["b", "unknown"])
    assert found(index, "old") == []
    assert (found(index, "new"), index.stamps()) == (["a"], {"a": "2"})


def test_the_place_of_a_hit_is_exact_in_long_texts_and_long_lines(index):
    lines = [f"line number {number} of many" for number in range(1, 10_001)]
    lines[8_765] = "here is the zebra"
    index.put("lines", "1", "\n".join(lines))
    index.put("one line", "1", "x" * 30_000 + " the lion")
    (zebra,), (lion,) = index.find("zebra", 5).hits, index.find("lion", 5).hits
    assert (zebra.line, zebra.character) == (8_766, 13)
    assert (lion.line, lion.character) == (1, 30_006)
    assert all(len(one.snippet) < SNIPPET_CHARACTERS + 20 for one in (zebra, lion))


@pytest.mark.parametrize(
    "text", ["", " \n ", "one", "a\n\nb\n" * 900, "x" * 3_500, "\n" * 1_500 + "end", "a b " * 700]
)
def test_passages_hold_the_whole_text_and_know_their_places(text):
    lines = text.split("\n")
    shown = 0
    for line, character, piece in split_lines(text):
        first = piece.split("\n")[0]
        assert lines[line - 1][character - 1 :].startswith(first)
        shown += len("".join(piece.split()))
    assert shown == len("".join(text.split()))
