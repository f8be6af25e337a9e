"""What was searched in a run, kept so that nobody is asked the same twice."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from maniple.search.provider import SearchHit, SearchProvider

MAX_QUERIES = 512
"""Of all runs together; the longest unused is forgotten. With 5 hits each, some 5 MB."""
MAX_AGE_SECONDS = 3_600.0
"""In a graph that is not ours a run is told by its thread only, which may go on for days."""

_Key = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class _Entry:
    task: asyncio.Task[list[SearchHit]]
    began_at: float
    waiters: int = 0


class RunCache:
    """Remembers the results of each run, which `run_key` names; "" for none, whose results are not kept.

    Two who ask the same at the same time share one request. Failures and empty results are not kept.
    """

    def __init__(
        self,
        provider: SearchProvider,
        run_key: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._run_key = run_key
        self._clock = clock
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        run = self._run_key()
        if not run:
            return await self._provider.search(query, limit=limit)
        key = (run, " ".join(query.split()).casefold(), limit)
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.began_at > MAX_AGE_SECONDS:
            task = asyncio.create_task(self._provider.search(query, limit=limit))
            entry = self._entries[key] = _Entry(task, self._clock())
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_QUERIES:
            self._entries.popitem(last=False)
        entry.waiters += 1
        keeps = False
        try:
            # The request is the others', too: who is cancelled only leaves.
            hits = list(await asyncio.shield(entry.task))
            keeps = bool(hits)
        finally:
            entry.waiters -= 1
            await self._left(key, entry, keeps=keeps)
        return hits

    async def _left(self, key: _Key, entry: _Entry, *, keeps: bool) -> None:
        """Forget what is of no use, and end a request that nobody waits for any more."""
        if keeps or (entry.waiters and not entry.task.done()):
            return
        if self._entries.get(key) is entry:
            del self._entries[key]
        if not entry.task.done():
            entry.task.cancel()
            await asyncio.gather(entry.task, return_exceptions=True)
