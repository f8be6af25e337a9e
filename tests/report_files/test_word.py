"""Reports as Word documents, read back by python-docx, mammoth and lxml."""

import io
import time
import zipfile
from datetime import datetime
from functools import cache

import docx
import mammoth
import pytest
from docx.document import Document
from docx.oxml.ns import qn
from lxml import etree

from maniple.report_files.document import lay_out_report
from maniple.report_files.word import render_docx
from tests.report_files.samples import EVIL, GERMAN, TEA, TEA_IN_CHINESE, report
from tests.report_files.test_word_formulas import formulas


@cache
def made(markdown: str) -> bytes:
    return render_docx(lay_out_report(report(markdown)))


def read(markdown: str) -> Document:
    return docx.Document(io.BytesIO(made(markdown)))


def as_html(markdown: str) -> str:
    return mammoth.convert_to_html(io.BytesIO(made(markdown))).value


def addresses(markdown: str) -> list[str]:
    """What the parts of the file refer to outside of it."""
    with zipfile.ZipFile(io.BytesIO(made(markdown))) as file:
        parts = [etree.fromstring(file.read(name)) for name in file.namelist() if name.endswith(".rels")]
    return [one.get("Target", "") for part in parts for one in part if one.get("TargetMode") == "External"]


def test_a_report_has_a_title_headings_and_contents_that_lead_to_them():
    word = read(TEA)
    styles = {one.text: one.style.name for one in word.paragraphs if one.style}
    assert word.paragraphs[0].text == "Tea in 2025"
    assert [styles[name] for name in ("Tea in 2025", "Prices", "By channel")] == [
        "Title",
        "Heading 2",
        "Heading 3",
    ]
    links = [
        one.hyperlinks[0].fragment for one in word.paragraphs if one.style and one.style.name[:3] == "toc"
    ]
    places = [one.get(qn("w:name")) for one in word.element.iter(qn("w:bookmarkStart"))]
    assert links == ["section_1", "section_2", "section_3", "section_4"]
    assert set(links) <= set(places)
    assert word.core_properties.title == "Tea in 2025"
    assert word.core_properties.author == "maniple"
    assert word.core_properties.created == datetime.fromisoformat("2026-11-22T00:00:00+00:00")


def test_the_headings_that_are_added_are_in_the_language_of_the_report():
    texts = [one.text for one in read(GERMAN).paragraphs]
    assert {"Inhalt", "Quellen"} <= set(texts)
    assert "Sources" not in texts


def test_emphasis_code_and_formulas_keep_their_style():
    html = as_html(TEA)
    assert "<em>most consumed</em>" in html
    assert "<strong>4.2\N{NO-BREAK SPACE}%</strong>" in html
    assert "<s>never</s>" in html
    runs = [run for one in read(TEA).paragraphs for run in one.runs]
    assert [run.text for run in runs if run.style.name == "Inline Code"] == ["teactl --version"]
    assert [run.text for run in runs if run.font.highlight_color] == ["[unverified]"] * 3
    assert formulas(TEA) == ["p_{0}e^{rt}"]


def test_lists_are_nested_and_count_from_where_they_begin():
    assert "<ol><li>Supermarkets<ul><li>own brands<ul><li>black</li></ul></li></ul></li>" in as_html(TEA)
    word = read("3. three\n\n---\n\n1. one\n")
    numbers = list(word.part.numbering_part.element.iter(qn("w:startOverride")))
    assert [one.get(qn("w:val")) for one in numbers] == ["3", "1"]
    assert [one.style.name for one in word.paragraphs if one.text in ("three", "one") and one.style] == [
        "List Number",
        "List Number",
    ]


