"""Maps of offsets between a text and the source it was taken from."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LINE_END = re.compile(r"\r\n|\r|\n")


class OffsetMap:
    """Maps the offsets of a text to its source, of which it is a sequence of unchanged pieces.

    `pieces` are pairs of the offset of a piece in the text and in the source, in order.
    """

    def __init__(self, pieces: Iterable[tuple[int, int]]) -> None:
        self._starts, self._sources = list[int](), list[int]()
        for start, source in pieces:
            self._starts.append(start)
            self._sources.append(source)
        self._shift = self._sources[0] - self._starts[0] if len(self._starts) == 1 else None
        """Of a text in one piece, such as a paragraph on one line."""

    def source(self, offset: int) -> int:
        """Return the offset in the source of the character at `offset`."""
        if self._shift is not None:
            return offset + self._shift
        piece = max(bisect_right(self._starts, offset) - 1, 0)
        return self._sources[piece] + offset - self._starts[piece]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the source of the text from `start` to before `end`."""
        if self._shift is not None:
            return start + self._shift, max(start, end) + self._shift
        first = self.source(start)
        return first, self.source(end - 1) + 1 if start < end else first

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Split a span of the text where its characters are not neighbours in the source."""
        if self._shift is not None:
            return [(start, end)] if start < end else []
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end - 1)
        cuts = [start, *(one for one in self._starts[first:last]), end]
        return [(low, high) for low, high in pairwise(cuts) if low < high]


class SourceLines:
    """The lines of a text, whatever their ends are, and the same text with the line ends of Markdown."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.normalised = _LINE_END.sub("\n", source) if "\r" in source else source
        self.texts = self.normalised.split("\n")
        self._starts = [0, *accumulate(len(text) + 1 for text in self.texts)]
        ends = [found.end() for found in _LINE_END.finditer(source)] if "\r" in source else self._starts[1:-1]
        self._sources = OffsetMap(zip(self._starts, [0, *ends], strict=False))

    def __len__(self) -> int:
        return len(self.texts)

    def find_source(self, offset: int) -> int:
        """Return the offset in the source of the character at `offset` of the normalised text."""
        return self._sources.source(offset)

    def start(self, line: int) -> int:
        """Return where a line begins in the source."""
        return self._sources.source(self._starts[line]) if line < len(self.texts) else len(self.source)

    def end(self, first: int, last: int) -> int:
        """Return where the text of the lines from `first` to before `last` ends in the source."""
        while last > first + 1 and not self.texts[last - 1].strip():
            last -= 1
        return self.start(last - 1) + len(self.texts[last - 1].rstrip())

    def map_lines(self, content: str, begins: Sequence[int]) -> OffsetMap:
        """Return the map of a block's content, each of whose lines begins at one of `begins`.

        The parser may have put spaces before the first character of a line, for a tab of which a part is
        indentation.
        """
        pieces, at = list[tuple[int, int]](), 0
        for line, begin in zip(content.split("\n"), begins, strict=False):
            shift = len(line) - len(line.lstrip(" \t"))
            source = self._sources.source(begin)
            pieces += [(at, source - shift)]
            at += len(line) + 1
        return OffsetMap(pieces)
