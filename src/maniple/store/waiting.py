"""Writes of runs that wait while their database cannot be used, and go on by themselves.

What runs inside of `waiting` waits; anything else, such as a request, fails at once with the reason.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from maniple.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnreachable

FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 5.0
"""The first and the longest pause between two writes that try whether the database can be used again."""
GROWTH = 1.5
_AWAY = (StoreBusy, StoreFull, StoreReadOnly, StoreUnreachable)

T = TypeVar("T")


class WaitLimit:
    """How long the writes of an engine wait; none waits any more after `end`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def end(self) -> None:
        """Let the writes that wait fail: the program stops."""
        self.seconds = 0.0


class StoreWait:
    """The wait of those who write together, such as one run. `limit` is shared."""

    def __init__(self, limit: WaitLimit) -> None:
        self.limit = limit

    def begin(self, since: float, failure: StoreError) -> None:
        """Take note that a write waits for a database that has been away since `since` (Unix seconds)."""

    async def end(self) -> None:
        """Take note that a write waits no longer."""


_WAIT: ContextVar[StoreWait | None] = ContextVar("store_wait", default=None)


@contextmanager
def waiting(wait: StoreWait) -> Generator[None]:
    """Let the writes of this task, and of those that it starts, wait."""
    token = _WAIT.set(wait)
    try:
        yield
    finally:
        _WAIT.reset(token)


class WriteQueue:
    """The writes that wait for one database. One at a time tries whether it can be used."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._failure: StoreError | None = None
        self._since = 0.0

    async def write(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `attempt`, which is tried again as long as the task waits.

        Raises the last `StoreError` when it has waited too long, and any other error at once.
        """
        wait = _WAIT.get()
        if wait is None or wait.limit.seconds <= 0:
            return await self._try(attempt)
        failure = self._failure
        if failure is None:
            try:
                return await self._try(attempt)
            except _AWAY as error:
                failure = error
        wait.begin(self._since, failure)
        try:
            async with self._lock:
                return await self._try_again(attempt, wait.limit)
        finally:
            await wait.end()

    async def _try_again(self, attempt: Callable[[], Awaitable[T]], limit: WaitLimit) -> T:
        pause = FIRST_PAUSE_SECONDS
        while True:
            if self._failure is not None:
                if limit.seconds <= 0:
                    raise self._failure  # the program stops: each try of a locked file would take seconds
                await asyncio.sleep(pause)
                pause = min(pause * GROWTH, MAX_PAUSE_SECONDS)
            try:
                return await self._try(attempt)
            except _AWAY:
                if time.time() >= self._since + limit.seconds:
                    raise

    async def _try(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            result = await attempt()
        except _AWAY as error:
            self._since = time.time() if self._failure is None else self._since
            self._failure = error
            raise
        except StoreError:
            self._failure = None  # the database has answered
            raise
        self._failure = None
        return result
