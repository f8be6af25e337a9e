from datetime import datetime
from io import BytesIO
from zipfile import ZipFile

import pytest

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.formats import read_document
from maniple.reading.spreadsheets import column_name
from tests.reading.files import archive, workbook

_OPEN = "urn:oasis:names:tc:opendocument:xmlns"
ODS = (
    f'<office:document-content xmlns:office="{_OPEN}:office:1.0" xmlns:table="{_OPEN}:table:1.0"'
    f' xmlns:text="{_OPEN}:text:1.0"><office:body><office:spreadsheet><table:table table:name="Tolls">'
    '<table:table-row><table:table-cell office:value-type="string"><text:p>Lorry</text:p></table:table-cell>'
    '<table:table-cell office:value-type="float" office:value="9.5"><text:p>9,50</text:p></table:table-cell>'
    "</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
)
MANIFEST = f'<manifest:manifest xmlns:manifest="{_OPEN}:manifest:1.0"/>'


def read(body: bytes) -> MarkdownDocument:
    return read_document("zip", body, "file", None)


def test_each_sheet_is_a_table_with_the_numbers_of_its_rows() -> None:
    rows: list[list[object]] = [
        ["Item", "Cost"],
        [],
        ["a|b", 1.5],
        ["", datetime(2026, 5, 1)],
        [True, 0.1 + 0.2],
    ]
    document = read(workbook({"Budget": rows, "None": []}))
    assert document.format == "workbook"
    expected = (
        "## Sheet 1: Budget (A1:B5)\n\n| row 1 | Item | Cost |\n| --- | --- | --- |\n| 3 | a\\|b | 1.5 |\n"
        "| 4 |  | 2026-05-01 |\n| 5 | TRUE | 0.3 |\n\n## Sheet 2: None\n\n[no cells]"
    )
    assert document.markdown == expected


def test_merged_cells_have_their_value_in_each_cell() -> None:
    book = workbook({"S": [["", "", "Total"], [1, 2], [4, 5]]}, {"A1:B1": "Costs", "C2:C3": "both"})
    assert "| row 1 | Costs | Costs | Total |" in read(book).markdown
    assert read(book).markdown.count("both") == 2


def test_hidden_sheets_are_named_and_not_read() -> None:
    document = read(workbook({"Open": [["x"]], "hidden wages": [["secret"]]}))
    assert "secret" not in document.markdown
    assert "hidden wages" in document.note


def test_a_formula_without_a_result_is_said_to_be_blank() -> None:
    body = workbook({"S": [["Sum"]]})
    assert not read(body).note
    with ZipFile(BytesIO(body)) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    cells = b'<c r="B1"><f>SUM(1,2)</f></c><c r="C1" t="e"><v>#DIV/0!</v></c></row>'
    parts[sheet] = parts[sheet].replace(b"</row>", cells)
    note = read(archive(dict(parts))).note
    assert "formula" in note
    assert "error" in note


def test_long_sheets_are_cut_and_short_ones_are_not() -> None:
    document = read(workbook({"Long": [["x" * 90]] * 12_000, "Wide": [["y"] * 150], "Late": [["z"]]}))
    assert "of 12,000" in document.note
    assert "100 of 150" in document.note
    assert "| row 1 | z |" in document.markdown
    assert len(document.markdown) < 401_000


def test_a_workbook_of_open_document_is_read_too() -> None:
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    body = archive({"mimetype": kind, "content.xml": ODS, "META-INF/manifest.xml": MANIFEST})
    expected = "## Sheet 1: Tolls (A1:B1)\n\n| row 1 | Lorry | 9.5 |\n| --- | --- | --- |"
    assert read(body).markdown == expected


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/workbook.bin"])
def test_a_damaged_workbook_is_said_to_be_damaged(part: str) -> None:
    with pytest.raises(UnreadableDocument, match="damaged workbook"):
        read(archive({part: "<x/>"}))


def test_a_workbook_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="when it is unpacked"):
        read(archive({"xl/workbook.xml": "<x/>", "xl/worksheets/sheet1.xml": bytes(60_000_000)}))


