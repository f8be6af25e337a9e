"""TeX in Markdown: where a formula begins and ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

FORMULA = "formula"
"""The type of a token that holds TeX. Its `info` is `display` for a formula on a line of its own."""
_PAIRS = (("$$", "$$", True), (r"\[", r"\]", True), (r"\(", r"\)", False), ("$", "$", False))
_LONGEST = 2_000
# What TeX has and the title of a page has not, in which brackets are escaped, too.
_TEX = re.compile(r"\\[a-zA-Z]|(?<!\\)[\^_={}]")


def enable_formulas(parser: MarkdownIt) -> None:
    """Make `parser` put TeX between `$`, `$$`, `\\\\(` or `\\\\[` unchanged into tokens of type `FORMULA`."""
    parser.inline.ruler.before("escape", FORMULA, parse_formula)


def parse_formula(state: StateInline, silent: bool) -> bool:
    """Parse a formula as an inline rule of markdown-it."""
    for opening, closing, is_display in _PAIRS:
        if state.src.startswith(opening, state.pos):
            return _take(state, opening, closing, is_display=is_display, silent=silent)
    return False


def _take(state: StateInline, opening: str, closing: str, *, is_display: bool, silent: bool) -> bool:
    start = state.pos + len(opening)
    end = state.src.find(closing, start, min(state.posMax, start + _LONGEST))
    tex = state.src[start:end]
    if end < 0 or not tex.strip() or (opening == "$" and _is_money(tex, state.src[end + 1 : end + 2])):
        return False
    # Within a line, `\[` may be an escaped bracket, as in the titles of sources.
    if opening == r"\[" and not (_begins_line(state) or _TEX.search(tex)):
        return False
    if not silent:
        token = state.push(FORMULA, "", 0)
        token.content, token.info = tex.strip(), "display" if is_display else ""
    state.pos = end + len(closing)
    return True


def _begins_line(state: StateInline) -> bool:
    before = state.src[max(0, state.pos - 20) : state.pos]
    return not before.rpartition("\n")[2].strip(" \t")


def _is_money(tex: str, following: str) -> bool:
    """Whether the text between two dollar signs is prose about prices."""
    return tex[0].isspace() or tex[-1].isspace() or "\n" in tex or following.isdigit()
