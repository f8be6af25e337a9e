"""Reports as presentations, read back by python-pptx and by the reader of documents."""

import io
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pptx import Presentation
from pptx.util import Pt

from maniple.reading.slides import read_pptx
from maniple.report_files import Report
from maniple.report_files.document import lay_out_report
from maniple.report_files.slide_deck import BODY_HEIGHT, MAX_SLIDES, SlideFigure, SlideTable, lay_out_deck
from maniple.report_files.slide_text import MAX_CHARACTERS
from maniple.report_files.slides import render_pptx
from tests.report_files.samples import EVIL, GERMAN, TEA, TEA_IN_CHINESE, drawn_figure, report


@cache
def made(markdown: str) -> bytes:
    return render_pptx(lay_out_report(report(markdown)))


def opened(markdown: str) -> Any:
    return Presentation(io.BytesIO(made(markdown)))


def titles(deck: Any) -> list[str]:
    return [slide.shapes.title.text_frame.text for slide in deck.slides if slide.shapes.title]


def tables(deck: Any) -> list[list[list[str]]]:
    return [
        [[cell.text_frame.text for cell in row.cells] for row in shape.table.rows]
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_table
    ]


def text_of(deck: Any) -> str:
    return "\n".join(
        shape.text_frame.text for slide in deck.slides for shape in slide.shapes if shape.has_text_frame
    )


def links(deck: Any) -> dict[str, str]:
    """By their text, where the links lead to: an address, or the title of a slide."""
    found = dict[str, str]()
    for slide in deck.slides:
        for run in slide.element.iter("{*}r"):
            for link in run.iter("{*}hlinkClick"):
                relation = slide.part.rels[link.rId]
                target = relation.target_ref if relation.is_external else relation.target_part.slide
                text = "".join(one.text or "" for one in run.iter("{*}t"))
                found[text] = target if isinstance(target, str) else target.shapes.title.text_frame.text
    return found


def test_the_headings_of_a_report_are_the_titles_of_its_slides():
    deck = opened(TEA)
    assert titles(deck) == [
        *(
            "Tea in 2025",
            "Contents",
            "Tea in 2025",
            "Prices",
            "Prices (2)",
            "By channel",
            "Outlook",
            "Sources",
        ),
    ]
    assert "22 November 2026" in text_of(deck)
    assert deck.core_properties.title == "Tea in 2025"
    assert deck.core_properties.author == "maniple"
    assert (deck.slide_width, deck.slide_height) == (Pt(960), Pt(540))


def test_contents_and_citations_lead_to_slides_and_sources_to_the_web():
    found = links(opened(TEA))
    assert found["Prices"] == "Prices"
    assert found["[1]"] == found["3"] == "Sources"
    assert found["https://tea.example/history?a=1"] == "https://tea.example/history?a=1"
    assert found["the auction"] == "https://auction.example/d"


def test_emphasis_code_lists_and_formulas_keep_their_form():
    deck = opened(TEA)
    runs = {
        run.text: run.font
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_text_frame
        for paragraph in shape.text_frame.paragraphs
        for run in paragraph.runs
    }
    assert runs["most consumed"].italic and runs["4.2\N{NO-BREAK SPACE}%"].bold
    assert runs["teactl --version"].name == runs["grow"].name == "Consolas"
    assert str(runs["def"].color.rgb) == str(runs["return"].color.rgb) != str(runs["grow"].color.rgb)
    assert runs["never"]._element.get("strike") == "sngStrike"
    assert runs["0"]._element.get("baseline") == "-25000"
    assert runs["[unverified]"]._element.find("{*}highlight") is not None
    assert {"3.\tSupermarkets", "•\town brands", "•\tblack", "4.\tOnline"} <= set(text_of(deck).splitlines())


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\frac{a+b}{2}", "(a+b)/2"),
        (r"\sqrt{x}", "√(x)"),
        (r"\sqrt[9]{5}", "9√5"),
        (r"\sum_{i=1}^{n} i", "∑i=1ni"),
        (r"\begin{matrix}a\\b\end{matrix}", r"\begin{matrix}a\\b\end{matrix}"),
    ],
)
def test_a_formula_is_on_one_line_or_as_it_is_written(tex: str, shown: str):
    assert shown in text_of(opened(f"It is ${tex}$.")).replace(" ", "").replace("\u2061", "")


@pytest.mark.parametrize(("columns", "rows"), [(3, 100), (30, 4), (16, 40)])
def test_no_row_or_column_of_a_table_is_lost_and_its_head_is_on_every_slide(columns: int, rows: int):
    head = [f"internationalization-{column}" for column in range(columns)]
    cells = [[f"cell {row}/{column}" for column in range(columns)] for row in range(rows)]
    lines = [head, ["---"] * columns, *cells]
    deck = opened("# Wide\n\n" + "\n".join(f"| {' | '.join(one)} |" for one in lines))
    found = {
        (row[0], name): cell
        for part in tables(deck)
        for row in part[1:]
        for name, cell in zip(part[0], row, strict=True)
    }
    expected = {(row[0], name): cell for row in cells for name, cell in zip(head, row, strict=True)}
    assert found == expected
    assert all(part[0][0] == head[0] for part in tables(deck))


