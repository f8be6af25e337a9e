"""What tools read is recorded in the evidence of their run, under the number by which it is cited."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from maniple.evidence import Evidence, MemoryEvidence, Source
from maniple.tools.scope import configurable, thread_key

EVIDENCE_KEY = "maniple_evidence"
"""Where a run's record stands in its `configurable`; like the scope it is never stored in checkpoints."""
THREADS = 32
THREAD_CHARACTERS = 2_000_000


class ThreadEvidence:
    """Records of threads that no engine of ours drives, as in a foreign graph: of the newest `THREADS`."""

    def __init__(self) -> None:
        self._threads: OrderedDict[str, MemoryEvidence] = OrderedDict()

    def of(self, thread: str) -> Evidence:
        """Return the record of a thread, an empty one for a thread that is new or was forgotten."""
        found = self._threads.pop(thread, None) or MemoryEvidence(THREAD_CHARACTERS)
        self._threads[thread] = found
        if len(self._threads) > THREADS:
            self._threads.popitem(last=False)
        return found


# The one thing of the house that belongs to nobody: in a foreign graph the tools that write and the reporter
# that reads have nothing in common but the thread, and no scope of ours reaches them.
_FOREIGN = ThreadEvidence()


def current_evidence() -> Evidence:
    """Return the record of the run that the caller works in; in a foreign graph, that of its thread."""
    given = configurable().get(EVIDENCE_KEY)
    return given if given is not None else _FOREIGN.of(thread_key())


async def cited(hits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Record what a search found; return each `{title, url, content, …}` with its number as `cite`.

    Outside of a run nothing is recorded, and nothing has a number.
    """
    if not configurable():
        return [dict(hit) for hit in hits]
    evidence = current_evidence()
    sources = [await evidence.add(hit["url"], hit["title"], "result", hit["content"]) for hit in hits]
    return [
        {**hit, "cite": source.number} if source.number else dict(hit)
        for hit, source in zip(hits, sources, strict=True)
    ]


async def source_line(url: str, title: str, text: str, *, asked: str = "") -> str:
    """Record that a page was read, `text` being all of it; return the line that says where it came from.

    `asked` is the address that led there.
    """
    source: Source | None = None
    if configurable():
        source = await current_evidence().add(url, title, "page", text, asked=asked)
    return f"Source [{source.number}]: {url}" if source and source.number else f"Source: {url}"
