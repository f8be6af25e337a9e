"""TeX in a report, converted to MathML, which browsers show without scripts or extra fonts."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import tostring

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline


_PAIRS = (("$$", "$$", True), (r"\[", r"\]", True), (r"\(", r"\)", False), ("$", "$", False))
_LONGEST = 2_000
_MAX_CHARACTERS = 50_000
# Macros can make a line of TeX expand without limit.
_DEFINITION = re.compile(r"\\(?:newcommand|newenvironment|def|DeclareMathOperator)(?![a-zA-Z])")
FORMULA = "formula"
"""The type of a token that holds TeX. Its `info` is `display` for a formula on a line of its own."""


def enable_formulas(parser: MarkdownIt) -> None:
    """Make `parser` put TeX between `$`, `$$`, `\\\\(` or `\\\\[` unchanged into tokens of type `FORMULA`."""
    parser.inline.ruler.before("escape", FORMULA, _formula)


class FormulaRenderer:
    """Renders the formulas of one document. Beyond `_MAX_CHARACTERS` in total, formulas are shown as TeX."""

    def __init__(self) -> None:
        self._left = _MAX_CHARACTERS

    def render(self, tex: str, *, display: bool) -> str:
        """Return `tex` as a `math` element, or as code if it cannot be converted. Blocks."""
        self._left -= len(tex)
        if self._left < 0 or _DEFINITION.search(tex):
            return _as_code(tex)
        from latex2mathml.converter import convert_to_element

        try:
            element = convert_to_element(tex, display="block" if display else "inline")
        except Exception:  # noqa: BLE001 - for TeX that it does not support, the library raises various errors
            return _as_code(tex)
        for one in element.iter():
            # The library returns some characters as HTML references in plain text.
            one.text = html.unescape(one.text) if one.text else None
        return tostring(element, encoding="unicode")


def _as_code(tex: str) -> str:
    return f"<code>{html.escape(tex)}</code>"


def _formula(state: StateInline, silent: bool) -> bool:
    for opening, closing, is_display in _PAIRS:
        if state.src.startswith(opening, state.pos):
            # Within a line, `\[` is an escaped bracket, as in the titles of sources.
            if opening == r"\[" and not _begins_line(state):
                return False
            return _take(state, opening, closing, is_display=is_display, silent=silent)
    return False


def _take(state: StateInline, opening: str, closing: str, *, is_display: bool, silent: bool) -> bool:
    start = state.pos + len(opening)
    end = state.src.find(closing, start, min(state.posMax, start + _LONGEST))
    tex = state.src[start:end]
    if end < 0 or not tex.strip() or (opening == "$" and _is_money(tex, state.src[end + 1 : end + 2])):
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