def test_a_row_that_is_higher_than_a_slide_is_continued_on_the_next_one():
    words = [f"word{number}" for number in range(1_500)]
    parts = tables(opened(f"| a | b |\n|---|---|\n| first | {' '.join(words)} |\n| second | x |\n"))
    assert len(parts) > 2
    assert " ".join(row[1] for part in parts for row in part[1:]).split() == [*words, "x"]


def test_everything_fits_on_its_slide():
    long = "Tea is a drink that is made of leaves. " * 200
    code = "\n".join(["```", *["x = 1"] * 90, "```"])
    items = "\n".join(f"- item {number}" for number in range(80))
    deck = lay_out_deck(lay_out_report(report(f"{TEA}\n\n{long}\n\n{items}\n\n{code}")))
    for slide in deck.slides:
        if not isinstance(slide.content, SlideTable | SlideFigure):
            assert sum(line.height for line in slide.content) <= BODY_HEIGHT


def test_a_long_paragraph_is_cut_at_a_sentence_and_whole_in_the_notes():
    sentence = "Tea is a drink that many people like very much [1]."
    deck = opened(f"# Tea\n\n{' '.join([sentence] * 12)} The last one.\n")
    (slide,) = [one for one in deck.slides if one.has_notes_slide]
    text = slide.shapes[1].text_frame.text
    assert text.endswith("much\N{NO-BREAK SPACE}[1]. …")
    assert len(text) <= MAX_CHARACTERS + 10
    notes = slide.notes_slide.notes_text_frame
    assert notes is not None and notes.text.endswith("The last one.")
    assert "in the notes" in deck.slides[0].shapes[1].text_frame.text
    assert not [one for one in opened(TEA).slides if one.has_notes_slide]


def test_a_figure_has_a_slide_with_its_caption_and_keeps_its_shape():
    shown = Report("Sales", "# Sales\n\nText ![Within](b.png).\n\n![By year](a.png)\n\n![Gone](c.png)\n")
    figures = {"a.png": drawn_figure(2000, 500), "b.png": drawn_figure(60, 600)}
    deck: Any = Presentation(io.BytesIO(render_pptx(lay_out_report(replace(shown, figures=figures)))))
    pictures = [one for slide in deck.slides for one in slide.shapes if one.shape_type == 13]
    assert [round(one.width / one.height, 1) for one in pictures] == [0.1, 4.0]
    assert [one._element.nvPicPr.cNvPr.get("descr") for one in pictures] == ["Within", "By year"]
    assert all(one.top + one.height <= Pt(540) and one.left >= 0 for one in pictures)
    assert "By year" in text_of(deck) and "Gone (figure missing: c.png)" in text_of(deck)


def test_footnotes_and_tasks_are_shown():
    deck = opened("# Tea\n\nSo it is[^a].\n\n- [x] done\n- [ ] open\n\n[^a]: What it says.\n")
    assert titles(deck)[-1] == "Footnotes"
    assert links(deck)["1"] == "Footnotes"
    assert {"☑\tdone", "☐\topen", "1\tWhat it says."} <= set(text_of(deck).splitlines())


def test_the_headings_that_are_added_are_in_the_language_of_the_report():
    assert {"Inhalt", "Quellen"} <= set(titles(opened(GERMAN)))
    deck = opened(TEA_IN_CHINESE)
    assert "来源" in titles(deck)
    assert "茶是仅次于水的饮品" in text_of(deck)


def test_a_hostile_report_refers_to_nothing_but_what_a_click_opens():
    deck = opened(EVIL)
    external = [one for slide in deck.slides for one in slide.part.rels.values() if one.is_external]
    assert {one.reltype.rpartition("/")[2] for one in external} == {"hyperlink"}
    assert {one.target_ref.partition(":")[0] for one in external} == {"https"}


@pytest.mark.parametrize(
    "markdown", ["", "# \n", "# Only a title\n", "## A\n\n## B\n", "| a |\n|-|", "- ", "---"]
)
def test_however_little_there_is_it_is_a_presentation(markdown: str):
    assert len(opened(markdown).slides) > 0


def test_every_shape_of_a_slide_has_a_number_of_its_own():
    for slide in opened(TEA).slides:
        ids = [one.shape_id for one in slide.shapes]
        assert len(ids) == len({*ids})


def test_the_reader_of_documents_reads_a_presentation_back():
    read = read_pptx(made(TEA), "https://a.example/report.pptx").markdown
    assert "| Assam | 2.91 | malty [1] |" in read.replace("\N{NO-BREAK SPACE}", " ")
    assert "Exports grew by" in read


def test_slides_beyond_the_limit_are_left_out_and_counted_on_the_cover():
    deck = lay_out_deck(
        lay_out_report(report("\n".join(f"## {number}\n\ntext\n" for number in range(1_200))))
    )
    assert len(deck.slides) == MAX_SLIDES
    assert deck.left_out > 200
    lines = deck.slides[0].content
    assert isinstance(lines, tuple)
    (*_, last) = lines
    assert str(deck.left_out) in last.pieces[0].text
