"""A pool of connections to PostgreSQL, on which calls survive a server that restarts or is away."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrDumperUnknown
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from maniple.errors import StoreError, StoreUnreachable
from maniple.store.executors import run_to_completion
from maniple.store.postgres.contact import LEAST_SECONDS, PATIENCE_SECONDS, ServerContact
from maniple.store.postgres.errors import from_postgres_error, is_passing
from maniple.store.waiting import CallQueue

SCHEMA = "maniple"
"""The schema of the database that holds every table."""
PROCESS_VARIABLE = "maniple.process"
APPLICATION_PREFIX = "maniple "
"""With the process behind it, the name of its connections in `pg_stat_activity`."""
"""The variable of each connection that the fences compare with `runs.process`."""
LEASE_SECONDS = 5.0
"""A process that has not beaten for so long is dead; the default of `runs.lease_seconds`."""
PAUSE_SECONDS = 0.2
"""The pause between two tries of one call."""
CONNECT_SECONDS = 10
RECONNECT_SECONDS = 2.0
"""How long a pool tries by itself to replace a connection. Its pauses would grow with the outage; who waits
for a connection lets it try again."""
PREPARED_AFTER, MAX_PREPARED = 1, 300
"""How often a connection runs a statement before it prepares it, and how many it keeps prepared: all."""
PROBE_SECONDS = 1.5
"""How long `probe` waits for the server."""
LEFT_SECONDS = 1.0
"""How long a call goes on whose caller has left. Most end before, and keep their connection."""
LOOK_SECONDS = 1.0
"""How long `listen` waits for a bell before it yields without one."""
_RECEIPT = "INSERT INTO write_receipts (token) VALUES (%s)"
_RECEIPTS = "write_receipts_pkey"

T = TypeVar("T")
Values = Sequence[Any] | Mapping[str, Any]
"""The values of `%s`, or of `%(name)s`."""
Work = Callable[[AsyncConnection], Awaitable[T]]


class _TextDumper(StrDumperUnknown):
    """Replaces the NUL character, which PostgreSQL does not store in a text, by U+FFFD."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


