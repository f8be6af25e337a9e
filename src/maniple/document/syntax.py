"""The Markdown of reports: a parser that records where each block and inline element stands."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from maniple.document.bounds import bounded_table
from maniple.reading.formula_syntax import FORMULA, find_display_formula, parse_formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    BlockRule = Callable[[StateBlock, int, int, bool], bool]
    InlineRule = Callable[[StateInline, bool], bool]

SPAN = "span"
"""The key in `Token.meta` of an inline token's span in the content of its block."""
BEGINS = "begins"
"""The key in `Token.meta` of a block's places in the normalised text: that of the first character of the
block, or, for the content of a paragraph, heading or cell, those of its lines."""
IS_PLAIN = "is_plain"
"""The key in `Token.meta` of a content whose brackets and tags were not parsed, for there are too many."""
FOOTNOTE, DEFINITION, REFERENCE = "footnote", "definition", "footnote_reference"
MAX_BRACKETS = 400
"""The brackets of a paragraph or cell up to which links, images and tags are parsed: at each bracket, the
parser searches for the end of a link."""
MAX_NESTING = 20
"""The levels of lists and quotations (two for each list) that are parsed."""
_ENDS_PARAGRAPH = ("paragraph", "reference")
_BLOCK_RULES: dict[str, tuple[str, ...]] = {
    "table": _ENDS_PARAGRAPH,
    "code": (),
    "fence": (*_ENDS_PARAGRAPH, "blockquote", "list"),
    "blockquote": (*_ENDS_PARAGRAPH, "blockquote", "list"),
    "hr": (*_ENDS_PARAGRAPH, "blockquote", "list"),
    "list": (*_ENDS_PARAGRAPH, "blockquote"),
    "heading": (*_ENDS_PARAGRAPH, "blockquote"),
    "lheading": (),
    "paragraph": (),
}
"""The block rules, with the rules whose blocks each may end."""
_BEGINNINGS = {
    "newline": "\n",
    "escape": "\\",
    "backticks": "`",
    "strikethrough": "~",
    "emphasis": "*_",
    "link": "[",
    "image": "!",
    "autolink": "<",
    "html_inline": "<",
    "entity": "&",
}
"""The characters with which the elements of each inline rule begin."""
_BRACKET_RULES = frozenset({"link", "image", "autolink", "html_inline"})
_NUMBERS = re.compile(r"\[ ?\d{1,4}(?:[^\d\[\]\n]{1,8}\d{1,4}){0,30} ?\](?!\()")
_FOOTNOTE_REFERENCE = re.compile(r"\[\^([^\s\[\]]{1,100})\](?!\()")
_FOOTNOTE_DEFINITION = re.compile(r"\[\^([^\s\[\]]{1,100})\]:[ \t]*")
_FOOTNOTE_INDENT = 4


@cache
def markdown_parser(*, html: bool) -> MarkdownIt:
    """Return the parser of reports. With `html` it knows tags within paragraphs; it has no HTML blocks."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable("html_block")
    parser.inline.ruler2.disable("fragments_join")
    parser.core.ruler.disable("text_join")
    parser.core.ruler.at("inline", _parse_inline)
    _record_blocks(parser)
    _record_inlines(parser)
    return parser


def _record_blocks(parser: MarkdownIt) -> None:
    from markdown_it import rules_block

    rules: dict[str, BlockRule] = {
        name: getattr(rules_block, name) for name in _BLOCK_RULES if name != "list"
    }
    rules |= {"list": rules_block.list_block, "table": bounded_table}
    ruler = parser.block.ruler
    for name, ends in _BLOCK_RULES.items():
        ruler.at(name, _record_block(rules[name]), {"alt": [*ends]})
    ruler.at("reference", _record_block(_parse_definition))
    ends = [*_BLOCK_RULES["blockquote"]]
    ruler.before("reference", FOOTNOTE, _record_block(_parse_footnote), {"alt": ends})
    ruler.before("table", FORMULA, _record_block(_parse_formula_block), {"alt": ends})


def _record_block(rule: BlockRule) -> BlockRule:
    def parse(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        count = len(state.tokens)
        if not rule(state, start, end, silent):
            return False
        for token in () if silent else state.tokens[count:]:
            # The rules of the blocks inside have recorded theirs, and a list has moved its first line.
            if token.map is not None and BEGINS not in token.meta:
                first, last = token.map if token.type == "inline" else (token.map[0], token.map[0] + 1)
                begins = zip(state.bMarks[first:last], state.tShift[first:last], strict=True)
                token.meta[BEGINS] = [begin + shift for begin, shift in begins]
        return True

    return parse


def _parse_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a reference definition and push a token for it."""
    from markdown_it.rules_block import reference

    if not reference(state, start, end, silent):
        return False
    if not silent:
        token = state.push(DEFINITION, "", 0)
        token.map = [start, state.line]
    return True


