"""A report becomes a tree whose nodes know where they stand."""

import pytest
from hypothesis import given, settings

from maniple.document import nodes, parse_document
from maniple.document.nodes import iterate_nodes
from tests.document.reports import LINE_ENDS, kinds, reports, sources


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# A `b`\n", ["Heading", "Code"]),
        ("A\n===\n", ["Heading"]),
        ("a *b **c*** ~~d~~\n", ["Paragraph", "Emphasis", "Strong", "Strike"]),
        ("a  \nb\nc", ["Paragraph", "LineBreak", "LineBreak"]),
        ("![a](b.png)\n", ["Figure"]),
        ("a\n![a](b.png)\nb\n", ["Paragraph", "Figure", "Paragraph"]),
        ("a ![a](b.png) b\n", ["Paragraph", "Figure"]),
        ("$$\nx\n=\ny\n$$\n", ["Math"]),
        ("a\n\\[\nx\n- y\n\\]\nb", ["Paragraph", "Math", "Paragraph"]),
        ("\\begin{align}\na &= b\n\\end{align}\n", ["Math"]),
        ("so $x$ and \\(y\\)", ["Paragraph", "Math", "Math"]),
        ("```mermaid\ngraph\n```\n", ["Mermaid"]),
        ("~~~py\nx\n~~~\n", ["CodeBlock"]),
        ("---\n", ["ThematicBreak"]),
        (
            "a[^1]\n\n[^1]: b [3]\n",
            ["Paragraph", "FootnoteReference", "FootnoteDefinition", "Paragraph", "Citation"],
        ),
        ("[a]: https://b.test/\n", ["LinkDefinition"]),
        ("[see][far]", ["Paragraph", "Link"]),
        ("a <b>c</b>", ["Paragraph", "Html", "Html"]),
        ("a <kbd>c[3]</kbd>", ["Paragraph", "Code"]),
        ("<https://b.test/>", ["Paragraph", "Link"]),
        ("| a |\n|---|\n| [2] |\n", ["Table", "Cell", "Cell", "Citation"]),
        ("so it is [unverified].", ["Paragraph", "Mark"]),
    ],
)
def test_each_form_of_markdown_has_its_nodes(markdown: str, expected: list[str]):
    assert kinds(markdown) == expected


def test_a_list_has_its_first_number_its_tasks_and_its_spacing():
    first, second = parse_document("3. [x] a\n4. [ ] b\n5. c\n\n- a\n\n- b\n").children
    assert isinstance(first, nodes.ListNode)
    assert isinstance(second, nodes.ListNode)
    assert (first.first, first.is_tight) == (3, True)
    assert [one.is_done for one in first.items] == [True, False, None]
    assert (second.first, second.is_tight) == (None, False)


def test_a_table_is_a_grid_with_alignments():
    markdown = "| a \\| b | c |\n|:-:|--:|\n| `x\\|y` |\n| 1 | 2 | 3 |\n"
    (table,) = parse_document(markdown).children
    assert isinstance(table, nodes.TableNode)
    assert table.alignments == ("center", "right")
    rows = [[markdown[cell.start : cell.end] for cell in row] for row in (*table.head, *table.body)]
    assert rows == [["a \\| b", "c"], ["`x\\|y`", ""], ["1", "2"]]


@pytest.mark.parametrize(("written", "callout"), [("[!NOTE]", "note"), ("[!Tip]-", "tip")])
def test_a_callout_is_a_quotation_with_its_kind(written: str, callout: str):
    (quote,) = parse_document(f"> {written}\n> So it is.\n").children
    assert isinstance(quote, nodes.BlockQuoteNode)
    assert quote.callout == callout
    assert sources(f"> {written}\n> So it is.\n", nodes.ParagraphNode) == ["So it is."]


@pytest.mark.parametrize(
    ("markdown", "numbers"),
    [
        ("so [3].", (3,)),
        ("so [3, 9].", (3, 9)),
        ("so [2]–[4].", (2, 3, 4)),
        ("so [2-4].", (2, 3, 4)),
        ("so 【3†L1-L4】.", (3,)),
        (r"so \[3\].", (3,)),
        ("It is so.<sup>3</sup>", (3,)),
        ("so [source 3].", (3,)),
        ("in Berlin[3]", (3,)),
        ("5 m[3]", (3,)),
        ("增长[3]", (3,)),
        ("[1]: https://a.test/\n\nso [3]", (3,)),
    ],
)
def test_a_number_in_brackets_is_a_citation(markdown: str, numbers: tuple[int, ...]):
    found = [one for one in iterate_nodes(parse_document(markdown)) if isinstance(one, nodes.CitationNode)]
    assert [one.numbers for one in found] == [numbers]
    assert all(int(markdown[part.start : part.end]) == part.number for part in found[0].parts)


@pytest.mark.parametrize(
    "markdown",
    [
        "a[7]",
        "x[3, 9] = 2",
        "m[1][2]",
        "values[7] = 3",
        "row_sums[7]",
        "[x] done",
        "a[^1]",
        "[0]",
        "[2024]",
        "[2024-05-01]",
        "m<sup>2</sup>",
        "`a[7]`",
        r"$x_{[9]}$",
        "[3](https://a.test/)",
        "[name 3b]",
    ],
)
def test_another_number_in_brackets_is_no_citation(markdown: str):
    assert "Citation" not in kinds(markdown)


def test_tags_are_text_where_html_is_not_known():
    assert kinds("a <b>c</b>", html=False) == ["Paragraph"]


@given(reports(), LINE_ENDS)
@settings(max_examples=150, deadline=None)
def test_the_spans_of_random_reports_are_in_order_and_inside_of_each_other(report: str, line_end: str):
    source = report.replace("\n", line_end)
    document = parse_document(source)
    assert (document.start, document.end) == (0, len(source))
    for node in iterate_nodes(document):
        assert 0 <= node.start <= node.end <= len(source)
        at = node.start
        for child in _children(node):
            assert at <= child.start <= child.end <= node.end
            at = child.end


@given(reports())
@settings(max_examples=150, deadline=None)
def test_a_text_is_what_stands_at_its_span(report: str):
    for one in iterate_nodes(parse_document(report)):
        if isinstance(one, nodes.TextNode):
            written = report[one.start : one.end]
            assert one.text == written or written.startswith(("\\", "&"))


@given(reports(), LINE_ENDS)
@settings(max_examples=100, deadline=None)
def test_line_ends_of_all_systems_give_the_same_tree(report: str, line_end: str):
    source = report.replace("\n", line_end)

    def read(markdown: str) -> list[tuple[str, str]]:
        found = iterate_nodes(parse_document(markdown))
        return [(type(one).__name__, markdown[one.start : one.end].replace(line_end, "\n")) for one in found]

    assert read(source) == read(report)


def _children(node: nodes.DocumentNode) -> list[nodes.DocumentNode]:
    inner = [*getattr(node, "children", ()), *getattr(node, "items", ()), *getattr(node, "parts", ())]
    rows = [*getattr(node, "head", ()), *getattr(node, "body", ())]
    return [*inner, *(cell for row in rows for cell in row)]
