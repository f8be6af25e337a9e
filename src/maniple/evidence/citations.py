"""What a block of a report says of its sources: addresses, numbers and quotations."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Literal

from maniple.evidence.wording import LEAST_WORDS, words_in
from maniple.reading.fences import Fences

Kind = Literal["url", "number", "quotation"]

NEAR_CHARACTERS = 400
"""How far from a quotation its citation may stand."""
_RUN = re.compile(r"`+")
_WEB = re.compile(
    r"(?:(?:https?|ftp)://|(?<![\w./@])www\.(?=\w))[^\s<>\"`|\\，。；！？、）】」』》“”]{1,4000}",
    re.IGNORECASE,
)
# Possessive, so that what does not come to its end is read once.
_LINK = re.compile(
    r"\]\([ \t]{0,8}<?((?:[^\s()<>]++|\([^\s()<>]*+\))*+)>?[ \t]{0,8}"
    r"(?:[\"'(][^\"')\n]{0,300}[\"')])?[ \t]{0,8}\)?"
)
_HIDDEN = re.compile(r"(?:https?:|ftp:)?//", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_DEFINITION = re.compile(r"^[ >]{0,8}(\[)[^\]\n]{1,200}\]:[ \t]{0,8}<?([^\s<>]*)[^\n]*", re.MULTILINE)
_NUMBERS = re.compile(
    r"[\[【［]\^?(\d{1,4}(?: ?[,;、，–-] ?\^?\d{1,4}){0,30})"
    r"(?:†[^\]】］\n]{0,80})?[\]】］]"
)
_QUOTATION = re.compile(
    r"„[^„“”]*[“”]|“[^“”]*”|«[^«»]*»|(?<!\w)»[^«»]*«|「[^「」]*」|『[^『』]*』"
    r"|(?<![\w\"])\"(?=\S)[^\"]*(?<=\S)\"(?!\w)"
)
_NEW_LINE = re.compile(r"\n")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_QUOTED_LINE = re.compile(r"[ \t]{0,8}>[ \t>]*")
_CALLOUT = re.compile(
    r"\[!\w+\]|\*\*[^*\n]{1,40}(?:[:：]\*\*|\*\*[:：])"
    r"|(?:note|tip|info|hint|important|warning|caution|hinweis|achtung|attention|nota|注意?|提示|说明|警告|重要)[:：]",
    re.IGNORECASE,
)
_BYLINE = re.compile(r"[*_]?(?:—|–|--?) ?\S")
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"”“»\[])|[。！？]|\n(?=[ \t]*(?:[-*+|]|\d+[.)]))|\|")
_TERMINALS = frozenset(".!?。！？")
_MOST_BEHIND = 10
_LEADS_ON = re.compile(r"[\s\"”“»」』）)*_.。!?！？]*")


@dataclass(frozen=True, slots=True)
class Citation:
    """One claim that something stands somewhere; `start` and `end` are offsets in the block."""

    kind: Kind
    start: int
    end: int
    text: str
    """The address, the words that are quoted, or the numbers as written."""
    numbers: tuple[int, ...] = ()
    """Of a citation its numbers; of a quotation those that its sentence cites."""


def citations(block: str) -> list[Citation]:
    """Return what `block` cites, in order, code left out. Takes linear time but for its longest sentence."""
    prose = _without_code(block)
    urls = list(_urls(prose))
    numbers = list(_numbers(prose, urls))
    blockquotes = list(_blockquotes(prose))
    spoken = [*blockquotes, *_quotations(prose, [*urls, *blockquotes])]
    quoted = _attributed(prose, spoken, numbers)
    return sorted((*urls, *numbers, *quoted), key=lambda one: (one.end, one.start))


def _without_code(block: str) -> str:
    """Return `block` with spaces in the place of code, so that offsets stay."""
    fences, lines = Fences(strict=True), []
    for line in block.splitlines(keepends=True):
        is_code = fences.take(line).is_code
        lines.append(re.sub(r"[^\n]", " ", line) if is_code else line)
    text = "".join(lines)
    runs = [(found.start(), found.end()) for found in _RUN.finditer(text)]
    if not runs:
        return text
    waiting: dict[int, deque[int]] = defaultdict(deque)
    for index, (start, end) in enumerate(runs):
        waiting[end - start].append(index)
    pieces, at, index = [], 0, 0
    while index < len(runs):
        start, end = runs[index]
        same = waiting[end - start]
        while same and same[0] <= index:
            same.popleft()
        if same:
            index = same[0]
            pieces += [text[at:start], re.sub(r"[^\n]", " ", text[start : runs[index][1]])]
            at = runs[index][1]
        index += 1
    return "".join((*pieces, text[at:]))


def _urls(prose: str) -> Iterator[Citation]:
    """Yield the targets of links and definitions, then addresses that stand bare or in angles."""
    linked = sorted((*_definitions(prose), *_links(prose)), key=lambda one: one.start)
    yield from linked
    is_linked = _covering(linked)
    for found in _WEB.finditer(prose):
        if not is_linked(found.start()):
            url = _trimmed(found[0])
            yield Citation("url", found.start(), _after(prose, found.start() + len(url)), url)


def _definitions(prose: str) -> Iterator[Citation]:
    for found in _DEFINITION.finditer(prose):
        url = _shown(found[2])
        if _HIDDEN.match(url):
            yield Citation("url", found.start(1), found.end(), url)


def _links(prose: str) -> Iterator[Citation]:
    for found in _LINK.finditer(prose):
        url = _shown(found[1])
        if _HIDDEN.match(url) or url.lower().startswith("www."):
            yield Citation("url", found.start(), found.end(), url)


def _shown(target: str) -> str:
    """Return the address that a target in Markdown becomes."""
    return unescape(_ESCAPE.sub(r"\1", target))


def _trimmed(url: str) -> str:
    url = url.rstrip(".,;:!?'*_~…")
    while url.endswith((")", "]")):
        opening = "(" if url[-1] == ")" else "["
        if url.count(opening) >= url.count(url[-1]):
            break
        url = url[:-1].rstrip(".,;:!?'*_~")
    return url


def _after(prose: str, end: int) -> int:
    """Return where a mark may stand behind an address: behind its angle, its link's text, its definition."""
    if prose.startswith(">", end):
        end += 1
    if prose.startswith("](", end):
        link = _LINK.match(prose, end)
        return link.end() if link else end
    return end


