"""Citations and `[unverified]` marks in the text of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from maniple.evidence.check import MARK
from maniple.evidence.citations import find_numbers
from maniple.report_files.markdown import text_token, wrap_tokens

if TYPE_CHECKING:
    from markdown_it.token import Token

_PIECE = re.compile(r"\d{1,4}")
_MAY_CITE = re.compile(r"[\[【［]")


def cited_numbers(tokens: Iterable[Token]) -> set[int]:
    """Return the numbers that a report cites."""
    return {number for words in _words(tokens) for one in _numbers(words.content) for number in one[2]}


def annotate_citations(tokens: Iterable[Token], sources: Collection[int], meaning: str) -> int:
    """Link the citations of `sources` to the list, and turn each `[unverified]` into a `mark` element.

    `meaning` is the title of these elements. Return their number.
    """
    marks = 0
    for token in tokens:
        if token.type != "inline":
            continue
        children: list[Token] = []
        in_link = False
        for one in token.children or []:
            in_link = _is_in_link(one, in_link)
            if one.type != "text" or not _MAY_CITE.search(one.content):
                children.append(one)
                continue
            first, *others = one.content.split(MARK)
            children += _linked(first, () if in_link else sources)
            for other in others:
                children += wrap_tokens("mark", "mark", [text_token(MARK)], title=meaning)
                children += _linked(other, () if in_link else sources)
            marks += len(others)
        token.children = children
    return marks


_NO_BREAK = re.compile(
    r"(?<=\d) (?=[%‰°€$£¥])|(?<=[€$£¥]) (?=\d)|(?<=\S) (?=\[\d{1,4}(?:[,;–-] ?\d{1,4}){0,9}\])"
)
"""The space between a number and its sign, and the one before a citation."""


def keep_lines_together(tokens: Iterable[Token]) -> None:
    """Make the spaces no-break spaces at which no line of a text must end."""
    for token in tokens:
        for one in token.children or []:
            if one.type == "text":
                one.content = _NO_BREAK.sub("\N{NO-BREAK SPACE}", one.content)


def _words(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the text tokens outside of links that may contain a citation."""
    for token in tokens:
        in_link = False
        for one in token.children or []:
            in_link = _is_in_link(one, in_link)
            if one.type == "text" and not in_link and _MAY_CITE.search(one.content):
                yield one


def _is_in_link(token: Token, in_link: bool) -> bool:
    """Whether the tokens from `token` on are in a link, or in the number of an entry that links lead to."""
    if token.type in ("link_open", "number_open"):
        return True
    return in_link and token.type not in ("link_close", "number_close")


def _numbers(content: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    for one in find_numbers(content):
        yield one.start, one.end, one.numbers


def _linked(content: str, sources: Collection[int]) -> Iterator[Token]:
    at = 0
    for start, end, numbers in _numbers(content) if sources else ():
        # A single number is linked with its brackets; of several in one pair, each number has its own link.
        alone = len(numbers) == 1 and numbers[0] in sources
        spans = [(start, end)] if alone else [found.span() for found in _PIECE.finditer(content, start, end)]
        for low, high in spans:
            number = numbers[0] if alone else int(content[low:high])
            if number in sources:
                # Only the first number of several in one pair of brackets may begin a line.
                between = content[at:low]
                yield from _plain(between.replace(" ", "\N{NO-BREAK SPACE}") if at > start else between)
                link = [text_token(content[low:high])]
                yield from wrap_tokens("link", "a", link, href=f"#source-{number}", class_="citation")
                at = high
    yield from _plain(content[at:])


def _plain(content: str) -> Iterator[Token]:
    if content:
        yield text_token(content)
