"""The claims of a report: what they say, what they cite, and where a mark about them may stand."""

import re

import pytest
from hypothesis import given, settings

from maniple.claims.sentences import MAX_CHARACTERS, MAX_FIGURES
from maniple.claims.split import Claim, find_claims
from maniple.document import MARK, nodes, parse_document
from maniple.document.nodes import iterate_nodes
from tests.document.reports import LINE_ENDS, reports

FIGURE = re.compile(r"\d+")


def texts(block: str) -> list[str]:
    return [one.text for one in find_claims(block)]


def cited(block: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.text, one.citations) for one in find_claims(block)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rose. It fell! Did it? Yes.", ["It rose.", "It fell!", "Did it?", "Yes."]),
        ("It rose to 3.5 bn in Jan. 2023. It fell.", ["It rose to 3.5 bn in Jan. 2023.", "It fell."]),
        ("Dr. Smith and J. R. Doe of the U.S. Navy, e.g. in No. 5.", None),
        ("Am 1. Januar 2024 und im 3. Quartal z. B. bei rund 23,7 Mio. Euro.", None),
        ("Der Wert lag bei 15. Danach stieg er.", ["Der Wert lag bei 15.", "Danach stieg er."]),
        ("Der 3. Versuch gelang 100 v. Chr. im Westen.", None),
        ("It measures 5 m. The other 6 kg.", ["It measures 5 m.", "The other 6 kg."]),
        ("M. Dupont habite à 5 km. Il y va.", ["M. Dupont habite à 5 km.", "Il y va."]),
        ("Цена 5 тыс. руб. за 2023 г. Она выросла.", None),
        (
            "去年增长了5%。今年是“不到10%。真的”吗？是。",
            ["去年增长了5%。", "今年是“不到10%。真的”吗？", "是。"],
        ),
        (
            "売上は5億円。利益は（約1億円。推定）増えた。",
            ["売上は5億円。", "利益は（約1億円。推定）増えた。"],
        ),
        ("매출은 5억 원이다. 이익은 1억 원이다.", ["매출은 5억 원이다.", "이익은 1억 원이다."]),
        ("वह 5 है। यह 6 है।", ["वह 5 है।", "यह 6 है।"]),
        ("هل هو 5؟ نعم.", ["هل هو 5؟", "نعم."]),
        ("He said “It rose. It fell.” Then it ended.", ["He said “It rose. It fell.”", "Then it ended."]),
        ("It grew (see Fig. 2. Really) by 5.", None),
        ("It grew ... by 5. So … it is.", ["It grew ... by 5.", "So … it is."]),
        ("One<br>two", ["One", "two"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str] | None):
    assert texts(text) == (sentences or [text])


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("A is 5 [3]. B is 6.[4] C is 7. [5]", [("A is 5.", (3,)), ("B is 6.", (4,)), ("C is 7.", (5,))]),
        ("A is 5. [4] reports that B is 6.", [("A is 5.", ()), ("reports that B is 6.", (4,))]),
        ("A is 5 [1] and 6 [2, 3].", [("A is 5 and 6.", (1, 2, 3))]),
        ("增长了5%。[3]第二句。", [("增长了5%。", (3,)), ("第二句。", ())]),
        ("A is 5 ([Page](https://a.test/7)).", [("A is 5 (Page).", (7,))]),
        ("A is 5 [9](https://a.test/7).", [("A is 5.", (7,))]),
        ("A is 5 (https://a.test/7?id=77).", [("A is 5 ().", (7,))]),
        ("A is 5[^1].\n\n[^1]: B is 6 [2].", [("A is 5.", (2,)), ("B is 6.", (2,))]),
        ("By year [7]:\n\n- A is 5\n- B is 6 [8]. C\n\n  - D", None),
        ("> [!NOTE]\n> A is 5. B [3].", [("A is 5.", (3,)), ("B.", (3,))]),
    ],
)
def test_a_claim_has_the_sources_that_are_cited_for_it(
    block: str, expected: list[tuple[str, tuple[int, ...]]]
):
    found = find_claims(block, lambda url: 7 if url.startswith("https://a.test/7") else 0)
    inherited = [("A is 5", (7,)), ("B is 6.", (8,)), ("C", (8,)), ("D", (8,))]
    assert [(one.text, one.citations) for one in found] == (expected or inherited)


def test_a_cell_knows_its_row_and_column_and_inherits_their_sources():
    table = (
        "| City | People [2] | Area | Source |\n|---|---|---|---|\n"
        "| Rome | 5 m | 30 km² [4] | |\n| Oslo | 7 | 8 | [6] |\n"
    )
    found = find_claims(f"# Towns\n\n{table}")
    assert [(one.text, one.row, one.column, one.citations) for one in found] == [
        ("5 m", "Rome", "People", (2,)),
        ("30 km²", "Rome", "Area", (4,)),
        ("7", "Oslo", "People", (2,)),
        ("8", "Oslo", "Area", (6,)),
    ]
    assert {(one.kind, one.heading) for one in found} == {("cell", "Towns")}


