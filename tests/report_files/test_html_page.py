"""Reports as HTML files."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from maniple.evidence.record import Source
from maniple.evidence.source_list import format_source_list
from maniple.report_document.document_texts import texts_for
from maniple.report_files import Report, policy
from maniple.report_files.document import lay_out_report
from maniple.report_files.html_page import render_html_page
from tests.report_files.samples import (
    GERMAN,
    READ_AT,
    SOURCES,
    TEA,
    TEA_IN_CHINESE,
    drawn_figure,
    page,
    report,
)


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
    assert not soup("## One\n\ntext\n\n" * 3).select("nav")
    assert soup("## One\n\n" * 4).select("nav")


def test_citations_link_to_the_source_list_which_has_the_time_of_reading():
    found = soup(TEA)
    assert [one["href"] for one in found.select("p a.citation")] == ["#source-1", "#source-1", "#source-3"]
    assert [one.text for one in found.select("p a.citation")] == ["[1]", "1", "3"]
    entries = found.select("li.source")
    assert [one["id"] for one in entries] == ["source-1", "source-3"]
    assert entries[0].text == (
        "[1] The history of tea: https://tea.example/history?a=1, read on 22 November 2026"
    )
    assert len(found.find_all("h2", string="Sources")) == 1


FRENCH = "# Thé\n\nLe thé est une boisson, et les feuilles sont dans la boîte [1].\n"


@pytest.mark.parametrize(
    ("markdown", "date", "got_on"),
    [
        (
            GERMAN,
            "22. November 2026",
            ["gelesen am 22. November 2026", "durch eine Suche gefunden am 22. November 2026"],
        ),
        (FRENCH, "22 novembre 2026", ["consulté le 22 novembre 2026"]),
    ],
)
def test_dates_are_in_the_language_of_the_report(markdown: str, date: str, got_on: list[str]):
    found = soup(markdown)
    assert found.select_one("header .about").text == date  # type: ignore[union-attr]
    assert [one.text for one in found.select("li.source small")] == got_on


def test_only_a_page_that_was_opened_is_listed_as_read():
    entries = soup("Tea is old [1], dear [2] and known [3].").select("li.source small")
    assert [one.text.partition(" on ")[0] for one in entries] == ["read", "found by a search", "read"]


@pytest.mark.parametrize("language", ["de", "es", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh"])
def test_no_language_that_a_report_can_have_shows_english_words(language: str):
    english, words = texts_for("en"), texts_for(language)
    for name in (
        "contents",
        "reading",
        "finding",
        "unverified",
        "partial",
        "missing",
        "undrawn",
        "footnotes",
        "in_notes",
        "left_out",
    ):
        assert getattr(words, name) != getattr(english, name)
    assert words.reading.format("x") != words.reading
    assert all(words.date(month * 31 * 86_400) for month in range(12))


def test_a_report_that_cites_without_a_list_gets_one_of_what_it_cites():
    found = soup(TEA_IN_CHINESE)
    assert found.html and found.html["lang"] == "zh"
    assert [one.text for one in found.select("main h2")] == ["价格", "产地", "展望", "来源"]
    assert [one["id"] for one in found.select("li.source")] == ["source-1", "source-3"]
    assert found.select("li.source")[1].text == "[3] 茶叶统计: https://stat.example/茶，阅读于 2026年11月22日"
    assert found.select_one("nav h2").text == "目录"  # type: ignore[union-attr]
    assert not soup("Nothing is cited [7], nor in `[1]`.").select("li.source, a.citation")


def test_the_headings_that_are_added_are_in_the_language_of_the_report():
    found = soup(GERMAN)
    assert found.html and found.html["lang"] == "de"
    assert [one.text for one in found.select("h2")][-1] == "Quellen"
    assert found.select_one("nav h2").text == "Inhalt"  # type: ignore[union-attr]


def test_a_list_that_names_another_address_is_none():
    found = soup("It is so [1].\n\n## Sources\n\n- [1] Elsewhere: <https://elsewhere.example/>\n")
    assert [one["href"] for one in found.select("li.source a")] == ["https://tea.example/history?a=1"]


@pytest.mark.parametrize("text", ["x[^1]", "$a_{[1]}$", r"so \[\sqrt[1]{5}\] is", "`a[1]`", "    a[1]"])
def test_a_footnote_a_formula_and_code_lead_to_no_source(text: str):
    assert page(f"Tea [1].\n\n{text}\n").count('href="#source-1"') == 1


def test_the_address_in_a_footnote_is_no_target_of_its_mark():
    found = soup("So it is[^1], as [1].\n\n[^1]: https://tea.example/other\n")
    assert [one["href"] for one in found.select("main p a.citation")] == ["#source-1"]
    assert [one["href"] for one in found.select(".footnotes a")] == [
        "https://tea.example/other",
        "#reference-1",
    ]


def test_what_a_report_defines_a_number_as_leads_nowhere_else():
    found = soup("So [1], [2] and [x], [unverified].\n\n[1]: https://evil.test/\n[x]: https://x.test/\n"
                 "[unverified]: https://evil.test/\n")  # fmt: skip
    hrefs = [one["href"] for one in found.select("main p a")]
    assert hrefs == ["#source-1", "#source-2", "https://x.test/"]
    assert len(found.select("p mark")) == 1 + 1  # its meaning is told once, above


def test_unverified_marks_explain_themselves():
    found = soup(TEA)
    marks = found.select("main mark")
    assert [one.text for one in marks] == ["[unverified]"] * 2
    assert marks[0]["title"] in found.select_one("header").text  # type: ignore[union-attr]
    assert not soup("All is well.").select("header .note")


def test_that_the_budget_ran_out_is_reported():
    partial = render_html_page(lay_out_report(replace(report("So far."), is_partial=True)))
    assert "this report is partial" in partial


def test_tables_lists_and_code_are_what_they_are():
    found = soup(TEA)
    assert [one.get("class") for one in found.select("tr")[1].select("td")] == [
        None,
        ["right", "quantity"],
        ["center"],
    ]
    assert found.select_one("ol")["start"] == "3"  # type: ignore[index]
    assert found.select_one("ol ul ul li").text == "black"  # type: ignore[union-attr]
    assert [one.text for one in found.select("pre .code-keyword")] == ["def", "return"]
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
    text = render_html_page(lay_out_report(Report("\x1b[31mred\x00", "a\x00b\x0bc\ud83d\ude00d\ufffe")))
    assert "<h1>[31mred</h1>" in text
    assert "<p>abc\U0001f600d</p>" in text


@pytest.mark.parametrize("markdown", ["x [1] <b> " * 90_000, "many words\n" * 30_000])
def test_what_is_too_long_is_shown_as_it_is(markdown: str):
    text = page(markdown)
    assert "<main>\n<pre><code>" in text
    assert "<b>" not in text


def test_the_reporters_own_source_list_is_recognized_with_any_titles():
    evil = Source(
        1, "https://e.test/a_b*c?x=[y]&z=(1)", "[3] *a* `b` [c](https://d.test) <i>", "page", READ_AT, ""
    )
    markdown = f"So [1].\n\n{format_source_list([evil], 'Sources')}"
    found = BeautifulSoup(
        render_html_page(lay_out_report(Report("t", markdown, [evil, *SOURCES[1:]]))), "lxml"
    )
    assert [one["id"] for one in found.select("li.source")] == ["source-1"]
    assert len(found.find_all("h2")) == 1


def test_no_line_ends_before_a_sign_or_a_citation():
    text = "It rose by 19 % to € 5 and 7 € [1] [3], then fell [1, 3] by 2 kg. See [4 or so]."
    found = soup(f"# Tea\n\n{text}\n").select_one("main p")
    assert found is not None
    shown = found.text
    assert shown.replace("\N{NO-BREAK SPACE}", " ") == text
    assert [word for word in shown.split(" ") if "\N{NO-BREAK SPACE}" in word] == [
        "19\N{NO-BREAK SPACE}%",
        "€\N{NO-BREAK SPACE}5",
        "7\N{NO-BREAK SPACE}€\N{NO-BREAK SPACE}[1]\N{NO-BREAK SPACE}[3],",
        "fell\N{NO-BREAK SPACE}[1,\N{NO-BREAK SPACE}3]",
    ]
    assert [one.text for one in found.select("a.citation")] == ["[1]", "[3]", "1", "3"]


def test_a_figure_on_a_line_of_its_own_is_apart_from_the_lines_about_it():
    text = "Above.\n![Sales](sales.png)\n*Figure 1*\n\nBeside ![Sales](sales.png) text."
    shown = lay_out_report(Report("Sales", text, figures={"sales.png": drawn_figure(6, 4)}))
    found = BeautifulSoup(render_html_page(shown), "lxml").select("main p")
    assert [one.select("img") != [] for one in found] == [False, True, False, True]
    assert [one.select(".figure") != [] for one in found] == [False, True, False, False]
    assert [one.text for one in found] == ["Above.", "Sales", "Figure 1", "Beside  text."]


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[The data](out/data%201.csv)", "The data (out/data 1.csv)"),
        ("[`out/data.csv`](/workspace/out/data.csv)", "out/data.csv"),
        ("[Above](#data) and [up](../data.csv)", "Above and up"),
    ],
)
def test_a_link_to_a_file_becomes_its_path(markdown: str, shown: str):
    paragraph = soup(markdown).select_one("main p")
    assert paragraph is not None and paragraph.text == shown
    assert not paragraph.select("a")


def test_a_number_and_its_unit_stay_on_one_line():
    quantities = ["12,345.67 million", "−3.4 °C", "$1.2bn", "1814-05-17", "12.5 % [3]"]
    texts = ["2019 was a good year", "Norway", "About 5"]
    rows = "\n".join(f"| {text} |" for text in (*quantities, *texts))
    cells = soup(f"| Value |\n|--:|\n{rows}\n").select("td")
    kept = [one.text.replace("\N{NO-BREAK SPACE}", " ") for one in cells if "quantity" in one["class"]]
    assert kept == quantities
    assert all("right" in one["class"] for one in cells)


def test_a_wide_table_stays_whole_on_the_page_and_may_be_broken_in_long_addresses_only():
    html = page(
        "|"
        + "Bevölkerungsentwicklung|" * 30
        + "\n|"
        + "-|" * 30
        + "\n|"
        + "https://a.example/b?c=1&d=2|" * 30
    )
    assert html.count("<table>") == 1
    assert html.count("<th>Bevölkerungsentwicklung</th>") == 30
    assert html.count("<wbr>c=<wbr>1") == 30


@pytest.mark.parametrize("path", ["docs/tea.md", "docs/tea notes (1).md", "docs/100%.md", "docs/茶.md"])
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_citation_of_a_file_in_a_folder_leads_to_its_entry(path: str, is_listed: bool):
    source = Source(1, f"folder:{path}", "Tea notes", "page", READ_AT, "0" * 64)
    list_ = format_source_list([source], "Sources") if is_listed else ""
    shown = render_html_page(lay_out_report(Report("Tea", f"So [1].\n\n{list_}", [source])))
    found = BeautifulSoup(shown, "lxml")
    assert [one["href"] for one in found.select("a.citation")] == ["#source-1"]
    (entry,) = found.select("li.source")
    assert f"folder:{path}, read on" in entry.text
