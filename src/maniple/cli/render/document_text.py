"""Texts of models in the terminal, printed from their document tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from maniple.cli.render.links import WithoutLinks, link_style
from maniple.cli.render.wrapping import WordText, longest_word
from maniple.document import nodes, parse_document
from maniple.document.bounds import is_readable

_BOXES = {None: "", True: "☑ ", False: "☐ "}
_STYLES = {
    nodes.EmphasisNode: "markdown.em",
    nodes.StrongNode: "markdown.strong",
    nodes.StrikeNode: "markdown.s",
}
_CELL_GAP = 3
"""The blank columns between two cells."""
_WIDEST_COLUMN = 0.45
"""The largest share of the line that a column asks for to keep its words whole."""
_BAR = "▌ "
_DEFINITIONS = (nodes.FootnoteDefinitionNode, nodes.LinkDefinitionNode)
_LINE_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_SUPERSCRIPT = re.compile(r"</?sup>", re.IGNORECASE)


class SafeMarkdown:
    """Markdown that prints the address of each link, because the model chooses the text of a link.

    Formulas are printed as TeX, and figures by their captions and paths. No word is broken that fits into a
    line: a table that is wider than the line is divided into parts that repeat the first column, or printed
    cell below cell. A text that exceeds
    `bounds.is_readable` is printed as it is written. With `links`, a click on a printed address opens it.
    """

    def __init__(self, text: str, *, links: bool = False) -> None:
        self._source = text
        self._links = links
        self._blocks: Sequence[nodes.BlockNode] = parse_document(text).children if is_readable(text) else ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        body = _Blocks(self._blocks) if self._blocks else WordText(self._source)
        yield body if self._links else WithoutLinks(body)


class _Blocks:
    """Blocks with blank lines between them; those of a tight list have none."""

    def __init__(self, blocks: Sequence[nodes.BlockNode], *, is_tight: bool = False) -> None:
        self._blocks = blocks
        self._is_tight = is_tight

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        before: nodes.BlockNode | None = None
        for one in self._blocks:
            is_next_definition = isinstance(one, _DEFINITIONS) and isinstance(before, _DEFINITIONS)
            if before is not None and not self._is_tight and not is_next_definition:
                yield Text()
            yield from _print_block(one, options.max_width)
            before = one


class _Quote:
    """A quotation with a bar before each of its lines, and the kind of a callout above it."""

    def __init__(self, quote: nodes.BlockQuoteNode) -> None:
        self._quote = quote

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(1, options.max_width - cell_len(_BAR)))
        style = console.get_style("markdown.block_quote")
        if self._quote.callout:
            yield Text(f"{_BAR}{self._quote.callout.capitalize()}", style)
        for line in console.render_lines(_Blocks(self._quote.children), inner, style=style, pad=False):
            yield Segment(_BAR, style)
            yield from line
            yield Segment.line()


def _print_block(one: nodes.BlockNode, width: int) -> Iterator[RenderableType]:
    match one:
        case nodes.HeadingNode(level=level, children=children):
            yield _text_of(children, f"markdown.h{level}")
        case nodes.ParagraphNode(children=children):
            yield _text_of(children)
        case nodes.ListNode():
            yield from _print_list(one)
        case nodes.TableNode():
            yield from _print_table(one, width)
        case nodes.BlockQuoteNode():
            yield _Quote(one)
        case nodes.FootnoteDefinitionNode(label=label, children=children):
            yield _beside(Text(f"[^{label}]: "), _Blocks(children))
        case nodes.LinkDefinitionNode(label=label, target=target):
            yield Text(f"[{label}]: {target}")
        case _:
            yield _print_leaf(one)


def _print_leaf(one: nodes.BlockNode) -> RenderableType:
    match one:
        case nodes.CodeBlockNode(text=text, language=language):
            return _code(text, language)
        case nodes.MermaidNode(text=text):
            return _code(text, "")
        case nodes.MathNode(tex=tex):
            return Padding(Text(tex.strip(), "markdown.code"), (0, 0, 0, 2))
        case nodes.FigureNode():
            return _text_of((one,))
        case _:
            return Rule(style="markdown.hr", characters="─")


def _code(text: str, language: str) -> RenderableType:
    return Syntax(text.rstrip("\n"), language or "text", theme="ansi_dark", word_wrap=True, padding=1)


def _print_list(list_: nodes.ListNode) -> Iterator[RenderableType]:
    digits = 0 if list_.first is None else len(str(list_.first + len(list_.items) - 1))
    for index, item in enumerate(list_.items):
        if index and not list_.is_tight:
            yield Text()
        if list_.first is None:
            mark = Text(" • ", "markdown.item.bullet")
        else:
            mark = Text(f" {list_.first + index:>{digits}} ", "markdown.item.number")
        mark.append(_BOXES[item.is_done])
        yield _beside(mark, _Blocks(item.children, is_tight=list_.is_tight))


def _beside(mark: Text, blocks: _Blocks) -> Table:
    """Return blocks with `mark` before their first line."""
    grid = Table.grid()
    grid.add_column(width=mark.cell_len, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(mark, blocks)
    return grid


def _print_table(table: nodes.TableNode, width: int) -> Iterator[RenderableType]:
    rows = [[_text_of(cell.children) for cell in row] for row in (*table.head, *table.body)]
    count, heads = len(table.alignments), len(table.head)
    needs = [_need(rows, column, width) for column in range(count)]
    if any(needs[0] + _CELL_GAP + need > width for need in needs[1:]):
        yield from _print_records(rows, heads)
        return
    for index, columns in enumerate(_divide(needs, width)):
        if index:
            yield Text()
        shown = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, style="markdown.table.border")
        for column, wide in zip(columns, _widths(rows, columns, needs, width), strict=True):
            title = rows[0][column] if heads and column < len(rows[0]) else Text()
            shown.add_column(
                title,
                header_style="markdown.table.header",
                justify=table.alignments[column] or "left",
                width=wide,
                overflow="fold",
            )
        for row in rows[heads:]:
            shown.add_row(*(row[column] if column < len(row) else "" for column in columns))
        yield shown


def _need(rows: Sequence[Sequence[Text]], column: int, width: int) -> int:
    """Return the width that keeps the words of a column whole; one longer than the line is broken anyway."""
    words = [longest_word(row[column].plain) for row in rows if column < len(row)]
    whole = max((one for one in words if one <= width), default=1)
    is_broken = any(one > width for one in words)
    return max(1, whole, int(width * _WIDEST_COLUMN) if is_broken else 0)


def _divide(needs: Sequence[int], width: int) -> list[list[int]]:
    """Divide the columns of a table into parts that fit into a line; the first column is in all."""
    parts, used = [[0]], needs[0] + _CELL_GAP
    for column, need in enumerate(needs[1:], start=1):
        if used + need > width and len(parts[-1]) > 1:
            parts.append([0])
            used = needs[0] + _CELL_GAP
        parts[-1].append(column)
        used += need + _CELL_GAP
    return parts


def _widths(
    rows: Sequence[Sequence[Text]], columns: Sequence[int], needs: Sequence[int], width: int
) -> list[int]:
    """Return the widths of columns: what their words need, and shares of the rest of the line."""
    widths = {column: needs[column] for column in columns}
    longest = {
        column: max((_line_width(row[column]) for row in rows if column < len(row)), default=1)
        for column in columns
    }
    spare = width - sum(widths.values()) - _CELL_GAP * (len(columns) - 1)
    while spare > 0 and (narrow := [column for column in columns if widths[column] < longest[column]]):
        share = max(1, spare // len(narrow))
        for column in narrow[:spare]:
            more = min(share, longest[column] - widths[column])
            widths[column] += more
            spare -= more
    return [max(1, min(widths[column], width)) for column in columns]


def _line_width(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split("\n")))


def _print_records(rows: Sequence[Sequence[Text]], heads: int) -> Iterator[RenderableType]:
    """Yield the rows of a table whose words would not fit into columns, each cell below the one before."""
    titles = [cell.plain.strip() for cell in rows[0]] if heads else []
    for index, row in enumerate(rows[heads:]):
        if index:
            yield Text()
        for column, cell in enumerate(row):
            title = titles[column] if column < len(titles) else ""
            text = WordText(overflow="fold")
            text.append(f"{title}: " if title else "", "markdown.table.header")
            yield text.append_text(cell)


def _text_of(children: Iterable[nodes.InlineNode], style: str = "") -> Text:
    text = WordText(style=style, overflow="fold")
    for one in children:
        _append(text, one)
    return text


def _append(text: Text, one: nodes.InlineNode) -> None:
    match one:
        case nodes.TextNode(text=shown) | nodes.CitationNode(text=shown):
            text.append(_SUPERSCRIPT.sub("", shown) if isinstance(one, nodes.CitationNode) else shown)
        case nodes.EmphasisNode() | nodes.StrongNode() | nodes.StrikeNode():
            text.append_text(_text_of(one.children, _STYLES[type(one)]))
        case nodes.MathNode(tex=shown) | nodes.CodeNode(text=shown):
            text.append(shown.strip(), "markdown.code")
        case nodes.LinkNode():
            _append_link(text, one)
        case nodes.FigureNode(target=target, children=children):
            text.append_text(_text_of(children)).append(f" ({target})", "markdown.link_url")
        case nodes.MarkNode(text=shown):
            text.append(shown, "yellow")
        case _:
            text.append(_plain(one))


def _plain(one: nodes.InlineNode) -> str:
    match one:
        case nodes.FootnoteReferenceNode(label=label):
            return f"[^{label}]"
        case nodes.LineBreakNode(is_hard=is_hard):
            return "\n" if is_hard else " "
        case nodes.HtmlNode(text=text):
            return "\n" if _LINE_BREAK.fullmatch(text) else text
        case _:
            return ""


def _append_link(text: Text, link: nodes.LinkNode) -> None:
    shown = _text_of(link.children, "markdown.link")
    if shown.plain.strip() in (link.target, link.target.removeprefix("mailto:")):
        _append_address(text, shown.plain, link.target)
        return
    text.append_text(shown)
    text.append(" (")
    _append_address(text, link.target, link.target)
    text.append(")")


def _append_address(text: Text, shown: str, target: str) -> None:
    start = len(text)
    text.append(shown, "markdown.link_url")
    # Only the address itself is a link: a text that the model chose could name another one.
    if (style := link_style(target)) is not None:
        text.stylize(style, start)
