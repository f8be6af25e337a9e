"""What runs have read."""

from collections.abc import Sequence

from maniple.errors import StoreError
from maniple.evidence import MemoryEvidence, Source, SourceKind
from maniple.store.memory.content import Content


class MemoryRunEvidence:
    """See `maniple.evidence.Evidence`; of one run. `add` raises `StoreError` when the run was deleted."""

    def __init__(self, content: Content, run_id: str) -> None:
        self._content = content
        self._run_id = run_id

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        if self._run_id not in self._content.runs:
            raise StoreError(f"Run {self._run_id} was deleted.")
        kept = self._content.evidence.setdefault(self._run_id, MemoryEvidence())
        return await kept.add(url, title, kind, text, asked=asked)

    async def sources(self) -> Sequence[Source]:
        kept = self._content.evidence.get(self._run_id)
        return await kept.sources() if kept else []

    async def texts(self, number: int) -> Sequence[str]:
        kept = self._content.evidence.get(self._run_id)
        return await kept.texts(number) if kept else []
