"""The readers of EPUB books, and of texts and presentations of OpenDocument."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import unquote
from zipfile import ZipFile

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.containers import open_archive, read_part
from maniple.reading.encoding import decode_text
from maniple.reading.grids import expand_spans, restore_pipes
from maniple.reading.html import read_fragment
from maniple.reading.xml_parts import find_child, local_attribute, local_name, parse_xml, text_of
from maniple.text import counted

if TYPE_CHECKING:
    from maniple.reading.xml_parts import Element

_CONTAINER = "META-INF/container.xml"
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html")
_MAX_REPEATED = 100
_LEFT_OUT = frozenset(
    {"tracked-changes", "deletion", "annotation-end", "sequence-decls", "forms", "soft-page-break"}
)
_HEADINGS = 6
_LABELS = {"notes": "<p>Notes:</p>"}


def read_epub(body: bytes, url: str) -> MarkdownDocument:
    """Return the chapters of a book in their order.

    Raises:
        UnreadableDocument: it is damaged, protected, or too large when it is unpacked.
    """
    with open_archive(body, "an EPUB book") as archive:
        if "META-INF/rights.xml" in archive.namelist():
            raise UnreadableDocument("is an EPUB book that is protected against copying")
        title, parts = _list_chapters(archive)
        chapters, characters, unread = list[str](), 0, 0
        for part in parts:
            if characters > MAX_CHARACTERS:
                unread += 1
                continue
            text = _read_chapter(archive, part, url)
            characters += len(text)
            chapters.append(text)
    markdown = "\n\n".join(filter(None, chapters))
    notes = [f"{counted(unread, 'part')} of the book at its end: not read."] if unread else []
    notes += [truncation_note(MAX_CHARACTERS)] if len(markdown) > MAX_CHARACTERS else []
    return MarkdownDocument(title, markdown[:MAX_CHARACTERS], note=" ".join(notes))


def _list_chapters(archive: ZipFile) -> tuple[str, list[str]]:
    """Return the title of a book, and the names of its chapters in their order."""
    files = parse_xml(read_part(archive, _CONTAINER)).iter()
    package = next((local_attribute(one, "full-path") for one in files if local_name(one) == "rootfile"), "")
    root = parse_xml(read_part(archive, package) or b"<none/>")
    folder = posixpath.dirname(package)
    items = {
        local_attribute(one, "id"): _resolve(folder, local_attribute(one, "href"))
        for one in root.iter()
        if local_name(one) == "item" and local_attribute(one, "media-type") in _CHAPTER_TYPES
    }
    order = [local_attribute(one, "idref") for one in root.iter() if local_name(one) == "itemref"]
    title = next((text_of(one) for one in root.iter() if local_name(one) == "title"), "")
    return title, [items[one] for one in dict.fromkeys(order) if one in items]


def _resolve(folder: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(address)))


def _read_chapter(archive: ZipFile, part: str, url: str) -> str:
    source = decode_text(read_part(archive, part), None)
    # A declaration of XML would be text for the parser of HTML.
    source = source[source.find("<html") :] if "<html" in source else source
    return read_fragment(source, "", url).markdown


def read_open_document(body: bytes, url: str) -> MarkdownDocument:
    """Return a text, or a presentation with each slide as a section.

    Raises:
        UnreadableDocument: it is damaged, locked, or too large when it is unpacked.
    """
    with open_archive(body, "an OpenDocument file") as archive:
        if b"encryption-data" in read_part(archive, "META-INF/manifest.xml"):
            raise UnreadableDocument("is an OpenDocument file that is locked with a password")
        content = parse_xml(read_part(archive, "content.xml"))
        properties = read_part(archive, "meta.xml")
    title = ""
    if properties:
        titles = (one for one in parse_xml(properties).iter() if local_name(one) == "title")
        title = next((text_of(one) for one in titles), "")
    found = (one for one in content.iter() if local_name(one) in ("text", "presentation"))
    root = next((one for one in found if local_name(one.getparent()) == "body"), None)
    if root is None:
        raise UnreadableDocument("is a damaged OpenDocument file, or a drawing")
    deletions = sum(local_name(one) == "deletion" for one in content.iter())
    document = read_fragment(expand_spans("".join(_blocks(root))), title, url)
    note = f"Its tracked changes are read as accepted: {counted(deletions, 'deletion')} left out."
    notes = filter(None, (document.note, note if deletions else ""))
    return replace(document, markdown=restore_pipes(document.markdown), note=" ".join(notes))


def _blocks(parent: "Element") -> Iterator[str]:
    """Yield the HTML of the blocks of an element."""
    slide = 0
    for child in parent:
        match local_name(child):
            case "p":
                yield f"<p>{_inline(child)}</p>"
            case "h":
                yield _heading(child)
            case "list":
                items = "".join(f"<li>{''.join(_blocks(one))}</li>" for one in child)
                yield f"<ul>{items}</ul>"
            case "table":
                yield f"<table>{''.join(_rows(child))}</table>"
            case "page":
                slide += 1
                yield f"<h2>Slide {slide}</h2>{''.join(_blocks(child))}"
            case name if name not in _LEFT_OUT:
                yield f"{_LABELS.get(name, '')}{''.join(_blocks(child))}"


def _heading(element: "Element") -> str:
    level = local_attribute(element, "outline-level")
    number = min(max(int(level), 1), _HEADINGS) if level.isdecimal() else 1
    return f"<h{number}>{_inline(element)}</h{number}>"


def _rows(table: "Element") -> Iterator[str]:
    for row in table.iter():
        if local_name(row) == "table-row":
            yield f"<tr>{''.join(_cells(row))}</tr>"


def _cells(row: "Element") -> Iterator[str]:
    for cell in row:
        if local_name(cell) != "table-cell":
            continue  # a covered one: the cell that covers it spans it
        spans = [
            f' {html}="{escape(value)}"'
            for name, html in (("number-columns-spanned", "colspan"), ("number-rows-spanned", "rowspan"))
            if (value := local_attribute(cell, name))
        ]
        text = f"<td{''.join(spans)}>{''.join(_blocks(cell))}</td>"
        repeated = local_attribute(cell, "number-columns-repeated")
        yield text * (min(int(repeated), _MAX_REPEATED) if repeated.isdecimal() else 1)


def _inline(element: "Element") -> str:
    """Return the HTML of the text of a paragraph."""
    parts = [escape(element.text or "")]
    for child in element:
        match local_name(child):
            case "s":
                parts.append(" " * min(int(local_attribute(child, "c") or "1"), _MAX_REPEATED))
            case "tab" | "line-break":
                parts.append(" " if local_name(child) == "tab" else "<br>")
            case "a":
                parts.append(f'<a href="{escape(local_attribute(child, "href"))}">{_inline(child)}</a>')
            case "note":
                body = find_child(child, "note-body")
                parts.append(f" [note: {escape(text_of(body))}]" if body is not None else "")
            case "annotation":
                parts.append(f" [comment: {escape(text_of(child))}]")
            case name if name not in _LEFT_OUT:
                parts.append(_inline(child))
        parts.append(escape(child.tail or ""))
    return "".join(parts)
