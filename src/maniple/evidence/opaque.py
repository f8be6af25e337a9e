"""The parts of a block of Markdown that the check of citations must not change, found by a real parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from maniple.reading.formula_syntax import FORMULA, enable_formulas, parse_formula

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

Span = tuple[int, int]

MAX_LENGTH = 100_000
"""A longer block is not parsed, because the cost of the parser may grow faster than the length."""
MAX_BRACKETS = 400
"""The brackets of a paragraph or cell that is parsed: at each, the parser searches for the end of a link."""
_MAY_BE_OPAQUE = re.compile(r"[`~$\\<\[]|^(?: {4}| {0,3}\t)", re.MULTILINE)
_CODE_TAG = re.compile(r"<(/?)(code|kbd|math|pre|samp|script|style|svg|var)(?=[\s>/])", re.IGNORECASE)
_FENCE_END = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\Z")
# A fence around Markdown is no code: some models put their whole answer into one.
_OF_MARKDOWN = frozenset({"markdown", "md"})
_CELLS = frozenset({"th_open", "td_open"})
_CODE, _TAG = frozenset({FORMULA, "backticks"}), "html_inline"
_KEY = "opaque"


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
    as_text = _parse(block, html=False)
    if "<" not in block:
        return OpaqueSpans(as_text.fences, as_text.indented, as_text.code, _merge(as_text.closed))
    as_html = _parse(block, html=True)
    between_tags = [*_between_code_tags(block, as_html.tags)]
    code = _merge([*({*as_text.code} & {*as_html.code}), *between_tags])
    closed = _merge([*as_text.closed, *as_html.closed, *between_tags])
    return OpaqueSpans(as_text.fences, as_text.indented, code, closed)


@dataclass(slots=True)
class _Spans:
    fences: list[Span] = field(default_factory=list[Span])
    indented: list[Span] = field(default_factory=list[Span])
    code: list[Span] = field(default_factory=list[Span])
    tags: list[Span] = field(default_factory=list[Span])
    closed: list[Span] = field(default_factory=list[Span])


def _parse(block: str, *, html: bool) -> _Spans:
    lines = _Lines(block)
    spans = _Spans()
    for before, token in pairwise([None, *_parser(html).parse(block)]):
        if token is None or token.map is None:
            continue
        if token.type == "fence" and _is_closed(token, lines.texts):
            spans.fences.append(lines.span(*token.map))
        elif token.type == "code_block":
            start, end = lines.span(*token.map)
            spans.indented.append((start, start + len(block[start:end].rstrip())))
        elif token.type == "inline":
            places = lines.locate(token, is_cell=before is not None and before.type in _CELLS)
            found: list[tuple[str, int, int]] = token.meta[_KEY]
            for kind, start, end in found:
                span = (places[start], places[end - 1] + 1)
                spans.closed.append(span)
                spans.code.extend([span] if kind in _CODE else ())
                spans.tags.extend([span] if kind == _TAG else ())
    spans.closed += spans.indented
    return spans


class _Lines:
    """The lines of a block, in which the texts of paragraphs and cells are located."""

    def __init__(self, block: str) -> None:
        self.texts = block.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self.texts)]
        self._ends: dict[int, int] = {}
        self._length = len(block)

    def span(self, first: int, last: int) -> Span:
        """Return the span of the lines from `first` to before `last`."""
        return self._starts[first], min(self._starts[last], self._length)

    def locate(self, token: Token, *, is_cell: bool) -> list[int]:
        """Return the offset in the block of each character of an inline token.

        The parser removes from each line its indentation and the marks of lists and quotations, and the
        backslashes before the bars in cells.
        """
        first = token.map[0] if token.map else 0
        places: list[int] = []
        for number, text in enumerate(token.content.split("\n"), start=first):
            begun, line = text.lstrip(), self.texts[number]
            if is_cell:
                at = line.find(begun.replace("|", "\\|"), self._ends.get(number, 0))
            else:
                at = line.rfind(begun)
            at = max(at, 0)
            places += [self._starts[number] + at] * (len(text) - len(begun))
            for character in begun:
                at += is_cell and character == "|" and line.startswith("\\", at)
                places.append(self._starts[number] + at)
                at += 1
            self._ends[number] = at
            places.append(self._starts[number] + at)
        return places


def _is_closed(token: Token, lines: Sequence[str]) -> bool:
    """Whether a fence has an end and is not around Markdown."""
    first, last = token.map or (0, 0)
    is_of_markdown = token.info.strip().casefold() in _OF_MARKDOWN
    return last - first > 1 and not is_of_markdown and _FENCE_END.match(lines[last - 1]) is not None


def _between_code_tags(block: str, tags: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans from the opening to the closing tag of each HTML element for code."""
    opened, begin = "", 0
    for start, end in sorted(tags):
        tag = _CODE_TAG.match(block, start)
        if tag is None:
            continue
        name = tag[2].casefold()
        if not tag[1] and not opened and not block.endswith("/>", start, end):
            opened, begin = name, start
        elif tag[1] and name == opened:
            yield begin, end
            opened = ""


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@cache
def _parser(html: bool) -> MarkdownIt:
    """Return a parser like those of the reports that records the spans of opaque inline elements."""
    from markdown_it import MarkdownIt, rules_inline

    parser = MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])
    parser.disable("html_block").use(enable_formulas)
    parser.core.ruler.at("inline", _parse_inline)
    rules = {
        FORMULA: parse_formula,
        "backticks": rules_inline.backtick,
        "link": _parse_link,
        "image": rules_inline.image,
        "autolink": rules_inline.autolink,
        _TAG: rules_inline.html_inline,
    }
    for name, rule in rules.items():
        parser.inline.ruler.at(name, _record(name, rule))
    return parser


def _parse_inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.meta[_KEY] = found = list[tuple[str, int, int]]()
            if token.content.count("[") + token.content.count("<") <= MAX_BRACKETS:
                state.env[_KEY] = token.content, found
                state.md.inline.parse(token.content, state.md, state.env, [])


def _record(kind: str, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    def parse(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, silent):
            return False
        content, found = state.env[_KEY]
        # The description of an image is parsed as a text of its own.
        if not silent and state.src is content and (kind != "backticks" or not state.pending):
            found.append((kind, start, state.pos))
        return True

    return parse


def _parse_link(state: StateInline, silent: bool) -> bool:
    """Parse a link. `[text][name]` is one even if its definition is in another block."""
    from markdown_it.rules_inline import link

    if link(state, silent):
        return True
    if state.src[state.pos] != "[":
        return False
    end = state.md.helpers.parseLinkLabel(state, state.pos, True)
    label_end = state.src.find("]", end + 2, state.posMax) if state.src.startswith("][", end) else -1
    text = state.src[state.pos + 1 : end]
    if end < 0 or label_end <= end + 2 or text.strip(" ^").isdecimal():
        return False
    if not silent:
        start, stop = state.pos + 1, state.posMax
        state.pos, state.posMax = start, end
        state.md.inline.tokenize(state)
        state.posMax = stop
    state.pos = label_end + 1
    return True