def keep_footnotes(parser: MarkdownIt) -> None:
    """Make `parser` leave footnotes as they are written: `[^1]: address` is no definition of a link."""
    from markdown_it.rules_block import reference

    def parse(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        begin = state.bMarks[start] + state.tShift[start]
        is_footnote = _FOOTNOTE_DEFINITION.match(state.src, begin, state.eMarks[start]) is not None
        return not is_footnote and reference(state, start, end, silent)

    parser.block.ruler.at("reference", parse)


def _parse_footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse `[^label]: text` and the indented lines behind it, as one footnote."""
    begin = state.bMarks[start] + state.tShift[start]
    found = _FOOTNOTE_DEFINITION.match(state.src, begin, state.eMarks[start])
    if found is None or state.is_code_block(start):
        return False
    if silent:
        return True
    opening = state.push(f"{FOOTNOTE}_open", "", 1)
    opening.info = found[1]
    opening.map = span = [start, 0]
    former = (
        state.bMarks[start],
        state.tShift[start],
        state.sCount[start],
        state.blkIndent,
        state.parentType,
    )
    indent = former[2] + _FOOTNOTE_INDENT
    state.bMarks[start] = found.end()
    state.tShift[start], state.sCount[start] = 0, indent
    state.blkIndent, state.parentType = indent, FOOTNOTE
    state.md.block.tokenize(state, start, end)
    state.bMarks[start], state.tShift[start], state.sCount[start], state.blkIndent, state.parentType = former
    state.line = max(state.line, start + 1)
    span[1] = state.line
    state.push(f"{FOOTNOTE}_close", "", -1)
    return True


def _parse_formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a formula on lines of its own, in which nothing is a heading, list or table."""
    begin = state.bMarks[start] + state.tShift[start]
    formula = None if state.is_code_block(start) else find_display_formula(state.src, begin)
    if formula is None:
        return False
    last = start
    while last < end and state.eMarks[last] < formula.end:
        last += 1
        if last == end or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            return False
    if state.src[formula.end : state.eMarks[last]].strip():
        return False
    if not silent:
        token = state.push(FORMULA, "", 0)
        token.map, token.info = [start, last + 1], "display"
        lines = state.getLines(start, last + 1, state.blkIndent, False).strip()
        token.content = lines[formula.opening : len(lines) - formula.closing].strip()
        state.line = last + 1
    return True


def _record_inlines(parser: MarkdownIt) -> None:
    from markdown_it import rules_inline as rules

    from maniple.document.inline_dispatch import DispatchingInline

    ruler = parser.inline.ruler
    rules_by_name: dict[str, InlineRule] = {
        "newline": rules.newline,
        "escape": rules.escape,
        "backticks": rules.backtick,
        "strikethrough": rules.strikethrough.tokenize,
        "emphasis": rules.emphasis.tokenize,
        "link": _parse_link,
        "image": rules.image,
        "autolink": rules.autolink,
        "html_inline": rules.html_inline,
        "entity": rules.entity,
    }
    beginnings: dict[InlineRule, str] = {}

    def record(name: str, rule: InlineRule, characters: str) -> InlineRule:
        recorded = _record_inline(rule, characters, is_bracket=name in _BRACKET_RULES)
        beginnings[recorded] = characters
        return recorded

    for name, rule in rules_by_name.items():
        ruler.at(name, record(name, rule, _BEGINNINGS[name]))
    ruler.before("escape", FORMULA, record(FORMULA, parse_formula, "$\\"))
    ruler.before("link", REFERENCE, record(REFERENCE, _parse_footnote_reference, "["))
    parser.inline = DispatchingInline(parser.inline, beginnings)


def _parse_inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            state.env[IS_PLAIN] = token.content.count("[") + token.content.count("<") > MAX_BRACKETS
            token.meta[IS_PLAIN] = state.env[IS_PLAIN]
            token.children = state.md.inline.parse(token.content, state.md, state.env, [])


def _record_inline(rule: InlineRule, beginnings: str, *, is_bracket: bool = False) -> InlineRule:
    """Return `rule`, which applies only to text that starts with one of `beginnings`."""

    def parse(state: StateInline, silent: bool) -> bool:
        if state.src[state.pos] not in beginnings or (is_bracket and state.env[IS_PLAIN]):
            return False
        start, count = state.pos, len(state.tokens)
        if silent:
            return rule(state, True)
        pending = len(state.pending) if state.src[start] == "\n" else -1
        if not rule(state, False):
            return False
        _place(state.tokens[count:], start, state.pos, pending)
        return True

    return parse


def _place(tokens: list[Token], start: int, end: int, pending: int) -> None:
    """Record the spans of the tokens that a rule has pushed for the text from `start` to `end`.

    The first may be the text before `start`, which ends there; the newline rule has cut `pending` characters.
    """
    if not tokens:
        return
    own = tokens
    if tokens[0].type == "text" and SPAN not in tokens[0].meta and _has_text_before(tokens, end - start):
        length = pending if pending >= 0 else len(tokens[0].content)
        tokens[0].meta[SPAN] = start - length, start - length + len(tokens[0].content)
        own = tokens[1:]
    at = start
    for index, token in enumerate(own):
        if SPAN not in token.meta:
            is_last = index == len(own) - 1
            length = 1 if token.nesting > 0 else len(token.content)
            token.meta[SPAN] = at, end if is_last else at + length
        at = token.meta[SPAN][1]


def _has_text_before(tokens: list[Token], length: int) -> bool:
    """Whether the first token is text from before the rule, and not one of its delimiters."""
    if all(token.type == "text" for token in tokens):
        return sum(len(token.content) for token in tokens) > length
    return True


def _parse_footnote_reference(state: StateInline, silent: bool) -> bool:
    found = _FOOTNOTE_REFERENCE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push(REFERENCE, "", 0)
        token.content = found[1]
    state.pos = found.end()
    return True


def _parse_link(state: StateInline, silent: bool) -> bool:
    """Parse a link. `[text][name]` is one even if its definition is elsewhere; `[3]` is a citation."""
    from markdown_it.rules_inline import link

    if state.src[state.pos] != "[" or _NUMBERS.match(state.src, state.pos, state.posMax):
        return False
    if link(state, silent):
        return True
    end = state.md.helpers.parseLinkLabel(state, state.pos, True)
    label_end = state.src.find("]", end + 2, state.posMax) if state.src.startswith("][", end) else -1
    label = state.src[end + 2 : label_end]
    if end < 0 or label_end <= end + 2 or state.src[state.pos + 1 : end].strip(" ^").isdecimal():
        return False
    if not silent:
        start, stop = state.pos + 1, state.posMax
        opening = state.push("link_open", "a", 1)
        opening.meta["label"] = label
        state.pos, state.posMax = start, end
        state.md.inline.tokenize(state)
        state.posMax = stop
        state.push("link_close", "a", -1)
    state.pos = label_end + 1
    return True
