"""The parts of a block of Markdown that the check of citations must not change, found in its tree."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from maniple.document import nodes
from maniple.document.tree import parse_document

Span = tuple[int, int]

MAX_LENGTH = 100_000
"""A longer block is not parsed."""
_MAY_BE_OPAQUE = re.compile(r"[`~$\\<\[]|^(?: {4}| {0,3}\t)", re.MULTILINE)
# A fence around Markdown is no code: some models put their whole answer into one.
_OF_MARKDOWN = frozenset({"markdown", "md"})


@dataclass(frozen=True, slots=True)
class OpaqueSpans:
    """Spans of a block, each kind in order and without overlaps."""

    fences: Sequence[Span] = ()
    """Closed fences of code, as whole lines."""
    indented: Sequence[Span] = ()
    """Indented code, as lines without the last line end."""
    code: Sequence[Span] = ()
    """Inline code, also between HTML tags, and formulas."""
    closed: Sequence[Span] = ()
    """Indented and inline code, formulas, links, images and HTML tags: no mark may be inserted inside."""


def find_opaque_spans(block: str) -> OpaqueSpans:
    """Return the opaque spans of a block, whose line ends are `\\n`. A block beyond the limits has none.

    HTML is parsed as text and as HTML, because renderers differ. Code is what is code in both; closed is what
    is closed in one of them.
    """
    if len(block) > MAX_LENGTH or not _MAY_BE_OPAQUE.search(block):
        return OpaqueSpans()
    as_text = _collect(block, html=False)
    if "<" not in block:
        return OpaqueSpans(as_text.fences, as_text.indented, as_text.code, _merge(as_text.closed))
    as_html = _collect(block, html=True)
    code = _merge([*({*as_text.code} & {*as_html.code}), *as_html.between_tags])
    closed = _merge([*as_text.closed, *as_html.closed])
    return OpaqueSpans(as_text.fences, as_text.indented, code, closed)


@dataclass(slots=True)
class _Spans:
    fences: list[Span] = field(default_factory=list[Span])
    indented: list[Span] = field(default_factory=list[Span])
    code: list[Span] = field(default_factory=list[Span])
    between_tags: list[Span] = field(default_factory=list[Span])
    closed: list[Span] = field(default_factory=list[Span])


def _collect(block: str, *, html: bool) -> _Spans:
    spans = _Spans()
    for node in nodes.iterate_nodes(parse_document(block, html=html)):
        span = node.start, node.end
        match node:
            case nodes.CodeBlockNode(is_fenced=False):
                spans.indented.append((block.rfind("\n", 0, node.start) + 1, node.end))
                spans.closed.append(spans.indented[-1])
            case nodes.MermaidNode(is_closed=True) | nodes.CodeBlockNode(is_closed=True):
                if not (isinstance(node, nodes.CodeBlockNode) and node.language in _OF_MARKDOWN):
                    spans.fences.append(_whole_lines(block, *span))
            case nodes.CodeNode() | nodes.MathNode():
                is_between_tags = isinstance(node, nodes.CodeNode) and block.startswith("<", node.start)
                (spans.between_tags if is_between_tags else spans.code).append(span)
                spans.closed.append(span)
            case nodes.LinkNode() | nodes.FigureNode() | nodes.HtmlNode() | nodes.FootnoteReferenceNode():
                spans.closed.append(span)
            case _:
                continue
    return spans


def _whole_lines(block: str, start: int, end: int) -> Span:
    line_end = block.find("\n", end)
    return block.rfind("\n", 0, start) + 1, line_end + 1 if line_end >= 0 else len(block)


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
