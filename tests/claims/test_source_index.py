"""The index of a source: sentences, cells, figures and words."""

import time

import pytest

from maniple.claims.dates import find_dates
from maniple.claims.figures import find_figures
from maniple.claims.source_index import SourceIndex, split_sentences
from maniple.claims.terms import find_terms

TABLE = """# Libraries

The city has 42 libraries. They had 412,000 visits in 2024.

| Library | Loans (thousand) | Budget (million euros) |
|---|---|---|
| Central | 655 | 4.8 |
| Harbour | 143 | 1.1 |
"""


def stands(index: SourceIndex, figure: str) -> list[str]:
    return [one.cell or one.passage.text for _, one in index.find_figure(find_figures(figure)[0])]


def test_a_figure_is_found_in_its_sentence_and_cell():
    index = SourceIndex(1, "Libraries", [TABLE])
    assert len(stands(index, "412,000")) == 1
    assert {*stands(index, "655,000")} == {"655"}
    assert {*stands(index, "4.8 million euros")} == {"4.8"}
    assert {*stands(index, "655")} == {"655"}
    assert stands(index, "656") == []


def test_a_date_is_found_with_all_or_a_part_of_it():
    index = SourceIndex(1, "", ["It opened on 9 September 2024. The plan was made from 2011 to 2015."])

    def count(text: str) -> int:
        return len(index.find_date(find_dates(text)[0]))

    assert [count(text) for text in ("9.9.2024", "September 2024", "in 2024")] == [1, 1, 1]
    assert [count(text) for text in ("9 October 2024", "in 2023", "August 2024")] == [0, 0, 0]


def test_a_passage_tells_where_it_stands_in_which_text():
    index = SourceIndex(3, "Libraries", ["Nothing here.", TABLE])
    _, one = index.find_figure(find_figures("412,000")[0])[0]
    assert (one.passage.source, one.passage.text_index) == (3, 1)
    assert TABLE[one.passage.start :].startswith(one.passage.text)


def test_text_that_was_read_twice_is_indexed_once():
    assert len(SourceIndex(1, "", [TABLE, TABLE]).passages) == len(SourceIndex(1, "", [TABLE]).passages)


def test_the_passage_with_most_of_the_words_is_the_most_similar():
    index = SourceIndex(1, "", ["The mayor opened a bridge. The bridge is green. A mayor sleeps."])
    score, one = index.find_similar(find_terms("A mayor opened the bridge"))[0]
    assert one.passage.start == 0
    assert score == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Meyer came on 1. Januar 2024. He left.", 2),
        ("It grew by 3.5 percent. Exports, e.g. to France, fell.", 2),
        ("大桥于1932年启用。它很长。", 2),
        ("U.S. exports rose to approx. 5 tonnes", 1),
    ],
)
def test_sentences_end_at_full_stops_only(text, count):
    assert len([*split_sentences(text)]) == count


def test_a_large_source_is_indexed_in_linear_time():
    seconds = list[float]()
    for size in (1, 4):
        text = "The plant made 1,234 tonnes in 2024, the other 5,678 tonnes.\n" * 1
        lines = [text.replace("1,234", f"{number},234") for number in range(1, 1_000 * size)]
        begun = time.process_time()
        SourceIndex(1, "", ["".join(lines)])
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 12 * seconds[0] + 1


@pytest.mark.parametrize("text", ["1" * 100_000, "| " * 50_000, ". " * 50_000, "a" * 100_000, "。" * 100_000])
def test_hostile_text_takes_linear_time(text):
    begun = time.process_time()
    SourceIndex(1, "", [text])
    assert time.process_time() - begun < 10


def test_the_first_word_of_a_text_is_a_name_if_the_source_writes_it_so():
    index = SourceIndex(
        1, "", ["Later the town of Karsund, said Okafor, sold it. According to him, it is old."]
    )
    assert index.find_names("Later sold by Solberg") == {"solber"}
    assert index.find_names("Okafor sold it") == {"okafor"}
    assert index.find_names("According to Okafor") == {"okafor"}
