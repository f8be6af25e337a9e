"""Incremental classification of the lines of Markdown, in linear time, and the split into sections.

The scanner follows CommonMark (0.31) for fences, block quotes, list items and paragraphs: a fence may be
inside of the others, ends with them, and is not a fence if it is indented too far. A full parser needs the
whole text, and up to 15 s and 30 MB for 1 MB; `tests/reading/test_markdown.py` compares the results.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLAIN = re.compile(r" {0,3}[^\s`~>+*#<=_|:\-\d\\]")
_SPACES = re.compile(" *")
_FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_LOOKS_LIKE_FENCE = re.compile(r"(?:[ \t>*+-]|\d{1,9}[.)])*(?:`{3}|~{3})")
_HEADING = re.compile(r"#{1,6}(?: |$)")
_UNDERLINE = re.compile(r"(?:=+|-+) *$")
_ITEM = re.compile(r"([-+*]|(\d{1,9})[.)])( +|$)")
_HTML = re.compile(r"<(?:[a-z/!?])(?![^\s<>]*:)", re.IGNORECASE)
_LASTING_HTML = re.compile(r"<(?:!|\?|(?:script|pre|style|textarea)(?:\s|>|$))", re.IGNORECASE)
_HTML_END = re.compile(r"-->|</(?:script|pre|style|textarea)>", re.IGNORECASE)
_MARKDOWN = frozenset({"markdown", "md"})
_QUOTE = 0
_MAX_NESTED = 20


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    """The classification of one line of Markdown."""

    is_code: bool = False
    """Whether it is in a fenced code block, or is a fence."""
    is_heading: bool = False
    is_quoted: bool = False
    """Whether it is in a block quote."""
    begins: bool = True
    """Whether it is not a continuation of a paragraph."""
    is_nested: bool = False
    """Whether it is in a block quote or a list item that an earlier line began."""


class MarkdownScanner:
    """Classifies lines one after the other.

    With `strict`, code that another renderer may show as text counts as text. That is the content of a fence
    around Markdown, which some models put around their whole answer, and everything after a line that looks
    like a fence but is none by CommonMark or may be inside of HTML.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.mark = ""
        """The opening fence of the code block that the next line is in; empty outside of code."""
        self._strict = strict
        self._containers: list[int] = []
        self._in_paragraph = False
        self._wrapper = ""
        self._is_ambiguous = False
        self._html = ""
        self._bare_item = False

    @property
    def can_split(self) -> bool:
        """Whether a line that is not nested can be read independently of the lines before it."""
        return not (self.mark or self._is_ambiguous or self._html == "lasting")

    @property
    def is_nested(self) -> bool:
        """Whether the next line may be in a block quote or a list item that has begun."""
        return bool(self._containers)

    def take(self, line: str) -> MarkdownLine:
        """Classify the next line, with or without its line end."""
        text = line.rstrip("\r\n")
        if self._strict and "\r" in text:
            self._is_ambiguous = True  # some renderers treat it as a line end
        if not (self._containers or self.mark or self._html) and _PLAIN.match(text):
            begins, self._in_paragraph = not self._in_paragraph, True
            return MarkdownLine(begins=begins)
        found = self._read(text.expandtabs(4))
        if self._strict and not found.is_code and _LOOKS_LIKE_FENCE.match(text):
            self._is_ambiguous = True
        return found

    def _read(self, text: str) -> MarkdownLine:
        depth, at = self._match_containers(text)
        is_blank = not text[at:].strip(" ")
        was_bare, self._bare_item = self._bare_item, False
        if depth < len(self._containers) and (is_blank or not self._in_paragraph):
            self._close_containers(depth)
        if is_blank:
            return self._classify_blank(depth, leaves_item=was_bare)
        if self.mark:
            return self._classify_code(text, at, depth)
        return self._classify_text(text, at, depth)

    def _match_containers(self, text: str) -> tuple[int, int]:
        """Return how many open containers `text` continues, and the index of its content within them."""
        at = 0
        for depth, columns in enumerate(self._containers):
            begin = _skip_spaces(text, at)
            if columns == _QUOTE:
                if begin - at > 3 or not text.startswith(">", begin):
                    return depth, at
                at = begin + (2 if text.startswith("> ", begin) else 1)
            elif begin - at >= columns:
                at += columns
            elif begin < len(text):
                return depth, at
        return len(self._containers), at

    def _close_containers(self, depth: int) -> None:
        del self._containers[depth:]
        self.mark, self._in_paragraph = "", False

    def _classify_blank(self, depth: int, *, leaves_item: bool) -> MarkdownLine:
        if leaves_item and self._containers and self._containers[-1] != _QUOTE:
            self._containers.pop()
        self._in_paragraph = False
        self._html = self._html if self._html == "lasting" else ""
        return self._line(depth, is_code=bool(self.mark) and not self._is_ambiguous)

    def _classify_code(self, text: str, at: int, depth: int) -> MarkdownLine:
        begin = _skip_spaces(text, at)
        rest = text[begin:].rstrip(" ")
        if begin - at <= 3 and rest.startswith(self.mark) and rest == rest[0] * len(rest):
            self.mark = ""
        elif self._strict and _LOOKS_LIKE_FENCE.match(rest):
            self._is_ambiguous = True
        return self._line(depth, is_code=not self._is_ambiguous)

    def _classify_text(self, text: str, at: int, depth: int) -> MarkdownLine:
        """Classify a line outside of code: open the containers that begin in it, then classify the rest."""
        continued, could_go_on = depth, self._in_paragraph
        while (begin := _skip_spaces(text, at)) - at <= 3:
            goes_on = could_go_on and depth == len(self._containers)
            if _is_leaf(text, begin, goes_on=goes_on):
                self._close_containers(depth)
                return self._line(continued, is_heading=text[begin] == "#")
            if (fence := _FENCE.match(text, begin)) is not None:
                self._close_containers(depth)
                return self._open_fence(fence, continued)
            inner = self._find_container_content(text, at, begin, goes_on=goes_on)
            if inner == at or depth == _MAX_NESTED:
                break
            self._close_containers(depth)
            self._containers.append(_QUOTE if text[begin] == ">" else inner - at)
            at, depth, could_go_on = inner, depth + 1, False
            if at >= len(text):
                return self._line(continued)
        return self._classify_rest(text, begin, at, continued, goes_on=could_go_on)

    def _find_container_content(self, text: str, at: int, begin: int, *, goes_on: bool) -> int:
        """Return the index of the content of a block quote or list item that begins in `text`.

        `at` for none.
        """
        if text.startswith(">", begin):
            return begin + (2 if text.startswith("> ", begin) else 1)
        item = _ITEM.match(text, begin)
        if item is None or (goes_on and _cannot_interrupt(item, text)):
            return at
        self._bare_item = item.end() == len(text)
        return item.end(1) + (1 if self._bare_item or len(item[3]) > 4 else len(item[3]))

    def _open_fence(self, fence: re.Match[str], continued: int) -> MarkdownLine:
        mark, info = fence[1] or fence[3], (fence[2] or fence[4] or "").strip().casefold()
        self._in_paragraph = False
        # A renderer that honours a fence around Markdown sees no fences in the quotes and lists within it.
        wraps = self._strict and info in _MARKDOWN
        self._is_ambiguous |= bool(self._html or (self._containers and (wraps or self._wrapper)))
        if self._wrapper and not info and mark.startswith(self._wrapper):
            self._wrapper = ""
        elif wraps and not self._wrapper:
            self._wrapper = mark
        else:
            self.mark = mark
        return self._line(continued, is_code=not self._is_ambiguous)

    def _classify_rest(
        self, text: str, begin: int, at: int, continued: int, *, goes_on: bool
    ) -> MarkdownLine:
        is_far = begin - at > 3
        if not is_far and self._strict and _HTML.match(text, begin) is not None and self._html != "lasting":
            lasts = _LASTING_HTML.match(text, begin) and not _HTML_END.search(text, begin)
            self._html = "lasting" if lasts else "short"
        self._in_paragraph = goes_on or not is_far
        return self._line(continued, begins=not goes_on)

    def _line(
        self, continued: int, *, is_code: bool = False, is_heading: bool = False, begins: bool = True
    ) -> MarkdownLine:
        return MarkdownLine(
            is_code, is_heading, _QUOTE in self._containers, begins, continued > 0 or not begins
        )


