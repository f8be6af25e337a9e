"""Checks the citations and quotations of a report against what the run has read, without a model."""

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from maniple.document.nodes import MARK
from maniple.evidence.address_secrets import hide_secrets
from maniple.evidence.addresses import comparable_url, is_host_only, local_port
from maniple.evidence.citations import Citation, find_citations
from maniple.evidence.excerpt import MAX_SEARCHED as EXCERPT_SEARCHED
from maniple.evidence.reasons import ReasonCode, Reasons, explain, join_sentences, name_sources
from maniple.evidence.record import Evidence, Source
from maniple.evidence.source_list import detect_language
from maniple.evidence.wording import Quotation, searchable

MAX_QUOTATIONS = 400
"""The number of quotations of a report that are looked up; further ones are marked as unverified."""
MAX_SEARCHED = 8_000_000
"""Characters of all sources that are searched for quotations without a citation, earlier sources first.
Sources that a sentence cites are always searched."""
LEAST_FOREIGN = 5
"""Words from which a quotation is compared with the language of its source; fewer tell none."""
LANGUAGE_CHARACTERS = 5_000
"""Characters of a source that tell its language."""
LEAST_LATIN = 0.3
"""The share of Latin letters from which a source in another script is in a second language, too."""
_NOT_LATIN = re.compile(r"[^\x00-\u024f]+")
PIECE_CHARACTERS = 60_000
OVERLAP_CHARACTERS = 10_000
"""The overlap of the pieces of a long text. It is longer than any quotation."""
_ON_THE_LOOP = 4_000
_IDEOGRAPHS = re.compile("[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class UnverifiedCitation:
    """A citation that could not be verified, and the reasons."""

    citation: Citation
    reasons: Reasons
    passage: str = ""
    """What a source says instead; untrusted."""

    @property
    def reason(self) -> str:
        """The reasons as one English sentence, for the reporter."""
        return join_sentences(self.reasons)


class SourceCheck:
    """Checks the blocks of one report.

    `conversation` are the texts of the user and earlier reports; `results` are results that are not from the
    web. Three kinds of citations are verified:

    - An address is valid if the run opened or found it, if it occurs in `conversation` and the run has not
      tried in vain to read it, or if it names this machine without a page, with a port from which nothing was
      read.
    - A number is valid if a source has it.
    - A quotation is valid if each part occurs in a source that its sentence cites by number or address. If
      the sentence cites none, the parts may occur in any source, in `conversation` or in `results`.

    A run without sources has only its addresses checked, unless it has `researched`: then all numbers and
    quotations are invalid.
    """

    def __init__(
        self,
        evidence: Evidence,
        sources: Sequence[Source],
        conversation: Iterable[str] = (),
        results: Iterable[str] = (),
        *,
        researched: bool = False,
    ) -> None:
        self.sources = {source.number: source for source in sources}
        self.checks_words = researched or bool(sources)
        """Whether numbers and quotations are checked in addition to addresses."""
        self._evidence = evidence
        self._conversation = tuple(conversation)
        self._results = tuple(results)
        self._numbers = {
            comparable_url(hide_secrets(url)): source.number
            for source in sources
            for url in (source.url, *source.also)
        }
        self._ports_read = {local_port(url) for source in sources for url in (source.url, *source.also)}
        self._unread: dict[str, str] = {}
        self._known: frozenset[str] | None = None
        self._wordings: dict[int, str] = {}
        self._elsewhere: str | None = None
        self._room = MAX_SEARCHED
        self._quotations = 0

    @classmethod
    async def of(
        cls,
        evidence: Evidence,
        conversation: Iterable[str] = (),
        results: Iterable[str] = (),
        *,
        researched: bool = False,
    ) -> Self:
        """Return a check against the present content of `evidence`."""
        check = cls(evidence, await evidence.sources(), conversation, results, researched=researched)
        await check.load_unread()
        return check

    @property
    def unread_reasons(self) -> tuple[str, ...]:
        """Why pages could not be read, a sentence each."""
        return tuple(self._unread.values())

    async def load_unread(self) -> None:
        """Load which pages could not be read: nothing can be cited from them."""
        self._unread = {comparable_url(page.url): page.reason for page in await self._evidence.unread()}

    async def findings(self, block: str) -> list[UnverifiedCitation]:
        """Return the citations in `block` that could not be verified, in order."""
        found, language = list[UnverifiedCitation](), detect_language(block)
        for one in await self._read(block):
            if reasons := await self._find_objection(one, language):
                found.append(UnverifiedCitation(one, reasons))
        return found

    async def cited(self, block: str) -> set[int]:
        """Return the numbers of the sources that `block` cites, by number or by address."""
        numbers: set[int] = set()
        for one in await self._read(block):
            if one.kind != "quotation":
                numbers.update(one.numbers)
        return numbers & self.sources.keys()

    async def texts(self, citation: Citation) -> list[str]:
        """Return the texts of the sources that `citation` names, or of all sources if it names none.

        The texts are cut to the length that is searched for an excerpt.
        """
        found, room = list[str](), EXCERPT_SEARCHED
        for number in [number for number in citation.numbers if number in self.sources] or self.sources:
            if room <= 0:
                break
            for text in await self._evidence.texts(number):
                found.append(text[:room])
                room -= len(found[-1])
        return found

    async def wording_of(self, number: int) -> str:
        """Return the title and texts of a source as one `searchable` text; "" for an unknown number."""
        if number not in self._wordings and number in self.sources:
            await self._load(number)
        return self._wordings.get(number, "")

    def number_of(self, url: str) -> int:
        """Return the number of the source at an address, or 0."""
        found = (self._numbers.get(comparable_url(one)) for one in _spellings(url))
        return next(filter(None, found), 0)

    async def _read(self, block: str) -> list[Citation]:
        if len(block) <= _ON_THE_LOOP:
            return find_citations(block, self.number_of)
        return await asyncio.to_thread(find_citations, block, self.number_of)

    async def _find_objection(self, one: Citation, language: str) -> Reasons:
        if one.kind == "url":
            return () if one.numbers else self._find_objection_to_address(one.text)
        if not self.checks_words:
            return ()
        if one.kind == "number":
            wrong = [number for number in one.numbers if number not in self.sources]
            return explain(ReasonCode.UNKNOWN_SOURCE, source=name_sources(wrong)) if wrong else ()
        self._quotations += 1
        if self._quotations > MAX_QUOTATIONS:
            return explain(ReasonCode.MANY_QUOTATIONS)
        return await self._find_misquotation(one, language)

    def _find_objection_to_address(self, url: str) -> Reasons:
        reasons = (self._unread.get(comparable_url(one)) for one in _spellings(url))
        if reason := next(filter(None, reasons), ""):
            return explain(ReasonCode.UNREAD_ADDRESS, address=url, cause=reason)
        return () if self._is_known(url) else explain(ReasonCode.UNKNOWN_ADDRESS, address=url)

    def _is_known(self, url: str) -> bool:
        spellings = _spellings(url)
        if any(map(self._is_own, spellings)):
            return True
        if self._known is None:
            self._known = frozenset(_addresses(self._conversation))
        return any(comparable_url(one) in self._known for one in spellings)

    def _is_own(self, url: str) -> bool:
        """Whether an address names a program of the user on this machine, and not a page that was read."""
        port = local_port(url)
        return port > 0 and port not in self._ports_read and (is_host_only(url) or not self.checks_words)

    async def _find_misquotation(self, one: Citation, language: str) -> Reasons:
        cited = [number for number in one.numbers if number in self.sources]
        numbers = cited or [*self.sources]
        for number in numbers:
            if number not in self._wordings and (cited or self._room > 0):
                await self._load(number)
        if await asyncio.to_thread(self._occurs, one.text, numbers, anywhere=not cited):
            return ()
        if cited and await asyncio.to_thread(self._are_foreign, one.text, cited, language):
            return ()
        if not cited:
            return explain(ReasonCode.WORDS_NOWHERE, words=one.text)
        return explain(ReasonCode.WORDS_NOT_IN_CITED, source=name_sources(cited), words=one.text)

    async def _load(self, number: int) -> None:
        texts = [self.sources[number].title, *await self._evidence.texts(number)]
        self._wordings[number] = await asyncio.to_thread(_wordings, texts)
        self._room -= len(self._wordings[number])

    def _occurs(self, words: str, numbers: Iterable[int], *, anywhere: bool) -> bool:
        quoted = Quotation.of(words)
        stands = any(quoted.occurs_in(self._wordings.get(number, "")) for number in numbers)
        return stands or (anywhere and self._occurs_elsewhere(quoted))

    def _are_foreign(self, words: str, numbers: Sequence[int], around: str) -> bool:
        """Whether sources are written in another language than a quotation, which is a translation then.

        `around` is the language of the text around it, or "".
        """
        language = detect_language(words)
        return all(
            self._is_foreign(words, language, self._wordings.get(number, ""), around) for number in numbers
        )

    def _is_foreign(self, words: str, language: str, wording: str, around: str) -> bool:
        languages = _detect_languages(wording)
        if not languages or language in languages:
            return False
        tokens = [one for one in searchable(words).split() if any(map(str.isalnum, one))]
        known = frozenset(wording.split())
        # Few words tell no language: they are in that of the text around them, if none stands in the source.
        is_short = (words.isascii() or not language) and len(tokens) < LEAST_FOREIGN
        if is_short:
            return around not in {"", *languages} and known.isdisjoint(tokens)
        # "a" is a word of many languages: it counts once. Of a quotation without frequent words the language
        # is not known.
        different = {*tokens}
        return (2 if language else 3) * len(different & known) < len(different)

    def _occurs_elsewhere(self, quoted: Quotation) -> bool:
        if self._elsewhere is None:
            self._elsewhere = _wordings([*self._conversation, *self._results])
        return quoted.occurs_in(self._elsewhere)


def _detect_languages(wording: str) -> set[str]:
    """Return the languages of a source, without guesses: of its main script, and of much Latin text in it."""
    sample = wording[:LANGUAGE_CHARACTERS]
    latin = _NOT_LATIN.sub("", sample)
    found = {detect_language(sample)}
    if len(latin) > LEAST_LATIN * len(sample):
        found.add(detect_language(latin))
    return found - {""}


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """A block of a report with its marks."""

    text: str
    marks: Sequence[tuple[int, UnverifiedCitation]]
    """Each finding with the number of its mark among all marks of `text`, from 1, in order."""


def mark_findings(block: str, findings: Iterable[UnverifiedCitation]) -> str:
    """Return `block` with one `[unverified]` after each citation in `findings`.

    A claim gets none if a citation in it gets one.
    """
    return place_marks(block, findings).text


def place_marks(block: str, findings: Iterable[UnverifiedCitation]) -> MarkedBlock:
    """Return `block` with its marks as `mark_findings` sets them, and which mark is about which finding.

    A claim without a mark of its own belongs to the first mark in it.
    """
    pieces, marks, at, number = list[str](), list[tuple[int, UnverifiedCitation]](), 0, 0
    for end, about in sorted(_group_by_end([*findings]).items()):
        pieces.append(block[at:end])
        number += block.count(MARK, at, end) + 1
        marks += [(number, one) for one in about]
        if block.startswith((MARK, f" {MARK}"), end) or block[at:end].rstrip(" .").endswith(MARK):
            number -= 1  # the mark that the block has already is counted with the text around it
        else:
            pieces.append(f"{about[-1].citation.separator}{MARK}")
        at = end
    return MarkedBlock("".join((*pieces, block[at:])), marks)


def _group_by_end(findings: Sequence[UnverifiedCitation]) -> dict[int, list[UnverifiedCitation]]:
    """Return the findings by the offset of their mark."""
    groups = dict[int, list[UnverifiedCitation]]()
    for one in findings:
        if one.citation.kind != "claim":
            groups.setdefault(one.citation.end, []).append(one)
    ends = sorted(groups)
    for one in findings:
        if one.citation.kind == "claim":
            first = bisect_right(ends, one.citation.start)
            has_mark = first < bisect_right(ends, one.citation.end)
            # In front: the separator is that of the citation.
            groups.setdefault(ends[first] if has_mark else one.citation.end, []).insert(0, one)
    return groups


def _wordings(texts: Iterable[str]) -> str:
    # The separator keeps a quotation from matching across two texts.
    return "\n".join(searchable(piece) for text in texts for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    # A pattern that runs over a whole book holds the GIL, which blocks the event loop even from a thread.
    step = PIECE_CHARACTERS - OVERLAP_CHARACTERS
    for start in range(0, max(len(text) - OVERLAP_CHARACTERS, 1), step):
        yield text[start : start + PIECE_CHARACTERS]


def _addresses(conversation: Iterable[str]) -> Iterable[str]:
    """Yield the addresses in `conversation`, except those that an earlier check marked as unverified."""
    for text in conversation:
        for one in find_citations(text):
            if one.kind == "url" and not text.startswith((MARK, f" {MARK}"), one.end):
                yield from map(comparable_url, _spellings(one.text))


def _spellings(url: str) -> list[str]:
    """Return possible readings of an address: with a scheme, up to its end or to the first ideograph.

    They are without secrets, as the addresses of sources are.
    """
    url = hide_secrets(url)
    scheme = "https:" if url.startswith("//") else "https://" if url.lower().startswith("www.") else ""
    found = _IDEOGRAPHS.search(url)
    return [scheme + url, scheme + url[: found.start()]] if found else [scheme + url]
