"""What was searched in a run, kept so that nobody is asked the same twice."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from maniple.search.provider import SearchHit, SearchProvider

MAX_QUERIES = 512
"""Of all runs together; the longest unused is forgotten. With 5 hits each, some 6 MB."""
MAX_AGE_SECONDS = 3_600.0
"""In a graph that is not ours a run is told by its thread only, which may go on for days."""

_Key = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class _Entry:
    request: asyncio.Task[list[SearchHit]] | None
    """None once it has answered: a task keeps the context, so the run, that it was made in."""
    began_at: float
    waiters: int = 0
    hits: tuple[SearchHit, ...] = ()


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
            request = asyncio.create_task(self._provider.search(query, limit=limit))
            entry = self._entries[key] = _Entry(request, self._clock())
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_QUERIES:
            self._entries.popitem(last=False)
        if entry.request is None:
            return list(entry.hits)
        return await self._awaited(key, entry, entry.request)

    async def _awaited(
        self, key: _Key, entry: _Entry, request: asyncio.Task[list[SearchHit]]
    ) -> list[SearchHit]:
        entry.waiters += 1
        try:
            # The request is the others', too: who is cancelled only leaves.
            hits = await asyncio.shield(request)
        except BaseException:  # whatever it is passes; what is of no use must not stay
            entry.waiters -= 1
            await self._leave(key, entry, request)
            raise
        entry.waiters -= 1
        entry.request, entry.hits = None, tuple(hits)
        if not hits:
            self._forget(key, entry)
        return list(hits)

    async def _leave(self, key: _Key, entry: _Entry, request: asyncio.Task[list[SearchHit]]) -> None:
        """Forget a request that failed, and end one that nobody waits for any more."""
        if request.done():
            self._forget(key, entry)
        elif not entry.waiters:
            self._forget(key, entry)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)

    def _forget(self, key: _Key, entry: _Entry) -> None:
        if self._entries.get(key) is entry:
            del self._entries[key]
