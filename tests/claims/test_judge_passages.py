"""The passages that a judge of claims is shown."""

import time

from maniple.claims.judge_passages import PIECE_CHARACTERS, PassageFinder, SourcePiece, cut_pieces
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim, find_claims
from maniple.claims.verdict import SourcePassage

FERRY = """# Ferry report

The ferry line carried 4,872,300 passengers in 2024. Its revenue reached 1.37 billion euros.

## Terminals

The Karsund terminal cost 212 million euros; the Harwick terminal cost 158 million euros.

| Route | Passengers | Length (km) |
|---|---|---|
| Harwick | 1,214,000 | 48.6 |
| Lindham | 987,500 | 76.0 |
"""
WATER = "The water works delivered 18.4 million cubic metres to the town of Falkenau last year."


def index(number: int, *texts: str, title: str = "") -> SourceIndex:
    return SourceIndex(number, title, texts)


def finder(*sources: str, given: str = "", results: str = "") -> PassageFinder:
    numbered = {number: index(number, text) for number, text in enumerate(sources, start=1)}
    return PassageFinder(numbered, index(0, given), index(0, results))


def claim(text: str) -> Claim:
    return find_claims(text)[0]


def test_pieces_follow_headings_and_repeat_the_head_of_their_table():
    pieces = [one for one, _ in cut_pieces(index(1, FERRY, title="Ferries"))]
    assert [one.heading for one in pieces] == ["Ferry report", "Terminals", "Terminals"]
    assert "Passengers | Length (km)" in pieces[2].head
    assert "| Lindham | 987,500 | 76.0 |" in pieces[2].text


def test_each_passage_of_a_source_belongs_to_one_piece():
    source = index(1, FERRY, "A second text.", "word " * 1_000)
    pieces = [*cut_pieces(source)]
    assert sum(count for _, count in pieces) == len(source.passages)
    assert all(len(one.text) <= PIECE_CHARACTERS for one, _ in pieces)


def test_a_long_sentence_is_cut_and_shown_whole():
    text = "begin " + "ab " * 400 + "end"
    shown = " ".join(one.text for one, _ in cut_pieces(index(1, text)))
    assert shown.startswith("begin")
    assert shown.endswith("end")


def test_a_span_is_found_whatever_its_spaces_and_quotation_marks():
    part = SourcePassage(1, "She said: “It is   not painted” today.", 7)
    piece = SourcePiece("source", (SourcePassage(1, "Before.", 0), part))
    assert piece.find_part('"It is not\npainted"') == part
    assert piece.find_part("It is painted") is None
    assert piece.find_part(" … ") is None


def test_a_span_over_two_sentences_is_found():
    parts = (SourcePassage(1, "It is old.", 0), SourcePassage(1, "It was painted grey.", 11))
    assert SourcePiece("source", parts).find_part("old. It was painted") in parts


def test_cited_sources_come_first():
    found = finder(WATER, FERRY).find(claim("Falkenau got water from the ferry line [2]."))
    assert {one.source for one in found} == {2}
    assert "ferry line" in found[0].text


def test_a_figure_finds_its_passage_in_another_language():
    text = "\n\n".join(["# Teil\n\nEin Satz."] * 9 + ["## Wasser\n\nEs waren 18,4 Millionen Kubikmeter."])
    found = finder(text).find(claim("水厂供水1840万立方米[1]。"), "zh")
    assert "18,4 Millionen" in found[0].text


def test_without_a_common_word_the_beginning_is_shown():
    found = finder(FERRY).find(claim("Кошка спит [1]."), "ru")
    assert "4,872,300" in found[0].text


def test_a_second_search_shows_other_passages_and_other_sources():
    both = finder(FERRY, WATER)
    one = claim("The water works of Falkenau belong to the ferry line [1].")
    first = both.find(one)
    second = both.find(one, shown=first, is_wide=True)
    assert {one.source for one in first} == {1}
    assert 2 in {one.source for one in second}
    assert not {*map(id, first)} & {*map(id, second)}


def test_a_second_search_begins_with_the_figures_that_are_nearest_in_the_cited_source():
    parts = [f"## Part {n}\n\nPart {n} of the ferry line cost £{n}m in all." for n in range(2, 30)]
    outlook = "## Outlook\n\nThe board expects between £715m and £735m, and a margin of 14.5%."
    rest = "## Rest\n\nA wage of £900m was refused."
    look = finder("\n\n".join([*parts, outlook, rest]))
    one = claim("The middle for the ferry line and its part would be £725m, not £28m [1].")
    first = look.find(one)
    assert not any("735" in each.text for each in first)
    second = look.find(one, shown=first, is_wide=True)
    assert "735" in second[0].text
    assert "£29m" in second[1].text


def test_a_second_search_in_a_long_source_takes_milliseconds():
    look = finder("\n\n".join(f"The pier {n} of the ferry cost £{n}m." for n in range(4_000)))
    one = claim("The piers of the ferry cost £725.5m and £12.5m and £3m and 14% [1].")
    look.find(one)
    began = time.process_time()
    assert look.find(one, is_wide=True)
    assert time.process_time() - began < 1.0