def _skip_spaces(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _is_leaf(text: str, begin: int, *, goes_on: bool) -> bool:
    """Return whether a heading, its underline, or a thematic break begins."""
    if _HEADING.match(text, begin) or (goes_on and _UNDERLINE.match(text, begin)):
        return True
    marks = text[begin:].replace(" ", "")
    return text[begin] in "-_*" and len(marks) >= 3 and marks == marks[0] * len(marks)


def _cannot_interrupt(item: re.Match[str], text: str) -> bool:
    """Return whether a list item cannot interrupt a paragraph."""
    return item.end() == len(text) or (item[2] is not None and int(item[2]) != 1)


_SECTION_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MAX_HEADING_CHARACTERS = 100
_LEAST_ROOM = 200
_MAX_FENCE_LENGTH = 20
# The limit of sections; each section takes a hundred times the memory of its text.
_MAX_HEADINGS = 10_000


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """The Markdown from one heading to the next."""

    heading: str
    level: int
    """1 to 6; 0 for the text before the first heading."""
    markdown: str


def split_parts(markdown: str, title: str, max_characters: int, headed: bool = True) -> list[DocumentPart]:
    """Split `markdown` into parts of at most `max_characters` (at least 200) each.

    It is split at headings; longer parts are split between paragraphs. If `headed` is False, lines that begin
    with `#` are no headings. `title` is the heading of the text before the first one.
    """
    document = DocumentPart(title[:_MAX_HEADING_CHARACTERS], 0, markdown.strip("\n"))
    found = _split_at_headings(document) if headed else [document]
    room = max(max_characters, _LEAST_ROOM)
    return [piece for part in found for piece in _split_by_length(part, room)]


def find_part(section: str, found: list[DocumentPart]) -> int | None:
    """Return the number (from 1) of the part that `section` names by number, heading or a part of it, else
    None.
    """
    wanted = section.strip().lstrip("#").strip().casefold()
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(found):
        return int(wanted[:9])
    headings = [part.heading.casefold() for part in found]
    for matches in (str.__eq__, str.startswith, str.__contains__):
        for number, heading in enumerate(headings, 1):
            if wanted and matches(heading, wanted):
                return number
    return None


def _split_at_headings(document: DocumentPart) -> Iterator[DocumentPart]:
    heading, level, lines, fences, count = document.heading, 0, list[str](), MarkdownScanner(), 0
    for line in document.markdown.split("\n"):
        is_code = fences.take(line).is_code
        match = None if is_code or count == _MAX_HEADINGS else _SECTION_HEADING.match(line)
        if match:
            count += 1
            if any(lines):
                yield DocumentPart(heading, level, "\n".join(lines).strip("\n"))
            heading, level, lines = _plain_heading(match[2]) or document.heading, len(match[1]), []
        lines.append(line)
    yield DocumentPart(heading, level, "\n".join(lines).strip("\n"))


def _plain_heading(heading: str) -> str:
    return _LINK.sub(r"\1", heading[: 10 * _MAX_HEADING_CHARACTERS]).strip("# *`")[:_MAX_HEADING_CHARACTERS]


def _split_by_length(part: DocumentPart, max_characters: int) -> Iterator[DocumentPart]:
    pieces = list(_split_text(part.markdown, max_characters))
    for number, piece in enumerate(pieces, 1):
        heading = f"{part.heading} ({number} of {len(pieces)})" if len(pieces) > 1 else part.heading
        yield DocumentPart(heading, part.level if number == 1 else 6, piece)


def _split_text(markdown: str, max_characters: int) -> Iterator[str]:
    """Yield `markdown` split between paragraphs, lines or, at worst, anywhere.

    Fences are closed and reopened.
    """
    start, fence, fences = 0, "", MarkdownScanner()
    while True:
        opening = f"{fence}\n" if fence else ""
        if len(markdown) - start <= max_characters - len(opening):
            yield opening + markdown[start:]
            return
        piece = markdown[start : start + max_characters - 45]  # room for two fences
        ends = (piece.rfind("\n\n"), piece.rfind("\n"), piece.rfind(" "))
        length = next((end for end in ends if end > len(piece) // 2), len(piece))
        start += length
        piece = piece[:length]
        for line in piece.split("\n"):
            fences.take(line)
        fence = fences.mark[:_MAX_FENCE_LENGTH]
        yield opening + piece.rstrip() + (f"\n{fence}" if fence else "")
        while markdown[start : start + 1] == "\n" or (not fence and markdown[start : start + 1] == " "):
            start += 1
