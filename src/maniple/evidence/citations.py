"""What a block of a report says of its sources: addresses, numbers and quotations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from maniple.evidence.blockquotes import blockquotes
from maniple.evidence.citation import Citation, Kind, covering
from maniple.evidence.links import DEFINITION, links
from maniple.evidence.prose import Prose
from maniple.evidence.quotations import quotations
from maniple.evidence.terms import is_term
from maniple.evidence.wording import LEAST_WORDS, LEAST_WORDS_BEFORE, LEAST_WORDS_CITED, wording, words_in

__all__ = ["NEAR_CHARACTERS", "Citation", "Kind", "citations"]

NEAR_CHARACTERS = 400
"""How far from a quotation its citation may stand."""
_JOINTS = r"[,;、，–&-]|and|und|et|y|和|及"
_NUMBER = r"(?:(?:sources?|来源|來源|s|#) ?)?\^?\d{1,4}"
_SEVERAL = rf"{_NUMBER}(?: ?(?:{_JOINTS}) ?{_NUMBER}){{0,30}}"
# What is raised behind a unit or another short word is an exponent.
_NUMBERS = re.compile(
    rf"\\?[\[【［] ?({_SEVERAL}) ?(?:†[^\]】］\n]{{0,80}})?\\?[\]】］]"
    rf"|(?:(?<=[.,;:!?)\]”\"。，；])|(?<=[^\W\d_]{{4}})) ?<sup>({_SEVERAL})</sup>",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[,;、，&]|and|und|et|y|和|及")
_NO_NUMBER = re.compile(r"[^\d-]")
_FOOTNOTE = re.compile(r"^[ >]{0,8}(\[)\^\d{1,4}\]:", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"”“»\[])|[。！？]|\n(?=[ \t]*(?:[-*+|]|\d+[.)]))|\|")
_TERMINALS = frozenset(".!?。！？")
_MOST_BEHIND = 10
# Between words and what they are attributed to: marks, and what a link begins with.
_LEADS_ON = re.compile(r"[\s\"”“»」』›’‘'）)*_.。!?！？—–]*[(（]?(?:\[[^\[\]\n]{0,300}|<(?:a\s{1,8})?)?")


def citations(block: str, number_of: Callable[[str], int] = lambda _: 0) -> list[Citation]:
    """Return what `block` cites, in order, fenced code left out. Takes linear time.

    `number_of` tells the number of the source at an address, 0 where there is none.
    """
    prose = Prose.of(block)
    urls = [replace(one, numbers=_known(number_of(one.text))) for one in links(prose)]
    numbers = list(_numbers(prose, urls))
    cited = sorted((*numbers, *(one for one in urls if one.numbers)), key=lambda one: one.start)
    quoted = list(blockquotes(prose))
    end_of_other = covering((one.start, one.end) for one in (*urls, *quoted))
    marked = (one for one in quotations(prose) if not end_of_other(one.start))
    said = (one for one in _attributed(prose.text, marked, cited) if _is_said(one, prose.text, cited))
    quoted = [*_attributed(prose.text, quoted, cited), *said]
    return sorted((*urls, *numbers, *quoted), key=lambda one: (one.end, one.start))


def _known(number: int) -> tuple[int, ...]:
    return (number,) if number else ()


def _is_said(one: Citation, prose: str, cited: Sequence[Citation]) -> bool:
    """Whether what stands between marks is said to stand in a source, and is not a term or a name."""
    words = words_in(one.text)
    if words >= LEAST_WORDS or not one.numbers:
        return words >= LEAST_WORDS
    if any(map(str.isdecimal, wording(one.text))):
        return True
    is_cited = _is_cited(one, prose, cited)
    if words >= LEAST_WORDS_CITED and is_cited:
        return True
    least = LEAST_WORDS_BEFORE if is_cited else LEAST_WORDS_CITED
    return words >= least and not is_term(one.text, prose[max(one.start - NEAR_CHARACTERS, 0) : one.start])


def _is_cited(one: Citation, prose: str, cited: Sequence[Citation]) -> bool:
    """Whether a source is cited right behind a quotation: then it is one, and not a term or a name."""
    behind = bisect_left(cited, one.end, key=lambda each: each.start)
    return behind < len(cited) and _LEADS_ON.fullmatch(prose, one.end, cited[behind].start) is not None


def _numbers(prose: Prose, urls: Sequence[Citation]) -> Iterator[Citation]:
    defined = {found.start(1) for form in (DEFINITION, _FOOTNOTE) for found in form.finditer(prose.shown)}
    end_of_address = covering((one.start, one.end) for one in urls)
    for found in _NUMBERS.finditer(prose.text):
        numbers = _read(found[1] or found[2])
        if numbers and not end_of_address(found.start()) and found.start() not in defined:
            # Within the text of a link a mark would break it.
            end = end_of_address(found.end() - 1) or found.end()
            yield Citation("number", found.start(), end, found[0], numbers)


def _read(written: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in _BETWEEN.split(written.casefold()):
        ends = [int(end) for end in _NO_NUMBER.sub("", part.replace("–", "-")).split("-")]
        if len(ends) > 2:  # a date
            return ()
        span = range(min(ends), max(ends) + 1)
        numbers += span if len(span) <= 50 else (span[0], span[-1])
    # An interval of numbers, or a year, is no citation.
    return tuple(numbers) if all(0 < number < 1_000 for number in numbers) else ()


def _attributed(prose: str, quoted: Iterable[Citation], cited: list[Citation]) -> Iterator[Citation]:
    """Yield the quotations with the numbers of what is cited in them, in their sentence, or right behind."""
    ends = [found.end() for found in _SENTENCE_END.finditer(prose)]
    starts = [each.start for each in cited]
    for one in quoted:
        before, behind = bisect_right(ends, one.start) - 1, bisect_right(ends, one.end)
        low = max(ends[before] if before >= 0 else 0, one.start - NEAR_CHARACTERS)
        high = min(ends[behind] if behind < len(ends) else len(prose), one.end + NEAR_CHARACTERS)
        if one.text.rstrip()[-1:] in _TERMINALS:
            high = one.end
        within = cited[bisect_left(starts, low) : bisect_left(starts, high)]
        for each in cited[(first := bisect_left(starts, high)) : first + _MOST_BEHIND]:
            if _LEADS_ON.fullmatch(prose, high, each.start) is None:
                break
            within.append(each)
            high = each.end
        near = dict.fromkeys(number for each in within for number in each.numbers)
        yield replace(one, numbers=tuple(near))
