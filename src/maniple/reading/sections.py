"""Reading a long document in parts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from maniple.reading.fences import MarkdownScanner

_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MAX_HEADING_CHARACTERS = 100
_LEAST_ROOM = 200
_LONGEST_FENCE = 20
# A document of more is a list, and each part costs a hundred times as much memory as its text.
_MAX_HEADINGS = 10_000


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Markdown from one heading to the next."""

    heading: str
    level: int
    """1 to 6; 0 for what stands before the first heading."""
    markdown: str


def split_parts(markdown: str, title: str, max_characters: int, headed: bool = True) -> list[DocumentPart]:
    """`markdown` in the order it has, in parts of at most `max_characters` (not below 200) each.

    It is parted at headings, and where that leaves too much, between paragraphs. Text that is not `headed`
    has no headings, whatever its
    lines begin with. `title` is the heading of what stands before the first one.
    """
    whole = DocumentPart(title[:_MAX_HEADING_CHARACTERS], 0, markdown.strip("\n"))
    found = _by_headings(whole) if headed else [whole]
    room = max(max_characters, _LEAST_ROOM)
    return [piece for part in found for piece in _by_length(part, room)]


def find_part(section: str, found: list[DocumentPart]) -> int | None:
    """Which of `found`, from 1 on, is meant: by its number, its heading or a piece of that; None for none."""
    wanted = section.strip().lstrip("#").strip().casefold()
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(found):
        return int(wanted[:9])
    headings = [part.heading.casefold() for part in found]
    for matches in (str.__eq__, str.startswith, str.__contains__):
        for number, heading in enumerate(headings, 1):
            if wanted and matches(heading, wanted):
                return number
    return None


def _by_headings(whole: DocumentPart) -> Iterator[DocumentPart]:
    heading, level, lines, fences, count = whole.heading, 0, list[str](), MarkdownScanner(), 0
    for line in whole.markdown.split("\n"):
        is_code = fences.take(line).is_code
        match = None if is_code or count == _MAX_HEADINGS else _HEADING.match(line)
        if match:
            count += 1
            if any(lines):
                yield DocumentPart(heading, level, "\n".join(lines).strip("\n"))
            heading, level, lines = _plain(match[2]) or whole.heading, len(match[1]), []
        lines.append(line)
    yield DocumentPart(heading, level, "\n".join(lines).strip("\n"))


def _plain(heading: str) -> str:
    return _LINK.sub(r"\1", heading[: 10 * _MAX_HEADING_CHARACTERS]).strip("# *`")[:_MAX_HEADING_CHARACTERS]


def _by_length(part: DocumentPart, max_characters: int) -> Iterator[DocumentPart]:
    pieces = list(_pieces(part.markdown, max_characters))
    for number, piece in enumerate(pieces, 1):
        heading = f"{part.heading} ({number} of {len(pieces)})" if len(pieces) > 1 else part.heading
        yield DocumentPart(heading, part.level if number == 1 else 6, piece)


def _pieces(markdown: str, max_characters: int) -> Iterator[str]:
    """`markdown` cut between paragraphs, lines or, at worst, anywhere; code is closed and opened again."""
    start, fence, fences = 0, "", MarkdownScanner()
    while True:
        opening = f"{fence}\n" if fence else ""
        if len(markdown) - start <= max_characters - len(opening):
            yield opening + markdown[start:]
            return
        kept = markdown[start : start + max_characters - 45]  # room for two fences
        ends = (kept.rfind("\n\n"), kept.rfind("\n"), kept.rfind(" "))
        length = next((end for end in ends if end > len(kept) // 2), len(kept))
        start += length
        kept = kept[:length]
        for line in kept.split("\n"):
            fences.take(line)
        fence = fences.mark[:_LONGEST_FENCE]
        yield opening + kept.rstrip() + (f"\n{fence}" if fence else "")
        while markdown[start : start + 1] == "\n" or (not fence and markdown[start : start + 1] == " "):
            start += 1
