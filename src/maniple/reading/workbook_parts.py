"""What the parts of an XLSX workbook hold beside the values of cells: formats of numbers, and comments."""

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from maniple.reading.cell_formats import Formats, find_cell_formats, read_formats
from maniple.reading.containers import read_part
from maniple.reading.xml_parts import (
    find_child,
    find_children,
    local_attribute,
    local_name,
    parse_xml,
    text_of,
)
from maniple.text import shorten

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
else:
    Element = Any

WORKBOOK = "xl/workbook.xml"
_STYLES = "xl/styles.xml"
_PERSONS = "xl/persons/person.xml"
_UNSAVED_FORMULA = re.compile(rb"</f>(?:<v\s*/>|<v></v>)?</c>")
_ERROR_CELL = re.compile(rb"<c [^<>]{0,200}\bt=\"e\"")
_MAX_COMMENTS = 200
_COMMENT_CHARACTERS = 1_000


@dataclass(slots=True)
class WorkbookParts:
    """What was found; formats and comments by the names of sheets."""

    formats: dict[str, Formats] = field(default_factory=dict[str, Formats])
    comments: dict[str, str] = field(default_factory=dict[str, str])
    """As Markdown that follows the table; only for sheets with comments."""
    unsaved: int = 0
    """The formulas without saved results, as programs write them."""
    errors: int = 0


def read_workbook_parts(archive: zipfile.ZipFile, max_rows: int) -> WorkbookParts:
    """Return the formats and comments of the sheets of a workbook; nothing for other formats than XLSX.

    Raises:
        UnreadableDocument: a part is damaged.
    """
    found, names = WorkbookParts(), set(archive.namelist())
    if WORKBOOK not in names:
        return found
    formats = read_formats(parse_xml(read_part(archive, _STYLES)) if _STYLES in names else None)
    persons = _read_persons(parse_xml(read_part(archive, _PERSONS))) if _PERSONS in names else {}
    for sheet, name in _iterate_sheets(archive, names):
        part = read_part(archive, name)
        found.unsaved += len(_UNSAVED_FORMULA.findall(part))
        found.errors += len(_ERROR_CELL.findall(part))
        found.formats[sheet] = find_cell_formats(part, formats, max_rows)
        if comments := _read_comments(archive, names, name, persons):
            found.comments[sheet] = comments
    return found


def _iterate_sheets(archive: zipfile.ZipFile, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each sheet with that of its part."""
    parts = {key: target for key, _, target in _relations(archive, names, WORKBOOK)}
    sheets = find_child(parse_xml(read_part(archive, WORKBOOK)), "sheets")
    for sheet in find_children(sheets, "sheet"):
        if (part := parts.get(local_attribute(sheet, "id"), "")) in names:
            yield local_attribute(sheet, "name"), part


def _relations(archive: zipfile.ZipFile, names: Iterable[str], part: str) -> list[tuple[str, str, str]]:
    """Return the parts to which `part` refers: identifier, kind and name of each."""
    folder, _, name = part.rpartition("/")
    place = f"{folder}/_rels/{name}.rels"
    if place not in names:
        return []
    return [
        (
            local_attribute(one, "Id"),
            local_attribute(one, "Type").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, local_attribute(one, "Target"))).lstrip("/"),
        )
        for one in find_children(parse_xml(read_part(archive, place)), "Relationship")
    ]


def _read_comments(
    archive: zipfile.ZipFile, names: Iterable[str], sheet: str, persons: Mapping[str, str]
) -> str:
    parts = {kind: name for _, kind, name in _relations(archive, names, sheet) if name in names}
    # A thread is also stored as a comment, for older programs.
    threads, notes = (
        parse_xml(read_part(archive, parts[kind])) if kind in parts else None
        for kind in ("threadedComment", "comments")
    )
    lines = [
        _line(one, persons.get(local_attribute(one, "personId"), ""))
        for one in find_children(threads, "threadedComment")
    ]
    in_threads = {local_attribute(one, "ref") for one in find_children(threads, "threadedComment")}
    authors = [text_of(one) for one in find_children(find_child(notes, "authors"), "author")]
    for one in find_children(find_child(notes, "commentList"), "comment"):
        author = local_attribute(one, "authorId")
        known = int(author) < len(authors) if author.isdecimal() else False
        if local_attribute(one, "ref") not in in_threads:
            lines.append(_line(one, authors[int(author)] if known else ""))
    if not lines:
        return ""
    more = len(lines) - _MAX_COMMENTS
    left_out = [f"- [{more:,} more comments are left out]"] if more > 0 else []
    return "\n\nComments:\n\n" + "\n".join([*islice(lines, _MAX_COMMENTS), *left_out])


def _line(comment: Element, author: str) -> str:
    """Return a comment as an item of a list."""
    pieces = (one for one in comment.iter() if local_name(one) == "text")
    # Words of several runs are joined as they are; a phonetic reading does not occur in comments.
    text = shorten(" ".join(map(text_of, pieces)), _COMMENT_CHARACTERS)
    by = f" ({author})" if author and not text.startswith(author) else ""
    return f"- {local_attribute(comment, 'ref')}{by}: {text}"


def _read_persons(root: Element) -> dict[str, str]:
    return {
        local_attribute(one, "id"): local_attribute(one, "displayName")
        for one in find_children(root, "person")
    }
