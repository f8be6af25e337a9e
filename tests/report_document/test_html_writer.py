"""The body of a report as HTML."""

import pytest
from bs4 import BeautifulSoup

from maniple.evidence.record import Source
from maniple.report_document import lay_out, write_body
from tests.report_files.samples import READ_AT, SOURCES, TEA

FOLDER = Source(7, "folder:notes/tea%20house.md", "Tea house", "page", READ_AT, "0" * 64)


def body(markdown: str) -> BeautifulSoup:
    return BeautifulSoup(write_body(lay_out("", markdown, [*SOURCES, FOLDER])), "lxml")


def sources(markdown: str) -> list[str]:
    return [str(one["id"]) for one in body(markdown).select("li.source")]


def test_footnotes_are_numbered_by_their_references_and_stand_before_the_sources():
    text = "One[^b], two[^a] and one[^b].\n\n[^a]: Second.\n[^b]: First [1].\n\n[^c]: Unused.\n"
    found = body(text)
    references = [(one.text, one["href"]) for one in found.select("sup.footnote a")]
    assert references == [("1", "#footnote-1"), ("2", "#footnote-2"), ("1", "#footnote-1")]
    notes = found.select(".footnotes li")
    assert [one.text.split()[0] for one in notes] == ["First", "Second.", "Unused."]
    assert [len(one.select("a.back")) for one in notes] == [1, 1, 0]
    assert [one["href"] for one in notes[0].select("a.citation")] == ["#source-1"]
    ids = [str(one["id"]) for one in found.select("[id]")]
    assert len({*ids}) == len(ids)
    assert ids.index("footnote-3") < ids.index("source-1")


def test_a_reference_without_a_footnote_is_shown_as_it_is_written():
    assert body("So it is[^x].").text.strip() == "So it is[^x]."


def test_tasks_have_a_box_and_callouts_their_kind():
    found = body("- [x] done\n- [ ] open\n- other\n\n> [!WARNING]\n> Take care.\n")
    assert [one.text.strip() for one in found.select("li")] == ["☑ done", "☐ open", "other"]
    assert found.select_one(".callout .kind").text == "Warning"  # type: ignore[union-attr]
    assert "[!" not in found.text


def test_line_breaks_in_html_break_lines_and_other_tags_are_text():
    found = body("| a |\n|-|\n| x<br>y<BR/>z <b>bold</b> |\n")
    assert len(found.select("td br")) == 2
    assert "<b>bold</b>" in found.text


LISTS = {
    "bullets": "- [1] The history of tea: <https://tea.example/history?a=1>",
    "escaped": r"- \[1\] The history of tea: <https://tea.example/history?a=1>",
    "a bare address": "- [1] The history of tea: https://tea.example/history?a=1.",
    "in order": "1. [The history of tea](https://tea.example/history?a=1)",
    "lines": "[1] History: <https://tea.example/history?a=1>\n[2] Prices: <https://prices.example/>",
}


@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_sources_of_any_form_is_the_only_one(form: str):
    text = f"Tea is old [1].\n\n## Sources\n\n{LISTS[form]}\n"
    assert len(body(text).select("h2")) == 1
    assert sources(text)[0] == "source-1"
    assert [one["href"] for one in body(text).select("p a.citation")] == ["#source-1"]


def test_a_source_in_a_folder_is_a_target_though_it_has_no_address_of_the_web():
    for text in (
        "So it is [7].",
        "So it is [7].\n\n## Sources\n\n- [7] Tea: <folder:notes/tea%20house.md>\n",
    ):
        found = body(text)
        assert [one["href"] for one in found.select("p a.citation")] == ["#source-7"]
        assert "tea house.md" in found.select_one("li.source").text  # type: ignore[union-attr]
        assert not found.select("li.source a")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See https://a.example/b_c_d, too.", "https://a.example/b_c_d"),
        ("(https://a.example/b)", "https://a.example/b"),
        ("https://a.example/b_(c)", "https://a.example/b_(c)"),
        ("见https://a.example/b。", "https://a.example/b"),
    ],
)
def test_a_bare_address_is_a_link_without_the_signs_behind_it(text: str, address: str):
    found = body(text)
    assert [one["href"] for one in found.select("a")] == [address]
    assert found.text.strip() == text


def test_every_part_of_a_report_is_in_its_body():
    text = body(TEA).text
    for part in ("most consumed", "teactl --version", "龙井", "own brands", "Somebody said", "def grow"):
        assert part in text
