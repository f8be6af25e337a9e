"""Procrastinate on the connections of a store, patient while the server is away."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg_pool import AsyncConnectionPool

from maniple.store.postgres.database import (
    CONNECT_SECONDS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    PostgresDatabase,
)
from maniple.store.postgres.errors import is_passing

POOL_SIZE = 3
T = TypeVar("T")


def _make_pool(**given: Any) -> AsyncConnectionPool:
    # Without `check`, which gave no connection after the server had crashed.
    return AsyncConnectionPool(**{name: value for name, value in given.items() if name != "check"})


class PatientConnector(PsycopgConnector):
    """Waits while the server is away, where Procrastinate's worker would end and break off what it drives."""

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await ask()
            except ConnectorException as error:
                cause = error.__cause__
                if not isinstance(cause, Exception) or not is_passing(cause) or time.monotonic() > deadline:
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
        ask = super().listen_notify
        await self._patiently(lambda: ask(on_notification, channels))


@asynccontextmanager
async def open_procrastinate(database: PostgresDatabase) -> AsyncGenerator[App]:
    """Open an app of Procrastinate whose connections the fences know as those of `database`."""
    connector = PatientConnector(
        pool_factory=_make_pool,
        conninfo=database.url,
        min_size=POOL_SIZE,
        max_size=POOL_SIZE,
        kwargs={"connect_timeout": CONNECT_SECONDS},
        configure=database.configure,
        name="procrastinate",
    )
    app = App(connector=connector)
    async with app.open_async():
        yield app
