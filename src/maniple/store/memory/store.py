"""The store without a file: everything is gone when it is closed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from maniple.evidence import Evidence
from maniple.store.files import ArtifactFiles
from maniple.store.memory.content import Content
from maniple.store.memory.conversations import MemoryRuns, MemoryThreads
from maniple.store.memory.evidence import MemoryRunEvidence
from maniple.store.memory.holdings import MemoryArtifacts, MemoryKeys
from maniple.store.memory.logs import MemoryEvents, MemoryLedger
from maniple.store.serde import serializer


class MemoryCheckpoints:
    """See `protocols.Checkpoints`. Dicts keep the order of arrival, so ids are never compared."""

    def __init__(self, saver: InMemorySaver) -> None:
        self._saver = saver

    async def prune(self, thread_id: str) -> None:
        newest = [*self._saver.storage.get(thread_id, {}).get("", {})][-1:]
        if newest:
            self._keep(thread_id, lambda namespace, name: namespace == "" and name == newest[0])

    async def rollback(self, thread_id: str, checkpoint_id: str | None) -> None:
        if checkpoint_id is None:
            await self._saver.adelete_thread(thread_id)
            return
        names = [*self._saver.storage.get(thread_id, {}).get("", {})]
        if checkpoint_id in names:
            newer = set(names[names.index(checkpoint_id) + 1 :])
            # Within a process ids rise with time, so they also tell which of a nested graph are newer.
            self._keep(thread_id, lambda space, name: name <= checkpoint_id if space else name not in newer)

    def _keep(self, thread_id: str, wanted: Callable[[str, str], bool]) -> None:
        saver = self._saver
        for namespace, kept in saver.storage[thread_id].items():
            for name in [name for name in kept if not wanted(namespace, name)]:
                del kept[name]
                saver.writes.pop((thread_id, namespace, name), None)
        used = {
            (thread_id, namespace, channel, version)
            for namespace, kept in saver.storage[thread_id].items()
            for checkpoint, _, _ in kept.values()
            for channel, version in saver.serde.loads_typed(checkpoint)["channel_versions"].items()
        }
        for key in [key for key in saver.blobs if key[0] == thread_id and key not in used]:
            del saver.blobs[key]


class MemoryStore:
    """See `protocols.Store`."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self.process = content.process
        self.threads = MemoryThreads(content)
        self.runs = MemoryRuns(content)
        self.events = MemoryEvents(content)
        self.ledger = MemoryLedger(content)
        self.artifacts = MemoryArtifacts(content)
        self.keys = MemoryKeys(content)
        self.checkpoints = MemoryCheckpoints(content.saver)
        self.checkpointer: BaseCheckpointSaver = content.saver

    def evidence(self, run_id: str) -> Evidence:
        return MemoryRunEvidence(self._content, run_id)

    async def try_out(self) -> None:
        """Memory is read and written as long as there is a process."""

    async def check(self) -> list[str]:
        artifacts = [(one.artifact_id, one.size) for one in self._content.artifacts.values()]
        missing = await self._content.files.missing(artifacts)
        return [f"The content of artifact {name} is gone or was changed." for name in missing]

    async def vacuum(self) -> None:
        """Nothing is unused."""


@asynccontextmanager
async def open_memory(artifacts: Path) -> AsyncIterator[MemoryStore]:
    """Open an empty store; on leaving, its artifacts' contents are deleted."""
    content = Content(ArtifactFiles(artifacts), InMemorySaver(serde=serializer()))
    try:
        yield MemoryStore(content)
    finally:
        await content.files.remove([*content.artifacts])
