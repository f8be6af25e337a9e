"""The full texts of the pages that a run has read, kept as artifacts for its clients."""

import hashlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from maniple.errors import FileError, StoreError
from maniple.events import ArtifactCreated, read_event
from maniple.evidence import Source
from maniple.runs.active import ActiveRun
from maniple.runs.outputs import made
from maniple.store import Artifact, Store, read_event_pages

READERS = frozenset({"crawl_tool", "browser"})
"""The tools after which there may be a new one."""
MOST_PAGES = 100
NAME_CHARACTERS = 80
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Pages:
    """Keeps the pages of one run, each text of an address once, also when the run went on after a crash.

    What was kept right before a crash, and not told of any more, is told of then.
    """

    store: Store
    active: ActiveRun
    _seen: set[tuple[int, str]] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)
    _log_was_read: bool = False

    async def read_by(self, tool_name: str) -> AsyncIterator[ArtifactCreated]:
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
                artifact = await self._kept(source, content) if content is not None else None
                if artifact is not None:
                    yield made(artifact)
        except (FileError, StoreError) as error:
            _LOG.warning("Not every page that the run read could be kept: %s", error)

    async def _content(self, source: Source) -> bytes | None:
        """Return the page under its address; None for one whose text found no room in the record."""
        for text in reversed(await self.store.evidence(self.active.record.run_id).texts(source.number)):
            encoded = text.encode()
            if hashlib.sha256(encoded).hexdigest() == source.sha256:
                return f"Source: {source.url}\n\n".encode() + encoded
        return None

    async def _kept(self, source: Source, content: bytes) -> Artifact | None:
        """Keep a page that is not kept yet; return it, or None for one that was told of before."""
        run, digest = self.active.record, hashlib.sha256(content).hexdigest()
        same = [one for one in await self.store.artifacts.list_by_run(run.run_id) if one.sha256 == digest]
        if not same:
            same.append(await self.store.artifacts.add(run, file_name(source), "text/markdown", content))
        elif any([await self._was_told(one) for one in same]):
            return None
        self._told.add(same[0].artifact_id)
        return same[0]

    async def _was_told(self, artifact: Artifact) -> bool:
        """Say whether clients have heard of it, now or in what the run told before it was taken up again."""
        if artifact.artifact_id not in self._told and not self._log_was_read:
            async for page in read_event_pages(self.store.events, self.active.record.run_id):
                events = [read_event(one.type, one.data) for one in page if one.type == "artifact"]
                self._told |= {one.artifact_id for one in events if isinstance(one, ArtifactCreated)}
            self._log_was_read = True
        return artifact.artifact_id in self._told


def file_name(source: Source) -> str:
    """Return what a page is called as a file: by its title, or its host when it has none."""
    title = source.title if source.title != source.url else urlsplit(source.url).hostname or "page"
    return f"{title.replace('/', '-')[:NAME_CHARACTERS].strip(' .')}.md"
