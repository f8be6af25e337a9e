"""Builds the document tree of a report."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from maniple.document import nodes
from maniple.document.bounds import is_table_code
from maniple.document.inlines import InlineBuilder, build_text_line
from maniple.document.offsets import OffsetMap, SourceLines
from maniple.document.plain_text import drop_prefix, join_plain
from maniple.document.syntax import (
    BEGINS,
    DEFINITION,
    FOOTNOTE,
    IS_PLAIN,
    MAX_BRACKETS,
    MAX_NESTING,
    markdown_parser,
)
from maniple.reading.formula_syntax import FORMULA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from markdown_it.token import Token

MAX_LENGTH = 400_000
"""The characters up to which a text is parsed."""
MAX_REMEMBERED = 20_000
"""The characters up to which the last trees are remembered: several checks read the same block."""
_ALIGNMENT = re.compile(r"text-align:(left|center|right)")
_FENCE_END = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\Z")
_TASK = re.compile(r"\[([ xX])\](?=\s|$)\s*")
_CALLOUT = re.compile(r"\[!(\w{1,40})\][+-]?[ \t]*")
_HEADING_MARKS = re.compile(r"#{1,6}[ \t]*")
_MERMAID = "mermaid"


def parse_document(markdown: str, *, html: bool = True) -> nodes.DocumentTree:
    """Return the tree of a report in Markdown. Takes linear time.

    `html` is whether tags are nodes; if not, they are text. Parts beyond the limits are text without
    structure, and `DocumentTree.simplified` says which.
    """
    if len(markdown) > MAX_LENGTH:
        return _as_text(markdown)
    # Without a tag, both settings give the same tree.
    html = html and "<" in markdown
    if len(markdown) > MAX_REMEMBERED:
        return _TreeBuilder(markdown, html=html).build()
    return _parse_block(markdown, html)


@lru_cache(maxsize=8)
def _parse_block(markdown: str, html: bool) -> nodes.DocumentTree:
    return _TreeBuilder(markdown, html=html).build()


def _as_text(markdown: str) -> nodes.DocumentTree:
    """Return a text beyond the limit as one paragraph."""
    paragraph = nodes.ParagraphNode(0, len(markdown), build_text_line(0, markdown))
    reason = f"the whole text, which is longer than {MAX_LENGTH:,} characters"
    return nodes.DocumentTree(0, len(markdown), (paragraph,), (reason,))


class _TreeBuilder:
    """Builds the blocks of one text from the parser's tokens."""

    def __init__(self, markdown: str, *, html: bool) -> None:
        self._lines = SourceLines(markdown)
        self._parser = markdown_parser(html=html)
        self._references: Mapping[str, Any] = {}
        self._simplified: dict[str, None] = {}
        self._tokens: Sequence[Token] = ()
        self._at = 0

    def build(self) -> nodes.DocumentTree:
        env: dict[str, Any] = {}
        self._tokens = self._parser.parse(self._lines.normalised, env)
        self._references = env.get("references", {})
        children = self._read_blocks("")
        return nodes.DocumentTree(0, len(self._lines.source), children, tuple(self._simplified))

    def _read_blocks(self, closing: str) -> tuple[nodes.BlockNode, ...]:
        """Return the blocks up to the token `closing`, or up to the end."""
        blocks: list[nodes.BlockNode] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.type == closing:
                break
            blocks += self._read_block(token)
        return tuple(blocks)

    def _read_block(self, token: Token) -> Iterator[nodes.BlockNode]:
        match token.type:
            case "paragraph_open":
                yield from self._read_paragraph()
            case "heading_open":
                yield nodes.HeadingNode(*self._span(token), int(token.tag[1:]), self._read_content())
                self._at += 1
            case "bullet_list_open" | "ordered_list_open":
                yield self._read_list(token)
            case "blockquote_open":
                yield self._read_quote(token)
            case "table_open":
                yield self._read_table(token)
            case "fence" | "code_block":
                yield self._read_code(token)
            case "hr":
                yield nodes.ThematicBreakNode(*self._span(token))
            case _:
                yield from self._read_extension(token)

    def _read_extension(self, token: Token) -> Iterator[nodes.BlockNode]:
        if token.type == FORMULA:
            yield nodes.MathNode(*self._span(token), token.content, is_display=True)
        elif token.type == f"{FOOTNOTE}_open":
            yield nodes.FootnoteDefinitionNode(
                *self._span(token), token.info, self._read_nested(token, f"{FOOTNOTE}_close")
            )
        elif token.type == DEFINITION:
            yield self._read_definition(token)

    def _span(self, token: Token) -> tuple[int, int]:
        first, last = token.map or (0, 1)
        begins: list[int] = token.meta.get(BEGINS) or [0]
        start = self._lines.find_source(begins[0])
        return start, max(start, self._lines.end(first, last))

    def _read_paragraph(self) -> Iterator[nodes.BlockNode]:
        children = self._read_content()
        self._at += 1
        for line in _split_figures(children):
            match line:
                case (nodes.FigureNode() | nodes.MathNode(is_display=True),):
                    yield line[0]
                case ():
                    continue
                case _:
                    yield nodes.ParagraphNode(line[0].start, line[-1].end, line)

    def _read_content(self) -> tuple[nodes.InlineNode, ...]:
        """Return the children of the next token, which holds the text of a paragraph or heading."""
        token = self._tokens[self._at]
        self._at += 1
        begins = token.meta[BEGINS]
        if self._tokens[self._at].type == "heading_close" and token.map and token.map[1] - token.map[0] == 1:
            begins = [self._find_heading(token, begins[0])]
        return self._build_inline(token, self._lines.map_lines(token.content, begins))

    def _find_heading(self, token: Token, begin: int) -> int:
        """Return where the text of a heading begins, behind its marks."""
        marks = _HEADING_MARKS.match(self._lines.normalised, begin)
        is_underlined = not self._lines.normalised.startswith("#", begin) or (
            self._tokens[self._at].markup in ("=", "-")
        )
        return begin if is_underlined or marks is None else marks.end()

    def _build_inline(self, token: Token, places: OffsetMap) -> tuple[nodes.InlineNode, ...]:
        if token.meta.get(IS_PLAIN):
            self._simplified[f"a paragraph or cell of more than {MAX_BRACKETS} brackets, without links"] = (
                None
            )
        return InlineBuilder(self._lines.source, places).build(token.children or [])

    def _read_list(self, token: Token) -> nodes.ListNode:
        closing = token.type.replace("_open", "_close")
        items: list[nodes.ListItemNode] = []
        is_tight = True
        while (opening := self._tokens[self._at]).type != closing:
            self._at += 1
            is_tight &= self._is_tight()
            items.append(self._read_item(opening))
        self._at += 1
        first = int(token.attrGet("start") or 1) if token.tag == "ol" else None
        if token.tag == "ol" and token.attrGet("start") == 0:
            first = 0
        return nodes.ListNode(*self._span(token), first, is_tight, tuple(items))

    def _is_tight(self) -> bool:
        """Whether the first paragraph of the item that begins here is one of a tight list."""
        token = self._tokens[self._at]
        return token.type != "paragraph_open" or token.hidden

    def _read_item(self, opening: Token) -> nodes.ListItemNode:
        children = self._read_nested(opening, "list_item_close")
        is_done = None
        match children:
            case (nodes.ParagraphNode(children=(nodes.TextNode(text=text), *_)) as first, *others):
                found = _TASK.match(text)
                if found is not None:
                    is_done = found[1] != " "
                    children = (*_without_prefix(first, found.end()), *others)
            case _:
                pass
        return nodes.ListItemNode(*self._span(opening), tuple(children), is_done)

    def _read_nested(self, opening: Token, closing: str) -> tuple[nodes.BlockNode, ...]:
        """Return the blocks of a container. What the parser drops in too deep nesting is one paragraph."""
        children = self._read_blocks(closing)
        if children or opening.level < MAX_NESTING - 1:
            return children
        self._simplified[f"lists and quotations nested deeper than {MAX_NESTING} levels, as text"] = None
        first, last = opening.map or (0, 0)
        text: list[nodes.InlineNode] = []
        for number in range(first, last):
            line = self._lines.texts[number].strip()
            begin = self._lines.start(number) + self._lines.texts[number].find(line)
            text += build_text_line(begin, line) if line else ()
        return (nodes.ParagraphNode(text[0].start, text[-1].end, tuple(text)),) if text else ()

    def _read_quote(self, token: Token) -> nodes.BlockQuoteNode:
        children = self._read_nested(token, "blockquote_close")
        callout = ""
        match children:
            case (nodes.ParagraphNode() as first, *others):
                found = _CALLOUT.match(join_plain(first.children[:4]))
                if found is not None:
                    callout = found[1].casefold()
                    children = (*_without_prefix(first, found.end()), *others)
            case _:
                pass
        return nodes.BlockQuoteNode(*self._span(token), callout, tuple(children))

    def _read_definition(self, token: Token) -> nodes.LinkDefinitionNode:
        start, end = self._span(token)
        written = self._lines.source[start:end]
        label = written[1 : written.find("]:")].strip()
        found = self._references.get(" ".join(label.split()).upper(), {})
        return nodes.LinkDefinitionNode(start, end, label, found.get("href", ""), found.get("title", ""))

    def _read_code(self, token: Token) -> nodes.CodeBlockNode | nodes.MermaidNode:
        if is_table_code(token):
            self._simplified["a table of too many cells, as code"] = None
        start, end = self._span(token)
        first, last = token.map or (0, 1)
        is_fenced = token.type == "fence"
        is_closed = not is_fenced or (
            last - first > 1 and _FENCE_END.match(self._lines.texts[last - 1]) is not None
        )
        language = (token.info.split() or [""])[0].casefold() if is_fenced else ""
        if language == _MERMAID:
            return nodes.MermaidNode(start, end, token.content, is_closed)
        return nodes.CodeBlockNode(start, end, token.content, language, is_fenced, is_closed)

    def _read_table(self, token: Token) -> nodes.TableNode:
        head: list[tuple[nodes.CellNode, ...]] = []
        body: list[tuple[nodes.CellNode, ...]] = []
        alignments: list[nodes.Alignment] = []
        is_head = True
        while (part := self._tokens[self._at]).type != "table_close":
            self._at += 1
            if part.type == "th_open":
                found = _ALIGNMENT.fullmatch(str(part.attrGet("style") or ""))
                alignments.append(_ALIGNMENTS[found[1]] if found else "")
            elif part.type == "thead_close":
                is_head = False
            elif part.type == "tr_open":
                (head if is_head else body).append(self._read_row(part, alignments))
        self._at += 1
        return nodes.TableNode(*self._span(token), tuple(alignments), tuple(head), tuple(body))

    def _read_row(self, opening: Token, alignments: list[nodes.Alignment]) -> tuple[nodes.CellNode, ...]:
        begin = self._lines.find_source(opening.meta[BEGINS][0])
        first = (opening.map or (0, 1))[0]
        line_end = self._lines.start(first) + len(self._lines.texts[first])
        spans = _split_row(self._lines.source[begin:line_end])
        cells: list[nodes.CellNode] = []
        while (part := self._tokens[self._at]).type != "tr_close":
            self._at += 1
            if part.type == "th_open":
                found = _ALIGNMENT.fullmatch(str(part.attrGet("style") or ""))
                alignments.append(_ALIGNMENTS[found[1]] if found else "")
            elif part.type == "inline":
                low, high, pieces = (
                    spans[len(cells)] if len(cells) < len(spans) else (line_end - begin,) * 2 + ([],)
                )
                places = OffsetMap([(at, begin + source) for at, source in pieces] or [(0, begin + low)])
                cells.append(nodes.CellNode(begin + low, begin + high, self._build_inline(part, places)))
        self._at += 1
        return tuple(cells)


