"""The words of a paragraph or cell for the check of claims, without citations and markup."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from maniple.document import nodes
from maniple.document.plain_text import OBJECT, PlainText, join_plain

NumberOf = Callable[[str], int]
"""Returns the number of the source at an address, or 0."""
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"`|，。；：！？、（）【】「」]{1,4000}", re.IGNORECASE)
_AFTER_ADDRESS = ".,;:!?'’*_~…)]}"
_NUMBER = re.compile(r"\[?\s?(\d{1,3})\s?\]?")
_LINE_TAG = re.compile(
    r"</?(?:br|p|div|li|ul|ol|tr|td|th|table|h[1-6]|blockquote|section|details|summary)\b", re.IGNORECASE
)
_CLOSES_UP = frozenset(" .,;:!?)]}。，；：！？、）")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TextNote:
    """A citation, mark, footnote reference or address: where it stands in the text and in the source."""

    offset: int
    start: int
    """Where it begins in the source."""
    end: int
    """Where it ends in the source."""
    numbers: tuple[int, ...] = ()
    begins_line: bool = False


class ClaimText:
    """The text of inline nodes; its offsets lead to the source and to what is cited beside them.

    `footnotes` are the sources that the definitions of footnotes cite, by their labels.
    """

    def __init__(
        self,
        children: Iterable[nodes.InlineNode],
        number_of: NumberOf,
        footnotes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self._number_of = number_of
        self._footnotes = footnotes or {}
        self._pieces: list[nodes.TextNode] = []
        self._length = 0
        self._begins_line = False
        self._containers: list[tuple[int, int, nodes.DocumentNode]] = []
        self.closed: list[tuple[int, int]] = []
        """Spans of the text in which no sentence ends: links, figures and addresses."""
        self.notes: list[TextNote] = []
        self._read(children)
        self._plain = PlainText(self._pieces)
        self.text = self._plain.text
        self._left_out: list[tuple[int, int]] = []
        self._take_addresses()
        self.notes.sort(key=lambda one: (one.offset, one.start))
        self._note_offsets = [one.offset for one in self.notes]
        self._begins, self._ends = dict[int, int](), dict[int, int]()
        for low, high, node in self._containers:
            begin, end = self.trim(low, high)
            self._begins[begin] = min(node.start, self._begins.get(begin, node.start))
            self._ends[end] = max(node.end, self._ends.get(end, node.end))

    @property
    def numbers(self) -> tuple[int, ...]:
        """All sources that are cited."""
        return tuple(dict.fromkeys(number for note in self.notes for number in note.numbers))

    def trim(self, start: int, end: int) -> tuple[int, int]:
        """Return a span of the text without white space at its ends."""
        while end > start and self.text[end - 1].isspace():
            end -= 1
        while start < end and self.text[start].isspace():
            start += 1
        return start, end

    def source_span(self, start: int, end: int, notes: Iterable[TextNote]) -> tuple[int, int]:
        """Return where the text from `start` to before `end` and `notes` stand in the source.

        The end is behind a link, figure or emphasis that ends with the text.
        """
        low, high = self._plain.span(start, end)
        low, high = self._begins.get(start, low), max(high, self._ends.get(end, high))
        for note in notes:
            low, high = min(low, note.start), max(high, note.end)
        return low, high

    def words(self, start: int, end: int) -> str:
        """Return the words of a span, without addresses and the spaces before citations."""
        first, last = (bisect_left(self._note_offsets, at) for at in (start, end))
        cuts = [(low - 1, low) for low in self._note_offsets[first:last] if self._closes_up(low, start)]
        at = max(bisect_right(self._left_out, (start,)) - 1, 0)
        for span in self._left_out[at:]:
            if span[0] >= end:
                break
            cuts.append((max(span[0], start), min(span[1], end)))
        kept: list[str] = []
        done = start
        for low, high in sorted(cuts):
            kept.append(self.text[done : max(low, done)])
            done = max(high, done)
        return _SPACES.sub(" ", "".join((*kept, self.text[done:end]))).strip()

    def _closes_up(self, offset: int, start: int) -> bool:
        """Whether the space before a citation that was left out is one too many."""
        return (
            start < offset < len(self.text)
            and self.text[offset - 1].isspace()
            and (self.text[offset] in _CLOSES_UP or self.text[offset].isspace())
        )

    def _read(self, children: Iterable[nodes.InlineNode]) -> None:
        before: nodes.InlineNode | None = None
        for one in children:
            self._begins_line = isinstance(before, nodes.LineBreakNode)
            before = one
            match one:
                case nodes.CitationNode():
                    self._note(one, one.numbers)
                case nodes.MarkNode():
                    self._note(one)
                case nodes.FootnoteReferenceNode():
                    self._note(one, self._footnotes.get(one.label, ()))
                case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
                    self._read_container(one)
                case nodes.LinkNode() | nodes.FigureNode():
                    self._read_container(one)
                case _:
                    self._add(one)

    def _read_container(
        self,
        one: nodes.EmphasisNode | nodes.StrongNode | nodes.StrikeNode | nodes.LinkNode | nodes.FigureNode,
    ) -> None:
        start = self._length
        if isinstance(one, nodes.LinkNode):
            number = self._number_of(one.target) if one.target else 0
            label = _NUMBER.fullmatch(join_plain(one.children) or _written(one))
            if label is not None:
                self._note(one, (number or int(label[1]),))
                return
            if number:
                self._note(one, (number,))
        self._read(one.children)
        if isinstance(one, nodes.LinkNode | nodes.FigureNode) and self._length > start:
            self.closed.append((start, self._length))
        if self._length > start:
            self._containers.append((start, self._length, one))

    def _add(
        self, one: nodes.TextNode | nodes.LineBreakNode | nodes.HtmlNode | nodes.CodeNode | nodes.MathNode
    ) -> None:
        match one:
            case nodes.TextNode():
                piece = one
            case nodes.LineBreakNode():
                piece = nodes.TextNode(one.start, one.end, " ")
            case nodes.HtmlNode():
                piece = nodes.TextNode(one.start, one.end, "\n" if _LINE_TAG.match(one.text) else "")
            case _:
                piece = nodes.TextNode(one.start, one.end, OBJECT)
        self._pieces.append(piece)
        self._length += len(piece.text)

    def _note(self, one: nodes.DocumentNode, numbers: tuple[int, ...] = ()) -> None:
        self.notes.append(TextNote(self._length, one.start, one.end, numbers, self._begins_line))

    def _take_addresses(self) -> None:
        """Turn bare addresses into citations."""
        for found in _ADDRESS.finditer(self.text):
            written = found[0].rstrip(_AFTER_ADDRESS)
            start, end = found.start(), found.start() + len(written)
            number = self._number_of(written)
            self._left_out.append((start, end))
            self.closed.append((start, end))
            self.notes.append(TextNote(start, *self._plain.span(start, end), (number,) if number else ()))


def _written(link: nodes.LinkNode) -> str:
    """Return the only citation in the text of a link, as in `[[3]](address)`."""
    match link.children:
        case (nodes.CitationNode(text=text),):
            return text
        case _:
            return ""
