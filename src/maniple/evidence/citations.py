"""Finds the citations in a block of a report: addresses, source numbers and quotations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from maniple.document.citation_syntax import find_number_citations
from maniple.evidence.citation import Citation, Kind, index_spans
from maniple.evidence.links import DEFINITION, find_links, remove_addresses
from maniple.evidence.prose import Prose
from maniple.evidence.quotations import find_quotations, strip_tags
from maniple.evidence.wording import LEAST_WORDS, LEAST_WORDS_BEFORE, LEAST_WORDS_CITED, count_words, wording

_BEFORE_CHARACTERS = 40
_ARTICLES = (
    "the|an?|its|his|her|their|our|der|die|das|den|dem|des|eine?[mnrs]?|le|la|les|une?|el|los|las|"
    "il|lo|gli|uno|os?|as|um|uma|de|het|een|η|ο|το|οι|τα"
)
_NAMES = (
    r"so-called|called|dubbed|termed|named|nicknamed|known as|labell?ed|terms?|words?|phrases?|concepts?|"
    r"titled|entitled|sogenannte\w?|genannt|begriff|dite?s?|appelée?s?|llamad[oa]s?|dett[oa]|cosiddett\w|"
    r"dit[oa]s?|chamad[oa]s?|zwan[yae]|называем\w{2,3}|kallade?|باسم"
)
# An article, a word that introduces a name, or a possessive.
_NAMING = re.compile(
    rf"(?:(?<!\w)(?:{_ARTICLES}|{_NAMES})\s|\w['’](?:s|un|ın|in|ün)\s|s['’]\s|\b[ld]['’]|(?:所谓|所謂|称为|稱為|称作|叫做|名为|的|の))\s?\Z",
    re.IGNORECASE,
)
# Vietnamese puts spaces between syllables, and most words have two.
_VIETNAMESE = re.compile("[\u1ea0-\u1ef9\u01a0\u01a1\u01af\u01b0\u0110\u0111]")


def is_term(quoted: str, before: str) -> bool:
    """Whether a short `quoted` text is a term or a name, judged by its letters and the text `before` it."""
    words = count_words(quoted)
    if _VIETNAMESE.search(quoted):
        words /= 2
    if words < LEAST_WORDS_CITED and quoted != quoted.lower():
        return True
    return words <= 1.5 or _NAMING.search(before[-_BEFORE_CHARACTERS:]) is not None


_PREFIX = re.compile(r"\A[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,20}(?:>[ \t]*)+")
_BULLET = re.compile(r"\A[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_BYLINE = re.compile(
    r"[*_]{0,2}(?:[—–―-]{1,3}|~) ?[^\s—–-]|[(（][^\n]*[)）]$|<cite\b"
    r"|[*_]{0,2}(?:sources?|quelle|fuente|fonte|来源|出处|出典|출처)[*_]{0,2} ?[:：]",
    re.IGNORECASE,
)
_BYLINE_BEHIND = re.compile(
    r"(?<=[.!?。！？”“»«」』’\"\])*_])[ \t]{0,4}[*_]{0,2}(?:[—–―]{1,2}|---?)[ \t]?[^\n]{1,400}$"
    r"|(?<=[”“»«」』’\"\]])[ \t]{0,4}[(（][^\n]{1,400}[)）]$"
)
_MAX_BYLINE_WORDS = 15
_LINK_TARGET = re.compile(r"\]\([^()\n]{0,400}\)")
_CALLOUTS = (
    "note|tip|info|hint|important|warning|caution|attention|remark|reminder|abstract|summary|tl;?dr|todo|"
    "danger|bug|example|definition|takeaways?|key (?:takeaways?|points?|insights?|findings?)|conclusion|"
    "bottom line|in short|in brief|verdict|disclaimer|limits?|limitations?|"
    "hinweis|achtung|wichtig|fazit|kernaussage|zusammenfassung|merke|beispiel|"
    "remarque|résumé|à retenir|en bref|exemple|nota bene|nota|aviso|resumen|conclusión|ejemplo|importante|"
    "advertencia|riassunto|conclusione|resumo|conclusão|"
    "примечание|важно|вывод|итог|внимание|ملاحظة|الخلاصة|خلاصة|تنبيه|"
    "注意?|提示|说明|警告|重要|总结|结论|要点|核心观点|核心结论|摘要|備考|補足|まとめ|結論|ポイント|참고|주의|요약|결론"
)
_CALLOUT = re.compile(
    rf"\[!(?!quote|cite)\w+\]|\W{{0,6}}(?:{_CALLOUTS})[*_]{{0,3}} ?[:：]"
    rf"|\*\*\W{{0,6}}(?:{_CALLOUTS})[.!。]?\*\*",
    re.IGNORECASE,
)
_INNER = re.compile('["“”„«»「『]([^"“”„«»「」『』\n]{8,2000})["“”«»」』]')
_MAX_SPEAKER_WORDS = 14
"""Words beside a quotation in a block quote that may name who says it: `"…," says councillor A`."""
_SPEAKER = re.compile(r"\A(?:\[!\w+\]|\*\*[^*\n]{1,60}(?:[:：]\*\*|\*\*[:：]))")


def find_blockquotes(prose: Prose) -> Iterator[Citation]:
    """Yield the block quotes without their speakers and bylines; callouts (`> **Note:** …`) are skipped."""
    for start, end in prose.quotes:
        lines = [_PREFIX.sub("", line, count=1).strip() for line in prose.shown[start:end].split("\n")]
        words = _words(lines)
        if not _CALLOUT.match(words):
            words = _words_of_speaker(strip_tags(_SPEAKER.sub("", words, count=1)))
            if count_words(remove_addresses(words)) >= LEAST_WORDS_CITED:
                yield Citation("quotation", start, start + len(prose.shown[start:end].rstrip()), words)


def _words_of_speaker(words: str) -> str:
    """Return the quotation inside of a block quote that also names its speaker, or all words."""
    inner = [found[1] for found in _INNER.finditer(words)]
    outside = count_words(remove_addresses(_INNER.sub(" ", words)))
    return inner[0] if len(inner) == 1 and outside <= _MAX_SPEAKER_WORDS else words


def _words(lines: list[str]) -> str:
    while lines and (not lines[-1] or (_is_byline(lines[-1]) and _has_content(lines[:-1]))):
        lines.pop()
    text = "\n".join(_BULLET.sub("", line, count=1) for line in lines).strip()
    behind = _BYLINE_BEHIND.search(text)
    return text[: behind.start()] if behind and _is_byline(behind[0].strip()) else text


def _is_byline(line: str) -> bool:
    words = remove_addresses(_LINK_TARGET.sub("]", line))
    return _BYLINE.match(line) is not None and count_words(words) <= _MAX_BYLINE_WORDS


def _has_content(lines: list[str]) -> bool:
    """Whether any line has words and is not a byline. Items of a list can look like bylines."""
    return any(count_words(line) > 0 and not _BYLINE.match(line) for line in lines)


__all__ = [
    "NEAR_CHARACTERS",
    "Citation",
    "CitedClaim",
    "Kind",
    "find_citations",
    "find_claims",
    "find_numbers",
]

NEAR_CHARACTERS = 400
"""The largest distance of a quotation from its citation."""
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"”“»\[])|[。！？]|\n(?=[ \t]*(?:[-*+|]|\d+[.)]))|\|")
_TERMINALS = frozenset(".!?。！？")
_MAX_BEHIND = 10
# What may stand between a quotation and its citation: punctuation, and the beginning of a link.
_LEADS_ON = re.compile(r"[\s\"”“»」』›’‘'）)*_.。!?！？—–]*[(（]?(?:\[[^\[\]\n]{0,300}|<(?:a\s{1,8})?)?")


def find_citations(block: str, number_of: Callable[[str], int] = lambda _: 0) -> list[Citation]:
    """Return the citations in `block`, in order, except those in fenced code. Takes linear time.

    `number_of` returns the number of the source at an address, or 0.
    """
    prose = Prose.of(block)
    urls = [replace(one, numbers=_known(number_of(one.text))) for one in find_links(prose)]
    numbers = list(_numbers(prose, urls))
    cited = sorted((*numbers, *(one for one in urls if one.numbers)), key=lambda one: one.start)
    quoted = list(find_blockquotes(prose))
    end_of_other = index_spans((one.start, one.end) for one in (*urls, *quoted))
    marked = (one for one in find_quotations(prose) if not end_of_other(one.start))
    claimed = (one for one in _attributed(prose.text, marked, cited) if _is_claimed(one, prose.text, cited))
    quoted = [*_attributed(prose.text, quoted, cited), *claimed]
    return sorted(_outside(prose, (*urls, *numbers, *quoted)), key=lambda one: (one.end, one.start))


def _outside(prose: Prose, found: Iterable[Citation]) -> Iterator[Citation]:
    """Yield the citations with ends at which a mark changes no formula, code, link, image or tag."""
    end_of_closed = index_spans(prose.opaque.closed)
    ends_of_code = {end for _, end in prose.opaque.indented}
    for one in found:
        end = max(one.end, end_of_closed(one.end - 1))
        # A mark in the last line of indented code would be code.
        yield replace(one, end=end, separator="\n\n" if end in ends_of_code else one.separator)


def find_numbers(text: str) -> Iterator[Citation]:
    """Yield the source numbers in `text`, which has no markup."""
    for one in find_number_citations(text):
        yield Citation("number", one.start, one.end, text[one.start : one.end], one.numbers)


def _known(number: int) -> tuple[int, ...]:
    return (number,) if number else ()


def _is_claimed(one: Citation, prose: str, cited: Sequence[Citation]) -> bool:
    """Whether the text between quotation marks is a quotation from a source, not a term or a name."""
    words = count_words(one.text)
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
    """Whether a source is cited directly after a text in quotation marks."""
    behind = bisect_left(cited, one.end, key=lambda each: each.start)
    return behind < len(cited) and _LEADS_ON.fullmatch(prose, one.end, cited[behind].start) is not None


def _numbers(prose: Prose, urls: Sequence[Citation]) -> Iterator[Citation]:
    defined = {found.start(1) for found in DEFINITION.finditer(prose.shown)}
    end_of_address = index_spans((one.start, one.end) for one in urls)
    for one in find_numbers(prose.text):
        if not end_of_address(one.start) and one.start not in defined:
            # A mark inside of the text of a link would break the link.
            yield replace(one, end=end_of_address(one.end - 1) or one.end)


def _attributed(prose: str, quoted: Iterable[Citation], cited: list[Citation]) -> Iterator[Citation]:
    """Yield the quotations with the numbers cited in them, in their sentence, or directly after them."""
    ends = [found.end() for found in _SENTENCE_END.finditer(prose)]
    starts = [each.start for each in cited]
    for one in quoted:
        before, behind = bisect_right(ends, one.start) - 1, bisect_right(ends, one.end)
        low = max(ends[before] if before >= 0 else 0, one.start - NEAR_CHARACTERS)
        high = min(ends[behind] if behind < len(ends) else len(prose), one.end + NEAR_CHARACTERS)
        if one.text.rstrip()[-1:] in _TERMINALS:
            high = one.end
        within = cited[bisect_left(starts, low) : bisect_left(starts, high)]
        for each in cited[(first := bisect_left(starts, high)) : first + _MAX_BEHIND]:
            if _LEADS_ON.fullmatch(prose, high, each.start) is None:
                break
            within.append(each)
            high = each.end
        near = dict.fromkeys(number for each in within for number in each.numbers)
        yield replace(one, numbers=tuple(near))


_CLAUSE_END = re.compile(r"[;；]|<br ?/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A clause of a sentence or of a table's cell, and the sources that are cited directly behind it.

    `quoted` are its quotations.
    """

    text: str
    numbers: tuple[int, ...]
    quoted: tuple[str, ...] = ()


