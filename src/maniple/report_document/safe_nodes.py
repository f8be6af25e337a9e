"""Rewrites the nodes of a report: they load nothing, and link only to the web and to mail.

The texts of rewritten nodes may differ from their spans, which still tell where they come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from maniple.document import nodes
from maniple.reading.pictures import figure_path
from maniple.report_document.report_nodes import shown_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

NO_BREAK = "\N{NO-BREAK SPACE}"
_SCHEMES = ("http://", "https://", "mailto:")
_LINE_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_FORMAL = re.compile(r"<(?:math|script|style|svg)[\s>/]", re.IGNORECASE)
"""Tags whose content is not for readers: it is shown as it is written."""
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9_])https?://[^\s<>\"`|\\^{}。，；：！？、「」『』（）【】《》]{1,2000}", re.IGNORECASE
)
_AFTER_ADDRESS = re.compile(r"[.,;:!?'*_~…]+\Z")
_BESIDE_SIGN = re.compile(r"(?<=\d) (?=[%‰°€$£¥])|(?<=[€$£¥]) (?=\d)")
"""The space between a number and its sign, at which no line ends."""


@dataclass(frozen=True, slots=True)
class FigureNames:
    """The paths of the available figures. `missing` is the format of the text for a path that is missing.

    `diagrams` are the paths of the drawn diagrams, by source; others are followed by the text `undrawn`. With
    None, all stay as they are.
    """

    paths: Collection[str] = ()
    missing: str = "{}"
    diagrams: Mapping[str, str] | None = None
    undrawn: str = ""

    def describe_missing(self, caption: str, path: str) -> str:
        """Return the text that replaces a missing figure."""
        return f"{caption} ({self.missing.format(path)})" if path else caption


@dataclass(slots=True)
class NodeRewriter:
    """Rewrites the nodes of one report; `source` is its Markdown.

    A figure that is available has its path as the target. Others are links or text.
    """

    source: str
    figures: FigureNames
    footnotes: dict[str, nodes.FootnoteDefinitionNode] = field(
        default_factory=dict[str, nodes.FootnoteDefinitionNode]
    )
    """The definitions of the footnotes, by label, which are taken out of the text."""

    def rewrite(self, blocks: Iterable[nodes.BlockNode]) -> tuple[nodes.BlockNode, ...]:
        """Return the blocks without definitions of links and footnotes."""
        made = (new for one in blocks for new in (self._block(one), self._remark(one)))
        return tuple(one for one in made if one is not None)

    def _remark(self, one: nodes.BlockNode) -> nodes.BlockNode | None:
        """Return what stands below a diagram that could not be drawn."""
        diagrams = self.figures.diagrams
        if not isinstance(one, nodes.MermaidNode) or diagrams is None or one.text in diagrams:
            return None
        text = nodes.TextNode(one.end, one.end, self.figures.undrawn)
        return nodes.ParagraphNode(one.end, one.end, (nodes.EmphasisNode(one.end, one.end, (text,)),))

    def _block(self, one: nodes.BlockNode) -> nodes.BlockNode | None:
        match one:
            case nodes.HeadingNode() | nodes.ParagraphNode():
                return replace(one, children=self._inlines(one.children))
            case nodes.ListNode(items=items):
                return replace(one, items=tuple(replace(i, children=self.rewrite(i.children)) for i in items))
            case nodes.BlockQuoteNode():
                return replace(one, children=self.rewrite(one.children))
            case nodes.TableNode():
                return replace(one, head=self._rows(one.head), body=self._rows(one.body))
            case nodes.FigureNode() | nodes.MermaidNode():
                return self._figure_block(one)
            case nodes.FootnoteDefinitionNode() | nodes.LinkDefinitionNode():
                self._define(one)
                return None
            case _:
                return one

    def _define(self, one: nodes.FootnoteDefinitionNode | nodes.LinkDefinitionNode) -> None:
        if isinstance(one, nodes.FootnoteDefinitionNode):
            made = replace(one, children=self.rewrite(one.children))
            self.footnotes.setdefault(one.label.casefold(), made)

    def _figure_block(self, figure: nodes.FigureNode | nodes.MermaidNode) -> nodes.BlockNode:
        if isinstance(figure, nodes.MermaidNode):
            path = (self.figures.diagrams or {}).get(figure.text)
            # Of a diagram nothing but its source says in words what it shows.
            source = " ".join(figure.text.split())
            return figure if path is None else nodes.FigureNode(figure.start, figure.end, path, source, ())
        shown = self._inlines((figure,))
        match shown:
            case (nodes.FigureNode(),):
                return shown[0]
            case _:
                return nodes.ParagraphNode(figure.start, figure.end, shown)

    def _rows(self, rows: tuple[tuple[nodes.CellNode, ...], ...]) -> tuple[tuple[nodes.CellNode, ...], ...]:
        return tuple(
            tuple(replace(cell, children=self._inlines(cell.children)) for cell in row) for row in rows
        )

    def _inlines(
        self, children: Sequence[nodes.InlineNode], *, in_link: bool = False
    ) -> tuple[nodes.InlineNode, ...]:
        made = [new for one in children for new in self._inline(one, in_link=in_link)]
        return tuple(_keep_together(made))

    def _inline(self, one: nodes.InlineNode, *, in_link: bool) -> Iterator[nodes.InlineNode]:
        match one:
            case nodes.TextNode() if not in_link:
                yield from _link_addresses(one)
            case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
                yield replace(one, children=self._inlines(one.children, in_link=in_link))
            case nodes.LinkNode():
                yield from self._link(one)
            case nodes.FigureNode():
                yield from self._figure(one, in_link=in_link)
            case nodes.HtmlNode(text=text) if _LINE_BREAK.fullmatch(text):
                yield nodes.LineBreakNode(one.start, one.end, is_hard=True)
            case nodes.HtmlNode():
                yield self._as_written(one)
            case nodes.CodeNode() if _FORMAL.match(self.source, one.start):
                yield self._as_written(one)
            case _:
                yield one

    def _as_written(self, one: nodes.DocumentNode) -> nodes.TextNode:
        return nodes.TextNode(one.start, one.end, self.source[one.start : one.end])

    def _link(self, link: nodes.LinkNode) -> Iterator[nodes.InlineNode]:
        if self.source[link.start : link.end] == nodes.MARK:
            # The definition of a link cannot turn a mark into a link.
            yield nodes.MarkNode(link.start, link.end, nodes.MARK)
            return
        children = self._inlines(link.children, in_link=True)
        if is_link_target(link.target):
            yield replace(link, children=children)
            return
        if not link.target and link.label:
            yield self._as_written(link)
            return
        yield from children
        path = figure_path(link.target)
        if path and path not in shown_text(children):
            yield nodes.TextNode(link.end, link.end, f" ({path})")

    def _figure(self, figure: nodes.FigureNode, *, in_link: bool) -> Iterator[nodes.InlineNode]:
        path, caption = figure_path(figure.target), shown_text(figure.children)
        if path in self.figures.paths:
            yield replace(figure, target=path)
            return
        text = nodes.TextNode(figure.start, figure.end, caption or figure.target)
        if is_link_target(figure.target) and not in_link:
            yield nodes.LinkNode(figure.start, figure.end, figure.target, "", "", (text,))
        else:
            described = self.figures.describe_missing(caption, path) if path else text.text
            yield replace(text, text=described)


def is_link_target(target: str) -> bool:
    """Whether a link may lead to `target`: an address of the web or of mail."""
    return target.casefold().startswith(_SCHEMES)


def find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the web addresses in a text, without the punctuation behind them."""
    for found in _ADDRESS.finditer(text):
        address = _AFTER_ADDRESS.sub("", found[0])
        if address.endswith(")") and "(" not in address:
            address = _AFTER_ADDRESS.sub("", address.rstrip(")"))
        if "]" in address and "[" not in address:
            address = address.partition("]")[0]
        yield found.start(), found.start() + len(address)


def _link_addresses(text: nodes.TextNode) -> Iterator[nodes.InlineNode]:
    at = 0
    for start, end in find_addresses(text.text) if "://" in text.text else ():
        if start > at:
            yield replace(text, text=text.text[at:start])
        address = text.text[start:end]
        yield nodes.LinkNode(text.start, text.end, address, "", "", (replace(text, text=address),))
        at = end
    if at < len(text.text):
        yield replace(text, text=text.text[at:]) if at else text


def _keep_together(children: Sequence[nodes.InlineNode]) -> Iterator[nodes.InlineNode]:
    """Yield the nodes; the spaces at which no line must end are no-break spaces."""
    for index, one in enumerate(children):
        if not isinstance(one, nodes.TextNode):
            yield one
            continue
        text = _BESIDE_SIGN.sub(NO_BREAK, one.text)
        following = children[index + 1] if index + 1 < len(children) else None
        if text.endswith(" ") and isinstance(following, nodes.CitationNode) and (index or text.strip()):
            text = text[:-1] + NO_BREAK
        yield replace(one, text=text) if text != one.text else one
