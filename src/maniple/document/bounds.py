"""Limits for parsing a report as Markdown, whose cost can grow much faster than the length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

MAX_MARKDOWN_LENGTH = 300_000
MAX_LINE_LENGTH = 20_000
MAX_LINES = 20_000
MAX_BRACKETS = 20_000
"""The parser searches for the end of a link after each bracket."""
MAX_CELLS = 20_000
"""Cells of all tables of a report, including empty ones: a few characters can imply thousands."""
_KIND, _LEFT = "table", "cells_left"


def is_readable(markdown: str) -> bool:
    """Whether a report is within the limits. One that is not is shown as plain text."""
    return (
        len(markdown) <= MAX_MARKDOWN_LENGTH
        and markdown.count("\n") < MAX_LINES
        and markdown.count("[") <= MAX_BRACKETS
        and all(len(line) <= MAX_LINE_LENGTH for line in markdown.split("\n"))
    )


def enable_tables(parser: MarkdownIt) -> None:
    """Make `parser` parse tables of at most `MAX_CELLS` cells in total; others become code blocks."""
    parser.enable("table")
    parser.block.ruler.at("table", bounded_table, {"alt": ["paragraph", "reference"]})


def is_table_code(token: Token) -> bool:
    """Whether a code block is a table beyond the limit."""
    return token.info == _KIND and token.type == "code_block"


def bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table as a block rule of markdown-it. One beyond the limit becomes a block of code."""
    from markdown_it.rules_block import table

    if not table(state, start, end, True):
        return False
    if silent:
        return True
    stop, before = start, len(state.tokens)
    if state.env.setdefault(_LEFT, MAX_CELLS) > 0:
        table(state, start, end, False)
        cells = sum(token.type in ("th_open", "td_open") for token in state.tokens[before:])
        state.env[_LEFT] -= cells
        if state.env[_LEFT] >= 0:
            return True
        del state.tokens[before:]
        stop = state.line
    while stop < end and not state.isEmpty(stop) and state.sCount[stop] >= state.blkIndent:
        stop += 1
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, stop, state.blkIndent, True)
    token.map, token.info, state.line = [start, stop], _KIND, stop
    return True
