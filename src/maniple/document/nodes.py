"""The nodes of a report's document tree. Each has its span in the Markdown, as offsets of characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "[unverified]"
"""The text of a mark behind a claim or citation that was not verified."""
Alignment = Literal["", "left", "center", "right"]


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A part of a document: the characters from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextNode(DocumentNode):
    """Plain text of one line.

    It is as long as its span and equal to it, except for a resolved escape or entity, which has a node of its
    own.
    """

    text: str


@dataclass(frozen=True, slots=True)
class LineBreakNode(DocumentNode):
    """The end of a line within a paragraph."""

    is_hard: bool
    """Whether a new line must begin, because of two spaces or a backslash."""


@dataclass(frozen=True, slots=True)
class EmphasisNode(DocumentNode):
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class StrongNode(DocumentNode):
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class StrikeNode(DocumentNode):
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class CodeNode(DocumentNode):
    """CodeNode within a line, between backticks or HTML tags such as `<code>`."""

    text: str


@dataclass(frozen=True, slots=True)
class MathNode(DocumentNode):
    """A formula as TeX, within a line or, if `is_display`, on lines of its own."""

    tex: str
    is_display: bool


@dataclass(frozen=True, slots=True)
class LinkNode(DocumentNode):
    """A link. If it names its target by a label that is defined elsewhere, `target` is empty."""

    target: str
    title: str
    label: str
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class FigureNode(DocumentNode):
    """A picture; its children are the caption. It is a block if it is alone on its lines."""

    target: str
    title: str
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class CitedNumber(DocumentNode):
    """The span of one number of a citation."""

    number: int


@dataclass(frozen=True, slots=True)
class CitationNode(DocumentNode):
    """A citation of sources by their numbers, such as `[3]`, `[3, 9]` or `[2]–[4]`."""

    text: str
    numbers: tuple[int, ...]
    """All numbers, also those that an interval implies, in order and without repetition."""
    parts: tuple[CitedNumber, ...]
    """The numbers that are written."""


@dataclass(frozen=True, slots=True)
class FootnoteReferenceNode(DocumentNode):
    label: str


@dataclass(frozen=True, slots=True)
class MarkNode(DocumentNode):
    """A mark about the text before it, such as `[unverified]`."""

    text: str


@dataclass(frozen=True, slots=True)
class HtmlNode(DocumentNode):
    """A tag or comment of HTML as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class HeadingNode(DocumentNode):
    level: int
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class ParagraphNode(DocumentNode):
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class ListItemNode(DocumentNode):
    """An item of a list. `is_done` is None unless the item is a task."""

    children: tuple[BlockNode, ...]
    is_done: bool | None


@dataclass(frozen=True, slots=True)
class ListNode(DocumentNode):
    """A list; `first` is the number of its first item, or None for a bullet list.

    The paragraphs of a tight list have no space between them.
    """

    first: int | None
    is_tight: bool
    items: tuple[ListItemNode, ...]


@dataclass(frozen=True, slots=True)
class CellNode(DocumentNode):
    children: tuple[InlineNode, ...]


@dataclass(frozen=True, slots=True)
class TableNode(DocumentNode):
    """A table. Each row of `head` and `body` has one cell for each of the alignments."""

    alignments: tuple[Alignment, ...]
    head: tuple[tuple[CellNode, ...], ...]
    body: tuple[tuple[CellNode, ...], ...]


@dataclass(frozen=True, slots=True)
class CodeBlockNode(DocumentNode):
    """A block of code. `language` is the first word behind its fence, in lower case."""

    text: str
    language: str
    is_fenced: bool
    is_closed: bool
    """Whether a fence has its end. Indented code is always closed."""


@dataclass(frozen=True, slots=True)
class MermaidNode(DocumentNode):
    """The source of a diagram."""

    text: str
    is_closed: bool


@dataclass(frozen=True, slots=True)
class BlockQuoteNode(DocumentNode):
    """A quotation or, with `callout` such as `note`, a callout."""

    callout: str
    children: tuple[BlockNode, ...]


@dataclass(frozen=True, slots=True)
class FootnoteDefinitionNode(DocumentNode):
    label: str
    children: tuple[BlockNode, ...]


@dataclass(frozen=True, slots=True)
class LinkDefinitionNode(DocumentNode):
    """The target of the links that have its label."""

    label: str
    target: str
    title: str


@dataclass(frozen=True, slots=True)
class ThematicBreakNode(DocumentNode):
    """A line between two parts of a text."""


InlineNode = (
    TextNode
    | LineBreakNode
    | EmphasisNode
    | StrongNode
    | StrikeNode
    | CodeNode
    | MathNode
    | LinkNode
    | FigureNode
    | CitationNode
    | FootnoteReferenceNode
    | MarkNode
    | HtmlNode
)
BlockNode = (
    HeadingNode
    | ParagraphNode
    | ListNode
    | TableNode
    | CodeBlockNode
    | MermaidNode
    | MathNode
    | FigureNode
    | BlockQuoteNode
    | FootnoteDefinitionNode
    | LinkDefinitionNode
    | ThematicBreakNode
)


@dataclass(frozen=True, slots=True)
class DocumentTree(DocumentNode):
    """A parsed text.

    `simplified` says in English, for logs, which parts were read as plain text because they exceed a limit.
    """

    children: tuple[BlockNode, ...]
    simplified: tuple[str, ...] = ()


def iterate_nodes(
    node: DocumentTree | BlockNode | InlineNode | ListItemNode | CellNode,
) -> Iterator[DocumentNode]:
    """Yield `node` and all nodes inside of it, each before those inside of it."""
    yield node
    match node:
        case ListNode(items=inner) | BlockQuoteNode(children=inner) | FootnoteDefinitionNode(children=inner):
            pass
        case TableNode():
            inner = [cell for row in (*node.head, *node.body) for cell in row]
        case _:
            inner = getattr(node, "children", ())
    for one in inner:
        yield from iterate_nodes(one)
