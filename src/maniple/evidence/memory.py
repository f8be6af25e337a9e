"""The evidence of a run in memory."""

from collections.abc import Sequence
from dataclasses import replace

from maniple.evidence.noted_findings import MAX_FINDINGS, NotedFinding, prepare_finding
from maniple.evidence.record import PageAttempt, Source, SourceKind, UnreadPage
from maniple.evidence.source_text import (
    MAX_CHARACTERS,
    MAX_SOURCES,
    SourceText,
    describe_attempt,
    describe_source,
    describe_unread,
)
from maniple.reading.publication import Publication


class MemoryEvidence:
    """Implements `record.Evidence` in memory. Its texts have at most `characters` in total."""

    def __init__(self, characters: int | None = None) -> None:
        self._most_characters = MAX_CHARACTERS if characters is None else characters
        self._sources: dict[int, Source] = {}
        self._numbers: dict[str, int] = {}
        self._also: dict[int, dict[str, str]] = {}
        self._redirecting: set[str] = set()
        self._texts: dict[str, str] = {}
        self._read: dict[int, dict[str, None]] = {}
        self._unread: dict[str, UnreadPage] = {}
        self._attempts: dict[int, dict[str, str]] = {}
        self._findings: dict[tuple[int, str], NotedFinding] = {}
        self._characters = 0

    @property
    def characters(self) -> int:
        """The number of characters in all texts."""
        return self._characters

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        source_text = SourceText.of(url, title, kind, text, asked)
        self._detach_redirect(source_text)
        known = [self._numbers[form] for form in source_text.addresses if form in self._numbers]
        if not known and not source_text.fits(len(self._sources)):
            return source_text.as_source(0)
        number = self._record(source_text, known)
        if source_text.text and self._store_text(source_text):
            for one in {number, *known}:
                self._read.setdefault(one, {})[source_text.sha256] = None
        return self._source_at(number)

    async def describe(self, number: int, publication: Publication) -> None:
        if number in self._sources:
            self._sources[number] = describe_source(self._sources[number], publication)

    async def add_unread(self, url: str, reason: str) -> None:
        form, page = describe_unread(url, reason)
        if form in self._unread or len(self._unread) < MAX_SOURCES:
            self._unread[form] = page

    async def unread(self) -> Sequence[UnreadPage]:
        return [page for form, page in self._unread.items() if not self._is_read(form)]

    def _is_read(self, form: str) -> bool:
        number = self._numbers.get(form)
        return number is not None and self._sources[number].kind == "page"

    async def add_attempt(self, step: int, url: str) -> None:
        form, address = describe_attempt(url)
        pages = self._attempts.setdefault(step, {})
        if len(pages) < MAX_SOURCES:
            pages.setdefault(form, address)

    async def attempts(self, step: int) -> Sequence[PageAttempt]:
        failed = {form: page.reason for form, page in self._unread.items() if not self._is_read(form)}
        return [PageAttempt(url, failed.get(form, "")) for form, url in self._attempts.get(step, {}).items()]

    async def add_finding(self, finding: NotedFinding) -> bool:
        finding = prepare_finding(finding)
        key = (finding.source, finding.statement)
        has_room = key in self._findings or len(self._findings) < MAX_FINDINGS
        if finding.source not in self._sources or not has_room:
            return False
        self._findings[key] = finding
        return True

    async def findings(self) -> Sequence[NotedFinding]:
        return [*self._findings.values()]

    async def sources(self) -> Sequence[Source]:
        return [self._source_at(number) for number in self._sources]

    async def texts(self, number: int) -> Sequence[str]:
        return [self._texts[digest] for digest in self._read.get(number, ())]

    def _detach_redirect(self, source_text: SourceText) -> None:
        """Detach an address that is now a page from the source to which it redirected before."""
        form = source_text.comparable
        if source_text.kind == "page" and form in self._redirecting:
            self._redirecting.remove(form)
            del self._also[self._numbers.pop(form)][form]

    def _record(self, source_text: SourceText, known: Sequence[int]) -> int:
        """Add the text to the first source that has one of its addresses, or to a new source."""
        number = known[0] if known else len(self._sources) + 1
        if known:
            self._sources[number] = source_text.merge_into(self._sources[number])
        else:
            self._sources[number] = source_text.as_source(number)
            self._numbers[source_text.comparable] = number
        for form, url in source_text.addresses.items():
            others = len(self._numbers) - len(self._sources)
            if form not in self._numbers and source_text.fits(others):
                self._numbers[form] = number
                self._also.setdefault(number, {})[form] = url
                if form != source_text.comparable:
                    self._redirecting.add(form)
        return number

    def _source_at(self, number: int) -> Source:
        return replace(self._sources[number], also=tuple(self._also.get(number, {}).values()))

    def _store_text(self, source_text: SourceText) -> bool:
        """Store a text unless it is stored already; return whether it is stored."""
        if source_text.sha256 not in self._texts:
            if self._characters + len(source_text.text) > self._most_characters:
                return False
            self._texts[source_text.sha256] = source_text.text
            self._characters += len(source_text.text)
        return True