def test_a_table_without_citations_has_those_of_its_introduction_or_of_the_line_behind_it():
    table = "| a | b |\n|---|---|\n| c | 5 |\n"
    assert cited(f"As in [3]:\n\n{table}")[-1] == ("5", (3,))
    assert cited(f"{table}\nSource: [4]\n")[0] == ("5", (4,))


@pytest.mark.parametrize(
    "block",
    [
        "# Growth of 5 % [3]\n",
        "```\na = 5 [3]\n```\n",
        "    a = 5\n",
        "$$\nx = 5\n$$\n",
        "$x = 5$ `y = 6`\n",
        "![](a.png)\n",
        "![Chart](a5.png)\n",
        '[3]: https://a.test/ "5"\n',
        "- [1] A of 2020: <https://a.test/>\n- [2] B of 2021: <https://b.test/>\n",
        "## Sources\n\n- C of 2020\n",
        "---\n",
    ],
)
def test_headings_code_formulas_and_source_lists_are_no_claims(block: str):
    assert texts(block) == []


def test_a_source_list_ends_at_the_next_heading_of_its_level():
    report = "## Quellen\n\nA 5\n\n### Mehr\n\nB 6\n\n## Ende\n\nC 7.\n"
    assert texts(report) == ["C 7."]


def test_code_and_formulas_in_a_sentence_are_opaque():
    assert texts("It is `5` and $x_{[9]} = 6$.") == ["It is \ufffc and \ufffc."]


def test_a_claim_knows_the_sentence_before_it():
    assert [one.before for one in find_claims("A rose.[1] It is 5.")] == ["", "A rose."]


@pytest.mark.parametrize("word", ["figure 5, ", "7 ", "字", "word ", "12345678901", "a, "])
def test_a_long_sentence_is_cut_and_all_of_it_is_covered(word: str):
    block = word * (9_000 // len(word)) + "[3]."
    found = find_claims(block)
    assert len(found) > 1
    assert all(one.end - one.start <= MAX_CHARACTERS + 10 and one.citations == (3,) for one in found)
    assert all(len(FIGURE.findall(one.text)) <= MAX_FIGURES for one in found)
    assert re.sub(r"\s", "", "".join(one.text for one in found)) == re.sub(
        r"\s", "", block.replace("[3]", "")
    )


def insert_mark(block: str, claim: Claim) -> str:
    return f"{block[: claim.end]} {MARK}{block[claim.end :]}"


@given(reports(), LINE_ENDS)
@settings(max_examples=150, deadline=None)
def test_the_claims_of_random_reports_are_in_order_and_do_not_overlap(report: str, line_end: str):
    block, at = report.replace("\n", line_end), 0
    for one in find_claims(block):
        assert at <= one.start < one.end <= len(block)
        at = one.end


@given(reports())
@settings(max_examples=150, deadline=None)
def test_each_figure_of_the_prose_is_in_exactly_one_claim(report: str):
    spans = [(one.start, one.end) for one in find_claims(report)]
    tree = parse_document(report)
    prose = [one for one in tree.children if not isinstance(one, nodes.HeadingNode | nodes.TableNode)]
    for block in prose:
        for one in iterate_nodes(block):
            if isinstance(one, nodes.TextNode):
                for figure in FIGURE.finditer(report, one.start, one.end):
                    assert sum(low <= figure.start() and figure.end() <= high for low, high in spans) == 1


@given(reports())
@settings(max_examples=150, deadline=None)
def test_a_mark_behind_a_claim_leaves_code_formulas_links_and_tables_as_they_were(report: str):
    def read(markdown: str) -> list[str]:
        opaque = nodes.CodeNode | nodes.MathNode | nodes.LinkNode | nodes.CodeBlockNode | nodes.FigureNode
        found = [*iterate_nodes(parse_document(markdown))]
        written = [markdown[one.start : one.end] for one in found if isinstance(one, opaque)]
        tables = [one for one in found if isinstance(one, nodes.TableNode)]
        return [*written, *(f"{len(one.head)}, {len(one.body)}, {one.alignments}" for one in tables)]

    for claim in find_claims(report):
        marked = insert_mark(report, claim)
        assert read(marked) == read(report)
        marks = [one for one in iterate_nodes(parse_document(marked)) if isinstance(one, nodes.MarkNode)]
        assert len(marks) == report.count(MARK) + 1


@pytest.mark.parametrize(
    "text", ["Quelle: [1]", "来源：[1]", "资料来源：[1]", "(Manufacturer's data) [1]", "Data source: [1]"]
)
def test_a_label_is_no_claim(text):
    assert find_claims(text) == []


@pytest.mark.parametrize(
    "text",
    ["(The bridge is old.) [1]", "Opened in 1932: [1]", "Price: high [1]", "The bridge is very old: [1]"],
)
def test_words_that_state_something_are_no_label(text):
    assert len(find_claims(text)) == 1
