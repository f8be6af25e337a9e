"""Splits a block of a report into its claims: sentences and cells, with the sources that they cite."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from maniple.claims.claim_text import ClaimText, NumberOf, TextNote
from maniple.claims.sentences import find_sentence_ends, split_long
from maniple.document import nodes
from maniple.document.tree import parse_document
from maniple.evidence.source_list import is_source_heading

ROW_HEAD_WORDS = 8
"""The words up to which the first cell of a row is its name and not a claim."""
SOURCE_LINE_WORDS = 3
"""The words up to which a paragraph with citations names the sources of the table before it."""
LABEL_CHARACTERS = 40
"""The characters up to which words before a colon, or in brackets, may be a label and no claim."""
_LABEL = re.compile(r"[^\W\d_][^\d:：.!?。！？]*[:：]|[(（][^\d.!?。！？()（）]*[)）]")
CAPTION_WORDS = 3
"""The words from which the caption of a figure is a claim."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence or cell of a report."""

    text: str
    """Plain words without citations and markup; code and formulas are U+FFFC."""
    start: int
    end: int
    """Offsets in the Markdown of the block; a mark is inserted at `end`."""
    citations: tuple[int, ...]
    """The sources that it cites. If it cites none: those of its list item, list, row, column or table."""
    row: str = ""
    column: str = ""
    heading: str = ""
    before: str = ""
    """The sentence before it in its paragraph, or the text before its list or table."""
    kind: Literal["sentence", "cell"] = "sentence"


def find_claims(block: str, number_of: NumberOf = lambda _: 0) -> list[Claim]:
    """Return the claims of a block in order; their spans do not overlap. Takes linear time.

    `number_of` returns the number of the source at an address, or 0. Headings, labels (`Source:`), code,
    formulas and lists of sources are no claims.
    """
    tree = parse_document(block)
    splitter = _Splitter(number_of, _read_footnotes(tree, number_of))
    splitter.read_blocks(tree.children, _Context())
    return [*_without_overlaps(splitter.claims)]