def find_claims(block: str) -> list[CitedClaim]:
    """Return what `block` cites sources for by their numbers: each from the citation before on."""
    prose, found = Prose.of(block).text, find_citations(block)
    ends = sorted(one.end() for form in (_SENTENCE_END, _CLAUSE_END) for one in form.finditer(prose))
    quoted = sorted((one for one in found if one.kind == "quotation"), key=_start_of)
    claims, behind = list[CitedClaim](), 0
    for one in (each for each in found if each.kind == "number"):
        boundary = bisect_right(ends, one.start) - 1
        # A full stop before the citation ends the claim's own sentence.
        while boundary >= 0 and not any(map(str.isalnum, prose[ends[boundary] : one.start])):
            boundary -= 1
        start = max(behind, ends[boundary] if boundary >= 0 else 0)
        text = prose[start : one.start]
        if claims and not any(map(str.isalnum, text)) and "|" not in text:
            claims[-1] = replace(claims[-1], numbers=claims[-1].numbers + one.numbers)
        else:
            first, end = (bisect_left(quoted, at, key=_start_of) for at in (start, one.start))
            texts = tuple(each.text for each in quoted[first:end])
            claims.append(CitedClaim(text, one.numbers, texts))
        behind = one.end
    return claims


def _start_of(one: Citation) -> int:
    return one.start