def test_a_table_has_a_head_that_is_repeated_and_its_columns_sides():
    word = read(TEA)
    (table,) = word.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Origin", "Price", "Notes"],
        ["Assam", "2.91", "malty\N{NO-BREAK SPACE}[1]"],
        ["龙井", "120.00", "see the auction"],
    ]
    assert [bool(row._tr.findall(f".//{qn('w:tblHeader')}")) for row in table.rows] == [True, False, False]
    sides = [cell.paragraphs[0].alignment for cell in table.rows[1].cells]
    assert [side.name for side in sides if side is not None] == ["LEFT", "RIGHT", "CENTER"]


def test_code_and_quotations_are_set_apart():
    styles = {one.text: one.style.name for one in read(TEA).paragraphs if one.style}
    assert styles["def grow(p0):\n    return p0 * 2"] == "Code"
    (code,) = [one for one in read(TEA).paragraphs if one.style and one.style.name == "Code"]
    colors = {run.text: str(run.font.color.rgb) for run in code.runs if run.font.color.type}
    assert colors["def"] == colors["return"] != colors["grow"]
    assert styles["Somebody said so [unverified]."] == "Quote"


def test_citations_lead_to_the_sources_and_sources_to_the_web():
    html = as_html(TEA)
    assert '<a href="#source_1">[1]</a>' in html
    assert '<a id="source_1"></a>[1] The history of tea: <a href="https://tea.example/history?a=1">' in html
    assert sorted(addresses(TEA)) == [
        "https://auction.example/d",
        "https://stat.example/%E8%8C%B6",
        "https://tea.example/history?a=1",
    ]


def test_a_page_that_was_only_found_by_a_search_is_not_listed_as_read():
    found = [
        one.text
        for one in read("Tea is old [1] and dear [2].").paragraphs
        if "tea.example" in one.text or "prices.example" in one.text
    ]
    assert ["read on" in one for one in found] == [True, False]
    assert ["found by a search on" in one for one in found] == [False, True]


def test_chinese_has_a_font_and_a_language():
    word = read(TEA_IN_CHINESE)
    (fonts,) = word.styles.element.findall(f"{qn('w:docDefaults')}//{qn('w:rFonts')}")
    assert fonts.get(qn("w:eastAsia")) == "Microsoft YaHei"
    assert word.core_properties.language == "zh"
    assert "茶是仅次于水的饮品" in "".join(one.text for one in word.paragraphs)


def test_a_hostile_report_refers_to_nothing_but_what_a_click_opens():
    assert {one.partition(":")[0] for one in addresses(EVIL)} == {"https"}
    with zipfile.ZipFile(io.BytesIO(made(EVIL))) as file:
        assert not [name for name in file.namelist() if "media" in name or "embeddings" in name]
        relations = etree.fromstring(file.read("word/_rels/document.xml.rels"))
    outside = [one.get("Type", "") for one in relations if one.get("TargetMode") == "External"]
    assert {one.rpartition("/")[2] for one in outside} == {"hyperlink"}
    assert "<script>alert(1)</script>" in "".join(one.text for one in read(EVIL).paragraphs)


def test_an_address_that_word_does_not_take_is_text():
    bad = ["http://[bad/", "https:///x", "http://a b@c.example/", "http://a.example/" + "x" * 3_000]
    markdown = " ".join(f"[words](<{address}>)" for address in [*bad, "mailto:a@b.example"])
    assert addresses(markdown) == ["mailto:a@b.example"]
    assert as_html(markdown).count("words") == len(bad) + 1


@pytest.mark.parametrize(
    "markdown", ["", "#", "\x00\x0b\ufffe\ud800 & < > ]]>", "| a |\n|-|", "- ", "> ", "99999999. x"]
)
def test_however_odd_it_is_a_document(markdown: str):
    read(markdown)


