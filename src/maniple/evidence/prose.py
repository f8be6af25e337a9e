"""The visible text of a block of a report, without code and escapes, and its structure."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape

from maniple.evidence.opaque import OpaqueSpans, Span, find_opaque_spans
from maniple.reading.markdown import MarkdownLine, MarkdownScanner
from maniple.reading.pictures import FIGURE

_NOT_A_LINE_END = re.compile(r"[^\n]")
_NOT_IN_DELIMITERS = re.compile(r"[^|:\- \t>]")
_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(
    r"\\([!-/:-@\[-`{-~])|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,31});|[\u00ad\u200b-\u200f\u2060\ufeff]"
)


class Unescaped:
    """A text with resolved escapes and entities, without invisible characters, and a map of the offsets."""

    def __init__(self, raw: str) -> None:
        pieces, at, length = list[str](), 0, 0
        self._clear, self._raw = [0], [0]
        for found in _ESCAPED.finditer(raw):
            written = found[1] or (unescape(found[0]) if found[0][0] == "&" else "")
            pieces += [raw[at : found.start()], written]
            length += found.start() - at + len(written)
            at = found.end()
            self._clear.append(length)
            self._raw.append(at)
        self.text = "".join((*pieces, raw[at:]))

    def raw(self, offset: int) -> int:
        """Convert an offset in `text` to one in the original text."""
        before = bisect_right(self._clear, offset) - 1
        return self._raw[before] + offset - self._clear[before]

    def clear(self, offset: int) -> int:
        """Convert an offset in the original text to one in `text`."""
        before = bisect_right(self._raw, offset) - 1
        return self._clear[before] + offset - self._raw[before]


@dataclass(frozen=True, slots=True)
class Prose:
    """One block. All texts keep the block's offsets: figures and omitted parts are replaced by spaces."""

    shown: str
    """The block without fenced code."""
    text: str
    """The block without code and formulas."""
    opaque: OpaqueSpans
    pieces: Sequence[Span]
    """Paragraphs, list items, cells of tables, headings."""
    quotes: Sequence[Span]
    """Block quotes, as spans of whole lines."""

    @classmethod
    def of(cls, block: str) -> "Prose":
        """Parse `block` in linear time."""
        block = block.replace("\r\n", " \n").replace("\r", "\n")
        opaque = find_opaque_spans(block)
        # A mark inside of a figure's caption or path would break the figure.
        block = FIGURE.sub(lambda found: " " * len(found[0]), block)
        fences = MarkdownScanner(strict=True)
        lines = [(fences.take(line), line) for line in block.split("\n")]
        shown = "\n".join(" " * len(line) if read.is_code else line for read, line in lines)
        shown = _without(shown, opaque.fences)
        text = _without(_without(shown, opaque.indented), opaque.code)
        return cls(shown, text, opaque, [*_pieces(lines, shown)], [*_quotes(lines)])


def _without(text: str, spans: Sequence[Span]) -> str:
    pieces, at = list[str](), 0
    for start, end in spans:
        pieces += [text[at:start], _NOT_A_LINE_END.sub(" ", text[start:end])]
        at = end
    return "".join((*pieces, text[at:]))


def _has_cells(shown: str) -> bool:
    """Whether a line may be the delimiter row of a table."""
    return any(
        "-" in line and ("|" in line or ":" in line) and not _NOT_IN_DELIMITERS.search(line)
        for line in shown.split("\n")
    )


def _pieces(lines: Sequence[tuple[MarkdownLine, str]], shown: str) -> Iterator[Span]:
    has_cells = _has_cells(shown)
    start = at = 0
    for read, line in lines:
        is_row = has_cells and "|" in line
        if start < at and (read.begins or is_row):
            yield start, at
            start = at
        if is_row:
            for bar in _BAR.finditer(line):
                yield start, at + bar.start()
                start = at + bar.end()
        at += len(line) + 1
    yield start, min(at, len(shown))


def _quotes(lines: Sequence[tuple[MarkdownLine, str]]) -> Iterator[Span]:
    start, end, at = -1, -1, 0
    for read, line in lines:
        continues = read.is_quoted and read.is_nested
        if start >= 0 and not continues:
            yield start, end
            start = -1
        if read.is_quoted:
            start, end = (start if start >= 0 else at), at + len(line)
        at += len(line) + 1
    if start >= 0:
        yield start, end
