"""The list of sources in a report: found where the reporter put it, or written where it is wanting."""

import re
from collections.abc import Iterator, Mapping, Sequence

from markdown_it.token import Token

from maniple.evidence.addresses import comparable_url
from maniple.evidence.record import Source
from maniple.evidence.source_list import heading_for, source_list
from maniple.report_files.citations import cited
from maniple.report_files.markdown import around, text, tokens_of
from maniple.report_files.wording import Wording

_NUMBER = re.compile(r"\[(\d{1,4})\] ")


def with_list(tokens: list[Token], markdown: str, sources: Sequence[Source]) -> list[Token]:
    """Return a report with a list of the sources that it cites, which is added where it has none."""
    known = {source.number: source for source in sources}
    if any(_entries(tokens, known)) or not known:
        return tokens
    named = [known[number] for number in sorted(cited(tokens) & known.keys())]
    return [*tokens, *tokens_of(source_list(named, heading_for(markdown)))]


def anchored(tokens: list[Token], sources: Sequence[Source], wording: Wording) -> set[int]:
    """Make each entry of the list a place that citations lead to, with the day it was read; return them."""
    known = {source.number: source for source in sources}
    found = dict[int, tuple[Token, Token]]()
    for number, item, words in _entries(tokens, known):
        found[number] = item, words  # the list is at the end: of two that look like it the later one counts
    for number, (item, words) in found.items():
        item.attrs = {"id": f"source-{number}", "class": "source"}
        words.children = _presented(number, words.children or [], wording.read_on(known[number].retrieved_at))
    return set(found)


def _entries(tokens: list[Token], known: Mapping[int, Source]) -> Iterator[tuple[int, Token, Token]]:
    """Yield number, item and words of each entry: `[3]`, and then a link to what the run met as 3."""
    for index, token in enumerate(tokens):
        if token.type != "list_item_open" or len(tokens) < index + 3:
            continue
        words = tokens[index + 2]
        children = words.children or []
        number = _NUMBER.match(children[0].content) if children and children[0].type == "text" else None
        source = known.get(int(number[1])) if number else None
        hrefs = [str(one.attrGet("href") or "") for one in children if one.type == "link_open"]
        if source is not None and hrefs and _is_address_of(source, hrefs[-1]):
            yield source.number, token, words


def _is_address_of(source: Source, href: str) -> bool:
    return comparable_url(href) in {comparable_url(one) for one in (source.url, *source.also)}


def _presented(number: int, children: list[Token], read_on: str) -> list[Token]:
    children[0].content = children[0].content[len(f"[{number}] ") :]
    shown = [*around("number", "span", [text(f"[{number}]")], class_="number"), text(" "), *children]
    if read_on:
        shown += [text(" "), *around("small", "small", [text(read_on)])]
    return shown
