import pytest

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.formats import read_document
from tests.reading.files import docx, paragraph

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def read(body: str, more: dict[str, bytes] | None = None) -> MarkdownDocument:
    return read_document("zip", docx(body, more), "file", None)


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def math(content: str) -> str:
    return f'<m:oMath xmlns:m="{_MATH}">{content}</m:oMath>'


def symbol(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def related(name: str, content: str) -> dict[str, bytes]:
    """Return a part such as `comments`, to which the document refers."""
    link = f'<Relationship Id="r9" Type="{_OFFICE}/{name}" Target="{name}.xml"/>'
    links = f'<Relationships xmlns="{_RELATIONS}">{link}</Relationships>'
    return {
        "word/_rels/document.xml.rels": links.encode(),
        f"word/{name}.xml": f'<w:{name} xmlns:w="{_WORD}">{content}</w:{name}>'.encode(),
    }


def test_tracked_insertions_are_text_and_deletions_are_not() -> None:
    changed = (
        f"<w:p>{run('It costs ')}<w:del w:id='1'><w:r><w:delText>nine</w:delText></w:r></w:del>"
        f"<w:ins w:id='2'>{run('ten')}</w:ins>{run(' crowns.')}</w:p>"
        f"<w:moveFrom w:id='3'>{paragraph('Old place.')}</w:moveFrom>"
        f"<w:p><w:moveTo w:id='4'>{run('New place.')}</w:moveTo></w:p>"
    )
    document = read(changed)
    assert document.markdown.split("\n\n") == ["It costs ten crowns.", "New place."]
    assert "2 insertions" in document.note
    assert "2 deletions" in document.note


def test_merged_cells_have_their_text_in_each_place() -> None:
    rows = (
        cell("Year", '<w:vMerge w:val="restart"/>') + cell("Costs | fees", '<w:gridSpan w:val="2"/>'),
        cell("", "<w:vMerge/>") + cell("plan") + cell("real"),
        cell("2026") + cell("1") + cell("2"),
    )
    expected = (
        "| Year | Costs \\| fees | Costs \\| fees |\n| --- | --- | --- |\n| Year | plan | real |\n"
        "| 2026 | 1 | 2 |"
    )
    assert read(table(*rows)).markdown == expected


@pytest.mark.parametrize(
    ("content", "tex"),
    [
        (
            symbol("E=m") + f"<m:sSup><m:e>{symbol('c')}</m:e><m:sup>{symbol('2')}</m:sup></m:sSup>",
            "E=mc^{2}",
        ),
        (f"<m:f><m:num>{symbol('α')}</m:num><m:den>{symbol('2π')}</m:den></m:f>", r"\frac{\alpha}{2\pi}"),
        (f"<m:rad><m:deg>{symbol('3')}</m:deg><m:e>{symbol('x_1')}</m:e></m:rad>", r"\sqrt[3]{x\_1}"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{symbol("i=1")}</m:sub>'
            f"<m:sup>{symbol('n')}</m:sup><m:e>{symbol('i')}</m:e></m:nary>",
            r"\sum_{i=1}^{n} i",
        ),
        (
            f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e><m:m><m:mr><m:e>'
            f"{symbol('a')}</m:e><m:e>{symbol('b')}</m:e></m:mr></m:m></m:e></m:d>",
            r"\begin{bmatrix}a & b\end{bmatrix}",
        ),
        (f"<m:func><m:fName>{symbol('sin')}</m:fName><m:e>{symbol('𝑥')}</m:e></m:func>", r"\sin x"),
        (f'<m:acc><m:accPr><m:chr m:val="⃗"/></m:accPr><m:e>{symbol("v")}</m:e></m:acc>', r"\vec{v}"),
        (f"<m:r><m:rPr><m:nor/></m:rPr><m:t>if </m:t></m:r>{symbol('ℝ≥0')}", r"\text{if }\mathbb{R}\ge 0"),
    ],
)
def test_an_equation_is_read_as_tex(content: str, tex: str) -> None:
    document = read(f"<w:p>{run('So ')}{math(content)}{run('.')}</w:p>")
    assert document.markdown == f"So ${tex}$."


def test_an_equation_on_its_own_line_is_displayed() -> None:
    shown = f'<m:oMathPara xmlns:m="{_MATH}"><m:oMath>{symbol("a&lt;b")}</m:oMath></m:oMathPara>'
    assert read(f"<w:p>{shown}</w:p>").markdown == "$$a<b$$"


def test_comments_and_footnotes_are_read() -> None:
    comment = f'<w:comment w:id="0" w:author="Eva" w:initials="E">{paragraph("Too dear.")}</w:comment>'
    body = f"<w:p>{run('Ten crowns')}<w:r><w:commentReference w:id='0'/></w:r></w:p>"
    assert "Too dear." in read(body, related("comments", comment)).markdown
    note = f'<w:footnote w:id="2">{paragraph("As of May.")}</w:footnote>'
    body = f"<w:p>{run('Ten crowns')}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
    assert "As of May." in read(body, related("footnotes", note)).markdown


def test_the_text_at_the_margins_is_read_once() -> None:
    header = f'<w:hdr xmlns:w="{_WORD}">{paragraph("Draft 7")}</w:hdr>'.encode()
    document = read(paragraph("Text"), {"word/header1.xml": header, "word/header2.xml": header})
    assert document.markdown.count("Draft 7") == 1


def test_a_picture_is_described_and_counted() -> None:
    drawing = (
        "<w:drawing><wp:inline xmlns:wp='urn:w'><wp:docPr id='1' descr='A bridge'/>"
        "<pic:pic xmlns:pic='urn:p'/></wp:inline></w:drawing>"
    )
    document = read(f"<w:p>{run('Seen: ')}<w:r>{drawing}</w:r></w:p>")
    assert document.markdown == "Seen: [picture: A bridge]"
    assert "1 picture" in document.note


def test_equations_nested_too_deeply_end_with_a_sentence() -> None:
    deep = "<m:e>" * 3_000 + symbol("x") + "</m:e>" * 3_000
    with pytest.raises(UnreadableDocument):
        read(f"<w:p>{math(deep)}</w:p>")
