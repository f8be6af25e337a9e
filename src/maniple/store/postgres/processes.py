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

from maniple.errors import StoreError, StoreInUse, StoreUnreachable
from maniple.store.postgres.contact import SILENT_PART
from maniple.store.postgres.database import PostgresDatabase, fetch_all, lock
from maniple.store.postgres.errors import from_postgres_error

BEATS_OF_LEASE = 5
"""How often a process beats within its lease."""
LEAST_SILENT_SECONDS = 2.0
"""A server that has been silent for a shorter time is only slow, however short the lease is."""
RECEIPT_SECONDS = 3_600
"""How long a receipt stays after the last moment at which its call may be tried again."""
_SWEEP_BEATS = 600
RECENT = (
    "greatest(processes.beat_at, pg_postmaster_start_time()) "
    "> clock_timestamp() - make_interval(secs => processes.lease_seconds)"
)
"""The condition that a row of `processes` is alive. The time of an outage of the server counts for nobody."""
IS_ALIVE = f"EXISTS (SELECT FROM processes WHERE processes.process = runs.process AND {RECENT})"
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


async def count_living(connection: AsyncConnection) -> int:
    """Return how many processes have the database open."""
    ((count,),) = await fetch_all(connection, f"SELECT count(*) FROM processes WHERE {RECENT}")
    return count


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
    where = f"is_server AND process <> %s AND {RECENT}"
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
    """Beat several times in each lease. A row that another process has deleted is stored again."""
    beats = _Beats(database)
    try:
        while True:
            await beats.beat()
            await asyncio.sleep(database.lease_seconds / BEATS_OF_LEASE)
    finally:
        await beats.close()


class _Beats:
    """The beats of a process, and what they find out about the server.

    They have a connection of their own: those of the pool may all be in use, or wait for a silent server.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._connection: AsyncConnection | None = None
        self._answered = 0
        self._silent_seconds = max(SILENT_PART * database.lease_seconds, LEAST_SILENT_SECONDS)

    async def beat(self) -> None:
        """Send a beat, and return when it is answered or has failed."""
        sent_at, contact = time.monotonic(), self._database.contact
        sending, is_silent = asyncio.create_task(self._send(), name="beat"), False
        try:
            while not (await asyncio.wait({sending}, timeout=1.0 if is_silent else self._silent_seconds))[0]:
                is_silent = True
                contact.report_silence(self._make_silence(sent_at))
            sending.result()
            contact.hear(sent_at)
            contact.refusal = None
            contact.report_answer()
        except (psycopg.Error, OSError) as error:
            # A server that is away drives the runs of nobody. One that is silent may be heard by others.
            if is_silent or isinstance(error, psycopg.errors.ConnectionTimeout):
                reason: StoreError = self._make_silence(sent_at)
                contact.report_silence(reason)
            else:
                contact.hear(sent_at)
                reason = from_postgres_error(error, self._database.name)
                if isinstance(reason, StoreUnreachable):
                    contact.report_failure(reason)
            contact.report_missed_beat(reason)
            _LOG.warning("This process could not report that it is alive: %s", reason)
            await self.close()
        finally:
            sending.cancel()
            await asyncio.wait({sending})

    async def _send(self) -> None:
        database = self._database
        self._connection = connection = self._connection or await database.connect(int(self._silent_seconds))
        with database.contact.using(connection):
            await connection.execute(_BEAT, _describe(database, server=False))
            if self._answered % _SWEEP_BEATS == 0:
                await sweep_receipts(connection, database.outage_seconds)
        self._answered += 1

    def _make_silence(self, sent_at: float) -> StoreUnreachable:
        seconds = time.monotonic() - sent_at
        return StoreUnreachable(
            f"{self._database.name} has not answered for {seconds:.1f} s. Look at the server and the network."
        )

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


async def sweep_receipts(connection: AsyncConnection, outage_seconds: float) -> None:
    """Delete receipts that no call can ask for any more, and processes that have long been dead."""
    await connection.execute("DELETE FROM processes WHERE beat_at < clock_timestamp() - interval '1 day'")
    await connection.execute(
        "DELETE FROM write_receipts WHERE at < clock_timestamp() - make_interval(secs => %s)",
        (RECEIPT_SECONDS + outage_seconds,),
    )
