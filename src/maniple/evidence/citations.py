"""What a block of a report says of its sources: addresses, numbers and quotations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from maniple.evidence.blockquotes import blockquotes
from maniple.evidence.citation import Citation, Kind, covering
from maniple.evidence.links import DEFINITION, links
from maniple.evidence.prose import Prose
from maniple.evidence.quotations import quotations
from maniple.evidence.wording import LEAST_WORDS, words_in

__all__ = ["NEAR_CHARACTERS", "Citation", "Kind", "citations"]

NEAR_CHARACTERS = 400
"""How far from a quotation its citation may stand."""
_NUMBERS = re.compile(
    r"[\[【［]\^?(\d{1,4}(?: ?[,;、，–-] ?\^?\d{1,4}){0,30})"
    r"(?:†[^\]】］\n]{0,80})?[\]】］]"
)
_FOOTNOTE = re.compile(r"^[ >]{0,8}(\[)\^\d{1,4}\]:", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"”“»\[])|[。！？]|\n(?=[ \t]*(?:[-*+|]|\d+[.)]))|\|")
_TERMINALS = frozenset(".!?。！？")
_MOST_BEHIND = 10
_LEADS_ON = re.compile(r"[\s\"”“»」』›’‘'）)*_.。!?！？]*")


def citations(block: str) -> list[Citation]:
    """Return what `block` cites, in order, fenced code left out. Takes linear time."""
    prose = Prose.of(block)
    urls = links(prose)
    numbers = list(_numbers(prose, urls))
    quoted = list(blockquotes(prose))
    end_of_other = covering((one.start, one.end) for one in (*urls, *quoted))
    marked = (one for one in quotations(prose) if not end_of_other(one.start))
    quoted += [one for one in marked if _is_long(one) or _is_cited(one, prose.text, numbers)]
    return sorted(
        (*urls, *numbers, *_attributed(prose.text, quoted, numbers)), key=lambda one: (one.end, one.start)
    )


def _is_long(one: Citation) -> bool:
    return words_in(one.text) >= LEAST_WORDS


def _is_cited(one: Citation, prose: str, numbers: Sequence[Citation]) -> bool:
    """Whether a number stands right behind a quotation: then it is one, and not a term or a name."""
    behind = bisect_left(numbers, one.end, key=lambda number: number.start)
    return behind < len(numbers) and _LEADS_ON.fullmatch(prose, one.end, numbers[behind].start) is not None


def _numbers(prose: Prose, urls: Sequence[Citation]) -> Iterator[Citation]:
    defined = {found.start(1) for form in (DEFINITION, _FOOTNOTE) for found in form.finditer(prose.shown)}
    end_of_address = covering((one.start, one.end) for one in urls)
    for found in _NUMBERS.finditer(prose.text):
        numbers = _read(found[1])
        if numbers and not end_of_address(found.start()) and found.start() not in defined:
            yield Citation("number", found.start(), found.end(), found[0], numbers)


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
