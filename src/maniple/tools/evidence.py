"""Records what tools read in the evidence of their run, with the numbers for citations."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from maniple.evidence import Evidence, MemoryEvidence
from maniple.tools.run_context import SCOPE_KEY, configurable, thread_key

MAX_THREADS = 32
MAX_THREAD_CHARACTERS = 2_000_000


class ThreadEvidence:
    """The evidence of the `MAX_THREADS` threads that were used last, for a team in a foreign graph."""

    def __init__(self) -> None:
        self._threads: OrderedDict[str, MemoryEvidence] = OrderedDict()

    def of(self, thread_id: str) -> Evidence:
        """Return the evidence of a thread; empty for a thread that is new or was evicted."""
        found = self._threads.pop(thread_id, None) or MemoryEvidence(MAX_THREAD_CHARACTERS)
        self._threads[thread_id] = found
        if len(self._threads) > MAX_THREADS:
            self._threads.popitem(last=False)
        return found


@runtime_checkable
class EvidenceScope(Protocol):
    """The part of a run's scope that this module uses."""

    def evidence_of(self, thread_id: str) -> Evidence:
        """Return the evidence that a run on this thread records to."""
        ...


def current_evidence() -> Evidence | None:
    """Return the evidence of the current run; None outside of a run of the team."""
    scope = configurable().get(SCOPE_KEY)
    return scope.evidence_of(thread_key()) if isinstance(scope, EvidenceScope) else None


async def cited(hits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Record search hits; return each `{title, url, content, …}` with its source number as `cite`.

    Outside of a run nothing is recorded and no hit gets a number.
    """
    evidence = current_evidence()
    if evidence is None:
        return [dict(hit) for hit in hits]
    sources = [await evidence.add(hit["url"], hit["title"], "result", hit["content"]) for hit in hits]
    return [
        {**hit, "cite": source.number} if source.number else dict(hit)
        for hit, source in zip(hits, sources, strict=True)
    ]


async def source_line(url: str, title: str, text: str, *, asked: str = "") -> str:
    """Record that a page was read and return the line that names its source.

    `text` is the page's whole text, `asked` the address that led to `url`.
    """
    evidence = current_evidence()
    source = await evidence.add(url, title, "page", text, asked=asked) if evidence is not None else None
    return f"Source [{source.number}]: {url}" if source and source.number else f"Source: {url}"
