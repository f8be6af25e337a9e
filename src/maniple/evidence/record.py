"""The record of what a run has read. The citations of its report are checked against it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from maniple.evidence.noted_findings import NotedFinding
from maniple.reading.publication import Publication

SourceKind = Literal["result", "page"]
"""How the run got a source: as a search result, or by fetching the page."""


@dataclass(frozen=True, slots=True)
class Source:
    """An address that a run has found or read.

    `number` counts from 1 in the order of first appearance on the thread; reports cite it as `[number]`. A
    run starts with the sources of the thread's earlier runs. `url` is absolute and has no fragment; spellings
    are compared by `comparable_url`. `retrieved_at` is Unix time in seconds. `sha256` is the hex digest of
    the newest text that was read there (UTF-8); once the page was fetched, it is that of the page.
    """

    number: int
    url: str
    title: str
    kind: SourceKind
    retrieved_at: float
    sha256: str
    also: tuple[str, ...] = ()
    """Its other addresses: those that redirected to it, and those that it redirected to."""
    published: str = ""
    """When the page was published, as it says itself: `YYYY-MM-DD`, `YYYY-MM` or `YYYY`; else ""."""
    author: str = ""
    publisher: str = ""
    inherited: bool = False
    """Whether only earlier runs of the thread have read it."""


@dataclass(frozen=True, slots=True)
class UnreadPage:
    """An address that a run tried to read in vain. It is no source and supports nothing."""

    url: str
    """Absolute, without secrets."""
    reason: str
    """A sentence: the error, or what the page showed instead of its content."""
    tried_at: float
    """Unix time in seconds of the last attempt."""


@dataclass(frozen=True, slots=True)
class PageAttempt:
    """A page that a step of the plan tried to read."""

    url: str
    """The requested address, without secrets."""
    reason: str = ""
    """Why it could not be read; "" for a page that was read, then or at another time."""


class Evidence(Protocol):
    """The sources and texts that one run has read. Safe to use from concurrent tool calls."""

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        """Record that `text` was read at `url`. `asked` is the requested address, if it redirected to `url`.

        The same address keeps its number, and both ends of a redirect share one. If both already have
        numbers, the text is added to both. An address that redirected before and is now a page gets its own
        number. A page replaces the kind and title of a search result, never the reverse; texts accumulate. A
        text beyond the limits of the record is cut or left out. A source beyond them gets the number 0 and
        cannot be cited.
        """
        ...

    async def describe(self, number: int, publication: Publication) -> None:
        """Record what a source says about its publication. What is empty there leaves what is known.

        An unknown number is ignored.
        """
        ...

    async def add_unread(self, url: str, reason: str) -> None:
        """Record that a page could not be read. A later attempt replaces an earlier one."""
        ...

    async def unread(self) -> Sequence[UnreadPage]:
        """Return the pages that could not be read, and were not read at another time, oldest first."""
        ...

    async def add_attempt(self, step: int, url: str) -> None:
        """Record that a step of the plan, by its id, tried to read a page."""
        ...

    async def attempts(self, step: int) -> Sequence[PageAttempt]:
        """Return the pages that a step tried to read, each once, in order."""
        ...

    async def add_finding(self, finding: NotedFinding) -> bool:
        """Record a finding and the time; return whether there was room for it, and its source is known.

        The same statement about the same source replaces the earlier one. Raises `ValueError` for one beyond
        the limits of the record.
        """
        ...

    async def findings(self) -> Sequence[NotedFinding]:
        """Return all findings, oldest first, those of the thread's earlier runs before the run's own."""
        ...

    async def sources(self) -> Sequence[Source]:
        """Return all sources, ordered by number."""
        ...

    async def texts(self, number: int) -> Sequence[str]:
        """Return the texts of a source, oldest first; empty for an unknown number."""
        ...


async def find_newest_text(evidence: Evidence, source: Source) -> str | None:
    """Return the text with the digest `source.sha256`; None if it did not fit into the record."""
    for text in reversed(await evidence.texts(source.number)):
        if hashlib.sha256(text.encode()).hexdigest() == source.sha256:
            return text
    return None