_ALIGNMENTS: dict[str, nodes.Alignment] = {"left": "left", "center": "center", "right": "right"}


def _split_row(row: str) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Split a row at its bars as the parser does.

    Return for each cell the span of its text in the row, and the pieces of an `OffsetMap`: a backslash before
    a bar is not part of the text.
    """
    row = row.rstrip()
    bars = [at for at, character in enumerate(row) if character == "|"]
    ends = [at for at in bars if not row.endswith("\\", 0, at)]
    edges = [-1, *ends, len(row)]
    cells: list[tuple[int, int, list[tuple[int, int]]]] = []
    for before, end in pairwise(edges):
        text = row[before + 1 : end]
        start = before + 1 + len(text) - len(text.lstrip())
        end = max(start, before + 1 + len(text.rstrip()))
        pieces, at, source = [(0, start)], 0, start
        for bar in (one for one in bars if start < one < end):
            at += bar - 1 - source
            source = bar
            pieces.append((at, bar))
        cells.append((start, end, pieces))
    if cells and not row[: edges[1]].strip():
        cells = cells[1:]
    if cells and not row[edges[-2] + 1 :].strip():
        cells = cells[:-1]
    return cells


def _split_figures(children: tuple[nodes.InlineNode, ...]) -> list[tuple[nodes.InlineNode, ...]]:
    """Split a paragraph so that each figure or display formula alone on its line is a part of its own."""
    if not any(isinstance(one, nodes.FigureNode | nodes.MathNode) for one in children):
        return [children]
    lines: list[list[nodes.InlineNode]] = [[]]
    breaks: list[nodes.InlineNode] = []
    for one in children:
        if isinstance(one, nodes.LineBreakNode):
            breaks.append(one)
            lines.append([])
        else:
            lines[-1].append(one)
    parts: list[list[nodes.InlineNode]] = []
    was_alone = True
    for number, line in enumerate(lines):
        shown = [one for one in line if not (isinstance(one, nodes.TextNode) and not one.text.strip())]
        is_alone = len(shown) == 1 and _stands_alone(shown[0])
        if is_alone:
            parts.append(shown)
        elif was_alone:
            parts.append(line)
        else:
            parts[-1] += [breaks[number - 1], *line]
        was_alone = is_alone
    return [tuple(part) for part in parts]


def _stands_alone(one: nodes.InlineNode) -> bool:
    return isinstance(one, nodes.FigureNode) or (isinstance(one, nodes.MathNode) and one.is_display)


def _without_prefix(paragraph: nodes.ParagraphNode, length: int) -> list[nodes.ParagraphNode]:
    children = drop_prefix(paragraph.children, length)
    return [nodes.ParagraphNode(children[0].start, paragraph.end, children)] if children else []
