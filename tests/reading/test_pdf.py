import pytest

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.formats import read_document
from tests.reading.files import drawn, form_pdf, pdf

BODY = [(20.0, 200.0 - 14 * at, 10.0, f"Text of the body, line {at} of four.") for at in range(4)]


def read(body: bytes) -> MarkdownDocument:
    return read_document("pdf", body, "file", None)


def page(*pieces: tuple[float, float, float, str]) -> str:
    return read(pdf(drawn(*pieces))).markdown.removeprefix("## Page 1\n\n")


def test_lines_in_larger_letters_are_headings() -> None:
    shown = page((20, 260, 20, "The whole title"), (20, 230, 13, "A part"), *BODY)
    assert shown.startswith("### The whole title\n\n#### A")


def test_a_heading_of_two_lines_is_one() -> None:
    assert page((20, 280, 20, "A title of"), (20, 256, 20, "two lines"), *BODY).startswith(
        "### A title of two"
    )


def test_rows_with_wide_gaps_are_a_table() -> None:
    rows = [("Item", "2025", "2026"), ("Lorry", "9.50", "10"), ("Car | van", "", "4")]
    pieces = [
        (20.0 + 90 * column, 250.0 - 14 * row, 10.0, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
        if text
    ]
    expected = (
        "| Item | 2025 | 2026 |\n| --- | --- | --- |\n| Lorry | 9.50 | 10 |\n| Car \\| van |  | 4 |\n\nText"
    )
    assert page(*pieces, *BODY).startswith(expected)


def test_two_columns_of_text_are_read_one_after_the_other() -> None:
    left = ["The first column goes on here, and it is", "long enough for a column of text that", "ends."]
    right = ["The second column begins after the first,", "and it is as long as that one was, or", "more."]
    pieces = [
        (x, 250.0 - 14 * at, 5.0, text)
        for at in range(3)
        for x, text in ((10.0, left[at]), (160.0, right[at]))
    ]
    shown = page(*pieces)
    assert shown.index("ends.") < shown.index("The second")


def test_a_divided_word_is_joined_and_a_compound_is_not_lost() -> None:
    lines = ("An unfortu-", "nate end in Baden-", "Baden of a well-", "known, really well-known man.")
    shown = page(*((20.0, 200.0 - 14 * at, 10.0, line) for at, line in enumerate(lines)))
    assert shown.startswith("An unfortunate end")
    assert "Baden-Baden" in shown
    assert shown.count("well-known") == 2


def test_a_raised_digit_is_an_exponent() -> None:
    shown = page((20, 240, 10, "About 10"), (62, 244, 6, "6"), (68, 240, 10, " cars."), *BODY)
    assert shown.startswith("About 10^6 cars.")


def test_the_values_of_a_form_are_read() -> None:
    shown = read(form_pdf({"Name": "Eva Novak", "Town": "", "Sum": "940"})).markdown
    assert "- Name: Eva Novak" in shown
    assert "- Sum: 940" in shown
    assert "Town" not in shown


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (pdf("x", password="key"), "password"),
        (b"%PDF-1.7\nxref\n0 99999999\ntrailer<</Root 1 0 R>>", "damaged"),
        (
            b"%PDF-1.7 1 0 obj<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]>>endobj trailer<</Root 1 0 R>>",
            "damaged",
        ),
    ],
)
def test_a_pdf_that_cannot_be_read_is_named(body: bytes, said: str) -> None:
    with pytest.raises(UnreadableDocument, match=said):
        read(body)


def test_a_pdf_with_a_damaged_table_of_objects_is_read_all_the_same() -> None:
    body = pdf("The first arch")
    at = body.rindex(b"startxref")
    assert "The first arch" in read(body[:at].replace(b"xref", b"xxxx") + b"startxref\n7\n%%EOF").markdown