def test_what_a_program_printed_is_shown_as_such():
    found = finder(WATER, results="The mean delivery is 42.7.").find(claim("The mean delivery is 42.7 [1]."))
    assert [one.origin for one in found] == ["source", "program"]


def test_a_claim_without_a_citation_is_looked_up_everywhere():
    found = finder(FERRY, WATER).find(claim("The water works delivered it to Falkenau."))
    assert found[0].source == 2


def test_a_search_in_a_long_source_takes_milliseconds():
    text = "\n".join(f"The mill number {n} ground wheat for the town in winter." for n in range(20_000))
    long = finder(text)
    one = claim("The mill number 777 ground wheat in winter [1].")
    long.find(one)
    began = time.process_time()
    for _ in range(10):
        long.find(one)
    assert time.process_time() - began < 3


def _rows(first: int, last: int) -> str:
    return "".join(f"| {year} | {year / 7:.3f} | {'x' * 60} |\n" for year in range(first, last))


def test_the_row_of_a_cell_is_shown():
    table = f"| Year | Landfill | Note |\n|---|---|---|\n{_rows(1950, 2024)}"
    finder = PassageFinder(
        {1: SourceIndex(1, "Waste", [table])}, SourceIndex(0, "", []), SourceIndex(0, "", [])
    )
    [claim] = find_claims("| Year | Share [1] |\n|---|---|\n| 2011 | 6.2 % |\n")
    assert "| 2011 |" in "".join(one.text for one in finder.find(claim, "en"))


def test_a_cell_without_a_citation_has_no_table_without_a_word_of_its_heads():
    boats = "| Year | Boats | Nurses |\n|---|---|---|\n| 2021 | 310 | 58 |\n| 2022 | 305 | 74 |\n"
    births = "| Year | Births |\n|---|---|\n| 2021 | 58 |\n| 2022 | 74 |\n"
    table = "| Year | Nurses |\n|---|---|\n| 2021 | 58 |\n| 2022 | 74 |\n"
    cell = next(one for one in find_claims(table) if one.column == "Nurses")
    look = finder(births, boats)
    found = look.find(cell)
    assert {one.source for one in found} == {2}
    assert {one.source for one in look.find(cell, shown=found, is_wide=True)} == {1}


def test_a_cell_whose_heads_stand_nowhere_is_looked_up_by_its_figures():
    births = "| Jahr | Geburten |\n|---|---|\n| 2021 | 5.812 |\n"
    table = "| Year | Births |\n|---|---|\n| 2021 | 5,812 |\n"
    [cell] = find_claims(table)[-1:]
    assert [one.source for one in finder(births).find(cell)] == [1]


def test_the_total_is_shown_for_a_share():
    rows = "".join(
        f"| Region {'abcdefghijklmnopqrst'[n]}{n} | {n * 17 + 3} | {'sales ' * 12}|\n" for n in range(20)
    )
    table = f"| Region | Sales | Note |\n|---|---|---|\n{rows}| Total | 3333 | |\n"
    finder = PassageFinder(
        {1: SourceIndex(1, "Sales", [table])}, SourceIndex(0, "", []), SourceIndex(0, "", [])
    )
    [claim] = find_claims("Sales of the region made up 12 % [1].")
    assert "| Total |" in "".join(one.text for one in finder.find(claim, "en"))


def test_sources_that_have_little_of_a_claim_are_not_shown():
    sources = {
        1: SourceIndex(1, "Bridge", ["The stone bridge of Falkenau was opened by the king."]),
        2: SourceIndex(2, "Ferry", ["Nobody opened the letter that lay on the ferry."]),
    }
    finder = PassageFinder(sources, SourceIndex(0, "", []), SourceIndex(0, "", []))
    [claim] = find_claims("The stone bridge of Falkenau was opened by a bishop.")
    assert [one.source for one in finder.find(claim, "en")] == [1]


def test_the_head_of_an_html_table_is_shown_with_each_piece():
    rows = "".join(f"<tr><td>{year}</td><td>{'glass ' * 30}</td></tr>\n" for year in range(2000, 2012))
    text = f"<table>\n<tr><th>Year</th><th>Glass (t)</th></tr>\n{rows}</table>\n\nThe end."
    index = SourceIndex(1, "Waste", [text])
    pieces = [one for one, _ in cut_pieces(index)]
    assert sum(count for _, count in cut_pieces(index)) == len(index.passages)
    assert all("| Year | Glass (t) |" in one.text for one in pieces[:-1])
    assert "<td>" not in "".join(one.text for one in pieces)


def test_a_year_alone_leads_to_no_other_subject():
    sources = {
        1: SourceIndex(1, "Roads", ["Alcohol had a part in many deaths on the roads, said the police."]),
        2: SourceIndex(2, "Farms", ["| Year | Farms |\n|---|---|\n| 2014 | 2340 |\n| 2018 | 1865 |\n"]),
    }
    finder = PassageFinder(sources, SourceIndex(0, "", []), SourceIndex(0, "", []))
    [claim] = find_claims("Alcohol had a part in fewer deaths on the roads than in 2018.")
    assert [one.source for one in finder.find(claim, "en")] == [1]