def _without_overlaps(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yield the claims; the parts of a long link all have its end as theirs."""
    end = 0
    for one in claims:
        start = max(one.start, end)
        end = max(one.end, start)
        if (start, end) == (one.start, one.end):
            yield one
        else:
            yield Claim(
                one.text, start, end, one.citations, one.row, one.column, one.heading, one.before, one.kind
            )


@dataclass(frozen=True, slots=True)
class _Context:
    """What the claims of a part of the report inherit."""

    citations: tuple[int, ...] = ()
    before: str = ""
    row: str = ""
    column: str = ""
    kind: Literal["sentence", "cell"] = "sentence"


@dataclass(slots=True)
class _Splitter:
    number_of: NumberOf
    footnotes: dict[str, tuple[int, ...]]
    claims: list[Claim] = field(default_factory=list[Claim])
    heading: str = ""
    source_level: int = 0
    """The level of the heading of a list of sources that has not ended, or 0."""

    def read_blocks(self, blocks: Sequence[nodes.BlockNode], context: _Context) -> None:
        """Read neighbouring blocks, which inherit `context`."""
        before: ClaimText | None = None
        for index, block in enumerate(blocks):
            text = self._text(block.children) if isinstance(block, nodes.ParagraphNode) else None
            if isinstance(block, nodes.HeadingNode):
                self._read_heading(block)
            elif self.source_level:
                continue
            elif text is not None:
                self._read_text(text, context)
            else:
                following = blocks[index + 1] if index + 1 < len(blocks) else None
                self._read_block(block, following, self._introduce(before, context))
            before = text

    def _read_block(
        self, block: nodes.BlockNode, following: nodes.BlockNode | None, context: _Context
    ) -> None:
        match block:
            case nodes.FigureNode():
                self._read_caption(block, context)
            case nodes.ListNode():
                self._read_list(block, context)
            case nodes.TableNode():
                self._read_table(block, self._add_source_line(following, context))
            case nodes.BlockQuoteNode(children=children) | nodes.FootnoteDefinitionNode(children=children):
                self.read_blocks(children, _Context(_cited(children, self.number_of) or context.citations))
            case _:
                return

    def _text(self, children: Sequence[nodes.InlineNode]) -> ClaimText:
        return ClaimText(children, self.number_of, self.footnotes)

    def _read_heading(self, heading: nodes.HeadingNode) -> None:
        text = self._text(heading.children)
        self.heading = text.words(0, len(text.text))
        if is_source_heading(self.heading):
            self.source_level = heading.level
        elif heading.level <= self.source_level:
            self.source_level = 0

    def _introduce(self, before: ClaimText | None, context: _Context) -> _Context:
        """Return what a list or table inherits from the paragraph before it, if that leads to it."""
        if before is None:
            return context
        words = before.words(0, len(before.text))
        if not words.endswith((":", "：")):
            return _Context(context.citations, words)
        ends = find_sentence_ends(before.text, before.closed)
        start = ends[-2] if len(ends) > 1 else 0
        cited = [number for note in before.notes if note.offset >= start for number in note.numbers]
        return _Context(tuple(dict.fromkeys(cited)) or context.citations, words)

    def _add_source_line(self, following: nodes.BlockNode | None, context: _Context) -> _Context:
        """Return `context` with the sources that a line behind a table names (`Source: [3]`)."""
        if not isinstance(following, nodes.ParagraphNode):
            return context
        text = self._text(following.children)
        words = text.words(0, len(text.text))
        if len(words.split()) > SOURCE_LINE_WORDS or not (words.endswith((":", "：", ":.")) or ":" in words):
            return context
        return _Context(context.citations or text.numbers, context.before)

    def _read_caption(self, figure: nodes.FigureNode, context: _Context) -> None:
        text = self._text((figure,))
        words = text.words(0, len(text.text))
        if len(words.split()) >= CAPTION_WORDS or any(map(str.isdecimal, words)):
            self._read_text(text, context)

    def _read_list(self, block: nodes.ListNode, context: _Context) -> None:
        for item in block.items:
            if not _is_source(item, self.number_of):
                own = _cited(_own_blocks(item), self.number_of)
                self.read_blocks(item.children, _Context(own or context.citations, context.before))

    def _read_table(self, table: nodes.TableNode, context: _Context) -> None:
        heads = [[self._text(cell.children) for cell in row] for row in table.head]
        columns = _join_heads(heads, len(table.alignments))
        cited = [
            tuple(dict.fromkeys(n for row in heads for n in row[at].numbers)) for at in range(len(columns))
        ]
        in_head = tuple(dict.fromkeys(number for numbers in cited for number in numbers))
        for row in table.body:
            cells = [self._text(cell.children) for cell in row]
            name = cells[0].words(0, len(cells[0].text)) if len(cells) > 1 else ""
            in_row = tuple(dict.fromkeys(number for cell in cells for number in cell.numbers))
            is_claim = len(cells) == 1 or bool(cells[0].numbers) or len(name.split()) > ROW_HEAD_WORDS
            for at, cell in enumerate(cells):
                if at or is_claim:
                    inherited = cited[at] or in_row or in_head or context.citations
                    row_name = name if at else ""
                    self._read_text(cell, _Context(inherited, context.before, row_name, columns[at], "cell"))

    def _read_text(self, text: ClaimText, context: _Context) -> None:
        """Add the claims of a paragraph or cell."""
        before = context.before
        for sentence in _split_sentences(text):
            numbers = tuple(dict.fromkeys(number for note in sentence.notes for number in note.numbers))
            cited = numbers or context.citations
            for low, high, notes in sentence.split(text):
                words = text.words(low, high)
                if any(map(str.isalnum, words)) and not _is_label(words):
                    start, end = text.source_span(low, high, notes)
                    place = context.row, context.column, self.heading, before
                    self.claims.append(Claim(words, start, end, cited, *place, context.kind))
            before = text.words(sentence.start, sentence.end) or before


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence, and the citations and marks in it and behind its full stop."""

    start: int
    end: int
    notes: Sequence[TextNote]

    def split(self, text: ClaimText) -> Iterator[tuple[int, int, list[TextNote]]]:
        """Yield its parts with their notes, without white space at their ends."""
        parts = split_long(text.text, *text.trim(self.start, self.end), text.closed)
        at = 0
        for number, (low, high) in enumerate(parts, start=1):
            notes: list[TextNote] = []
            while at < len(self.notes) and (self.notes[at].offset < high or number == len(parts)):
                notes.append(self.notes[at])
                at += 1
            start, end = text.trim(low, high)
            if start < end:
                yield start, end, notes


def _is_label(words: str) -> bool:
    """Return whether a text only names something: `Source:`, `(Manufacturer's data)`."""
    is_short = len(words) <= LABEL_CHARACTERS and len(words.split()) <= SOURCE_LINE_WORDS
    return is_short and _LABEL.fullmatch(words) is not None


def _split_sentences(text: ClaimText) -> Iterator[_Sentence]:
    """Yield the sentences of a text in order."""
    start = at = 0
    for end in find_sentence_ends(text.text, text.closed, [one.offset for one in text.notes]):
        first = at
        while at < len(text.notes) and _belongs(text, text.notes[at], end, is_cited=at > first):
            at += 1
        yield _Sentence(start, end, text.notes[first:at])
        start = end


def _belongs(text: ClaimText, note: TextNote, end: int, *, is_cited: bool) -> bool:
    """Whether a note is one of the sentence that ends at `end`, which may be cited already."""
    if note.offset < end or end == len(text.text):
        return True
    if text.text[end : note.offset].strip():
        return False
    begins_next = text.text[note.offset : note.offset + 2].lstrip()[:1].islower()
    return not (begins_next or (is_cited and note.begins_line))


def _join_heads(heads: Sequence[Sequence[ClaimText]], width: int) -> list[str]:
    """Return the names of the columns, from all rows of the head."""
    names = [[row[at].words(0, len(row[at].text)) for row in heads if at < len(row)] for at in range(width)]
    return [" ".join(dict.fromkeys(name for name in column if name)) for column in names]


def _read_footnotes(tree: nodes.DocumentTree, number_of: NumberOf) -> dict[str, tuple[int, ...]]:
    """Return the sources that the definitions of footnotes cite, by label."""
    return {
        block.label: _cited(block.children, number_of)
        for block in tree.children
        if isinstance(block, nodes.FootnoteDefinitionNode)
    }


def _cited(blocks: Sequence[nodes.BlockNode], number_of: Callable[[str], int]) -> tuple[int, ...]:
    """Return the sources that the paragraphs of some blocks cite, not those of lists and tables inside."""
    texts = [
        ClaimText(block.children, number_of) for block in blocks if isinstance(block, nodes.ParagraphNode)
    ]
    return tuple(dict.fromkeys(number for text in texts for number in text.numbers))


def _own_blocks(item: nodes.ListItemNode) -> Sequence[nodes.BlockNode]:
    return [one for one in item.children if isinstance(one, nodes.ParagraphNode)]


def _is_source(item: nodes.ListItemNode, number_of: NumberOf) -> bool:
    """Whether a list item is an entry of a list of sources: a number in brackets, and an address."""
    match item.children:
        case (nodes.ParagraphNode(children=(nodes.CitationNode(), *rest)),):
            text = ClaimText(rest, number_of)
            return any(isinstance(one, nodes.LinkNode) for one in rest) or bool(text.closed)
        case _:
            return False
