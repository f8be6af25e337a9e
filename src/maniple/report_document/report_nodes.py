"""The nodes that a laid-out report has besides those of `maniple.document`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.document import nodes
from maniple.document.plain_text import join_plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_DIGITS = re.compile(r"\d{1,4}")
_SUPERSCRIPT = re.compile(r"</?sup>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnchoredHeadingNode(nodes.HeadingNode):
    """A heading that the table of contents links to by its `id`."""

    id: str


@dataclass(frozen=True, slots=True)
class SourceItemNode(nodes.ListItemNode):
    """An entry of the list of sources, without its number; `got_on` says when it was read or found."""

    number: int
    got_on: str


@dataclass(frozen=True, slots=True)
class FootnoteListNode(nodes.DocumentNode):
    """The footnotes of a report, in the order of their numbers, which begin at 1."""

    footnotes: tuple[nodes.FootnoteDefinitionNode, ...]


@dataclass(frozen=True, slots=True)
class CitationPiece:
    """A part of a citation's text; `number` is that of the source that it links to."""

    text: str
    number: int | None = None


ReportBlock = nodes.BlockNode | FootnoteListNode


def shown_text(children: Sequence[nodes.InlineNode]) -> str:
    """Return the text of inline nodes as a reader sees it, with citations and marks."""
    return "".join(map(_shown, children))


def _shown(one: nodes.InlineNode) -> str:
    match one:
        case nodes.CitationNode(text=text) | nodes.MarkNode(text=text) | nodes.HtmlNode(text=text):
            return text
        case nodes.FootnoteReferenceNode(label=label):
            return label
        case (
            nodes.EmphasisNode(children=inner)
            | nodes.StrongNode(children=inner)
            | nodes.StrikeNode(children=inner)
            | nodes.LinkNode(children=inner)
            | nodes.FigureNode(children=inner)
        ):
            return shown_text(inner)
        case _:
            return join_plain((one,))


def describe_figure(figure: nodes.FigureNode) -> str:
    """Return what a reader who cannot see a figure is told: its caption, else its title."""
    return shown_text(figure.children) or figure.title


def number_footnotes(body: Iterable[ReportBlock]) -> dict[str, int]:
    """Return the numbers of the footnotes of a report by their labels in lower case."""
    notes = [note for one in body if isinstance(one, FootnoteListNode) for note in one.footnotes]
    return {note.label.casefold(): number for number, note in enumerate(notes, start=1)}


def split_citation(citation: nodes.CitationNode, linked: Collection[int]) -> Iterator[CitationPiece]:
    """Yield the pieces of a citation, of which the numbers in `linked` are links.

    A single number is linked with its brackets; of several, each number has its own link.
    """
    text = _SUPERSCRIPT.sub("", citation.text)
    if len(citation.numbers) == 1 and citation.numbers[0] in linked:
        yield CitationPiece(text, citation.numbers[0])
        return
    at = 0
    for found in _DIGITS.finditer(text):
        if (number := int(found[0])) in linked:
            # Only the first number may begin a line.
            between = text[at : found.start()]
            yield CitationPiece(between.replace(" ", "\N{NO-BREAK SPACE}") if at else between)
            yield CitationPiece(found[0], number)
            at = found.end()
    yield CitationPiece(text[at:])
