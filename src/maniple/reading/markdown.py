"""Which lines of Markdown are code, told while it is written, in linear time.

The rules are CommonMark's (0.31), of which this follows block quotes, list items and paragraphs: a fence may
stand in them, ends with them, and is none where it is indented too far. A parser wants the whole text, and
takes up to 15 s and 30 MB for a page of 1 MB; `tests/reading/test_fences.py` compares with one.
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
_MOST_NESTED = 20


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    """What one line of Markdown is."""

    is_code: bool = False
    """It stands in a fence, or is one."""
    is_heading: bool = False
    is_quoted: bool = False
    """It stands in a block quote."""
    begins: bool = True
    """It is not a further line of a paragraph."""
    is_nested: bool = False
    """It stands in a block quote or a list item that an earlier line began."""


class MarkdownScanner:
    """Follows lines, and says of each what it is.

    Where it is `strict`, code that a reader might be shown as text is text: what is in a fence around
    Markdown, as some models put one around their whole answer, and everything behind a line that looks like
    a fence and is none here, or that may stand in HTML; another reader may take it for one.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.mark = ""
        """What opened the code that the next line stands in; else empty."""
        self._strict = strict
        self._containers: list[int] = []
        self._in_paragraph = False
        self._wrapper = ""
        self._doubts = False
        self._html = ""
        self._bare_item = False

    @property
    def may_part(self) -> bool:
        """Whether a line that is not nested can be read without what came before it."""
        return not (self.mark or self._doubts or self._html == "lasting")

    @property
    def is_nested(self) -> bool:
        """Whether the next line may stand in a block quote or a list item that has begun."""
        return bool(self._containers)

    def take(self, line: str) -> MarkdownLine:
        """Follow one more line, which may have its end."""
        text = line.rstrip("\r\n")
        if self._strict and "\r" in text:
            self._doubts = True  # is another line's end to some
        if not (self._containers or self.mark or self._html) and _PLAIN.match(text):
            begins, self._in_paragraph = not self._in_paragraph, True
            return MarkdownLine(begins=begins)
        found = self._read(text.expandtabs(4))
        if self._strict and not found.is_code and _LOOKS_LIKE_FENCE.match(text):
            self._doubts = True
        return found

    def _read(self, text: str) -> MarkdownLine:
        depth, at = self._continued(text)
        is_blank = not text[at:].strip(" ")
        was_bare, self._bare_item = self._bare_item, False
        if depth < len(self._containers) and (is_blank or not self._in_paragraph):
            self._leave(depth)
        if is_blank:
            return self._blank(depth, leaves_item=was_bare)
        if self.mark:
            return self._code(text, at, depth)
        return self._text(text, at, depth)

    def _continued(self, text: str) -> tuple[int, int]:
        """Return how many of the open containers `text` continues, and where it goes on within them."""
        at = 0
        for depth, columns in enumerate(self._containers):
            begin = _indented(text, at)
            if columns == _QUOTE:
                if begin - at > 3 or not text.startswith(">", begin):
                    return depth, at
                at = begin + (2 if text.startswith("> ", begin) else 1)
            elif begin - at >= columns:
                at += columns
            elif begin < len(text):
                return depth, at
        return len(self._containers), at

    def _leave(self, depth: int) -> None:
        del self._containers[depth:]
        self.mark, self._in_paragraph = "", False

    def _blank(self, depth: int, *, leaves_item: bool) -> MarkdownLine:
        if leaves_item and self._containers and self._containers[-1] != _QUOTE:
            self._containers.pop()
        self._in_paragraph = False
        self._html = self._html if self._html == "lasting" else ""
        return self._line(depth, is_code=bool(self.mark) and not self._doubts)

    def _code(self, text: str, at: int, depth: int) -> MarkdownLine:
        begin = _indented(text, at)
        rest = text[begin:].rstrip(" ")
        if begin - at <= 3 and rest.startswith(self.mark) and rest == rest[0] * len(rest):
            self.mark = ""
        elif self._strict and _LOOKS_LIKE_FENCE.match(rest):
            self._doubts = True
        return self._line(depth, is_code=not self._doubts)

    def _text(self, text: str, at: int, depth: int) -> MarkdownLine:
        """Read a line that is not in code: what begins in it, and what of it is left."""
        kept, could_go_on = depth, self._in_paragraph
        while (begin := _indented(text, at)) - at <= 3:
            goes_on = could_go_on and depth == len(self._containers)
            if _is_leaf(text, begin, goes_on=goes_on):
                self._leave(depth)
                return self._line(kept, is_heading=text[begin] == "#")
            if (fence := _FENCE.match(text, begin)) is not None:
                self._leave(depth)
                return self._opened(fence, kept)
            inner = self._begun(text, at, begin, goes_on=goes_on)
            if inner == at or depth == _MOST_NESTED:
                break
            self._leave(depth)
            self._containers.append(_QUOTE if text[begin] == ">" else inner - at)
            at, depth, could_go_on = inner, depth + 1, False
            if at >= len(text):
                return self._line(kept)
        return self._rest(text, begin, at, kept, goes_on=could_go_on)

    def _begun(self, text: str, at: int, begin: int, *, goes_on: bool) -> int:
        """Return where the block quote or list item that begins in `text` has its content; `at` for none."""
        if text.startswith(">", begin):
            return begin + (2 if text.startswith("> ", begin) else 1)
        item = _ITEM.match(text, begin)
        if item is None or (goes_on and _is_no_start(item, text)):
            return at
        self._bare_item = item.end() == len(text)
        return item.end(1) + (1 if self._bare_item or len(item[3]) > 4 else len(item[3]))

    def _opened(self, fence: re.Match[str], kept: int) -> MarkdownLine:
        mark, info = fence[1] or fence[3], (fence[2] or fence[4] or "").strip().casefold()
        self._in_paragraph = False
        # Who sees a fence around Markdown sees none in the quotes and lists within it.
        wraps = self._strict and info in _MARKDOWN
        self._doubts |= bool(self._html or (self._containers and (wraps or self._wrapper)))
        if self._wrapper and not info and mark.startswith(self._wrapper):
            self._wrapper = ""
        elif wraps and not self._wrapper:
            self._wrapper = mark
        else:
            self.mark = mark
        return self._line(kept, is_code=not self._doubts)

    def _rest(self, text: str, begin: int, at: int, kept: int, *, goes_on: bool) -> MarkdownLine:
        is_far = begin - at > 3
        if not is_far and self._strict and _HTML.match(text, begin) is not None and self._html != "lasting":
            lasts = _LASTING_HTML.match(text, begin) and not _HTML_END.search(text, begin)
            self._html = "lasting" if lasts else "short"
        self._in_paragraph = goes_on or not is_far
        return self._line(kept, begins=not goes_on)

    def _line(
        self, kept: int, *, is_code: bool = False, is_heading: bool = False, begins: bool = True
    ) -> MarkdownLine:
        return MarkdownLine(is_code, is_heading, _QUOTE in self._containers, begins, kept > 0 or not begins)


def _indented(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _is_leaf(text: str, begin: int, *, goes_on: bool) -> bool:
    """Whether a heading, its underline, or a rule begins."""
    if _HEADING.match(text, begin) or (goes_on and _UNDERLINE.match(text, begin)):
        return True
    marks = text[begin:].replace(" ", "")
    return text[begin] in "-_*" and len(marks) >= 3 and marks == marks[0] * len(marks)


def _is_no_start(item: re.Match[str], text: str) -> bool:
    """Whether what looks like a list item cannot interrupt a paragraph."""
    return item.end() == len(text) or (item[2] is not None and int(item[2]) != 1)


_SECTION_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
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
        match = None if is_code or count == _MAX_HEADINGS else _SECTION_HEADING.match(line)
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
