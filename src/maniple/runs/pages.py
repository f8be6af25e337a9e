"""The full texts of the pages that a run has read, kept as artifacts for its clients."""

import hashlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from maniple.errors import FileError, StoreError
from maniple.events import ArtifactMade
from maniple.evidence import Source
from maniple.runs.active import ActiveRun
from maniple.runs.outputs import made
from maniple.store import Store

READERS = frozenset({"crawl_tool", "browser"})
"""The tools after which there may be a new one."""
MOST_PAGES = 100
NAME_CHARACTERS = 80
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Pages:
    """Keeps the pages of one run, each text of an address once, also when the run went on after a crash."""

    store: Store
    active: ActiveRun
    _seen: set[tuple[int, str]] = field(default_factory=set)

    async def read_by(self, tool_name: str) -> AsyncIterator[ArtifactMade]:
        """Keep what is new after a call and tell of it. No run depends on it: failures are logged."""
        if tool_name not in READERS or self.active.suspended:
            return
        try:
            sources = await self.store.evidence(self.active.record.run_id).sources()
            read = [
                one for one in sources if one.kind == "page" and (one.number, one.sha256) not in self._seen
            ]
            for source in read[: max(MOST_PAGES - len(self._seen), 0)]:
                self._seen.add((source.number, source.sha256))
                content = await self._content(source)
                if content is not None and not await self._is_kept(content):
                    name, run = file_name(source), self.active.record
                    yield made(await self.store.artifacts.add(run, name, "text/markdown", content))
        except (FileError, StoreError) as error:
            _LOG.warning("Not every page that the run read could be kept: %s", error)

    async def _content(self, source: Source) -> bytes | None:
        """Return the page under its address; None for one whose text found no room in the record."""
        for text in reversed(await self.store.evidence(self.active.record.run_id).texts(source.number)):
            encoded = text.encode()
            if hashlib.sha256(encoded).hexdigest() == source.sha256:
                return f"Source: {source.url}\n\n".encode() + encoded
        return None

    async def _is_kept(self, content: bytes) -> bool:
        digest = hashlib.sha256(content).hexdigest()
        kept = await self.store.artifacts.of_run(self.active.record.run_id)
        return any(artifact.sha256 == digest for artifact in kept)


def file_name(source: Source) -> str:
    """Return what a page is called as a file: by its title, or its host when it has none."""
    title = source.title if source.title != source.url else urlsplit(source.url).hostname or "page"
    return f"{title.replace('/', '-')[:NAME_CHARACTERS].strip(' .')}.md"
