"""Lays out a report as a document of title, contents, text, footnotes and sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maniple.document import nodes, parse_document
from maniple.document.bounds import is_readable
from maniple.evidence.source_list import format_source_list, heading_for, language_of
from maniple.report_document.document_texts import DocumentTexts, texts_for
from maniple.report_document.report_nodes import (
    AnchoredHeadingNode,
    FootnoteListNode,
    ReportBlock,
    SourceItemNode,
    shown_text,
)
from maniple.report_document.safe_nodes import FigureNames, NodeRewriter
from maniple.report_document.source_entries import SourceEntries, cited_numbers
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from maniple.evidence.record import Source

LEAST_HEADINGS = 4
"""A document with fewer headings has no table of contents."""
_DEEPEST = 3
# Characters that are invalid in HTML or XML.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class ContentsEntry:
    """A line of the table of contents. It links to the element `id`; `level` counts from 1."""

    level: int
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A report that is ready to be rendered.

    `language` is a code such as `en`. The targets of links in the text are the ids of headings, the entries
    of the list of sources, whose numbers are `sources`, and the footnotes. `marks` is the number of
    `[unverified]`.
    """

    title: str
    language: str
    texts: DocumentTexts
    body: tuple[ReportBlock, ...]
    contents: tuple[ContentsEntry, ...]
    sources: frozenset[int]
    marks: int


def lay_out(
    title: str,
    markdown: str,
    sources: Sequence[Source] = (),
    figures: Collection[str] = (),
    diagrams: Mapping[str, str] | None = None,
) -> ReportDocument:
    """Return a report in Markdown as a document. Blocks for up to some seconds.

    `title` is that of a report without one; `figures` are the paths of those that are available, `diagrams`
    those of the drawn diagrams by source, or None if the reader draws them. A report that exceeds
    `bounds.is_readable` is one block of code.
    """
    markdown = clean(markdown)
    language = language_of(markdown)
    texts = texts_for(language)
    known = {source.number: source for source in sources}
    entries = SourceEntries(known, lambda one: texts.got_on(one.kind, one.retrieved_at))
    blocks, anchored = entries.anchor(_parse(markdown))
    rewriter = NodeRewriter(markdown, FigureNames(figures, texts.missing, diagrams, texts.undrawn))
    title, body = _split_title(clean(title), rewriter.rewrite(blocks))
    if known and not anchored:
        list_ = _list_cited((*body, *rewriter.footnotes.values()), known, markdown)
        blocks, anchored = entries.anchor(parse_document(list_).children)
        body += replace(rewriter, source=list_).rewrite(blocks)
    with_notes = _number_footnotes(body, rewriter.footnotes)
    with_ids, contents = _anchor_headings(with_notes)
    marks = sum(isinstance(one, nodes.MarkNode) for one in _iterate(with_ids))
    shown = contents if len(contents) >= LEAST_HEADINGS else ()
    return ReportDocument(title, language, texts, with_ids, shown, anchored, marks)


def add_source_list(markdown: str, sources: Sequence[Source]) -> str:
    """Return a report in Markdown with the list of the sources that it cites, as `lay_out` adds it. Blocks.

    A report that has one is returned as it is, and so is one whose open block of code would swallow the list.
    """
    known = {source.number: source for source in sources}
    entries = SourceEntries(known, lambda _: "")
    blocks, anchored = entries.anchor(_parse(markdown)) if known else ((), frozenset[int]())
    list_ = "" if anchored else _list_cited(blocks, known, markdown)
    with_list = f"{markdown.rstrip()}\n\n{list_}"
    return with_list if list_ and entries.anchor(_parse(with_list))[1] else markdown


def _list_cited(blocks: Iterable[nodes.BlockNode], known: Mapping[int, Source], markdown: str) -> str:
    """Return the list of the sources that the blocks of a report cite as Markdown; "" if they cite none."""
    cited = sorted(cited_numbers(blocks) & known.keys())
    return format_source_list([known[number] for number in cited], heading_for(markdown))


def clean(text: str) -> str:
    """Return `text` without the characters that are invalid in HTML or XML."""
    return _NO_CHARACTER.sub("", fix_surrogates(text))


def _parse(markdown: str) -> tuple[nodes.BlockNode, ...]:
    if is_readable(markdown):
        return parse_document(markdown).children
    return (nodes.CodeBlockNode(0, len(markdown), markdown, "", False, True),)


def _split_title(title: str, blocks: tuple[nodes.BlockNode, ...]) -> tuple[str, tuple[nodes.BlockNode, ...]]:
    """Return the title and the other blocks. A report's own first heading takes precedence over `title`."""
    if blocks and isinstance(first := blocks[0], nodes.HeadingNode) and first.level == 1:
        own = " ".join(shown_text(first.children).split())
        if own:
            return own, blocks[1:]
    return " ".join(title.split()), blocks


def _anchor_headings(
    blocks: Iterable[ReportBlock],
) -> tuple[tuple[ReportBlock, ...], tuple[ContentsEntry, ...]]:
    """Give each heading outside of other blocks an id, and return the entries for the contents."""
    made: list[ReportBlock] = []
    found: list[ContentsEntry] = []
    for one in blocks:
        if isinstance(one, nodes.HeadingNode) and one.level <= _DEEPEST:
            text = " ".join(shown_text(one.children).split())
            if text:
                id_ = f"section-{len(found) + 1}"
                found.append(ContentsEntry(one.level, id_, text))
                one = AnchoredHeadingNode(one.start, one.end, one.level, one.children, id_)
        made.append(one)
    return tuple(made), tuple(found)


def _number_footnotes(
    body: tuple[nodes.BlockNode, ...], definitions: dict[str, nodes.FootnoteDefinitionNode]
) -> tuple[ReportBlock, ...]:
    """Return the body with its footnotes at the end, in the order of their references, before the sources."""
    if not definitions:
        return body
    order = dict[str, None]()
    waiting = _references(body)
    for label in waiting:  # it grows: footnotes may refer to others
        if label in definitions and label not in order:
            order[label] = None
            waiting += _references(definitions[label].children)
    order |= dict.fromkeys(definitions)  # those without a reference are shown, too
    listed = tuple(definitions[label] for label in order)
    place = _source_section(body)
    notes = FootnoteListNode(listed[0].start, listed[-1].end, listed)
    return (*body[:place], notes, *body[place:])


def _references(blocks: Iterable[nodes.BlockNode]) -> list[str]:
    return [one.label.casefold() for one in _iterate(blocks) if isinstance(one, nodes.FootnoteReferenceNode)]


def _source_section(body: Sequence[nodes.BlockNode]) -> int:
    """Return the index at which the list of sources with its heading begins, or the end."""
    last = len(body) - 1
    if last < 1 or not isinstance(list_ := body[last], nodes.ListNode):
        return len(body)
    if not any(isinstance(one, SourceItemNode) for one in list_.items):
        return len(body)
    return last - isinstance(body[last - 1], nodes.HeadingNode)


def _iterate(blocks: Iterable[ReportBlock]) -> Iterable[nodes.DocumentNode]:
    for one in blocks:
        if isinstance(one, FootnoteListNode):
            yield from (node for note in one.footnotes for node in nodes.iterate_nodes(note))
        else:
            yield from nodes.iterate_nodes(one)
