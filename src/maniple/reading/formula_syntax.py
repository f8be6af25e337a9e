"""TeX in Markdown: where a formula begins and ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

FORMULA = "formula"
"""The type of a token that holds TeX. Its `info` is `display` for a formula on a line of its own."""
_PAIRS = (("$$", "$$", True), (r"\[", r"\]", True), (r"\(", r"\)", False), ("$", "$", False))
# Environments that models write without a pair around them.
_ENVIRONMENT = re.compile(
    r"\\begin\{(?P<name>(?:equation|align(?:ed|at)?|flalign|gather(?:ed)?|multline|eqnarray|split|cases|array"
    r"|displaymath|math|[bBpvV]?matrix|smallmatrix)\*?)\}"
)
_LONGEST = 10_000
"""The characters between the delimiters of a formula; a longer one is text."""
# What TeX has and the title of a page has not, in which brackets are escaped, too.
_TEX = re.compile(r"\\[a-zA-Z]|(?<!\\)[\^_={}]")
_BEHIND = re.compile(r"[^\w\n]*\w")
"""What makes the text behind a formula more than punctuation."""


def enable_formulas(parser: MarkdownIt) -> None:
    """Make `parser` put TeX unchanged into tokens of type `FORMULA`.

    TeX stands between `$`, `$$`, `\\\\(` or `\\\\[`, or is an environment such as `\\\\begin{align}`.
    """
    parser.inline.ruler.before("escape", FORMULA, parse_formula)


def parse_formula(state: StateInline, silent: bool) -> bool:
    """Parse a formula as an inline rule of markdown-it."""
    for opening, closing, is_display in _PAIRS:
        if state.src.startswith(opening, state.pos):
            return _take(state, opening, closing, is_display=is_display, silent=silent)
    environment = _ENVIRONMENT.match(state.src, state.pos)
    return environment is not None and _take_environment(state, environment, silent=silent)


@dataclass(frozen=True, slots=True)
class DisplayFormula:
    """Where a formula ends in a text, and the lengths of the delimiters around its TeX."""

    end: int
    opening: int
    closing: int


def find_display_formula(text: str, start: int) -> DisplayFormula | None:
    """Return the formula on lines of its own that begins at `start`, the beginning of a line."""
    for opening, closing, is_display in _PAIRS:
        if is_display and text.startswith(opening, start):
            begin = start + len(opening)
            end = _find_end(text, closing, begin)
            tex = text[begin:end]
            has_tex = end > begin and not tex.isspace() and not _is_number_in_brackets(opening, tex)
            return DisplayFormula(end + len(closing), len(opening), len(closing)) if has_tex else None
    environment = _ENVIRONMENT.match(text, start)
    closing = f"\\end{{{environment['name']}}}" if environment else ""
    end = _find_end(text, closing, environment.end()) if environment else -1
    return DisplayFormula(end + len(closing), 0, 0) if end >= 0 else None


def _find_end(text: str, closing: str, begin: int) -> int:
    return text.find(closing, begin, begin + _LONGEST + len(closing))


def _take(state: StateInline, opening: str, closing: str, *, is_display: bool, silent: bool) -> bool:
    start = state.pos + len(opening)
    end = _find_closing(state, closing, start)
    tex = state.src[start:end]
    if end < 0 or not tex.strip() or (opening == "$" and _is_money(tex, state.src[end + 1 : end + 2])):
        return False
    # Beside other text, `\[` may be an escaped bracket, as in the titles of sources.
    is_alone = _begins_line(state) and not _BEHIND.match(state.src, end + len(closing), state.posMax)
    if (opening == r"\[" and not (is_alone or _TEX.search(tex))) or _is_number_in_brackets(opening, tex):
        return False
    _push(state, tex.strip(), end + len(closing), is_display=is_display, silent=silent)
    return True


def _take_environment(state: StateInline, begin: re.Match[str], *, silent: bool) -> bool:
    closing = f"\\end{{{begin['name']}}}"
    end = _find_closing(state, closing, begin.end())
    if end < 0:
        return False
    end += len(closing)
    _push(state, state.src[begin.start() : end], end, is_display=True, silent=silent)
    return True


def _push(state: StateInline, tex: str, end: int, *, is_display: bool, silent: bool) -> None:
    if not silent:
        token = state.push(FORMULA, "", 0)
        token.content, token.info = tex, "display" if is_display else ""
    state.pos = end


def _find_closing(state: StateInline, closing: str, start: int) -> int:
    """Return where `closing` stands, or -1; `\\$` is a dollar sign of the formula."""
    stop = min(state.posMax, start + _LONGEST + len(closing))
    end = state.src.find(closing, start, stop)
    while end >= 0 and closing.startswith("$") and _is_escaped(state.src[start:end]):
        end = state.src.find(closing, end + 1, stop)
    return end


def _is_escaped(before: str) -> bool:
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _begins_line(state: StateInline) -> bool:
    before = state.src[max(0, state.pos - 20) : state.pos]
    return not before.rpartition("\n")[2].strip(" \t")


def _is_number_in_brackets(opening: str, tex: str) -> bool:
    """Whether it is the number of a source, whose brackets are escaped: `\\[3\\]`."""
    return opening == r"\[" and tex.isdecimal()


def _is_money(tex: str, following: str) -> bool:
    """Whether the text between two dollar signs is prose about prices."""
    return tex[0].isspace() or tex[-1].isspace() or "\n" in tex or following.isdigit()
