"""Builds the inline nodes of a paragraph, heading or cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from maniple.document import nodes
from maniple.document.citation_syntax import find_number_citations
from maniple.document.offsets import OffsetMap
from maniple.document.plain_text import PlainText, join_plain
from maniple.document.syntax import REFERENCE, SPAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

_MAY_BE_MARKED = re.compile(r"[\[【［]")
_MARK = re.compile(re.escape(nodes.MARK))
_CODE_TAG = re.compile(r"<(/?)(code|kbd|math|pre|samp|script|style|svg|var)(?=[\s>/])", re.IGNORECASE)
_SUPERSCRIPT = re.compile(r"<(/?)sup>\Z", re.IGNORECASE)
_BEFORE_CHARACTERS = 4
_TEXTS = frozenset({"text", "text_special"})
MAX_DEPTH = 40
"""The levels of emphasis and links within each other that become nodes."""


class InlineBuilder:
    """Builds nodes from the tokens of one content; `places` maps it to the `source`."""

    def __init__(self, source: str, places: OffsetMap) -> None:
        self._source = source
        self._places = places
        self._tokens: Sequence[Token] = ()
        self._at = 0
        self._depth = 0
        self._ignored = 0

    def build(self, tokens: Sequence[Token]) -> tuple[nodes.InlineNode, ...]:
        """Return the nodes of `tokens`, in order and without overlaps."""
        _place_rest(tokens)
        self._tokens, self._at = tokens, 0
        return self._read()

    def _read(self) -> tuple[nodes.InlineNode, ...]:
        """Return the nodes up to the end of the container that is open, or up to the end."""
        found: list[nodes.InlineNode] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.nesting < 0 and not self._ignored:
                break
            if token.nesting and (self._ignored or self._depth == MAX_DEPTH):
                self._ignored += token.nesting
            elif token.type in _TEXTS:
                self._append_text(token, found)
            else:
                found.append(self._read_token(token))
        return tuple(_with_citations(_with_html_code(_merge_texts(found), self._source)))

    def _read_token(self, token: Token) -> nodes.InlineNode:
        start, end = self._places.span(*token.meta[SPAN])
        if token.nesting > 0:
            return self._read_container(token, start)
        if token.type == "image":
            return self._read_image(token, start, end)
        is_half_read = self._source[end - 1 : end + 1] == "\r\n"
        return _read_leaf(token, start, end + is_half_read)

    def _append_text(self, token: Token, found: list[nodes.InlineNode]) -> None:
        content = token.content
        if not content:
            return
        places = self._places
        low, high = token.meta[SPAN]
        if token.type == "text_special":
            found.append(nodes.TextNode(*places.span(low, high), content))
            return
        for first, last in places.split(low, high):
            found.append(nodes.TextNode(*places.span(first, last), content[first - low : last - low]))

    def _read_container(self, token: Token, start: int) -> nodes.InlineNode:
        self._depth += 1
        children = self._read()
        self._depth -= 1
        low, high = self._tokens[self._at - 1].meta[SPAN]
        end = self._places.span(low, high)[1]
        match token.type:
            case "strong_open":
                # Its tokens are the inner ones of the two characters.
                return nodes.StrongNode(start - 1, end + 1, children)
            case "em_open":
                return nodes.EmphasisNode(start, end, children)
            case "s_open":
                return nodes.StrikeNode(start, end, children)
            case _:
                label = str(token.meta.get("label", ""))
                target, title = str(token.attrGet("href") or ""), str(token.attrGet("title") or "")
                return nodes.LinkNode(start, end, target, title, label, children)

    def _read_image(self, token: Token, start: int, end: int) -> nodes.FigureNode:
        at = token.meta[SPAN][0] + 2
        inner = [(one, self._places.source(at + one)) for one in range(len(token.content))]
        places = OffsetMap(inner or [(0, start)])
        caption = InlineBuilder(self._source, places).build(token.children or [])
        target, title = str(token.attrGet("src") or ""), str(token.attrGet("title") or "")
        return nodes.FigureNode(start, end, target, title, caption)


def _read_leaf(token: Token, start: int, end: int) -> nodes.InlineNode:
    match token.type:
        case "softbreak" | "hardbreak":
            return nodes.LineBreakNode(start, end, token.type == "hardbreak")
        case "code_inline":
            return nodes.CodeNode(start, end, token.content)
        case "html_inline":
            return nodes.HtmlNode(start, end, token.content)
        case _ if token.type == REFERENCE:
            return nodes.FootnoteReferenceNode(start, end, token.content)
        case _:
            return nodes.MathNode(start, end, token.content, token.info == "display")


def build_text_line(start: int, text: str) -> tuple[nodes.InlineNode, ...]:
    """Return the nodes of a text without structure that stands at `start` in the source."""
    return tuple(_split_run([nodes.TextNode(start, start + len(text), text)]))


def _place_rest(tokens: Sequence[Token]) -> None:
    """Record the spans of the texts that the parser has pushed at the end of a content."""
    at = 0
    for token in tokens:
        token.meta.setdefault(SPAN, (at, at + len(token.content)))
        at = token.meta[SPAN][1]


def _merge_texts(found: Iterable[nodes.InlineNode]) -> list[nodes.InlineNode]:
    """Join neighbouring texts that are unchanged parts of the source."""
    merged: list[nodes.InlineNode] = []
    run: list[nodes.TextNode] = []
    for one in found:
        if isinstance(one, nodes.TextNode) and len(one.text) == one.end - one.start:
            if run and run[-1].end != one.start:
                merged.append(_join(run))
                run = []
            run.append(one)
            continue
        if run:
            merged.append(_join(run))
            run = []
        merged.append(one)
    return [*merged, _join(run)] if run else merged


def _join(run: Sequence[nodes.TextNode]) -> nodes.TextNode:
    if len(run) == 1:
        return run[0]
    return nodes.TextNode(run[0].start, run[-1].end, "".join(one.text for one in run))


def _with_html_code(children: list[nodes.InlineNode], source: str) -> list[nodes.InlineNode]:
    """Replace what stands between the HTML tags of code by one node of code."""
    if not any(isinstance(one, nodes.HtmlNode) for one in children):
        return children
    closings = _pair_code_tags(children, source)
    replaced: list[nodes.InlineNode] = []
    until = -1
    for index, one in enumerate(children):
        if index in closings:
            until = closings[index]
            inner = source[one.end : children[until].start]
            replaced.append(nodes.CodeNode(one.start, children[until].end, inner))
        elif index > until:
            replaced.append(one)
    return replaced


def _pair_code_tags(children: list[nodes.InlineNode], source: str) -> dict[int, int]:
    """Return the indexes of the closing tags by those of their opening tags."""
    closings: dict[int, int] = {}
    opened: tuple[str, int] | None = None
    for index, one in enumerate(children):
        tag = _CODE_TAG.match(one.text) if isinstance(one, nodes.HtmlNode) else None
        if tag is None:
            continue
        name = tag[2].casefold()
        if not tag[1] and opened is None and not source.endswith("/>", one.start, one.end):
            opened = name, index
        elif tag[1] and opened is not None and name == opened[0]:
            closings[opened[1]] = index
            opened = None
    return closings


def _with_citations(children: list[nodes.InlineNode]) -> list[nodes.InlineNode]:
    """Replace the citations and marks in the texts by nodes of their own."""
    for one in children:
        if isinstance(one, nodes.HtmlNode) or _may_be_marked(one):
            break
    else:
        return children
    found: list[nodes.InlineNode] = []
    run: list[nodes.TextNode] = []
    for one in _with_superscripts(children):
        if isinstance(one, nodes.TextNode):
            run.append(one)
            continue
        found += _split_run(run)
        run = []
        found.append(one)
    return found + _split_run(run)


def _may_be_marked(one: nodes.InlineNode) -> bool:
    return isinstance(one, nodes.TextNode) and _MAY_BE_MARKED.search(one.text) is not None


def _with_superscripts(children: list[nodes.InlineNode]) -> Iterator[nodes.InlineNode]:
    """Yield the nodes; a number between `<sup>` and `</sup>` is a citation unless it is an exponent."""
    at = 0
    while at < len(children):
        match children[at : at + 3]:
            case [nodes.HtmlNode() as opening, nodes.TextNode() as number, nodes.HtmlNode() as closing] if (
                _SUPERSCRIPT.match(opening.text) and _SUPERSCRIPT.match(closing.text)
            ):
                before = join_plain(children[max(at - 1, 0) : at])[-_BEFORE_CHARACTERS:]
                written = f"{before}{opening.text}{number.text}{closing.text}"
                cited = next(iter(find_number_citations(written)), None)
                if cited is not None:
                    shift = opening.start - len(before)
                    parts = tuple(
                        nodes.CitedNumber(low + shift, high + shift, int(written[low:high]))
                        for low, high in cited.parts
                    )
                    text = f"{opening.text}{number.text}{closing.text}"
                    yield nodes.CitationNode(opening.start, closing.end, text, cited.numbers, parts)
                    at += 3
                    continue
            case _:
                pass
        yield children[at]
        at += 1


def _split_run(run: Sequence[nodes.TextNode]) -> list[nodes.InlineNode]:
    text = "".join(one.text for one in run)
    if not _MAY_BE_MARKED.search(text):
        return [*run]
    plain = PlainText(run)
    special: list[tuple[int, int, Any]] = [(*one.span(), None) for one in _MARK.finditer(text)]
    special += [(one.start, one.end, one) for one in find_number_citations(text)]
    found: list[nodes.InlineNode] = []
    at = 0
    for start, end, citation in sorted(special, key=lambda one: one[:2]):
        found += plain.cut(at, start)
        low, high = plain.span(start, end)
        if citation is None:
            found.append(nodes.MarkNode(low, high, text[start:end]))
        else:
            parts = tuple(
                nodes.CitedNumber(*plain.span(*one), int(text[slice(*one)])) for one in citation.parts
            )
            found.append(nodes.CitationNode(low, high, text[start:end], citation.numbers, parts))
        at = end
    return found + plain.cut(at, len(text))
