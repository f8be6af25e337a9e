"""Reports as HTML files."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from maniple.evidence.record import Source
from maniple.evidence.source_list import source_list
from maniple.report_files import Report, policy
from maniple.report_files.document import document_of
from maniple.report_files.web import as_page
from tests.report_files.samples import READ_AT, SOURCES, TEA, TEA_IN_CHINESE, page, report


def soup(markdown: str) -> BeautifulSoup:
    return BeautifulSoup(page(markdown), "lxml")


def test_a_report_has_its_title_its_date_and_contents_that_lead_to_its_headings():
    found = soup(TEA)
    assert found.title and found.title.text == "Tea in 2025"
    assert [one.text for one in found.select("header h1, main h1")] == ["Tea in 2025"]
    assert found.select_one("header .about").text == "22 November 2026"  # type: ignore[union-attr]
    contents = {one["href"]: one.text for one in found.select("nav a")}
    assert list(contents.values()) == ["Prices", "By channel", "Outlook", "Sources"]
    for href, words in contents.items():
        assert found.select_one(f"main {href}").text == words  # type: ignore[union-attr]


def test_a_report_without_a_title_of_its_own_has_that_of_its_conversation():
    found = soup("Just a line.")
    assert found.title and found.title.text == "What about tea?"
    assert found.select_one("header h1").text == "What about tea?"  # type: ignore[union-attr]


def test_a_short_report_has_no_contents():
    assert not soup("## One\n\ntext\n\n## Two\n\ntext\n").select("nav")


def test_citations_lead_to_the_entries_of_the_list_which_tell_when_each_was_read():
    found = soup(TEA)
    assert [one["href"] for one in found.select("p a.citation")] == ["#source-1", "#source-1", "#source-3"]
    assert [one.text for one in found.select("p a.citation")] == ["[1]", "1", "3"]
    entries = found.select("li.source")
    assert [one["id"] for one in entries] == ["source-1", "source-3"]
    assert entries[0].text == (
        "[1] The history of tea: https://tea.example/history?a=1 read on 22 November 2026"
    )
    assert len(found.find_all("h2", string="Sources")) == 1


def test_a_report_that_cites_without_a_list_gets_one_of_what_it_cites():
    found = soup(TEA_IN_CHINESE)
    assert found.html and found.html["lang"] == "zh"
    assert [one.text for one in found.select("main h2")] == ["价格", "展望", "来源"]
    assert [one["id"] for one in found.select("li.source")] == ["source-1", "source-3"]
    assert found.select("li.source")[1].text == "[3] 茶叶统计: https://stat.example/茶 阅读于 2026年11月22日"
    assert found.select_one("nav h2").text == "目录"  # type: ignore[union-attr]
    assert not soup("Nothing is cited [7], nor in `[1]`.").select("li.source, a.citation")


def test_a_list_that_names_another_address_is_none():
    found = soup("It is so [1].\n\n## Sources\n\n- [1] Elsewhere: <https://elsewhere.example/>\n")
    assert [one["href"] for one in found.select("li.source a")] == ["https://tea.example/history?a=1"]


def test_what_a_report_defines_a_number_as_leads_nowhere_else():
    found = soup("So [1], [2] and [x], [unverified].\n\n[1]: https://evil.test/\n[x]: https://x.test/\n"
                 "[unverified]: https://evil.test/\n")  # fmt: skip
    hrefs = [one["href"] for one in found.select("main p a")]
    assert hrefs == ["#source-1", "#source-2", "https://x.test/"]
    assert len(found.select("p mark")) == 1 + 1  # its meaning is told once, above


def test_marks_of_what_is_unverified_tell_what_they_mean():
    found = soup(TEA)
    marks = found.select("main mark")
    assert [one.text for one in marks] == ["[unverified]"] * 2
    assert marks[0]["title"] in found.select_one("header").text  # type: ignore[union-attr]
    assert not soup("All is well.").select("header .note")


def test_that_the_budget_ran_out_is_told():
    partial = as_page(document_of(replace(report("So far."), is_partial=True)))
    assert "this report is partial" in partial


def test_tables_lists_and_code_are_what_they_are():
    found = soup(TEA)
    assert [one.get("class") for one in found.select("tr")[1].select("td")] == [None, ["right"], ["center"]]
    assert found.select_one("ol")["start"] == "3"  # type: ignore[index]
    assert found.select_one("ol ul ul li").text == "black"  # type: ignore[union-attr]
    assert found.select_one("pre").text == "def grow(p0):\n    return p0 * 2\n"  # type: ignore[union-attr]
    assert found.select_one("s").text == "never"  # type: ignore[union-attr]


def test_the_page_allows_its_own_style_and_nothing_else():
    text = page(TEA)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy() == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert BeautifulSoup(text, "lxml").select_one("meta[http-equiv]")["content"] == policy()  # type: ignore[index]
    assert "style=" not in text.partition("<body>")[2]
    assert not re.search(r"url\(|@import|https?:", style[1])


@pytest.mark.parametrize(
    "markdown", ["", " \n", "# \n", "[1]", "- ", "| a |\n|-|", "\x00\x0b\ufffe", "\ud800"]
)
def test_however_little_there_is_it_is_a_page(markdown: str):
    page(markdown).encode()


def test_what_no_document_may_hold_is_left_out():
    text = as_page(document_of(Report("\x1b[31mred\x00", "a\x00b\x0bc\ud83d\ude00d\ufffe")))
    assert "<h1>[31mred</h1>" in text
    assert "<p>abc\U0001f600d</p>" in text


@pytest.mark.parametrize("markdown", ["x [1] <b> " * 90_000, "many words\n" * 30_000])
def test_what_is_too_long_is_shown_as_it_is(markdown: str):
    text = page(markdown)
    assert "<main>\n<pre><code>" in text
    assert "<b>" not in text


def test_the_list_that_the_reporter_writes_is_known_again_whatever_titles_say():
    evil = Source(
        1, "https://e.test/a_b*c?x=[y]&z=(1)", "[3] *a* `b` [c](https://d.test) <i>", "page", READ_AT, ""
    )
    markdown = f"So [1].\n\n{source_list([evil], 'Sources')}"
    found = BeautifulSoup(as_page(document_of(Report("t", markdown, [evil, *SOURCES[1:]]))), "lxml")
    assert [one["id"] for one in found.select("li.source")] == ["source-1"]
    assert len(found.find_all("h2")) == 1
