"""Evidence that masks secrets."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from maniple.evidence.noted_findings import NotedFinding
from maniple.evidence.record import Evidence, PageAttempt, Source, SourceKind, UnreadPage
from maniple.reading.publication import Publication
from maniple.redaction import Redactor


class RedactedEvidence:
    """Masks secrets in everything that is added to `evidence`; see `record.Evidence`."""

    def __init__(self, evidence: Evidence, redactor: Redactor) -> None:
        self._evidence = evidence
        self._redactor = redactor

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        url, title, text, asked = await asyncio.to_thread(self._redactor.value, (url, title, text, asked))
        return await self._evidence.add(url, title, kind, text, asked=asked)

    async def describe(self, number: int, publication: Publication) -> None:
        shown = (publication.author, publication.publisher)
        author, publisher = await asyncio.to_thread(self._redactor.value, shown)
        await self._evidence.describe(number, Publication(publication.published, author, publisher))

    async def add_unread(self, url: str, reason: str) -> None:
        url, reason = await asyncio.to_thread(self._redactor.value, (url, reason))
        await self._evidence.add_unread(url, reason)

    async def unread(self) -> Sequence[UnreadPage]:
        return await self._evidence.unread()

    async def add_attempt(self, step: int, url: str) -> None:
        await self._evidence.add_attempt(step, await asyncio.to_thread(self._redactor.value, url))

    async def attempts(self, step: int) -> Sequence[PageAttempt]:
        return await self._evidence.attempts(step)

    async def add_finding(self, finding: NotedFinding) -> bool:
        statement = await asyncio.to_thread(self._redactor.value, finding.statement)
        return await self._evidence.add_finding(replace(finding, statement=statement))

    async def findings(self) -> Sequence[NotedFinding]:
        return await self._evidence.findings()

    async def sources(self) -> Sequence[Source]:
        return await self._evidence.sources()

    async def texts(self, number: int) -> Sequence[str]:
        return await self._evidence.texts(number)
