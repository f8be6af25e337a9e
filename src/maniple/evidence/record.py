"""The record of what a run has read, which its report is checked against."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

SourceKind = Literal["result", "page"]
"""How a source was met: found by a search, or fetched."""


@dataclass(frozen=True, slots=True)
class Source:
    """One address that a run has met.

    `number` counts from 1 in the order of first appearance on the thread, and is what reports cite:
    `[number]`. A run begins with the sources of the runs before it. `url` is absolute and has no fragment;
    two spellings of one address are compared by `comparable_url`. `retrieved_at` is Unix time in seconds,
    and `sha256` the hex digest of the newest text that was read there (UTF-8), once it was fetched that of
    the page.
    """

    number: int
    url: str
    title: str
    kind: SourceKind
    retrieved_at: float
    sha256: str
    also: tuple[str, ...] = ()
    """Other addresses of it: those that redirected there, and where it redirected to."""
    inherited: bool = False
    """Whether only an earlier run of the thread has read it."""


class Evidence(Protocol):
    """What one run has read. Safe to use from concurrent tool calls."""

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        """Record that `text` was read at `url`, to which `asked` led where another address was asked for.

        The same address keeps its number, and the two ends of a redirect have one. Where both had numbers
        before, the text counts for both; what redirected before and now is a page of its own gets its own.
        A page takes the place of a search result's standing and title, never the other way round; the texts
        add up. Past the record's bounds a text is cut or left out, and an address that finds no room is
        answered with the number 0: it cannot be cited.
        """
        ...

    async def sources(self) -> Sequence[Source]:
        """Return every source, by number."""
        ...

    async def texts(self, number: int) -> Sequence[str]:
        """Return all that was read at one source, oldest first; nothing for a number that there is not."""
        ...


async def find_newest_text(evidence: Evidence, source: Source) -> str | None:
    """Return the text that `source.sha256` belongs to; None if it did not fit into the record."""
    for text in reversed(await evidence.texts(source.number)):
        if hashlib.sha256(text.encode()).hexdigest() == source.sha256:
            return text
    return None
