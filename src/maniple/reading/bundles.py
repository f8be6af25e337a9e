"""Documents that hold other ones: the members of a ZIP archive, and the attachments of an e-mail.

Each member is a section with its name. All members together have the limits of one document, and nested ones
are read to a small depth only.
"""

import time
import zlib
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from zipfile import BadZipFile, ZipFile

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.formats import FORMATS, HEAD_BYTES, identify_member, read_document
from maniple.text import counted, file_size, shorten

MAX_MEMBERS = 200
"""The members that are read or named one by one."""
_MAX_DEPTH = 2
_MAX_SECONDS = 12
"""Less than the time limit of the process, so that the members read so far are not lost."""
_NAME_CHARACTERS = 200
_HIDDEN = ("__MACOSX/", ".DS_Store", "Thumbs.db")
_depth: ContextVar[int] = ContextVar("maniple_bundle_depth", default=0)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in another one."""

    name: str
    content: bytes


def read_bundle(archive: ZipFile) -> MarkdownDocument:
    """Return the members of an archive that `containers.open_archive` opened.

    Raises:
        UnreadableDocument: one of them is damaged.
    """
    names = [one.filename for one in archive.infolist() if not one.is_dir()]
    shown = [
        name for name in dict.fromkeys(names) if not (name.startswith(_HIDDEN) or name.endswith(_HIDDEN))
    ]
    document = MarkdownDocument("", f"A ZIP archive with {counted(len(shown), 'file')}.")
    try:
        return add_members(document, (Member(name, archive.read(name)) for name in shown), "File")
    except (BadZipFile, ValueError, NotImplementedError, OSError, EOFError, zlib.error) as error:
        raise UnreadableDocument("is a damaged ZIP archive") from error


def add_members(document: MarkdownDocument, members: Iterable[Member], what: str) -> MarkdownDocument:
    """Return a document with its members as sections under their names.

    `what` is what a member is called. What is not read is named, with the reason.
    """
    token = _depth.set(_depth.get() + 1)
    try:
        return _add_members(document, members, what)
    finally:
        _depth.reset(token)


def _add_members(document: MarkdownDocument, members: Iterable[Member], what: str) -> MarkdownDocument:
    deadline = time.monotonic() + _MAX_SECONDS
    sections, left, rest = [document.markdown], MAX_CHARACTERS - len(document.markdown), 0
    for number, member in enumerate(members, 1):
        if number > MAX_MEMBERS:
            rest += 1
            continue
        name = shorten(member.name, _NAME_CHARACTERS)
        is_late = left <= 0 or time.monotonic() > deadline
        text = "[not read: the limit is reached]" if is_late else _read_member(member)
        if len(text) > left > 0:
            text = f"{text[:left]}\n\n[{truncation_note(left)}]"
        section = f"## {what} {number}: {name} ({file_size(len(member.content))})\n\n{text}"
        sections.append(section)
        left -= len(section)
    note = f"{counted(rest, 'further member')}: not read." if rest else ""
    return replace(
        document, markdown="\n\n".join(sections), note=" ".join(filter(None, (document.note, note)))
    )


def _read_member(member: Member) -> str:
    key = identify_member(member.content[:HEAD_BYTES], member.name)
    if not key:
        return "[not read: of an unknown format]"
    if _depth.get() > _MAX_DEPTH and key in ("zip", "ole", "mail"):
        return f"[not read: {FORMATS[key].name} in a document that is itself in another one]"
    try:
        document = read_document(key, member.content, member.name, None)
    except UnreadableDocument as error:
        return f"[not read: it {error}]"
    # Headings of a member stand below its own.
    is_headed = document.headed
    lines = (f"#{line}" if is_headed and line[:1] == "#" else line for line in document.markdown.split("\n"))
    return "\n".join(filter(None, ("\n".join(lines), f"[{document.note}]" if document.note else "")))
