"""TeX in a report, set as MathML, which browsers show without scripts or fonts of ours."""

import html
import re
from xml.etree.ElementTree import tostring

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

_PAIRS = (("$$", "$$", True), (r"\[", r"\]", True), (r"\(", r"\)", False), ("$", "$", False))
_LONGEST = 2_000
_MOST_CHARACTERS = 50_000
# Names of its own making let a line of TeX grow without end.
_DEFINITION = re.compile(r"\\(?:newcommand|newenvironment|def|DeclareMathOperator)(?![a-zA-Z])")
TOKEN = "formula"
"""The type of the token that holds TeX; its `info` is `display` for a formula in a line of its own."""


def with_formulas(parser: MarkdownIt) -> None:
    """Let `parser` keep TeX between `$`, `$$`, `\\\\(` or `\\\\[` as it is, in tokens of the type `TOKEN`."""
    parser.inline.ruler.before("escape", TOKEN, _formula)


class Setter:
    """Sets the formulas of one document, so many characters of them; what is beyond stays TeX."""

    def __init__(self) -> None:
        self._left = _MOST_CHARACTERS

    def as_mathml(self, tex: str, *, display: bool) -> str:
        """Return `tex` as a `math` element, or as code when nothing can be made of it. Blocks."""
        self._left -= len(tex)
        if self._left < 0 or _DEFINITION.search(tex):
            return _as_code(tex)
        from latex2mathml.converter import convert_to_element

        try:
            element = convert_to_element(tex, display="block" if display else "inline")
        except Exception:  # noqa: BLE001 - of TeX that it does not know, the library raises whatever comes
            return _as_code(tex)
        for one in element.iter():
            # The library writes characters as references that it wants to be taken as they stand.
            one.text = html.unescape(one.text) if one.text else None
        return tostring(element, encoding="unicode")


def _as_code(tex: str) -> str:
    return f"<code>{html.escape(tex)}</code>"


def _formula(state: StateInline, silent: bool) -> bool:
    for opening, closing, is_display in _PAIRS:
        if state.src.startswith(opening, state.pos):
            # In a line brackets with a backslash are brackets: so titles of sources are written.
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
        token = state.push(TOKEN, "", 0)
        token.content, token.info = tex.strip(), "display" if is_display else ""
    state.pos = end + len(closing)
    return True


def _begins_line(state: StateInline) -> bool:
    before = state.src[max(0, state.pos - 20) : state.pos]
    return not before.rpartition("\n")[2].strip(" \t")


def _is_money(tex: str, following: str) -> bool:
    """Whether what stands between two dollars is prose about prices."""
    return tex[0].isspace() or tex[-1].isspace() or "\n" in tex or following.isdigit()
