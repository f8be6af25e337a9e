"""Turns on one thread follow one another."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ThreadTurns:
    """One run at a time on each thread, first come first."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._holders: Counter[str] = Counter()

    def is_taken(self, thread_id: str) -> bool:
        """Whether a run works on the thread or waits for it."""
        return thread_id in self._locks

    @asynccontextmanager
    async def take(self, thread_id: str) -> AsyncIterator[None]:
        """Wait for the thread's turn and keep it."""
        lock = self._locks.setdefault(thread_id, asyncio.Lock())
        self._holders[thread_id] += 1
        try:
            async with lock:
                yield
        finally:
            self._holders[thread_id] -= 1
            if not self._holders[thread_id]:
                del self._holders[thread_id], self._locks[thread_id]
