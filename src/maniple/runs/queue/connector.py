"""Procrastinate on the connections of a store, patient while the server is away."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg_pool import AsyncConnectionPool

from maniple.errors import describe_error
from maniple.store.postgres.contact import AWAY_SECONDS
from maniple.store.postgres.database import (
    CONNECT_SECONDS,
    PAUSE_SECONDS,
    RECONNECT_SECONDS,
    PostgresDatabase,
)
from maniple.store.postgres.errors import is_passing, takes_no_writes
from maniple.store.waiting import WaitLimit

POOL_SIZE = 3
LISTEN_PAUSE_SECONDS = 1.0
"""The pause before one listens again; meanwhile the worker looks for jobs by itself."""
_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def _make_pool(**given: Any) -> AsyncConnectionPool:
    # Without `check`, which gave no connection after the server had crashed.
    return AsyncConnectionPool(**{name: value for name, value in given.items() if name != "check"})


class PatientConnector(PsycopgConnector):
    """Waits while the server is away or takes no writes.

    Procrastinate's worker would end there, and break off what it drives.

    It waits as long as the runs do: `limit` is theirs, and ends when the program stops.
    """

    def __init__(self, limit: WaitLimit, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]
        self._limit = limit

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        begun = time.monotonic()
        while True:
            try:
                return await ask()
            except ConnectorException as error:
                cause = error.__cause__
                if not isinstance(cause, Exception) or not (is_passing(cause) or takes_no_writes(cause)):
                    raise
                if time.monotonic() > begun + max(self._limit.seconds, AWAY_SECONDS):
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """Execute a query, patiently."""
        ask = super().execute_query_async
        await self._patiently(lambda: ask(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        """Return the only row of a query, patiently."""
        ask = super().execute_query_one_async
        return await self._patiently(lambda: ask(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        """Return all rows of a query, patiently."""
        ask = super().execute_query_all_async
        return await self._patiently(lambda: ask(query, **arguments))

    async def listen_notify(self, on_notification: Any, channels: Any) -> None:
        """Hear of new jobs, again after each loss of the connection."""
        while True:
            try:
                await super().listen_notify(on_notification, channels)
            except ConnectorException as error:
                _LOG.warning("Bells of new jobs are not heard: %s", describe_error(error))
            await asyncio.sleep(LISTEN_PAUSE_SECONDS)


@asynccontextmanager
async def open_procrastinate(database: PostgresDatabase, limit: WaitLimit) -> AsyncGenerator[App]:
    """Open an app of Procrastinate whose connections the fences know as those of `database`."""
    connector = PatientConnector(
        limit,
        pool_factory=_make_pool,
        conninfo=database.url,
        min_size=POOL_SIZE,
        max_size=POOL_SIZE,
        timeout=AWAY_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        kwargs={"connect_timeout": CONNECT_SECONDS},
        configure=database.configure,
        name="procrastinate",
    )
    app = App(connector=connector)
    async with app.open_async():
        yield app