def _numbers(prose: str, urls: list[Citation]) -> Iterator[Citation]:
    defined = {found.start(1) for found in _DEFINITION.finditer(prose)}
    is_address = _covering(urls)
    for found in _NUMBERS.finditer(prose):
        numbers = _read(found[1])
        if numbers and not is_address(found.start()) and found.start() not in defined:
            yield Citation("number", found.start(), found.end(), found[0], numbers)


def _covering(spans: Iterable[Citation]) -> Callable[[int], bool]:
    """Return what says whether an offset lies in one of `spans`, which do not overlap."""
    ordered = sorted(spans, key=lambda one: one.start)
    starts = [one.start for one in ordered]

    def covers(offset: int) -> bool:
        before = bisect_right(starts, offset) - 1
        return before >= 0 and offset < ordered[before].end

    return covers


def _read(written: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in re.split(r"[,;、，]", written.replace("^", "")):
        ends = [int(end) for end in re.sub(r"\s", "", part).replace("–", "-").split("-")]
        if len(ends) > 2:  # a date
            return ()
        span = range(min(ends), max(ends) + 1)
        numbers += span if len(span) <= 50 else (span[0], span[-1])
    # An interval of numbers, or a year, is no citation.
    return tuple(numbers) if all(0 < number < 1_000 for number in numbers) else ()


def _quotations(prose: str, others: Sequence[Citation]) -> Iterator[Citation]:
    """Yield what stands in quotation marks, but for what is a part of `others`."""
    is_other = _covering(others)
    starts = [0, *(found.end() for found in _NEW_LINE.finditer(prose))]
    for found in _QUOTATION.finditer(prose):
        line = starts[bisect_right(starts, found.start()) - 1]
        if not (_HEADING.match(prose[line : line + 12]) or is_other(found.start())):
            words = found[0][1:-1]
            if words_in(_WEB.sub("", words)) >= LEAST_WORDS:
                yield Citation("quotation", found.start(), found.end(), words)


def _blockquotes(prose: str) -> Iterator[Citation]:
    at, quoted, first, last = 0, [], 0, 0
    for line in [*prose.splitlines(keepends=True), ""]:
        mark = _QUOTED_LINE.match(line)
        if mark is not None:
            words = line[mark.end() :].strip()
            first, last = (first if quoted else at), at + len(line.rstrip())
            quoted.append(words)
        elif quoted:
            if _BYLINE.match(quoted[-1]):
                quoted.pop()
            text = "\n".join(quoted).strip()
            if not _CALLOUT.match(text) and words_in(text) >= LEAST_WORDS:
                yield Citation("quotation", first, last, text)
            quoted = []
        at += len(line)


def _attributed(prose: str, quoted: list[Citation], numbers: list[Citation]) -> Iterator[Citation]:
    """Yield the quotations with the numbers that stand in them, in their sentence, or right behind it."""
    ends = [found.end() for found in _SENTENCE_END.finditer(prose)]
    starts = [number.start for number in numbers]
    for one in quoted:
        before, behind = bisect_right(ends, one.start) - 1, bisect_right(ends, one.end)
        low = max(ends[before] if before >= 0 else 0, one.start - NEAR_CHARACTERS)
        high = min(ends[behind] if behind < len(ends) else len(prose), one.end + NEAR_CHARACTERS)
        if one.text.rstrip()[-1:] in _TERMINALS:
            high = one.end
        within = numbers[bisect_left(starts, low) : bisect_left(starts, high)]
        for number in numbers[(first := bisect_left(starts, high)) : first + _MOST_BEHIND]:
            if _LEADS_ON.fullmatch(prose, high, number.start) is None:
                break
            within.append(number)
            high = number.end
        near = dict.fromkeys(number for each in within for number in each.numbers)
        yield replace(one, numbers=tuple(near))