def name_database(url: str) -> str:
    """Return the database of a URL for messages: its name and its host, without user and password."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        return "the database of store.url"
    name, host = given.get("dbname") or given.get("user"), given.get("host") or "this machine"
    return f"the database {name or 'postgres'} on {host}"


async def configure(connection: AsyncConnection, process: str) -> None:
    """Prepare a connection for the tables, with `process` as the one that the fences know."""
    connection.adapters.register_dumper(str, _TextDumper)
    await connection.set_autocommit(True)
    await connection.execute(
        "SELECT set_config('search_path', %s, false), set_config(%s, %s, false)",
        (SCHEMA, PROCESS_VARIABLE, process),
    )


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """How long others wait for a process, and how long its calls wait for the server."""

    lease_seconds: float = LEASE_SECONDS
    """Without a beat for so long, the process counts as dead, and others go on with its runs."""
    outage_seconds: float = 0.0
    """The longest time for which a call may be tried again."""


class PostgresDatabase:
    """Runs work on the connections of one process; errors become a `StoreError`.

    While the server is away, a call is tried again for `contact.AWAY_SECONDS`, and inside of
    `store.waiting.waiting` until its limit. A call that writes is finished even if its caller is cancelled.
    """

    def __init__(self, url: str, process: str, size: int, times: ProcessTimes) -> None:
        self.name = name_database(url)
        self.process = process
        self.url = url
        """With its password."""
        self.lease_seconds = times.lease_seconds
        """How long other processes wait for a beat of this one before it counts as dead."""
        self.outage_seconds = times.outage_seconds
        """The longest time for which a call may be tried again."""
        self.contact = ServerContact(self._go_on)
        self._reads, self._writes = CallQueue(), CallQueue()
        self._left: set[asyncio.Task[Any]] = set()
        self._is_open = False
        # Without `check`, which gave no connection after the server had crashed.
        self._pool = AsyncConnectionPool(
            url,
            min_size=size,
            max_size=size,
            kwargs={"connect_timeout": CONNECT_SECONDS},
            configure=self.configure,
            name="maniple",
            reconnect_timeout=RECONNECT_SECONDS,
            open=False,
        )

    async def open(self) -> None:
        """Open the connections."""
        await self._pool.open()
        self._is_open = True

    async def close(self) -> None:
        """Close the connections; later calls raise `StoreError`."""
        self._is_open = False
        await self._pool.close()
        for call in (left := {*self._left}):
            call.cancel()
        if left:
            await asyncio.wait(left)

    def _go_on(self) -> None:
        for calls in (self._reads, self._writes):
            calls.report_answer()

    async def configure(self, connection: AsyncConnection) -> None:
        """Prepare a connection, also one of another pool, as one of this process."""
        await configure(connection, self.process)
        connection.prepare_threshold, connection.prepared_max = PREPARED_AFTER, MAX_PREPARED
        # Rows are looked up by keys: to plan that again for other values would take as long as to do it.
        # A process that sleeps or is cut off inside a transaction would hold its locks against who goes on
        # with its runs.
        milliseconds = f"{self.lease_seconds * 1_000:.0f}"
        await connection.execute(
            "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), "
            "set_config('idle_in_transaction_session_timeout', %s, false), "
            "set_config('application_name', %s, false)",
            (milliseconds, APPLICATION_PREFIX + self.process),
        )

    async def connect(self, seconds: int = CONNECT_SECONDS) -> AsyncConnection:
        """Return a connection beside the pool, which the caller closes. Raises `psycopg.Error`."""
        connection = await AsyncConnection.connect(self.url, autocommit=True, connect_timeout=seconds)
        async with AsyncExitStack() as on_failure:
            on_failure.push_async_callback(connection.close)
            await self.configure(connection)
            on_failure.pop_all()
        return connection

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[AsyncConnection]:
        """Yield a connection that commits each statement. What fails in the block is not tried again."""
        try:
            async with self._take(time.monotonic()) as connection:
                yield connection
        except psycopg.Error as error:
            raise self._note(error) from error

    @asynccontextmanager
    async def _take(self, begun: float) -> AsyncGenerator[AsyncConnection]:
        """Yield a connection to a call that began then (monotonic seconds). Raises `psycopg.Error`."""
        try:
            async with asyncio.timeout(None) as bound:
                with self.contact.bounding(bound, begun):
                    connection = await self._pool.getconn(timeout=2 * PATIENCE_SECONDS)
        except TimeoutError:
            raise PoolTimeout("no connection became free in time") from None
        # Not `async with connection`, which would commit what each statement has committed.
        try:
            with self.contact.using(connection):
                yield connection
        finally:
            await self._pool.putconn(connection)

    async def probe(self) -> None:
        """Raise the `StoreError` that a write would raise now, after `PROBE_SECONDS` at the latest."""

        async def write(connection: AsyncConnection) -> None:
            async with connection.transaction(force_rollback=True):
                await connection.execute(_RECEIPT, (uuid4(),))

        probing = await self._outlast(self._try(write, LEAST_SECONDS), PROBE_SECONDS)
        if not probing.done():
            raise self.contact.failure or StoreUnreachable(
                f"{self.name} has not answered for {PROBE_SECONDS:g} s. Look at the server and the network."
            )
        probing.result()

    async def _outlast(self, call: Coroutine[Any, Any, T], seconds: float | None = None) -> asyncio.Task[T]:
        """Return the task of a call when it is done, or after `seconds`.

        It outlasts a caller that is cancelled. Cancelled with it, again and again as by anyio, it would cost
        a connection; and it might wait for a server that is silent.
        """
        task = asyncio.create_task(call, name="store call")
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            if not task.done():
                self._left.add(task)
                task.add_done_callback(self._forget)
                asyncio.get_running_loop().call_later(LEFT_SECONDS, task.cancel)
        return task

    def _forget(self, left: asyncio.Task[Any]) -> None:
        self._left.discard(left)
        if not left.cancelled():
            left.exception()  # else asyncio logs that nobody has retrieved it

    async def read(self, work: Work[T]) -> T:
        """Return the result of `work`, which only reads and may be run again."""

        async def attempt() -> T:
            return (await self._outlast(self._try(work))).result()

        return await self._reads.call(attempt)

    async def repeat(self, work: Work[T]) -> T:
        """Run `work` in one transaction; done twice, it must have the effect of once."""

        async def run(connection: AsyncConnection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self._finish(run)

    async def repeat_statements(self, work: Work[T]) -> T:
        """Run `work` without a transaction around it; done twice, it must have the effect of once."""
        return await self._finish(work)

    async def write(self, work: Work[T]) -> T:
        """Return the result of `work`, run in one transaction. It is never done twice."""
        token, results = uuid4(), list[T]()

        async def run(connection: AsyncConnection) -> T:
            try:
                async with connection.transaction():
                    await connection.execute(_RECEIPT, (token,))
                    result = await work(connection)
                    results.append(result)
            except psycopg.errors.UniqueViolation as error:
                if error.diag.constraint_name != _RECEIPTS:
                    raise
                return results[-1]  # it was committed, and the answer to that was lost
            return result

        return await self._finish(run)

    async def write_row(
        self, sql: str, values: Sequence[Any], stored: tuple[str, Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Run one INSERT or UPDATE and return its rows. It is never done twice.

        If the answer to it was lost, the rows of the query `stored` (with its values) are returned.
        """
        token, once = uuid4(), f"WITH receipt AS ({_RECEIPT}) {sql}"

        async def run(connection: AsyncConnection) -> list[tuple[Any, ...]]:
            try:
                return await fetch_all(connection, once, (token, *values))
            except psycopg.errors.UniqueViolation as error:
                if error.diag.constraint_name != _RECEIPTS:
                    raise
                return await fetch_all(connection, *stored)

        return await self._finish(run)

    async def execute(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; done twice, it must have the effect of once."""
        return await self._finish(lambda connection: fetch_all(connection, sql, values))

    async def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return await self.read(lambda connection: fetch_all(connection, sql, values))

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Yield what is rung on a channel; "" after `LOOK_SECONDS` without a bell, and after each connection.

        At "" the caller looks for itself, since a bell may have been lost. Uses a connection of its own.
        """
        while self._is_open:
            try:
                async with await self.connect() as connection:
                    with self.contact.using(connection):
                        await connection.execute(f"LISTEN {channel}".encode())
                        while self._is_open:
                            yield ""
                            async with aclosing(connection.notifies(timeout=LOOK_SECONDS)) as bells:
                                async for bell in bells:
                                    yield bell.payload
            except psycopg.OperationalError:
                await asyncio.sleep(PAUSE_SECONDS)

    async def vacuum(self) -> None:
        """Make the space of deleted rows usable again."""
        await self.execute("VACUUM (ANALYZE, SKIP_LOCKED)")

    async def _finish(self, work: Work[T]) -> T:
        """Return the result of `work`, which writes and may be run again."""

        async def attempt() -> T:
            return await run_to_completion(self._try(work))

        return await self._writes.call(attempt)

    async def _try(self, work: Work[T], patience_seconds: float = PATIENCE_SECONDS) -> T:
        begun = time.monotonic()
        while True:
            if not self._is_open:
                raise StoreError("The store is closed. Nothing can be read or written.")
            try:
                async with self._take(begun) as connection:
                    result = await work(connection)
            except (psycopg.Error, OSError, OverflowError, UnicodeEncodeError) as error:
                failure = self._note(error)
                end = min(self.contact.deadline(begun), begun + patience_seconds)
                if not is_passing(error) or time.monotonic() >= end:
                    raise failure from error
            else:
                self.contact.report_answer()
                return result
            await asyncio.sleep(PAUSE_SECONDS)

    def _note(self, error: Exception) -> StoreError:
        """Return the `StoreError` for an error, and take note of what it says about the server."""
        failure = from_postgres_error(error, self.name)
        if isinstance(error, PoolTimeout):
            return self.contact.failure or failure  # all may be in use
        if isinstance(failure, StoreUnreachable):
            self.contact.report_failure(failure)
        return failure


async def fetch_all(connection: AsyncConnection, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows; none for a statement that returns no rows."""
    cursor = await connection.execute(sql.encode(), values)
    return await cursor.fetchall() if cursor.description is not None else []


async def execute_many(connection: AsyncConnection, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for each of `rows`."""
    if rows:
        async with connection.cursor() as cursor:
            await cursor.executemany(sql.encode(), rows)


async def count_refusal(connection: AsyncConnection) -> None:
    """Count a write that is refused beside the fences, which count for themselves."""
    await connection.execute("SELECT nextval('fenced_writes')")


async def lock(connection: AsyncConnection, kind: str, name: str) -> None:
    """Hold the lock of this name until the transaction ends, also against other processes."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{kind} {name}",))


async def lock_thread(connection: AsyncConnection, thread_id: str) -> None:
    """Hold the lock of a thread until the transaction ends: who starts, accepts or ends its runs takes it."""
    await lock(connection, "thread", thread_id)


async def lock_thread_of(connection: AsyncConnection, run_id: str) -> bool:
    """Hold the lock of a run's thread until the transaction ends; return False if there is no such run."""
    lock_it = "pg_advisory_xact_lock(hashtextextended('thread ' || thread_id, 0))"
    sql = f"SELECT {lock_it} FROM runs WHERE run_id = %s"
    return bool(await fetch_all(connection, sql, (run_id,)))