@pytest.mark.parametrize("columns", [14, 16, 40, 100])
def test_a_table_that_is_too_wide_is_split_and_each_part_has_the_first_column(columns: int):
    head = "|Land|" + "".join(f"Bevölkerungsentwicklung{n}|" for n in range(1, columns))
    body = "|Luxemburg|" + "".join(f"1,234,567.{n}|" for n in range(1, columns))
    tables = read(f"{head}\n|{'-|' * columns}\n{body}\n").tables
    shown = [[[cell.text for cell in row.cells] for row in table.rows] for table in tables]
    assert {(first[0], second[0]) for first, second in shown} == {("Land", "Luxemburg")}
    assert [one for first, _ in shown for one in first[1:]] == head.strip("|").split("|")[1:]
    assert [one for _, second in shown for one in second[1:]] == body.strip("|").split("|")[1:]
    for table in tables:
        assert (
            sum(int(column.get(qn("w:w"), 0)) for column in table._tbl.tblGrid) <= 9_420
        )  # the text's width


def test_columns_are_as_wide_as_their_texts_need():
    (table,) = read("| n | text |\n|-|-|\n| 1 | " + "many words " * 30 + " |\n").tables
    narrow, wide = (int(column.get(qn("w:w"), 0)) for column in table._tbl.tblGrid)
    assert wide > 5 * narrow


@pytest.mark.parametrize(
    "markdown",
    [
        "| a |\n|-|\n" + "| **cell** |\n" * 5_000,
        "x [1] [unverified] <b> " * 45_000,
        " ".join(f"[a](https://x.example/{n})" + "\n" * (n % 9 == 0) for n in range(1_200)),
    ],
    ids=["5,000 rows", "a line of 1 MB", "1,200 links"],
)
@pytest.mark.slow
def test_large_reports_are_made_within_bounds(markdown: str):
    started = time.process_time()
    made(markdown)
    # 1 to 3 seconds on a quiet machine.
    assert time.process_time() - started < 40


def test_a_file_holds_nothing_of_the_template_that_it_does_not_use():
    with zipfile.ZipFile(io.BytesIO(render_docx(lay_out_report(report(TEA))))) as file:
        assert not [name for name in file.namelist() if "thumbnail" in name or "Effects" in name]


NOTES = """# Tea

So it is[^a], and so[^b]. Again[^a].

[^a]: Of *tea*: <https://a.example/> [1].

    - deeper
[^b]: Second[^c].
[^c]: Of a note.
[^d]: Without a reference.
"""


def notes_of(markdown: str) -> dict[str, str]:
    """The texts of Word's own footnotes, by number."""
    with zipfile.ZipFile(io.BytesIO(made(markdown))) as file:
        if "word/footnotes.xml" not in file.namelist():
            return {}
        root = etree.fromstring(file.read("word/footnotes.xml"))
    every = {one.get(qn("w:id"), ""): "".join(one.itertext()) for one in root}
    return {number: text for number, text in every.items() if int(number) > 0}


def test_footnotes_are_word_s_own_unless_the_text_does_not_refer_to_them():
    assert {number: text.strip() for number, text in notes_of(NOTES).items()} == {
        "1": "Of tea: https://a.example/\N{NO-BREAK SPACE}[1].deeper",
        "2": "Second3.",
    }
    word = read(NOTES)
    references = [one.get(qn("w:id")) for one in word.element.iter(qn("w:footnoteReference"))]
    assert references == ["1", "2"]
    texts = [one.text for one in word.paragraphs]
    assert {"3 Of a note.", "4 Without a reference."} <= set(texts)
    (again,) = [one for one in word.paragraphs if one.text.startswith("So it is")]
    assert [one.fragment for one in again.hyperlinks] == ["footnote_1"]
    assert 'id="footnote' in as_html(NOTES)


def test_links_of_footnotes_are_of_their_own_part():
    with zipfile.ZipFile(io.BytesIO(made(NOTES))) as file:
        relations = etree.fromstring(file.read("word/_rels/footnotes.xml.rels"))
    assert [one.get("Target") for one in relations] == ["https://a.example/"]


def test_a_report_without_footnotes_has_no_part_for_them():
    assert notes_of(TEA) == {}
