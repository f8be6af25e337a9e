"""The processes that have a database open, and which of them are alive."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg import AsyncConnection

from maniple.errors import StoreError, StoreInUse
from maniple.store.postgres.database import PostgresDatabase, fetch_all, lock
from maniple.store.postgres.errors import from_postgres_error

BEATS_OF_LEASE = 5
"""How often a process beats within its lease."""
RECEIPT_SECONDS = 3_600
_SWEEP_BEATS = 600
# The time in which the server was away counts for nobody.
_RECENT = (
    "greatest(processes.beat_at, pg_postmaster_start_time()) "
    "> clock_timestamp() - make_interval(secs => processes.lease_seconds)"
)
IS_ALIVE = f"EXISTS (SELECT FROM processes WHERE processes.process = runs.process AND {_RECENT})"
"""The condition that the process of a row of `runs` is alive."""
_BEAT = (
    b"INSERT INTO processes (process, is_server, host, pid, lease_seconds) VALUES (%s, %s, %s, %s, %s) "
    b"ON CONFLICT (process) DO UPDATE SET beat_at = clock_timestamp()"
)
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def registered(database: PostgresDatabase, *, server: bool) -> AsyncGenerator[None]:
    """Have this process count as alive, until the end of the block.

    As a server it waits for one that was killed to count as dead. Raises `StoreInUse` if another server is
    alive.
    """
    await _register_patiently(database, server=server)
    beating = asyncio.create_task(_beat(database), name="process beat")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})
        with suppress(StoreError):
            await database.execute("DELETE FROM processes WHERE process = %s", (database.process,))


async def _register_patiently(database: PostgresDatabase, *, server: bool) -> None:
    begun = time.monotonic()
    while (other := await _register(database, server=server)) is not None:
        host, pid, lease_seconds = other
        if time.monotonic() > begun + lease_seconds * (1 + 1 / BEATS_OF_LEASE):
            raise StoreInUse(
                f"Another server (pid {pid} on {host}) has {database.name} open. Stop it, or set store.url "
                "to another database."
            )
        await asyncio.sleep(database.lease_seconds / BEATS_OF_LEASE / 4)


async def _register(database: PostgresDatabase, *, server: bool) -> tuple[str, int, float] | None:
    """Store this process as alive; as a server, return host, pid and lease of another living one instead."""
    where = f"is_server AND process <> %s AND {_RECENT}"
    others = f"SELECT host, pid, lease_seconds FROM processes WHERE {where} LIMIT 1"

    async def register(connection: AsyncConnection) -> tuple[str, int, float] | None:
        if server:
            await lock(connection, "server", "")
            if rows := await fetch_all(connection, others, (database.process,)):
                return rows[0][0], rows[0][1], rows[0][2]
        await connection.execute(_BEAT, _describe(database, server=server))
        return None

    return await database.repeat(register)


def _describe(database: PostgresDatabase, *, server: bool) -> Sequence[object]:
    """Return the values of the row of this process."""
    return (database.process, server, socket.gethostname(), os.getpid(), database.lease_seconds)


async def _beat(database: PostgresDatabase) -> None:
    """Beat several times in each lease. A row that another process has deleted is stored again.

    On a connection of its own: those of the pool may all be in use, or wait for a server that is silent.
    """
    connection, beats = None, 0
    try:
        while True:
            sent_at = time.monotonic()
            try:
                connection = connection or await database.connect()
                await connection.execute(_BEAT, _describe(database, server=False))
                if beats % _SWEEP_BEATS == 0:
                    await _sweep(connection)
                beats += 1
                database.hear(sent_at)
            except (psycopg.Error, OSError) as error:
                # A server that is away drives the runs of nobody. One that is silent may be heard by others.
                if not isinstance(error, psycopg.errors.ConnectionTimeout):
                    database.hear(sent_at)
                reason = from_postgres_error(error, database.name)
                _LOG.warning("This process could not report that it is alive: %s", reason)
                connection = await _close(connection)
            await asyncio.sleep(database.lease_seconds / BEATS_OF_LEASE)
    finally:
        await _close(connection)


async def _close(connection: AsyncConnection | None) -> None:
    if connection is not None:
        await connection.close()


async def _sweep(connection: AsyncConnection) -> None:
    """Delete processes that have long been dead, and receipts that no call can ask for any more."""
    await connection.execute("DELETE FROM processes WHERE beat_at < clock_timestamp() - interval '1 day'")
    older = f"at < clock_timestamp() - interval '{RECEIPT_SECONDS} s'"
    await connection.execute(f"DELETE FROM write_receipts WHERE {older}".encode())
