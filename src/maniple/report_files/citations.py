"""Numbers of sources and marks in the words of a report."""

import re
from collections.abc import Collection, Iterable, Iterator

from markdown_it.token import Token

from maniple.evidence.check import MARK
from maniple.evidence.citations import citations
from maniple.report_files.markdown import around, text

_PIECE = re.compile(r"\d{1,4}")
_MAY_CITE = re.compile(r"[\[【［]")


def cited(tokens: Iterable[Token]) -> set[int]:
    """Return the numbers that a report cites."""
    return {number for words in _words(tokens) for one in _numbers(words.content) for number in one[2]}


def mark(tokens: Iterable[Token], sources: Collection[int], meaning: str) -> int:
    """Make links of the citations of `sources`, and marks of what is `[unverified]`; return how many.

    `meaning` is the title of those marks.
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
                children += around("mark", "mark", [text(MARK)], title=meaning)
                children += _linked(other, () if in_link else sources)
            marks += len(others)
        token.children = children
    return marks


def _words(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the text that may cite: what is a link already leads to its own place."""
    for token in tokens:
        in_link = False
        for one in token.children or []:
            in_link = _is_in_link(one, in_link)
            if one.type == "text" and not in_link and _MAY_CITE.search(one.content):
                yield one


def _is_in_link(token: Token, in_link: bool) -> bool:
    """Whether `token` and what comes next leads to a place of its own, or is that place."""
    if token.type in ("link_open", "number_open"):
        return True
    return in_link and token.type not in ("link_close", "number_close")


def _numbers(content: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    for one in citations(content):
        if one.kind == "number":
            yield one.start, one.end, one.numbers


def _linked(content: str, sources: Collection[int]) -> Iterator[Token]:
    at = 0
    for start, end, numbers in _numbers(content) if sources else ():
        # Of several in one pair of brackets each has its own link; one alone has the brackets in it.
        alone = len(numbers) == 1 and numbers[0] in sources
        spans = [(start, end)] if alone else [found.span() for found in _PIECE.finditer(content, start, end)]
        for low, high in spans:
            number = numbers[0] if alone else int(content[low:high])
            if number in sources:
                yield from _plain(content[at:low])
                link = [text(content[low:high])]
                yield from around("link", "a", link, href=f"#source-{number}", class_="citation")
                at = high
    yield from _plain(content[at:])


def _plain(content: str) -> Iterator[Token]:
    if content:
        yield text(content)
