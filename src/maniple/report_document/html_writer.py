"""Writes the body of a report as HTML that loads and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from urllib.parse import quote, unquote

from maniple.document import nodes
from maniple.evidence.record import Source
from maniple.report_document.code_colors import CodeColorer, CodePart
from maniple.report_document.formulas import FormulaRenderer
from maniple.report_document.layout import ReportDocument, lay_out
from maniple.report_document.report_nodes import (
    AnchoredHeadingNode,
    FootnoteListNode,
    ReportBlock,
    SourceItemNode,
    describe_figure,
    number_footnotes,
    shown_text,
    split_citation,
)
from maniple.report_document.table_layout import (
    LONG_WORD,
    SIZES,
    Cell,
    TablePart,
    break_word,
    lay_out_table,
    read_rows,
)

DONE, OPEN = "☑", "☐"
"""The signs before a task of a list."""
_SCHEME = "figure"
"""The scheme of figures until the HTML is sanitised: only then they get their addresses."""
_TEXT = (
    "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li mark ol p pre s section small span strong "
    "sup table tbody td th thead tr ul wbr"
)
_FORMULAS = (
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt "
    "mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none"
)
_OF_FORMULAS = (
    "accent columnalign columnlines display displaystyle fence form linethickness mathvariant maxsize "
    "minsize movablelimits rowlines scriptlevel stretchy width"
)
_TAGS = {*_TEXT.split(), *_FORMULAS.split()}
_LENGTHS = ("linethickness", "maxsize", "minsize", "width")
_LENGTH = re.compile(r"0|-?\d?(?:\.\d{1,4})?em")
_ATTRIBUTES = {
    **{name: set(_OF_FORMULAS.split()) for name in _FORMULAS.split()},
    **{f"h{level}": {"id"} for level in range(1, 7)},
    "a": {"href", "class", "id"},
    "blockquote": {"class"},
    "code": {"class"},
    "div": {"class", "tabindex"},
    "img": {"alt", "src", "width"},
    "li": {"id", "class"},
    "mark": {"title"},
    "ol": {"start"},
    "p": {"class"},
    "section": {"class"},
    "span": {"class"},
    "sup": {"class"},
    "td": {"class"},
    "th": {"class"},
}
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_WORDS = re.compile(r"(\s+)")


@dataclass(frozen=True, slots=True)
class BodyView:
    """How a body is written: `figures` are the addresses of the figures, by path.

    `widths` are the widths, in pixels, of those that are shown in another size than their own.

    `is_printed` is the version for pages: a table that is too wide is split, instead of scrolling.
    `is_colored` gives code its colours, for readers without scripts.
    """

    figures: Mapping[str, str] = field(default_factory=dict[str, str])
    widths: Mapping[str, int] = field(default_factory=dict[str, int])
    is_printed: bool = False
    is_colored: bool = False


def write_body(document: ReportDocument, view: BodyView = BodyView()) -> str:
    """Return the blocks of a document as sanitised HTML. Blocks."""
    import nh3  # takes memory that a server without reports does not need

    def bounded(tag: str, attribute: str, value: str) -> str | None:
        if (tag, attribute) == ("img", "src"):
            scheme, _, path = value.partition(":")
            return view.figures.get(unquote(path)) if scheme == _SCHEME else None
        if (tag, attribute) == ("img", "width"):
            return value
        return None if attribute in _LENGTHS and not _LENGTH.fullmatch(value) else value

    return nh3.clean(
        "".join(_BodyWriter(document, view).write(document.body)),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=bounded,
        url_schemes={"http", "https", "mailto", _SCHEME},
        link_rel="noopener noreferrer nofollow",
    )


def render_report(
    markdown: str, sources: Sequence[Source] = (), figures: Mapping[str, str] | None = None
) -> str:
    """Return a report as sanitised HTML: its own title, if it has one, and its text. Blocks.

    `figures` are the addresses of the figures, by path.
    """
    addresses = figures or {}
    document = lay_out("", markdown, sources, addresses)
    title = f"<h1>{escape(document.title)}</h1>\n" if document.title else ""
    return title + write_body(document, BodyView(addresses))


class _BodyWriter:
    """Writes the blocks of one document."""

    def __init__(self, document: ReportDocument, view: BodyView) -> None:
        self._document = document
        self._widths = view.widths
        self._is_printed = view.is_printed
        self._colorer = CodeColorer() if view.is_colored else None
        self._formulas = FormulaRenderer()
        self._notes = number_footnotes(document.body)
        self._referred = set[int]()

    def write(self, blocks: Sequence[ReportBlock], *, is_tight: bool = False) -> Iterator[str]:
        """Yield the HTML of blocks; the paragraphs of a tight list are no elements of their own."""
        for one in blocks:
            match one:
                case nodes.ParagraphNode(children=children):
                    text = self._inlines(children)
                    yield f"{text}\n" if is_tight else f"<p>{text}</p>\n"
                case nodes.HeadingNode(level=level, children=children):
                    id_ = f' id="{one.id}"' if isinstance(one, AnchoredHeadingNode) else ""
                    yield f"<h{level}{id_}>{self._inlines(children)}</h{level}>\n"
                case nodes.ListNode():
                    yield from self._list(one)
                case nodes.TableNode():
                    yield from self._table(one)
                case nodes.BlockQuoteNode():
                    yield from self._quote(one)
                case FootnoteListNode(footnotes=footnotes):
                    yield from self._footnotes(footnotes)
                case _:
                    yield self._leaf(one)

    def _leaf(self, one: ReportBlock) -> str:
        match one:
            case nodes.MathNode(tex=tex, is_display=is_display):
                return f"<p>{self._formulas.render(tex, display=is_display)}</p>\n"
            case nodes.FigureNode(children=children):
                caption = escape(shown_text(children))
                below = f'<span class="caption">{caption}</span>' if caption else ""
                return (
                    f'<p><span class="figure">{_image(one, self._widths.get(one.target))}{below}</span></p>\n'
                )
            case nodes.CodeBlockNode(text=text, language=language):
                return _code_block(text, language, self._colorer)
            case nodes.MermaidNode(text=text):
                return _code_block(text, "mermaid")
            case nodes.ThematicBreakNode():
                return "<hr>\n"
            case _:
                return ""

    def _list(self, list_: nodes.ListNode) -> Iterator[str]:
        first = list_.first
        yield "<ul>\n" if first is None else f'<ol start="{first}">\n' if first != 1 else "<ol>\n"
        for item in list_.items:
            if isinstance(item, SourceItemNode):
                yield from self._source(item, is_tight=list_.is_tight)
                continue
            task = (
                "" if item.is_done is None else f'<span class="box">{DONE if item.is_done else OPEN}</span> '
            )
            yield f'<li class="task">{task}' if task else "<li>"
            yield "".join(self.write(item.children, is_tight=list_.is_tight)).rstrip("\n")
            yield "</li>\n"
        yield "</ul>\n" if first is None else "</ol>\n"

    def _source(self, item: SourceItemNode, *, is_tight: bool) -> Iterator[str]:
        number = item.number
        first, *others = item.children
        text = self._inlines(first.children) if isinstance(first, nodes.ParagraphNode) else ""
        comma = self._document.texts.comma
        got_on = f"{comma}<small>{escape(item.got_on)}</small>" if item.got_on else ""
        yield f'<li id="source-{number}" class="source"><span class="number">[{number}]</span> {text}{got_on}'
        yield from self.write(others, is_tight=is_tight)
        yield "</li>\n"

    def _quote(self, quote_: nodes.BlockQuoteNode) -> Iterator[str]:
        if quote_.callout:
            yield f'<blockquote class="callout">\n<p class="kind">{escape(quote_.callout.capitalize())}</p>\n'
        else:
            yield "<blockquote>\n"
        yield from self.write(quote_.children)
        yield "</blockquote>\n"

    def _footnotes(self, footnotes: Sequence[nodes.FootnoteDefinitionNode]) -> Iterator[str]:
        yield '<section class="footnotes">\n<ol>\n'
        for number, note in enumerate(footnotes, start=1):
            yield f'<li id="footnote-{number}">'
            *before, last = note.children or (None,)
            yield from self.write([one for one in before if one is not None])
            back = f' <a class="back" href="#reference-{number}">↩</a>' if number in self._referred else ""
            if isinstance(last, nodes.ParagraphNode):
                yield f"<p>{self._inlines(last.children)}{back}</p>"
            else:
                yield from self.write([last] if last else [])
                yield back
            yield "</li>\n"
        yield "</ol>\n</section>\n"

    def _inlines(
        self, children: Sequence[nodes.InlineNode], *, in_link: bool = False, in_cell: bool = False
    ) -> str:
        return "".join(self._inline(one, in_link=in_link, in_cell=in_cell) for one in children)

    def _inline(self, one: nodes.InlineNode, *, in_link: bool, in_cell: bool) -> str:
        match one:
            case nodes.TextNode(text=text):
                return _breakable(text) if in_cell and len(text) > LONG_WORD else escape(text)
            case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
                tag = _ELEMENTS[type(one)]
                return f"<{tag}>{self._inlines(one.children, in_link=in_link, in_cell=in_cell)}</{tag}>"
            case nodes.LinkNode(target=target, children=children):
                inner = self._inlines(children, in_link=True, in_cell=in_cell)
                return f'<a href="{escape(target)}">{inner}</a>'
            case nodes.CitationNode():
                return self._citation(one, in_link=in_link)
            case nodes.FootnoteReferenceNode(label=label):
                return self._reference(label, in_link=in_link)
            case nodes.MathNode(tex=tex, is_display=is_display):
                return self._formulas.render(tex, display=is_display)
            case nodes.MarkNode(text=text):
                return f'<mark title="{escape(self._document.texts.unverified)}">{escape(text)}</mark>'
            case _:
                return _inline_leaf(one)

    def _citation(self, citation: nodes.CitationNode, *, in_link: bool) -> str:
        linked = () if in_link else self._document.sources
        pieces = [
            escape(piece.text)
            if piece.number is None
            else f'<a class="citation" href="#source-{piece.number}">{escape(piece.text)}</a>'
            for piece in split_citation(citation, linked)
        ]
        shown = "".join(pieces)
        return f"<sup>{shown}</sup>" if citation.text.startswith("<") else shown

    def _reference(self, label: str, *, in_link: bool) -> str:
        number = self._notes.get(label.casefold())
        if number is None or in_link:
            return escape(f"[^{label}]" if number is None else str(number))
        id_ = "" if number in self._referred else f' id="reference-{number}"'
        self._referred.add(number)
        return f'<sup class="footnote"><a{id_} href="#footnote-{number}">{number}</a></sup>'

    def _table(self, table: nodes.TableNode) -> Iterator[str]:
        """Yield a table in an element that scrolls, also with the keyboard; in print, in parts that fit."""
        rows = read_rows(table)
        parts = lay_out_table(rows)
        if len(parts) > 1 and not self._is_printed:
            whole = replace(parts[0], columns=range(len(table.alignments)), size=SIZES[-1], is_turned=True)
            yield self._table_part(rows, whole, " crammed")
            return
        for part in parts:
            yield self._table_part(rows, part)

    def _table_part(self, rows: Sequence[Sequence[Cell]], part: TablePart, crammed: str = "") -> str:
        turned = " turned" if part.is_turned else ""
        sections = [
            f"<{tag}>{''.join(self._row(row, part) for row in of_section)}</{tag}>"
            for tag, is_head in (("thead", True), ("tbody", False))
            if (of_section := [row for row in rows if row and row[0].is_head is is_head])
        ]
        kind = f"wide size-{part.size * 10:.0f}{turned}{crammed}"
        return f'<div class="{kind}" tabindex="0"><table>{"".join(sections)}</table></div>\n'

    def _row(self, row: Sequence[Cell], part: TablePart) -> str:
        cells: list[str] = []
        for column in part.columns:
            if column >= len(row):
                continue
            cell = row[column]
            kinds = (
                cell.alignment if cell.alignment != "left" else "",
                "quantity" if cell.is_quantity else "",
                "long" if column in part.broken else "",
            )
            kind = " ".join(filter(None, kinds))
            tag = "th" if cell.is_head else "td"
            class_ = f' class="{kind}"' if kind else ""
            cells.append(f"<{tag}{class_}>{self._inlines(cell.children, in_cell=True)}</{tag}>")
        return f"<tr>{''.join(cells)}</tr>"


_ELEMENTS = {nodes.EmphasisNode: "em", nodes.StrongNode: "strong", nodes.StrikeNode: "s"}


def _inline_leaf(one: nodes.InlineNode) -> str:
    match one:
        case nodes.LineBreakNode(is_hard=is_hard):
            return "<br>\n" if is_hard else "\n"
        case nodes.CodeNode(text=text):
            return f"<code>{escape(text)}</code>"
        case nodes.FigureNode():
            return _image(one)
        case _:
            return escape(shown_text((one,)))


def _image(figure: nodes.FigureNode, width: int | None = None) -> str:
    alt = escape(describe_figure(figure))
    size = "" if width is None else f' width="{width}"'
    return f'<img src="{_SCHEME}:{quote(figure.target)}" alt="{alt}"{size}>'


def _code_block(text: str, language: str, colorer: CodeColorer | None = None) -> str:
    class_ = f' class="language-{language}"' if _LANGUAGE.fullmatch(language) else ""
    parts = [CodePart(text)] if colorer is None else colorer.color(text, language)
    shown = "".join(
        f'<span class="code-{one.kind}">{escape(one.text)}</span>' if one.kind else escape(one.text)
        for one in parts
    )
    return f"<pre><code{class_}>{shown}</code></pre>\n"


def _breakable(text: str) -> str:
    """Return a text with places at which a line may end in long addresses and paths."""
    pieces = [piece for word in _WORDS.split(text) for piece in break_word(word)]
    made: list[str] = []
    for number, piece in enumerate(pieces):
        if number and not (piece.isspace() or pieces[number - 1].isspace()):
            made.append("<wbr>")
        made.append(escape(piece))
    return "".join(made)
