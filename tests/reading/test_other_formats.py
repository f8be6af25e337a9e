"""The formats beside web pages, PDFs and Office: books, OpenDocument, notebooks, RTF, e-mail and archives."""

import io
import json
import zipfile
from email.message import EmailMessage

import pytest

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.formats import FORMATS, identify_binary, identify_marked_text, read_document
from tests.pictures import png
from tests.reading.files import archive, docx, paragraph, pdf, workbook

_OPEN = "urn:oasis:names:tc:opendocument:xmlns"
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/b.opf"/></rootfiles></container>',
    "O/b.opf": '<package xmlns:dc="urn:dc"><metadata><dc:title>Bridges</dc:title></metadata><manifest>'
    '<item id="b" href="two.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="a" href="one%20x.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
    "O/one x.xhtml": "<?xml version='1.0'?><html><body><h1>One</h1><p>First.</p></body></html>",
    "O/two.xhtml": "<html><body><h1>Two</h1><p>Second&#160;part.</p></body></html>",
}
NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"kernelspec": {"language": "R"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Tolls"]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"data": {"text/plain": ["2"]}},
                {"data": {"image/png": "iVBO"}},
                {"ename": "ValueError", "evalue": "no"},
            ],
        },
    ],
}


def read(body: bytes, name: str = "file") -> MarkdownDocument:
    return read_document(identify_binary(body) or identify_marked_text(body[:2_000]), body, name, None)


def mail() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Eva <eva@a.test>", "bo@b.test", "Zoë's rent"
    message["Date"], message["Message-ID"] = "Mon, 5 Oct 2026 10:00:00 +0200", "<1@a.test>"
    message.set_content("The rent is 940.")
    message.add_attachment(pdf("It rises in May."), maintype="application", subtype="pdf", filename="c.pdf")
    message.add_attachment(b"\x7fELF\0", maintype="application", subtype="octet-stream", filename="x.bin")
    return message.as_bytes()


