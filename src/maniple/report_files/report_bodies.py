"""The texts of reports as HTML for the page, which shows them in its own frame."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from maniple.evidence.record import Source
from maniple.report_document import render_report
from maniple.run_files.markup import image_targets
from maniple.run_files.pictures import FigureFinder, figure_address

_MAX_CONCURRENT = 2
_MAX_CHARACTERS = 8_000_000
"""Characters of all stored bodies with their Markdown."""


@dataclass(frozen=True, slots=True)
class _StoredBody:
    """A rendered body, with what it was made of besides the Markdown."""

    targets: Sequence[str]
    figures: frozenset[str]
    sources: Sequence[Source]
    html: str


class ReportBodies:
    """Renders the bodies of reports, at most two at a time, and stores the newest ones.

    A report of 100,000 characters takes some tenths of a second of the processor.
    """

    def __init__(self) -> None:
        self._stored = OrderedDict[tuple[str, str], _StoredBody]()
        self._size = 0
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    async def render(self, finder: FigureFinder, markdown: str) -> str:
        """Return the report of the finder's run as sanitised HTML: its title, if it has one, and its text.

        Figures have their addresses at the service, relative to its root.

        Raises:
            StoreError: the run's sources or artifacts cannot be read.
        """
        key = (finder.run.run_id, markdown)
        async with self._slots:
            stored = self._stored.get(key)
            targets = stored.targets if stored else await asyncio.to_thread(image_targets, markdown)
            figures = frozenset(await finder.find_all(targets))
            sources = await finder.store.evidence(finder.run.run_id).sources()
            if stored is None or (stored.figures, stored.sources) != (figures, sources):
                addresses = {path: figure_address(finder.run.run_id, path) for path in figures}
                html = await asyncio.to_thread(render_report, markdown, sources, addresses)
                stored = _StoredBody(targets, figures, sources, html)
            self._store(key, stored)
            return stored.html

    def _store(self, key: tuple[str, str], body: _StoredBody) -> None:
        """Store a body as the newest one, and forget the oldest ones beyond the limit."""
        if before := self._stored.pop(key, None):
            self._size -= _count(key, before)
        self._stored[key] = body
        self._size += _count(key, body)
        while self._size > _MAX_CHARACTERS:
            self._size -= _count(*self._stored.popitem(last=False))


def _count(key: tuple[str, str], body: _StoredBody) -> int:
    return len(key[1]) + len(body.html)
