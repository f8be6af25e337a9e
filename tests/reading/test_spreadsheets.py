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