@pytest.mark.parametrize(("column", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")])
def test_columns_are_named_as_in_a_workbook(column: int, name: str) -> None:
    assert column_name(column) == name


FORMATTED = [
    (0.125, "0.0%", "12.5%"),
    (0.5, "0%", "50%"),
    (1234567.891, "#,##0", "1,234,568"),
    (1234.5, "#,##0.00", "1,234.50"),
    (1234.5, '"$"#,##0.00', "$1,234.50"),
    (1234.5, "[$€-407]#,##0.00", "€1,234.50"),
    (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
    (-1234.5, "#,##0.00;(#,##0.00)", "(1,234.50)"),
    (-1234.5, "#,##0.00", "-1,234.50"),
    (0, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', "$-"),
    (-3, "0;[Red]-0", "-3"),
    (12_300_000, '0.0,,"M"', "12.3M"),
    (0.00012, "0.00E+00", "1.20E-4"),
    (2.5, "0.0##", "2.5"),
    (0.5, "#.##", ".5"),
    (7, "000", "007"),
    (2.5, '0 "kg"', "3 kg"),
    (1.25, "General", "1.25"),
    (1.5, "# ?/?", "1.5"),
    (5, "@", "5"),
]


def formatted(value: object, code: str) -> bytes:
    from xlsxwriter import Workbook

    stream = BytesIO()
    book = Workbook(stream, {"in_memory": True})
    sheet = book.add_worksheet("S")
    sheet.write_row(0, 0, ["Item", "Value"])
    look = book.add_format({"num_format": code})
    if isinstance(value, datetime):
        sheet.write_datetime(1, 1, value, look)
    else:
        sheet.write(1, 1, value, look)
    book.close()
    return stream.getvalue()


@pytest.mark.parametrize(("value", "code", "shown"), FORMATTED)
def test_numbers_are_shown_as_their_format_shows_them(value: float, code: str, shown: str) -> None:
    assert f"| 2 |  | {shown} |" in read(formatted(value, code)).markdown


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("dd/mm/yyyy", "2026-05-01"),
        ("d mmm yy", "2026-05-01"),
        ("mmm yyyy", "2026-05"),
        ("yyyy", "2026"),
        ('yyyy"m"dd', "2026-05-01"),
    ],
)
def test_a_date_has_the_parts_that_its_format_shows(code: str, shown: str) -> None:
    assert f"| {shown} |" in read(formatted(datetime(2026, 5, 1), code)).markdown


def test_rounded_numbers_are_counted_in_a_note() -> None:
    assert "1 number" in read(formatted(0.12345, "0%")).note
    assert not read(formatted(0.12, "0%")).note
    assert not read(formatted(1200.0, "#,##0.00")).note


def test_comments_follow_the_table_of_their_sheet() -> None:
    from xlsxwriter import Workbook

    stream = BytesIO()
    book = Workbook(stream, {"in_memory": True})
    first, second = book.add_worksheet("A"), book.add_worksheet("B")
    first.write(0, 0, 3)
    first.write_comment("A1", "Measured\ntwice.", {"author": "Ada"})
    second.write(0, 0, 4)
    book.close()
    document = read(stream.getvalue())
    assert "- A1 (Ada): Measured twice." in document.markdown.split("## Sheet 2")[0]
    assert "Comments" not in document.markdown.split("## Sheet 2")[1]


def test_a_thread_of_comments_is_shown_once_with_its_authors() -> None:
    from xlsxwriter import Workbook

    stream = BytesIO()
    book = Workbook(stream, {"in_memory": True})
    sheet = book.add_worksheet("A")
    sheet.write(0, 0, 3)
    sheet.write_comment("A1", "[Threaded comment] Your version of the program is old.")
    book.close()
    with ZipFile(BytesIO(stream.getvalue())) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    rels = "xl/worksheets/_rels/sheet1.xml.rels"
    link = (
        b'<Relationship Id="t" Type="x/threadedComment" Target="../threadedComments/t1.xml"/></Relationships>'
    )
    parts[rels] = parts[rels].replace(b"</Relationships>", link)
    parts["xl/threadedComments/t1.xml"] = (
        b'<ThreadedComments><threadedComment ref="A1" personId="p"><text>Right?</text></threadedComment>'
        b'<threadedComment ref="A1" personId="q"><text>Yes.</text></threadedComment></ThreadedComments>'
    )
    parts["xl/persons/person.xml"] = (
        b'<personList><person id="p" displayName="Ada"/><person id="q" displayName="Bo"/></personList>'
    )
    document = read(archive(dict(parts)))
    assert "- A1 (Bo): Yes." in document.markdown
    assert document.markdown.count("- A1") == 2
    assert "Threaded comment" not in document.markdown
