"""Plain text of inline nodes, with the way back to the source."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from maniple.document import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"
"""What stands in a plain text for code and formulas."""


class PlainText:
    """The text of neighbouring pieces, and the source offsets of its characters.

    A piece is as long as its span, or stands for its span as a whole.
    """

    def __init__(self, pieces: Iterable[nodes.TextNode]) -> None:
        self._pieces = [one for one in pieces if one.text]
        self._starts = [0, *accumulate(len(one.text) for one in self._pieces)]
        self.text = "".join(one.text for one in self._pieces)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the source of the characters from `start` to before `end`, at least one."""
        first, last = self._find(start), self._find(end - 1)
        low, high = self._pieces[first], self._pieces[last]
        return (
            low.start + (start - self._starts[first] if _is_unchanged(low) else 0),
            high.start + end - self._starts[last] if _is_unchanged(high) else high.end,
        )

    def cut(self, start: int, end: int) -> list[nodes.InlineNode]:
        """Return the pieces of the text from `start` to before `end`."""
        found: list[nodes.InlineNode] = []
        for index in range(self._find(start), len(self._pieces)) if start < end else ():
            piece, begin = self._pieces[index], self._starts[index]
            if begin >= end:
                break
            low, high = max(start, begin) - begin, min(end, begin + len(piece.text)) - begin
            if high - low == len(piece.text):
                found.append(piece)
            elif _is_unchanged(piece):
                found.append(nodes.TextNode(piece.start + low, piece.start + high, piece.text[low:high]))
            else:
                found.append(nodes.TextNode(piece.start, piece.end, piece.text[low:high]))
        return found

    def _find(self, offset: int) -> int:
        return min(bisect_right(self._starts, offset) - 1, len(self._pieces) - 1)


def _is_unchanged(piece: nodes.TextNode) -> bool:
    return len(piece.text) == piece.end - piece.start


def join_plain(children: Sequence[nodes.InlineNode]) -> str:
    """Return the words of inline nodes, without citations, marks, footnotes and tags.

    Code and formulas are included as they are written.
    """
    return "".join(_words(children))


def _words(children: Sequence[nodes.InlineNode]) -> Iterator[str]:
    for one in children:
        match one:
            case nodes.TextNode(text=text) | nodes.CodeNode(text=text) | nodes.MathNode(tex=text):
                yield text
            case nodes.LineBreakNode():
                yield " "
            case (
                nodes.EmphasisNode()
                | nodes.StrongNode()
                | nodes.StrikeNode()
                | nodes.LinkNode()
                | nodes.FigureNode()
            ):
                yield from _words(one.children)
            case _:
                continue


def drop_prefix(children: tuple[nodes.InlineNode, ...], length: int) -> tuple[nodes.InlineNode, ...]:
    """Return the children without the first `length` characters, and without a line end behind these."""
    at = 0
    rest: list[nodes.InlineNode] = []
    while at < len(children) and length > 0:
        first = children[at]
        if not isinstance(first, nodes.TextNode):
            break
        if len(first.text) > length:
            rest = PlainText([first]).cut(length, len(first.text))
        length -= len(first.text)
        at += 1
    while not rest and at < len(children) and isinstance(children[at], nodes.LineBreakNode):
        at += 1
    return (*rest, *children[at:])
