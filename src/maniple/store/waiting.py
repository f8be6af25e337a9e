"""Calls of runs that wait while their database cannot be used, and go on by themselves.

What runs inside of `waiting` waits; anything else, such as a request, fails at once with the reason.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from maniple.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnreachable

FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 5.0
"""The first and the longest pause between two calls that try whether the database can be used again."""
GROWTH = 1.5
_AWAY = (StoreBusy, StoreFull, StoreReadOnly, StoreUnreachable)

T = TypeVar("T")


class WaitLimit:
    """How long the calls of an engine wait; none waits any more after `end`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def end(self) -> None:
        """Let the calls that wait fail: the program stops."""
        self.seconds = 0.0


class StoreWait:
    """The wait of those who call together, such as one run. `limit` is shared."""

    def __init__(self, limit: WaitLimit) -> None:
        self.limit = limit

    def begin(self, since: float, failure: StoreError) -> None:
        """Take note that a call waits for a database that has been away since `since` (Unix seconds)."""

    async def end(self) -> None:
        """Take note that a call waits no longer."""


_WAIT: ContextVar[StoreWait | None] = ContextVar("store_wait", default=None)


@contextmanager
def waiting(wait: StoreWait) -> Generator[None]:
    """Let the calls of this task, and of those that it starts, wait."""
    token = _WAIT.set(wait)
    try:
        yield
    finally:
        _WAIT.reset(token)


class CallQueue:
    """The calls that wait for one database. One at a time tries whether it can be used.

    Of a file only those that write come here, of a server those that read, too.
    """

    def __init__(self) -> None:
        self.failure: StoreError | None = None
        """Why the last call failed; None if the database has answered it."""
        self._lock = asyncio.Lock()
        self._answered = asyncio.Event()
        self._since = 0.0

    async def call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `attempt`, which is tried again as long as the task waits.

        Raises the last `StoreError` when it has waited too long, and any other error at once.
        """
        wait = _WAIT.get()
        if wait is None or wait.limit.seconds <= 0:
            return await self._try(attempt)
        failure = self.failure
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
            if self.failure is not None:
                if limit.seconds <= 0:
                    raise self.failure  # the program stops: each try of a locked file would take seconds
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._answered.wait()
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
            self._since = time.time() if self.failure is None else self._since
            self.failure = error
            self._answered.clear()
            raise
        except StoreError:
            self.report_answer()
            raise
        self.report_answer()
        return result

    def report_answer(self) -> None:
        """Take note that the database answers: who waits tries again now."""
        self.failure = None
        self._answered.set()
