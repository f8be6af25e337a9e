"""Check what a report says of its sources against what was really read. No model is asked."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from maniple.evidence.addresses import comparable_url, names_no_page, own_port
from maniple.evidence.citations import Citation, citations
from maniple.evidence.excerpt import MOST_SEARCHED as EXCERPT_SEARCHED
from maniple.evidence.record import Evidence, Source
from maniple.evidence.wording import Quoted, searchable

MARK = "[unverified]"
MOST_QUOTATIONS = 400
"""Of one report are looked up; one with more of them is marked from there on."""
MOST_SEARCHED = 8_000_000
"""Characters of all sources together that a quotation without a citation is looked for in, the earlier
sources first; what a sentence cites is looked through in any case."""
PIECE_CHARACTERS = 60_000
OVERLAP_CHARACTERS = 10_000
"""Of a long text's pieces, which are read one by one: more than a report quotes in one go."""
_ON_THE_LOOP = 4_000
_IDEOGRAPHS = re.compile("[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Finding:
    """A citation that does not hold, and why, in words for the reporter."""

    citation: Citation
    reason: str


class SourceCheck:
    """Checks the blocks of one report.

    Holds: an address that the run opened or found, or that stood in `said` (what the user and earlier
    reports said), or that names this machine, no page on it, and a port where nothing was read; a number that
    a source has; a quotation of which every part stands in a source that its sentence cites, by number or by
    address, or, where none is cited, in any source, in `said` or in `given` (results that are not from the
    web). Without any source nothing but addresses is checked, unless the run has `researched`: then what is
    cited or quoted all the same was made up.
    """

    def __init__(
        self,
        evidence: Evidence,
        sources: Sequence[Source],
        said: Iterable[str] = (),
        given: Iterable[str] = (),
        *,
        researched: bool = False,
    ) -> None:
        self.sources = {source.number: source for source in sources}
        self.checks_words = researched or bool(sources)
        """Whether numbers and quotations are checked, and not addresses alone."""
        self._evidence = evidence
        self._said = tuple(said)
        self._given = tuple(given)
        self._numbers = {
            comparable_url(url): source.number for source in sources for url in (source.url, *source.also)
        }
        self._ports_read = {own_port(url) for source in sources for url in (source.url, *source.also)}
        self._known: frozenset[str] | None = None
        self._wordings: dict[int, str] = {}
        self._elsewhere: str | None = None
        self._room = MOST_SEARCHED
        self._quotations = 0

    @classmethod
    async def of(
        cls,
        evidence: Evidence,
        said: Iterable[str] = (),
        given: Iterable[str] = (),
        *,
        researched: bool = False,
    ) -> "SourceCheck":
        """Return the check of a report on what `evidence` holds now."""
        return cls(evidence, await evidence.sources(), said, given, researched=researched)

    async def findings(self, block: str) -> list[Finding]:
        """Return what in `block` does not hold, in order."""
        found = []
        for one in await self._read(block):
            reason = await self._objection(one)
            if reason:
                found.append(Finding(one, reason))
        return found

    async def cited(self, block: str) -> set[int]:
        """Return the numbers of the sources that `block` cites, by number or by address."""
        numbers: set[int] = set()
        for one in await self._read(block):
            if one.kind != "quotation":
                numbers.update(one.numbers)
        return numbers & self.sources.keys()

    async def texts(self, citation: Citation) -> list[str]:
        """Return what was read where `citation` says that its words stand, else everywhere.

        Of much the beginning, as far as an excerpt is looked for there.
        """
        found, room = list[str](), EXCERPT_SEARCHED
        for number in [number for number in citation.numbers if number in self.sources] or self.sources:
            if room <= 0:
                break
            for text in await self._evidence.texts(number):
                found.append(text[:room])
                room -= len(found[-1])
        return found

    async def _read(self, block: str) -> list[Citation]:
        if len(block) <= _ON_THE_LOOP:
            return citations(block, self._number_of)
        return await asyncio.to_thread(citations, block, self._number_of)

    async def _objection(self, one: Citation) -> str:
        if one.kind == "url":
            return (
                ""
                if one.numbers or self._is_known(one.text)
                else f"{one.text} was not opened or found in this run"
            )
        if not self.checks_words:
            return ""
        if one.kind == "number":
            wrong = [f"[{number}]" for number in one.numbers if number not in self.sources]
            return f"there is no source {', '.join(wrong)}" if wrong else ""
        self._quotations += 1
        if self._quotations > MOST_QUOTATIONS:
            return "there are too many quotations to look them all up"
        return await self._misquoted(one)

    def _is_known(self, url: str) -> bool:
        spellings = _spellings(url)
        if any(map(self._is_own, spellings)):
            return True
        if self._known is None:
            self._known = frozenset(_addresses(self._said))
        return any(comparable_url(one) in self._known for one in spellings)

    def _is_own(self, url: str) -> bool:
        """Whether an address says where the reader's own program answers, and not what was read there."""
        port = own_port(url)
        return port > 0 and port not in self._ports_read and (names_no_page(url) or not self.checks_words)

    def _number_of(self, url: str) -> int:
        found = (self._numbers.get(comparable_url(one)) for one in _spellings(url))
        return next(filter(None, found), 0)

    async def _misquoted(self, one: Citation) -> str:
        cited = [number for number in one.numbers if number in self.sources]
        numbers = cited or [*self.sources]
        for number in numbers:
            if number not in self._wordings and (cited or self._room > 0):
                await self._load(number)
        if await asyncio.to_thread(self._stands, one.text, numbers, anywhere=not cited):
            return ""
        named = ", ".join(f"[{number}]" for number in cited)
        return (
            f"these words stand in no source: {one.text}"
            if not cited
            else (f"these words do not stand in {named}: {one.text}")
        )

    async def _load(self, number: int) -> None:
        texts = [self.sources[number].title, *await self._evidence.texts(number)]
        self._wordings[number] = await asyncio.to_thread(_wordings, texts)
        self._room -= len(self._wordings[number])

    def _stands(self, words: str, numbers: Iterable[int], *, anywhere: bool) -> bool:
        quoted = Quoted.of(words)
        stands = any(quoted.occurs_in(self._wordings.get(number, "")) for number in numbers)
        return stands or (anywhere and self._stands_elsewhere(quoted))

    def _stands_elsewhere(self, quoted: Quoted) -> bool:
        if self._elsewhere is None:
            self._elsewhere = _wordings([*self._said, *self._given])
        return quoted.occurs_in(self._elsewhere)


def marked(block: str, findings: Iterable[Finding]) -> str:
    """Return `block` with `[unverified]` behind everything that does not hold, once."""
    pieces, at = [], 0
    for end in sorted({finding.citation.end for finding in findings}):
        pieces.append(block[at:end])
        if not block.startswith((MARK, f" {MARK}"), end):
            pieces.append(f" {MARK}")
        at = end
    return "".join((*pieces, block[at:]))


def _wordings(texts: Iterable[str]) -> str:
    # A quotation must not run from one text into the next.
    return "\n".join(searchable(piece) for text in texts for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    # One pass of a pattern over a whole book would keep the event loop waiting, in a thread as well.
    step = PIECE_CHARACTERS - OVERLAP_CHARACTERS
    for start in range(0, max(len(text) - OVERLAP_CHARACTERS, 1), step):
        yield text[start : start + PIECE_CHARACTERS]


def _addresses(said: Iterable[str]) -> Iterable[str]:
    """Yield the addresses in `said`, but for those that an earlier check could not find either."""
    for text in said:
        for one in citations(text):
            if one.kind == "url" and not text.startswith((MARK, f" {MARK}"), one.end):
                yield from map(comparable_url, _spellings(one.text))


def _spellings(url: str) -> list[str]:
    """Return an address as it is meant: with a scheme, and to its end or to where ideographs begin."""
    scheme = "https:" if url.startswith("//") else "https://" if url.lower().startswith("www.") else ""
    found = _IDEOGRAPHS.search(url)
    return [scheme + url, scheme + url[: found.start()]] if found else [scheme + url]