def open_document(body: str, kind: str = "text") -> bytes:
    spaces = " ".join(f'xmlns:{name}="{_OPEN}:{name}:1.0"' for name in ("office", "text", "table", "draw"))
    content = (
        f"<office:document-content {spaces}><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    return archive({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})


def test_a_book_is_read_in_the_order_of_its_chapters() -> None:
    document = read(archive(dict(BOOK)))
    assert (document.title, document.format) == ("Bridges", "epub")
    assert document.markdown.split("\n\n") == ["# One", "First.", "# Two", "Second\xa0part."]


def test_a_text_of_open_document_keeps_headings_tables_and_notes() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    wide = ' table:number-columns-spanned="2"'
    rows = (
        f"<table:table-row>{cell.format(wide, 'Costs')}"
        "<table:covered-table-cell/></table:table-row>"
        f"<table:table-row>{cell.format('', '1')}{cell.format('', '2')}</table:table-row>"
    )
    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>As of May.</text:p>"
    body = (
        "<text:tracked-changes><text:deletion><text:p>Old.</text:p></text:deletion></text:tracked-changes>"
        '<text:h text:outline-level="2">Rent</text:h>'
        f"<text:p>It<text:s/>is 940{note}</text:note-body></text:note>.</text:p>"
        f"<text:list><text:list-item><text:p>Heat</text:p></text:list-item></text:list>"
        f"<table:table>{rows}</table:table>"
    )
    document = read(open_document(body))
    expected = "## Rent|It is 940 [note: As of May.].|- Heat|| Costs | Costs |\n| --- | --- |\n| 1 | 2 |"
    assert document.markdown.replace("\n\n", "|") == expected
    assert "1 deletion" in document.note


def test_a_presentation_of_open_document_has_its_slides() -> None:
    page = (
        "<draw:page><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame></draw:page>"
    )
    shown = read(open_document(page.format("One") + page.format("Two"), "presentation")).markdown
    assert shown.split("\n\n") == ["## Slide 1", "One", "## Slide 2", "Two"]


def test_a_notebook_is_read_with_its_code_and_outputs() -> None:
    document = read(json.dumps(NOTEBOOK, indent=1).encode())
    assert document.format == "notebook"
    assert "```R\n1 + 1\n```" in document.markdown
    assert "```text\n2\n```" in document.markdown
    assert "not read: image/png" in document.markdown
    assert "ValueError: no" in document.markdown


def test_rtf_is_read_as_its_text() -> None:
    document = read(rb"{\rtf1\ansi\ansicpg1250 The rent is \b 940\b0 . P\'f8\'edli\'9a\par Next}")
    assert document.markdown.split("\n") == ["The rent is 940. Příliš", "Next"]


def test_an_email_is_read_with_its_attachments() -> None:
    document = read(mail())
    assert (document.format, document.title) == ("mail", "Zoë's rent")
    wanted = ("From: Eva", "Date: Mon", "The rent is 940.", "Attachment 1: c.pdf", "It rises in May.")
    assert [text for text in wanted if text not in document.markdown] == []
    assert "x.bin (5 bytes)\n\n[not read" in document.markdown


def test_a_text_with_colons_is_no_email() -> None:
    assert identify_marked_text(b"From: a\nTo: b\nSubject: c\n\nText") == ""
    assert identify_marked_text(b"Note: a\nMessage-ID: b\n\nText") == ""


def test_the_files_of_an_archive_are_read_below_their_names() -> None:
    files = {
        "a/contract.docx": docx(paragraph("Rent", "Heading1")),
        "t.csv": "a;b\n1;2",
        "sums.xlsx": workbook({"S": [["x"]]}),
        "latin.txt": "Příliš žluťoučký kůň úpěl ďábelské ódy.".encode("windows-1250"),
        "__MACOSX/a": "hidden",
        "p.png": png(),
        "broken.pdf": b"%PDF-1.7",
    }
    shown = read(archive(files)).markdown
    for text in ("File 1: a/contract.docx", "\n## Rent", "| a | b |", "| row 1 | x |", "kůň", "PNG picture"):
        assert text in shown
    assert "hidden" not in shown
    assert "a damaged PDF" in shown


def test_archives_in_archives_are_read_to_a_small_depth() -> None:
    body = archive({"a.txt": "innermost"})
    for _ in range(2):
        body = archive({"in.zip": body})
    assert "innermost" not in read(archive({"in.zip": body})).markdown
    assert "innermost" in read(archive({"in.zip": archive({"a.txt": "innermost"})})).markdown


def test_an_archive_of_many_files_says_how_many_are_not_read() -> None:
    document = read(archive({f"{n}.txt": "x" for n in range(250)}))
    assert "50 further members" in document.note


def test_a_locked_archive_is_named() -> None:
    body = bytearray(archive({"a.txt": "x"}))
    at = body.rindex(b"PK\x01\x02")
    body[at + 8] |= 1
    with pytest.raises(UnreadableDocument, match="password"):
        read(bytes(body))


def test_each_reader_of_the_table_exists() -> None:
    import importlib

    for one in FORMATS.values():
        module, _, function = one.reader.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), one.name


@pytest.mark.parametrize("key", sorted(set(FORMATS) - {"text", "markdown", "json", "csv", "html", "frames"}))
def test_random_bytes_end_with_a_sentence(key: str) -> None:
    for body in (b"", b"\0" * 100, bytes(range(256)) * 8, archive({"a": "b"})[:-10]):
        try:
            assert isinstance(read_document(key, body, "file", None).markdown, str)
        except UnreadableDocument as error:
            assert str(error)


def test_a_bomb_of_files_is_refused_before_it_is_unpacked() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("zeros", bytes(60_000_000))
    with pytest.raises(UnreadableDocument, match="when it is unpacked"):
        read(stream.getvalue())
